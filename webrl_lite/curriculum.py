"""The tasks of the next phase: made from what failed, neither too easy nor too hard, doable, and new.

Reads the failure set F, which grows with every phase (``failure_set``), and all tasks that exist; gives the tasks of a
phase, and what was turned down and why (``tasks.jsonl``, ``rejected.jsonl``). ``evolve`` asks a generator, site by
site, until the phase has its tasks or a stated number of requests is spent. Generator, V and feasibility are callables,
so the offline ones and those of a served model take each other's place.

A proposal goes through these rules in this order; what one turns down is kept under its name:

1. ``unreadable``: it is empty or longer than ``LONGEST`` characters;
2. ``duplicate``: but for case, spaces and the marks at its ends it is a failed, train, test or earlier generated task,
   or was proposed in this phase before (what an earlier phase turned down may come again, since V has changed); where a
   page is made of a seed, as in MiniWoB++, the same instruction with another seed is another task (``identity``);
3. ``below_band``, ``above_band``: V of its first observation is not in [0.05, 0.75], ends included; ``no_value``: V is
   no number in [0, 1], NaN among them;
4. ``infeasible``: it cannot be done on its site; ``unjudged``: nobody could say;
5. ``surplus``: the phase had all its tasks.

There is one V: the critic's probability of success, as in the advantage (``SharedBase.values``). Before the first phase
there is no critic; then rule 3 is left out, or the ORM's P(YES) at the first observation takes V's place, as
``curriculum.first_phase`` says (``first_values``).

Worked example: of 10 proposals with V = 0.02, 0.05, 0.3, 0.3, 0.5, 0.75, 0.76, 0.9, NaN, 0.4 rule 3 leaves 6.

Source: WebRL Section 2.1, Appendix C and Algorithm 1 (version 3); ``scripts/gen_task.py``; the authors in issues 31 and
36.

# differs from paper: the ends of the band are in it.
# differs from release: one value and not "either of two heads" (``gen_task.py:111``); V on the page that the task
starts on and not on one stored page a site; a site is asked as often as its share of F, not twice; duplicates, test
tasks and infeasible ones are really turned down; it asks until there are enough.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import random
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from webrl_lite.config import Config, CurriculumConfig
from webrl_lite.curriculum_report import CurriculumReport, Rejected
from webrl_lite.llm import LlmError
from webrl_lite.model import SharedBase
from webrl_lite.orm import judge
from webrl_lite.prompts import orm_prompt, state_ids
from webrl_lite.trajectory import JSON, StopReason, Task, Trajectory

REQUESTS_PER_BATCH = 8
"""Requests for each that would do if nothing were turned down; no more are made. (ours)"""
FAILED_IN_A_ROW = 3
"""Requests without an answer after which no more are made: each has been tried several times already."""
LONGEST = 600
"""Most characters of an instruction; a longer one would crowd the page out of the prompt."""
ROUNDING = 1e-6
"""Tolerance at the ends of the band, so that an end is inside although V is float32."""

ValueOf = Callable[[Sequence[Task]], Sequence[float]]
"""V of each task's first observation, in [0, 1]."""
Feasible = Callable[[Task], tuple[bool | None, str]]
"""Whether a task can be done (None: no verdict), and why not. Asked one by one, since an answer may cost money."""

log = logging.getLogger(__name__)


class Generator(Protocol):
    """Makes tasks from failed ones."""

    name: str
    """For the report."""
    at_once: int
    """Most tasks of a request."""

    def propose(self, sites: tuple[str, ...], failed: Sequence[Task], count: int, seed: str) -> list[Task]:
        """Return new tasks, without ids, for these sites; fewer or none if it cannot. May raise ``LlmError``."""


class CurriculumError(RuntimeError):
    """A phase without tasks; ``report`` holds what was turned down, if anything was asked for."""

    def __init__(self, message: str, report: CurriculumReport | None = None) -> None:
        super().__init__(message)
        self.report = report


def failure_set(earlier: Sequence[Task], trajectories: Iterable[Trajectory]) -> tuple[Task, ...]:
    """Return the failure set after more rollouts: what was in it, and the tasks that failed now.

    A task never leaves it, as in Algorithm 1. An episode that the environment broke or that nobody could grade is no
    failure; tasks of a test split are never taken.

    Args:
        earlier: the set so far.
        trajectories: labelled rollouts.
    """
    found = {task.task_id: task for task in earlier}
    for trajectory in trajectories:
        verdict = trajectory.verdict
        graded = trajectory.stop != StopReason.ENV_ERROR and verdict is not None and verdict.graded
        if graded and not verdict.success and not trajectory.task.split.startswith("test"):
            found.setdefault(trajectory.task.task_id, trajectory.task)
    return tuple(found.values())


def first_values(
    config: CurriculumConfig, phase: int, critic: ValueOf | None, orm: ValueOf | None = None
) -> ValueOf | None:
    """Return what rule 3 asks in a phase: the critic, or in the first one what ``curriculum.first_phase`` says.

    Args:
        config: gives ``first_phase``.
        phase: from 1.
        critic: V of the critic of the phase before; for phase 1 of the one that learned from the first actor's graded
            episodes, if ``first_phase`` = ``critic``.
        orm: P(YES), for ``first_phase`` = ``orm``.

    Raises:
        CurriculumError: what should be asked is missing.
    """
    if phase > 1 or config.first_phase == "critic":
        if critic is None:
            raise CurriculumError(f"the critic is missing, which phase {phase} filters its tasks with. Load it.")
        return critic
    if config.first_phase == "none":
        return None
    if orm is None:
        raise CurriculumError("`curriculum.first_phase` is orm, but there is no ORM. Load it, or use none.")
    return orm


def evolve(
    failed: Sequence[Task],
    accepted_so_far: Sequence[Task],
    generator: Generator,
    value_of: ValueOf | None,
    feasible: Feasible,
    config: CurriculumConfig,
    *,
    seed: int,
    phase: int,
    known: Iterable[Task] = (),
    max_requests: int | None = None,
) -> tuple[tuple[Task, ...], CurriculumReport]:
    """Make the tasks of a phase.

    The same for the same arguments, in every process, if the callables are.

    Args:
        failed: the failure set F.
        accepted_so_far: generated tasks of earlier phases.
        generator: proposes tasks.
        value_of: V of the first observation; None: rule 3 is left out, and the log says so.
        feasible: tells what can be done.
        config: gives tasks a phase, the band and the seeds of a request.
        seed: of the run.
        phase: from 1; it is part of the tasks' ids, ``gen.<phase>.<proposal>``.
        known: train and test tasks, which must not come again.
        max_requests: most requests; None: ``REQUESTS_PER_BATCH`` times what would do if every proposal passed.

    Returns:
        At most ``tasks_per_phase`` tasks and at least one, and the report. Fewer are a shortfall, which the report and
        the log state.

    Raises:
        CurriculumError: no failed task, a failed task of a test split, or no task that passed; the error holds the
            report.
    """
    groups = _by_sites(failed)
    wanted = config.tasks_per_phase
    count = min(generator.at_once, math.ceil(wanted / len(groups)))  # so that a small phase sees several sites
    if max_requests is None:
        max_requests = REQUESTS_PER_BATCH * math.ceil(wanted / count)
    if value_of is None:
        log.info("phase %d: no value of the first observation, tasks are not filtered by difficulty", phase)
    search = _Search(generator, value_of, feasible, config, f"{seed}:{phase}", phase)
    search.seen.update(identity(task) for tasks in (failed, accepted_so_far, known) for task in tasks)
    failures: Counter[str] = Counter()
    requests = in_a_row = 0
    stopped = ""
    asked: Counter[tuple[str, ...]] = Counter()
    while not stopped:
        if len(search.accepted) >= wanted:
            stopped = "enough"
        elif requests >= max_requests:
            stopped = "max_requests"
        else:
            # each in turn as often as its share of F
            sites = max(groups, key=lambda one: len(groups[one]) / (asked[one] + 1))
            asked[sites] += 1
            requests += 1
            try:
                search.request(sites, groups[sites], count, requests)
                in_a_row = 0
            except LlmError as error:
                log.warning("phase %d, request %d: %s", phase, requests, error)
                failures[error.kind] += 1
                in_a_row += 1
                if error.final or in_a_row >= FAILED_IN_A_ROW:
                    stopped = f"{error.kind}: {error}"
    report = CurriculumReport(
        phase=phase,
        generator=generator.name,
        wanted=wanted,
        accepted=len(search.accepted),
        proposals=search.proposals,
        requests=requests,
        max_requests=max_requests,
        failed_requests=dict(failures),
        stopped=stopped,
        values=tuple(search.values),
        rejected=tuple(search.rejected),
    )
    (log.warning if report.shortfall else log.info)("%s", report.line())
    if not search.accepted:
        raise CurriculumError(f"no new task. {report.line().removesuffix('.')}. {_way_out(report)}", report)
    return tuple(search.accepted), report


class _Search:
    """What a phase has found so far."""

    def __init__(
        self,
        generator: Generator,
        value_of: ValueOf | None,
        feasible: Feasible,
        config: CurriculumConfig,
        seed: str,
        phase: int,
    ) -> None:
        self.generator, self.value_of, self.feasible = generator, value_of, feasible
        self.config, self.seed, self.phase = config, seed, phase
        self.seen: set[tuple[str, JSON]] = set()
        self.accepted: list[Task] = []
        self.values: list[float] = []
        self.rejected: list[Rejected] = []
        self.proposals = 0

    def request(self, sites: tuple[str, ...], failed: list[Task], count: int, number: int) -> None:
        """Ask once, and let what comes through the rules."""
        name = f"{self.seed}:{'+'.join(sites)}:{number}"
        shown = random.Random(f"curriculum:{name}").sample(failed, min(self.config.seeds_per_request, len(failed)))
        fresh = self._fresh(self.generator.propose(sites, shown, count, name))
        in_band = self._in_band(fresh)
        self._doable(in_band)

    def _reject(self, task: Task, reason: str, why: str = "", value: float | None = None) -> None:
        self.rejected.append(Rejected(task, reason, why, value))

    def _fresh(self, proposals: list[Task]) -> list[Task]:
        """Number the proposals and apply rules 1 and 2."""
        fresh = []
        for proposal in proposals:
            self.proposals += 1
            task = dataclasses.replace(
                proposal, task_id=f"gen.{self.phase:02d}.{self.proposals:04d}", eval=None, split=""
            )
            if not normalised(task.intent) or len(task.intent) > LONGEST:
                self._reject(task, "unreadable", f"{len(task.intent)} characters")
            elif identity(task) in self.seen:
                self._reject(task, "duplicate")
            else:
                self.seen.add(identity(task))
                fresh.append(task)
        return fresh

    def _in_band(self, tasks: list[Task]) -> list[tuple[Task, float | None]]:
        """Apply rule 3."""
        if self.value_of is None or not tasks:
            return [(task, None) for task in tasks]
        kept: list[tuple[Task, float | None]] = []
        values = self.value_of(tasks)
        if len(values) != len(tasks):
            raise CurriculumError(f"`value_of` must give one value a task, got {len(values)} for {len(tasks)}.")
        for task, value in zip(tasks, values, strict=True):
            reason = band(value, self.config)
            if reason:
                number = value if isinstance(value, int | float) and math.isfinite(value) else None
                self._reject(task, reason, f"V = {value}", number)
            else:
                kept.append((task, float(value)))
        return kept

    def _doable(self, tasks: list[tuple[Task, float | None]]) -> None:
        """Apply rules 4 and 5."""
        for position, (task, value) in enumerate(tasks):
            if len(self.accepted) >= self.config.tasks_per_phase:
                self._reject(task, "surplus", value=value)
                continue
            try:
                verdict, why = self.feasible(task)
            except LlmError as error:
                for unjudged, its_value in tasks[position:]:
                    self._reject(unjudged, "unjudged", str(error), its_value)
                raise
            if verdict:
                self.accepted.append(task)
                self.values += [] if value is None else [value]
            else:
                self._reject(task, "unjudged" if verdict is None else "infeasible", why, value)


def band(value: float, config: CurriculumConfig) -> str:
    """Return the reason for which V turns a task down; empty if V is in the band, ends included."""
    if not isinstance(value, int | float) or not -ROUNDING <= value <= 1 + ROUNDING:  # NaN compares as false
        return "no_value"
    if value < config.value_min - ROUNDING:
        return "below_band"
    return "above_band" if value > config.value_max + ROUNDING else ""


def identity(task: Task) -> tuple[str, JSON]:
    """Return what two tasks share that count as the same: the instruction, and the seed where the page is made of one.

    ``click-dialog-2`` of MiniWoB++ asks for nearly the same with every seed, of a page that looks another way.
    """
    return normalised(task.intent), task.instantiation_dict.get("seed") if task.sites == ("miniwob",) else None


def normalised(text: str) -> str:
    """Return what two instructions share that count as the same task.

    ``" `Buy  TEA.` "`` and ``"buy tea"`` are the same.
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(" .?!,;:`'\"")


def _by_sites(failed: Sequence[Task]) -> dict[tuple[str, ...], list[Task]]:
    """Return the failure set by its tasks' sites, sorted, so that its order changes nothing."""
    if not failed:
        raise CurriculumError(
            "`failed` must hold a task to start from, got none: everything was solved. Stop here, or give harder tasks."
        )
    groups: dict[tuple[str, ...], list[Task]] = {}
    for task in sorted(failed, key=lambda task: (task.sites, task.task_id)):
        if task.split.startswith("test"):
            raise CurriculumError(
                f"`failed` must hold no test task, got {task.task_id} of {task.split}. Use ``failure_set``."
            )
        groups.setdefault(task.sites, []).append(task)
    return groups


def _way_out(report: CurriculumReport) -> str:
    """Return what to do about a phase without tasks."""
    if report.failed_requests:
        return "See llm.jsonl for every request, repair the access to the model, or use the generator without one."
    if not report.proposals:
        return "The generator made nothing from the failed tasks: are they of families that it knows?"
    most = max(report.reasons, key=lambda reason: report.reasons[reason])
    hints = {
        "below_band": "Lower `curriculum.value_min`, or train the critic on more rollouts.",
        "above_band": "Raise `curriculum.value_max`: the agent solves what it is given.",
        "no_value": "The critic's weights are broken: load an earlier critic.",
        "duplicate": "The generator repeats itself: raise its temperature, or stop here.",
    }
    return hints.get(most, "See rejected.jsonl for each proposal and its reason.")


# V ------------------------------------------------------------------------------------------------------------------


def critic_values(
    first_pages: Callable[[Sequence[Task]], Sequence[str]], shared: SharedBase, config: Config
) -> ValueOf:
    """Return V of the first observation: the critic on the very prompt that the actor begins the episode with.

    Args:
        first_pages: texts of the pages that tasks start on.
        shared: the base; its role ``critic`` is asked.
        config: gives template and lengths.
    """

    def values(tasks: Sequence[Task]) -> list[float]:
        prompts = [
            state_ids(shared.tokenizer, config, intent=task.intent, replies=(), page=page)
            for task, page in zip(tasks, first_pages(tasks), strict=True)
        ]
        with shared.role("critic"):
            return shared.values(prompts).tolist()

    return values


def orm_values(first_pages: Callable[[Sequence[Task]], Sequence[str]], shared: SharedBase, config: Config) -> ValueOf:
    """Return the ORM's P(YES) at the first observation, before anything was done; see ``critic_values``."""

    def values(tasks: Sequence[Task]) -> list[float]:
        prompts = [
            orm_prompt(
                shared.tokenizer,
                config.model.template,
                intent=task.intent,
                replies=(),
                page=page,
                max_length=config.model.max_length,
            ).ids
            for task, page in zip(tasks, first_pages(tasks), strict=True)
        ]
        return [one.score for one in judge(shared, prompts)]

    return values
