"""The authors' rollouts: one trace file an episode, one line a step, and the score in a file beside it.

Reads and writes the folders of VisualAgentBench's ``run.py`` (``traces/<id>.jsonl`` with ``actions/<id>.json``) and
reads those of WebRL's ``process_data.py`` (``fixed_traces/``, with ``score`` on every line). Standard library only.

A line is ``trace_id``, ``index``, ``prompt`` (the intent, later ``** Simplified html **``), ``html`` (what the agent
read), ``response`` and ``target`` (the intent). A score below 0, as the release writes it before grading (-0.1), is no
grade here and never a failure.

Source: ``VAB-WebArena-Lite/new/run.py:298-304, 510-529``; ``scripts/process_data.py:129-154``.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from webrl_lite.exchange_files import read_records, write_lines
from webrl_lite.exchange_steps import KnownTasks, extras, left_over, make_step, make_trajectory
from webrl_lite.prompts import PAST_PAGE
from webrl_lite.trajectory import JSON, Step, StopReason, Task, TraceError, Trajectory, Verdict

UNGRADED = -0.1
"""What the release has for a score before there is one."""
_TEXTS = ("prompt", "html", "response", "target")
_Line = dict[str, JSON]


def read_traces(path: str | os.PathLike[str], known: KnownTasks | None = None) -> Iterator[Trajectory]:
    """Yield the episodes of trace files.

    Args:
        path: a trace file, which may hold several episodes one after another, or a folder: one of trace files, or one
            with ``fixed_traces`` or ``traces`` in it, the former if it has both. Files are read in the order of their
            numbers.
        known: tasks to look ids and intents up in; without, ``sites`` is ``unknown``.

    Raises:
        TraceError: a line is not of a trace; file and line are named. Or a folder has no trace file.
        OSError: there is no such file.
    """
    known = known or KnownTasks()
    names: Counter[str] = Counter()
    for file in _files(Path(path)):
        score, actions = _score_beside(file)
        lines: list[_Line] = []
        for number, line in read_records(file):
            _check(line, f"{file}, line {number}")
            if lines and (line["index"] == 0 or line["trace_id"] != lines[0]["trace_id"]):
                yield _trajectory(lines, known, names, score, actions)
                lines = []
            if line["index"] != len(lines):
                raise TraceError(
                    f"{file}, line {number}: `index` must be {len(lines)}, got {line['index']}. Lines are missing or "
                    "not in order."
                )
            lines.append(line)
        if lines:
            yield _trajectory(lines, known, names, score, actions)


def write_traces(
    folder: str | os.PathLike[str], trajectories: Iterable[Trajectory], *, fixed: bool = False
) -> tuple[int, int]:
    """Write episodes as the release's harness leaves them: ``traces/<id>.jsonl`` and ``actions/<id>.json``.

    ``<id>`` is the task's id; a second episode of a task gets ``_1`` and so on. ``html`` is the stored page source
    where a run keeps it, else what the agent read. Left out are episodes that the environment ended (the release writes
    no trace of those) and episodes without a step.

    Args:
        folder: where the two folders go.
        trajectories: any.
        fixed: write ``fixed_traces`` instead of ``traces``, with ``fixed_response`` and ``score`` on each line, as they
            are after ``process_data.py``'s first stage.

    Returns:
        The number of episodes written, and of those left out.
    """
    folder, written, left_out = Path(folder), set(), 0
    for trajectory in trajectories:
        if trajectory.stop == StopReason.ENV_ERROR or not trajectory.steps:
            left_out += 1
            continue
        base = re.sub(r"[^\w.-]", "_", trajectory.task.task_id)
        name, number = base, 0
        while name.casefold() in written:  # a disk may not tell letter case apart
            number += 1
            name = f"{base}_{number}"
        written.add(name.casefold())
        lines = trace_lines(trajectory, fixed=fixed)
        write_lines(folder / ("fixed_traces" if fixed else "traces") / f"{name}.jsonl", lines)
        actions = trajectory.evidence.get("actions") or [step.reply for step in trajectory.steps]
        done = {"task_id": lines[0]["trace_id"], "score": _score(trajectory.verdict), "actions": actions}
        write_lines(folder / "actions" / f"{name}.json", [done])
    return len(written), left_out


def trace_lines(trajectory: Trajectory, *, fixed: bool = False) -> list[_Line]:
    """Return the lines of an episode's trace; see ``write_traces``."""
    lines = []
    for step, extra in zip(trajectory.steps, extras(trajectory), strict=True):
        line = _told(trajectory.task, step)
        if fixed:
            line |= {"fixed_response": step.reply, "score": _score(trajectory.verdict)}
        lines.append({**line, **extra})
    return lines


def _told(task: Task, step: Step) -> _Line:
    """Return the line of a step, as far as the step tells it."""
    name = task.task_id
    return {
        "trace_id": int(name) if re.fullmatch(r"0|[1-9][0-9]{0,17}", name) else name,
        "index": step.index,
        "prompt": PAST_PAGE if step.index else task.intent,
        "html": step.html or step.observation,
        "response": step.reply,
        "target": task.intent,
    }


def _trajectory(
    lines: list[_Line], known: KnownTasks, names: Counter[str], score: float | None, actions: JSON
) -> Trajectory:
    """Return the episode of a trace's lines."""
    task_id = str(lines[0]["trace_id"])
    names[task_id] += 1
    name = task_id if names[task_id] == 1 else f"{task_id}#{names[task_id]}"
    task = known.find(task_id, lines[0]["target"])
    steps = [make_step(i, line["html"], line["response"]) for i, line in enumerate(lines)]
    score = lines[-1].get("score", score)
    extra = []
    for line, step in zip(lines, steps, strict=True):
        told = {**_told(task, step), "fixed_response": step.reply, "score": score}
        extra.append(left_over(line, told))
    trajectory = make_trajectory(task, name, steps, extra, verdict_of(score))
    if actions not in (None, [step.reply for step in steps]):
        trajectory.evidence["actions"] = actions
    return trajectory


def verdict_of(score: float | None) -> Verdict | None:
    """Return the grade that a score of the release stands for; who gave it, the files do not tell."""
    if score is None:
        return None
    if score < 0:
        return Verdict(None, "imported", reasons=(f"score {score}: not graded",))
    return Verdict(float(score), "imported")


def _score(verdict: Verdict | None) -> float:
    return UNGRADED if verdict is None or verdict.score is None else verdict.score


# Files --------------------------------------------------------------------------------------------------------------


def _files(path: Path) -> list[Path]:
    """Return the trace files at a path."""
    if not path.is_dir():
        return [path]
    for folder in (path / "fixed_traces", path / "traces", path):
        files = [file for file in folder.glob("*.jsonl*") if re.search(r"\.jsonl(\.gz)?$", file.name)]
        if files:
            return sorted(files, key=lambda file: [(len(n), n) for n in re.split(r"(?<=\D)(?=\d)", file.name)])
    raise TraceError(f"{path}: there is no trace file (.jsonl) in it, nor in its `traces`.")


def _score_beside(file: Path) -> tuple[float | None, JSON]:
    """Return score and actions of ``actions/<id>.json``, where the harness left one."""
    beside = file.parent.parent / "actions" / f"{file.name.partition('.jsonl')[0]}.json"
    if not beside.is_file():
        return None, None
    for number, record in read_records(beside):
        _check_score(record, f"{beside}, line {number}")
        return record["score"], record.get("actions")
    raise TraceError(f"{beside}: the file is empty.")


def _check(line: _Line, where: str) -> None:
    """Refuse what is not a line of a trace."""
    for name in ("trace_id", "index", *_TEXTS):
        if name not in line:
            raise TraceError(f"{where}: `{name}` is missing; is this a trace of the release?")
    for name in _TEXTS:
        if not isinstance(line[name], str):
            raise TraceError(f"{where}: `{name}` must be a text, got {line[name]!r}.")
    index, trace_id = line["index"], line["trace_id"]
    if not isinstance(index, int) or isinstance(index, bool) or index < 0:
        raise TraceError(f"{where}: `index` must be a whole number of at least 0, got {index!r}.")
    if isinstance(trace_id, bool) or not isinstance(trace_id, int | str) or trace_id == "":
        raise TraceError(f"{where}: `trace_id` must be a number or a non-empty text, got {trace_id!r}.")
    if not line["target"]:
        raise TraceError(f"{where}: `target` must be the task's instruction, got ''.")
    if "score" in line:
        _check_score(line, where)


def _check_score(record: _Line, where: str) -> None:
    score = record.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not score <= 1:
        raise TraceError(f"{where}: `score` must be a number of at most 1, got {score!r}.")
