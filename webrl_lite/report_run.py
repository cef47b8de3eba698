"""A run's folder in memory, without the texts: what ``report`` counts, whatever of it is there.

Reads the files of a run, finished, unfinished or killed; gives a ``Run``. A file that is not there gives an empty part,
a broken one gives a note and an empty part, and a line that a kill has cut in a log is left out alone. No torch, and no
page text or token id is kept, so that a run of any size fits into memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from webrl_lite.curriculum_report import Rejected, read_rejected
from webrl_lite.trajectory import JSON, StopReason, Task, Trajectory, read_jsonl

Part = TypeVar("Part")
Lines = tuple[Mapping[str, JSON], ...]

SEVERAL = "several sites"
"""Group of the tasks that need more than one site; the paper's tables, too, count them under no site."""


class ReportError(ValueError):
    """A folder that is no run's: names it and says what one holds."""


@dataclass(frozen=True)
class Episode:
    """What is counted of a trajectory."""

    trajectory_id: str
    task_id: str
    site: str
    """The task's site, or ``SEVERAL``; ``wikipedia`` beside another one does not count, as in the paper's tables."""
    family: str
    split: str
    steps: int
    env_error: bool
    """Whether the environment failed; the four below are None then."""
    success: bool | None
    """What its verdict says, the ORM's in labelled rollouts, the grader's elsewhere; None if it has none."""
    truth: bool | None
    """What the grader says, where one is known."""
    score: float | None
    """P(YES) / (P(YES) + P(NO)) of the ORM."""
    mass: float | None
    """P(YES) + P(NO)."""


@dataclass(frozen=True)
class StepValue:
    """What the critic and the credit rule say of one step of a phase's own rollouts."""

    reward: float
    value: float | None
    advantage: float | None


@dataclass(frozen=True)
class Phase:
    """What a phase's folder holds; a part is empty or None if its file is not there."""

    number: int
    """0 is the start: SFT's actor, or the one that ``eval`` was given."""
    rollouts: tuple[Episode, ...] = ()
    evaluation: tuple[Episode, ...] = ()
    experience: Mapping[tuple[str, int], StepValue] = field(default_factory=dict)
    """By trajectory and position among its actions; the phase's own steps, not the replayed ones."""
    tasks: tuple[Task, ...] = ()
    curriculum: Mapping[str, JSON] | None = None
    rejected: tuple[Rejected, ...] = ()
    replay: Mapping[str, JSON] | None = None

    @property
    def name(self) -> str:
        """``start`` or ``phase 1``, for people."""
        return phase_name(self.number)


@dataclass(frozen=True)
class Run:
    """What a run's folder holds."""

    folder: Path
    config: Mapping[str, JSON]
    phases: tuple[Phase, ...]
    """In their order; the start is phase 0."""
    stages: Lines
    """Of ``stages.jsonl``."""
    metrics: tuple[tuple[str, int | None, Lines], ...]
    """Trainer, phase (None before the phases) and its lines."""
    orm: Mapping[str, JSON] | None
    """``orm/report.json``."""
    notes: tuple[str, ...]
    """What is missing or cannot be read, a line each."""

    def setting(self, path: str, default: JSON = None) -> JSON:
        """Return a setting of ``config.json`` by its dotted name, or the default."""
        value: JSON = dict(self.config)
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return default if value is None else value


def phase_name(number: int) -> str:
    """Return ``start`` for 0, which is SFT's actor or the one that ``eval`` was given, else ``phase 1``."""
    return f"phase {number}" if number else "start"


def read(folder: str | Path) -> Run:
    """Read a run's folder, finished or not; what cannot be read is left out with a note.

    Raises:
        ReportError: the folder is not there or holds nothing of a run.
        OSError: a file is there and may not be read.
    """
    folder = Path(folder)
    numbers = sorted(int(path.name[6:]) for path in folder.glob("phase_*") if path.name[6:].isdecimal())
    if not numbers and not any((folder / name).exists() for name in ("config.json", "stages.jsonl", "sft", "orm")):
        raise ReportError(
            f"`folder` must be a run's folder, which holds config.json and phase_00, got {str(folder)!r}. "
            "It is what --out named."
        )
    notes: list[str] = []
    config = _load(folder, "config.json", _object, {}, notes)
    metrics = [(name, None, _log(folder, f"{name}/metrics.jsonl", notes)) for name in ("sft", "orm")]
    phases = []
    for number in numbers:
        phases.append(_phase(folder, number, notes))
        here = phase_folder(number)
        metrics += [(name, number, _log(folder, f"{here}/{name}/metrics.jsonl", notes)) for name in ("critic", "actor")]
    wanted = {task.task_id for task in _load(folder, "tasks_test.jsonl", _tasks, (), notes)}
    stages = _log(folder, "stages.jsonl", notes)
    # `eval` takes an actor as it is and has no phases to come
    planned = 0 if any(line.get("stage") == "actor" for line in stages) else _phases(config)
    return Run(
        folder=folder,
        config=config,
        phases=tuple(phases),
        stages=stages,
        metrics=tuple(entry for entry in metrics if entry[2]),
        orm=_load(folder, "orm/report.json", _object, None, notes),
        notes=(*_unfinished(phases, planned, wanted), *notes),
    )


def phase_folder(number: int) -> str:
    """Return the name of a phase's folder, such as ``phase_01``."""
    return f"phase_{number:02d}"


def rollouts_file(folder: Path, number: int) -> Path:
    """Return the labelled rollouts of a phase or, where there are none, those as played."""
    labelled = folder / phase_folder(number) / "labelled.jsonl"
    return labelled if labelled.exists() else labelled.with_name("rollouts.jsonl")


def _phase(folder: Path, number: int, notes: list[str]) -> Phase:
    def load(name: str, how: Callable[[Path], Part], missing: Part) -> Part:
        return _load(folder, f"{phase_folder(number)}/{name}", how, missing, notes)

    return Phase(
        number=number,
        rollouts=load(rollouts_file(folder, number).name, _episodes, ()),
        evaluation=load("evaluation.jsonl", _episodes, ()),
        experience=load("experience.jsonl", _experience, {}),
        tasks=load("tasks.jsonl", _tasks, ()),
        curriculum=load("curriculum.json", _object, None),
        rejected=load("rejected.jsonl", read_rejected, ()),
        replay=load("replay.json", _object, None),
    )


def _phases(config: Mapping[str, JSON]) -> int:
    """Return how many phases a run of this configuration has; 0 if it does not say."""
    curriculum = config.get("curriculum")
    planned = curriculum.get("phases") if isinstance(curriculum, dict) else None
    return planned if isinstance(planned, int) and config.get("method") != "sft" else 0


def _unfinished(phases: Sequence[Phase], planned: int, wanted: set[str]) -> list[str]:
    """Return what the run has not come to, a line each."""
    notes = [f"{phase.name} has no evaluation." for phase in phases if not phase.evaluation]
    for phase in phases:
        missing = wanted - {episode.task_id for episode in phase.evaluation}
        if phase.evaluation and missing:
            notes.append(f"{phase.name}: {len(missing)} of {len(wanted)} test tasks were not played.")
        open_labels = sum(episode.success is None and not episode.env_error for episode in phase.rollouts)
        if open_labels:
            notes.append(f"{phase.name}: {open_labels} of {len(phase.rollouts)} rollouts have no label.")
    done = sum(phase.number > 0 and bool(phase.evaluation) for phase in phases)
    if done < planned:
        notes.append(f"Phases with an evaluation: {done} of {planned}.")
    return notes


# Files --------------------------------------------------------------------------------------------------------------


def _load(folder: Path, name: str, how: Callable[[Path], Part], missing: Part, notes: list[str]) -> Part:
    """Return a file's content; ``missing`` if it is not there, and with a note if it is broken."""
    try:
        return how(folder / name)
    except FileNotFoundError:
        return missing
    except (ValueError, KeyError, TypeError) as error:
        notes.append(f"`{name}` is left out, for it is broken: {' '.join(str(error).split())}")
        return missing


def _log(folder: Path, name: str, notes: list[str]) -> Lines:
    """Return the objects of a file that is appended to; a line that a kill has cut is left out alone."""
    path = folder / name
    found = []
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            value = json.loads(line) if line.strip() else None
        except ValueError:
            value = line
        if isinstance(value, dict):
            found.append(value)
        elif value is not None:
            notes.append(f"Line {number} of `{name}` is left out, for it is no JSON object.")
    return tuple(found)


def _object(path: Path) -> dict[str, JSON]:
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"it must hold one JSON object, got {type(value).__name__}.")
    return value


def _tasks(path: Path) -> tuple[Task, ...]:
    return tuple(read_jsonl(path, Task))


def _episodes(path: Path) -> tuple[Episode, ...]:
    return tuple(map(_episode, read_jsonl(path, Trajectory)))


def _episode(trajectory: Trajectory) -> Episode:
    task, verdict, evidence = trajectory.task, trajectory.verdict, trajectory.evidence
    sites = [site for site in task.sites if site != "wikipedia"] or ["wikipedia"]
    failed = trajectory.stop == StopReason.ENV_ERROR
    success = truth = score = mass = None
    if not failed:
        if verdict is not None and verdict.score is not None and math.isfinite(verdict.score):
            success = verdict.success
        if "grader" in evidence:
            truth = None if evidence["grader"] is None else evidence["grader"] == 1
        elif verdict is not None and verdict.mode != "orm":
            truth = success
        orm = evidence.get("orm")
        if isinstance(orm, dict):
            score, mass = finite(orm.get("score"), 0, 1), finite(orm.get("mass"), 0, 1)
    return Episode(
        trajectory_id=trajectory.trajectory_id,
        task_id=task.task_id,
        site=sites[0] if len(sites) == 1 else SEVERAL,
        family=task.family,
        split=task.split,
        steps=len(trajectory.steps),
        env_error=failed,
        success=success,
        truth=truth,
        score=score,
        mass=mass,
    )


def _experience(path: Path) -> dict[tuple[str, int], StepValue]:
    """Return the phase's own steps, line by line: their token ids are many, and not wanted."""
    found = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row["source"] == "current":
                credit = StepValue(float(row["reward"]), finite(row["value"], 0, 1), finite(row["advantage"]))
                found[row["trajectory_id"], row["step"]] = credit
    return found


def finite(value: JSON, low: float = -math.inf, high: float = math.inf) -> float | None:
    """Return a finite number within the bounds as it is, and None for anything else."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if real and math.isfinite(value) and low <= value <= high else None
