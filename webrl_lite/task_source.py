"""Where a run's tasks come from: environments, task sets, demonstrations, and who makes new tasks.

``open_source`` reads ``env`` of a configuration and starts what it names: the five embedded sites (here), MiniWoB++
(``miniwob_source``) or WebArena on sites that the user hosts (``webarena_source``). What a run asks of any of them
is ``TaskSource``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from webrl_lite.config import Config
from webrl_lite.curriculum import Feasible, Generator
from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.backend import EmbeddedSites
from webrl_lite.envs.embedded.demonstrations import demonstrations
from webrl_lite.envs.embedded.generator import Catalogue, OfflineGenerator, SiteCheck, Truths
from webrl_lite.envs.web_env import WebEnvBatch
from webrl_lite.envs.webarena_tasks import score
from webrl_lite.llm import Llm
from webrl_lite.served_tasks import ModelCheck, ModelGenerator
from webrl_lite.source_parts import (
    FirstPages,
    TaskSource,
    TaskSourceError,
    demonstrations_in,
    draw,
    draw_unshown,
    environment_options,
)
from webrl_lite.trajectory import Task, Trajectory

__all__ = ["EmbeddedSource", "TaskSource", "TaskSourceError", "open_source"]


def open_source(config: Config, count_tokens: Callable[[str], int], special_tokens: Sequence[str]) -> TaskSource:
    """Start the set of tasks that ``env.name`` says; the browser starts with the first episode.

    Args:
        config: gives ``env``, ``rollout``, ``eval``, ``sft`` and who makes new tasks.
        count_tokens: tokens of a text, by the policy's tokenizer.
        special_tokens: the tokenizer's special tokens, which no page may write.

    Raises:
        TaskSourceError: the tasks cannot be had.
        BrowserError: a site that the user hosts is not well.
    """
    if config.env.name == "embedded":
        return EmbeddedSource(config, count_tokens, special_tokens)
    if config.env.name == "miniwob":
        from webrl_lite.envs.miniwob import TEST_SEEDS
        from webrl_lite.miniwob_source import MiniwobSource

        env, first = config.env, TEST_SEEDS[0]
        return MiniwobSource(
            config,
            count_tokens,
            special_tokens,
            tasks=env.tasks,
            train_seeds=range(env.train_seeds),
            test_seeds=range(first, first + env.test_seeds),
        )
    from webrl_lite.webarena_source import WebArenaSource

    return WebArenaSource(config, count_tokens, special_tokens)


class EmbeddedSource:
    """The embedded sites as a run uses them; see ``TaskSource``."""

    def __init__(self, config: Config, count_tokens: Callable[[str], int], special_tokens: Sequence[str]) -> None:
        """Start the sites; arguments and errors are those of ``open_source``."""
        self._config = config
        self._sites = EmbeddedSites()
        self._catalogue = Catalogue.open(self._sites.folder / world.PRISTINE)
        self._truths = Truths(self._catalogue)
        try:
            self.train = self._within("train")
            self.test = draw(self._within(config.eval.split), config.eval.tasks, f"test:{config.eval.seed}")
        except TaskSourceError:
            self._sites.close()
            raise
        options = environment_options(config, count_tokens, special_tokens)
        self.environments = WebEnvBatch(self._sites, config.rollout.environments, owns_backend=True, **options)
        self.first_pages = FirstPages(self.environments)

    def close(self) -> None:
        """End the browser and the sites."""
        self.environments.close()
        self._sites.close()

    def demonstrations(self, seed: int) -> tuple[Trajectory, ...]:
        """Return ``sft.episodes`` of the demonstrations that ship with the sites, or of those in ``sft.file``."""
        return draw(self._all_demonstrations, self._config.sft.episodes, f"demonstrations:{seed}")

    @cached_property
    def _all_demonstrations(self) -> tuple[Trajectory, ...]:
        sft = self._config.sft
        if sft.file:
            tests = [task for task in self._sites.tasks if task.split.startswith("test")]
            return demonstrations_in(sft.file, self.train, test=tests, used=sft.episodes)
        names = {task.task_id for task in self.train}
        return tuple(one for one in demonstrations() if one.task.task_id in names)

    def _within(self, split: str) -> tuple[Task, ...]:
        """Return the tasks of a split that are short enough for ``env.max_required_steps``."""
        most = self._config.env.max_required_steps
        tasks = [task for task in self._sites.tasks if task.split == split]
        kept = tuple(task for task in tasks if most is None or task.required_steps <= most)
        if not kept:
            least = min(task.required_steps for task in tasks)
            raise TaskSourceError(
                f"`env.max_required_steps` must leave a task of the split {split!r}, whose shortest needs {least} "
                f"replies; got {most}. Raise it, or null for all."
            )
        return kept

    def first_tasks(self, seed: int) -> tuple[Task, ...]:
        """Return the train tasks that the first actor plays, those that SFT did not show it first."""
        shown = {one.task.task_id for one in self.demonstrations(seed)}
        return draw_unshown(self.train, shown, self._config.orm.rollouts, f"first:{seed}")

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
        """Return the served model where ``curriculum.generator`` wants it, else the sites' own generator.

        Raises:
            LlmError: the served model has no key.
        """
        if served(self._config):
            llm = Llm(self._config.llm, log)
            return ModelGenerator(llm), ModelCheck(llm)
        return OfflineGenerator(self._catalogue), SiteCheck(self._catalogue)

    def score(self, episodes: Sequence[Trajectory]) -> str:
        """Return the score with evaluator, interval and the always-"N/A" floor."""
        mode = self.environments.envs[0].evaluator
        return str(score(episodes, name=f"embedded, {self._config.eval.split}", mode=mode))


def served(config: Config) -> bool:
    """Return whether a served model makes the new tasks of the embedded sites."""
    chosen = config.curriculum.generator
    return chosen == "llm" or chosen == "auto" and config.llm.base_url is not None
