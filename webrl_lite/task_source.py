"""Where a run's tasks come from: environments, task sets, demonstrations, and who makes new tasks.

``open_source`` reads ``env`` of a configuration and starts what it names; so far the five embedded sites. What a run
asks of it is in ``TaskSource``, so other sets of tasks take its place.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from webrl_lite.config import Config
from webrl_lite.curriculum import Feasible, Generator
from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.backend import EmbeddedSites
from webrl_lite.envs.embedded.demonstrations import demonstrations
from webrl_lite.envs.embedded.generator import Catalogue, OfflineGenerator, SiteCheck, Truths
from webrl_lite.envs.web_env import StopRules, WebEnvBatch
from webrl_lite.llm import Llm
from webrl_lite.served_tasks import ModelCheck, ModelGenerator
from webrl_lite.trajectory import Task, Trajectory


class TaskSourceError(RuntimeError):
    """Tasks that cannot be had: names what failed and the way out."""


class TaskSource:
    """The embedded sites as a run uses them."""

    environments: WebEnvBatch
    """``rollout.environments`` worlds on one browser."""
    train: tuple[Task, ...]
    test: tuple[Task, ...]
    """What every evaluation plays."""

    def __init__(self, config: Config, count_tokens: Callable[[str], int], special_tokens: Sequence[str]) -> None:
        """Start the sites; the browser starts with the first episode.

        Args:
            config: gives ``env``, ``rollout``, ``eval`` and ``curriculum.generator``.
            count_tokens: tokens of a text, by the policy's tokenizer.
            special_tokens: the tokenizer's special tokens, which no page may write.
        """
        self._config = config
        self._sites = EmbeddedSites()
        self._catalogue = Catalogue.open(self._sites.folder / world.PRISTINE)
        self._truths = Truths(self._catalogue)
        self._pages: dict[str, str] = {}
        self.train = tuple(task for task in self._sites.tasks if task.split == "train")
        self.test = _draw(
            [task for task in self._sites.tasks if task.split == config.eval.split],
            config.eval.tasks,
            f"test:{config.eval.seed}",
        )
        rollout = config.rollout
        self.environments = WebEnvBatch(
            self._sites,
            rollout.environments,
            mode=config.env.observation,
            budget=config.env.observation_tokens,
            count_tokens=count_tokens,
            special_tokens=special_tokens,
            evaluator=config.env.evaluator,
            rules=StopRules(rollout.max_steps, rollout.parse_failures, rollout.equal_replies),
            owns_backend=True,
        )

    def close(self) -> None:
        """End the browser and the sites."""
        self.environments.close()
        self._sites.close()

    def demonstrations(self, seed: int) -> tuple[Trajectory, ...]:
        """Return the demonstrations that SFT learns from: ``sft.episodes`` of them, the same for the same seed."""
        return _draw(demonstrations(), self._config.sft.episodes, f"demonstrations:{seed}")

    def first_tasks(self, seed: int) -> tuple[Task, ...]:
        """Return the train tasks that the first actor plays: ``orm.rollouts`` of them."""
        return _draw(self.train, self._config.orm.rollouts, f"first:{seed}")

    def first_page(self, task: Task) -> str:
        """Return the text of the page that a task starts on; tasks that start alike see the same page.

        Raises:
            TaskSourceError: the environment could not start the task.
        """
        key = json.dumps([task.start_url, task.extra.get("sessions")])
        if key not in self._pages:
            rest = [None] * (len(self.environments.envs) - 1)
            values, info = self.environments.reset([dataclasses.replace(task, task_id=task.task_id or "new"), *rest])[0]
            if "env_error" in info:
                raise TaskSourceError(
                    f"the first page of {task.task_id} ({task.start_url}) could not be read: {info['env_error']}. Go "
                    "on with --resume; `doctor` tells what is wrong if it stays so."
                )
            self._pages[key] = values["text"]
        return self._pages[key]

    def graded(self, tasks: Sequence[Task]) -> list[Task]:
        """Return generated tasks with the grader that the sites know for them, where they know one.

        For measuring the ORM only: its labels, not these graders' scores, are what is trained on.
        """
        known = []
        for task in tasks:
            truth = self._truths(task) if task.eval is None else None
            known.append(dataclasses.replace(task, eval=truth.eval) if truth is not None and truth.feasible else task)
        return known

    def can_be_done(self, task: Task) -> bool | None:
        """Return whether a generated task is one of the sites' own; None for a served model's."""
        truth = self._truths(task)
        return None if truth is None else truth.feasible

    def generator(self, log: Path) -> tuple[Generator, Feasible]:
        """Return who makes new tasks and who tells which can be done.

        Args:
            log: where a served model's requests are written.

        Raises:
            LlmError: the served model has no key.
        """
        if served(self._config):
            llm = Llm(self._config.llm, log)
            return ModelGenerator(llm), ModelCheck(llm)
        return OfflineGenerator(self._catalogue), SiteCheck(self._catalogue)


def served(config: Config) -> bool:
    """Return whether a served model makes the new tasks."""
    chosen = config.curriculum.generator
    return chosen == "llm" or chosen == "auto" and config.llm.base_url is not None


def _draw(items: Sequence, number: int | None, seed: str) -> tuple:
    """Return some of the items, in their order; all if None or if there are no more."""
    if number is None or number >= len(items):
        return tuple(items)
    chosen = sorted(random.Random(seed).sample(range(len(items)), number))
    return tuple(items[index] for index in chosen)
