"""What task sources share: drawing tasks, first pages, demonstrations from a file, and what a run asks of a source.

Used by ``task_source``, which has the embedded sites and opens the others, and by ``webarena_source``.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from webrl_lite.config import Config
from webrl_lite.curriculum import Feasible, Generator, normalised
from webrl_lite.envs.web_env import StopRules, WebEnvBatch
from webrl_lite.exchange import read_trajectories
from webrl_lite.exchange_steps import KnownTasks
from webrl_lite.trajectory import StopReason, Task, Trajectory

Item = TypeVar("Item")

log = logging.getLogger(__name__)


class TaskSourceError(RuntimeError):
    """Tasks that cannot be had: names what failed and the way out."""


class TaskSource(Protocol):
    """A set of tasks as a run uses it; ``close`` ends what it started."""

    environments: WebEnvBatch
    """``rollout.environments`` worlds on one browser."""
    train: tuple[Task, ...]
    """Graded tasks to learn from, none of which is tested on."""
    test: tuple[Task, ...]
    """What every evaluation plays."""

    def demonstrations(self, seed: int) -> tuple[Trajectory, ...]:
        """Return the demonstrations that SFT learns from, the same for the same seed; none if there are none."""

    def first_tasks(self, seed: int) -> tuple[Task, ...]:
        """Return the train tasks that the first actor plays: ``orm.rollouts``, those that SFT did not show it first.

        Raises:
            TaskSourceError: there are no train tasks.
        """

    def first_pages(self, tasks: Sequence[Task]) -> list[str]:
        """Return the texts of the pages that tasks start on.

        Raises:
            TaskSourceError: the environment could not start a task.
        """

    def graded(self, tasks: Sequence[Task]) -> list[Task]:
        """Return generated tasks, with the grader that the source knows for them where it knows one."""

    def can_be_done(self, task: Task) -> bool | None:
        """Return whether a generated task can be done; None if nobody knows for certain."""

    def generator(self, log: Path) -> tuple[Generator, Feasible]:
        """Return who makes new tasks and who tells which can be done.

        Args:
            log: where a served model's requests are written.

        Raises:
            LlmError: the served model has no key.
            TaskSourceError: this source has no such generator.
        """

    def score(self, episodes: Sequence[Trajectory]) -> str:
        """Return the score of episodes on the test tasks, with all that belongs to it, for people."""

    def close(self) -> None:
        """End the browser and the sites."""


class FirstPages:
    """Texts of the pages that tasks start on; tasks that start alike see the same page, which is read once."""

    def __init__(self, environments: WebEnvBatch) -> None:
        """Take the environments; all of them are asked at once."""
        self._environments = environments
        self._pages: dict[str, str] = {}

    def __call__(self, tasks: Sequence[Task]) -> list[str]:
        """Return the texts, in the order of the tasks.

        Raises:
            TaskSourceError: the environment could not start a task.
        """
        keys = [json.dumps([task.start_url, task.sites, task.extra.get("sessions")]) for task in tasks]
        unread = {key: task for key, task in zip(keys, tasks, strict=True) if key not in self._pages}
        self._pages |= zip(unread, self._read(list(unread.values())), strict=True)
        return [self._pages[key] for key in keys]

    def _read(self, tasks: Sequence[Task]) -> list[str]:
        """Start each task and return what is read there."""
        width = len(self._environments.envs)
        texts = []
        for begin in range(0, len(tasks), width):
            some = tasks[begin : begin + width]
            named = [dataclasses.replace(task, task_id=task.task_id or "new") for task in some]
            seen = self._environments.reset([*named, *[None] * (width - len(named))])[: len(named)]
            for task, (values, info) in zip(some, seen, strict=True):
                if "env_error" in info:
                    raise TaskSourceError(
                        f"the first page of {task.task_id} ({task.start_url}) could not be read: {info['env_error']}. "
                        "Go on with --resume; `doctor` tells what is wrong if it stays so."
                    )
                texts.append(values["text"])
        return texts


def draw(items: Sequence[Item], number: int | None, seed: str) -> tuple[Item, ...]:
    """Return some of the items, in their order; all if None or if there are no more."""
    if number is None or number >= len(items):
        return tuple(items)
    chosen = sorted(random.Random(seed).sample(range(len(items)), number))
    return tuple(items[index] for index in chosen)


def draw_unshown(tasks: Sequence[Task], shown: Collection[str], number: int | None, seed: str) -> tuple[Task, ...]:
    """Return some of the tasks, in their order: from those without a demonstration as far as they go, then the others.

    An actor that has read a task's demonstration solves it more often than a new one, and a judge that saw only such
    episodes has hardly met a failure.

    Args:
        tasks: to draw from.
        shown: names of those that the actor has seen solved.
        number: how many; None: all.
        seed: of the draw.
    """
    new = draw([task for task in tasks if task.task_id not in shown], number, seed)
    rest = None if number is None else number - len(new)
    old = draw([task for task in tasks if task.task_id in shown], rest, seed)
    names = {task.task_id for task in (*new, *old)}
    return tuple(task for task in tasks if task.task_id in names)


def environment_options(
    config: Config, count_tokens: Callable[[str], int], special_tokens: Sequence[str]
) -> dict[str, object]:
    """Return the arguments of ``WebEnvBatch`` that follow from the settings, whatever the tasks are."""
    rollout = config.rollout
    return {
        "mode": config.env.observation,
        "budget": config.env.observation_tokens,
        "count_tokens": count_tokens,
        "special_tokens": special_tokens,
        "evaluator": None if config.env.evaluator == "auto" else config.env.evaluator,
        "picture": config.pictures,
        "rules": StopRules(rollout.max_steps, rollout.parse_failures, rollout.equal_replies),
    }


def demonstrations_in(
    path: str | Path, known: Iterable[Task] = (), *, test: Iterable[Task] = (), used: int | None = None
) -> tuple[Trajectory, ...]:
    """Return the demonstrations of a file of ours or of the authors'.

    Left out, and counted in the log, are episodes that failed, that the environment ended, or whose instruction is a
    test task's.

    Args:
        path: see ``exchange.read_trajectories``.
        known: tasks in which the authors' steps, which name no site, are looked up.
        test: tasks that must not be learned from.
        used: how many the run will draw, None for all; the log says so where that is not the whole file.

    Raises:
        TraceError: the file cannot be read.
        OSError: there is none.
    """
    tested = {normalised(task.intent) for task in test}
    kept, failed, leaking = [], 0, 0
    for one in read_trajectories(path, KnownTasks(known)):
        graded = one.verdict is not None and one.verdict.graded
        if one.stop is StopReason.ENV_ERROR or graded and not one.verdict.success:
            failed += 1
        elif normalised(one.task.intent) in tested:
            leaking += 1
        else:
            kept.append(one)
    if failed or leaking:
        log.warning(
            "%s: %d demonstrations; left out: %d that failed, %d of test tasks", path, len(kept), failed, leaking
        )
    if used is not None and used < len(kept):
        log.warning(
            "%s: %d of its %d demonstrations are learned from (`sft.episodes`; null: all)", path, used, len(kept)
        )
    return tuple(kept)
