"""How a phase came by its tasks: what was turned down and why, and how often the feasibility filter errs.

Written by ``curriculum``: ``rejected.jsonl`` holds every proposal that was turned down, with its reason. Read by
``report``. Standard library only. No equation of the paper, which never says how many proposals were turned down.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from webrl_lite.trajectory import JSON, Task, TraceError, write_jsonl

REASONS = (
    *("unreadable", "duplicate", "below_band", "above_band", "no_value"),
    *("infeasible", "unjudged", "surplus"),
)
"""Why a proposal is turned down, in the order of the rules."""


@dataclass(frozen=True)
class Rejected:
    """A proposal that was turned down."""

    task: Task
    reason: str
    """One of ``REASONS``."""
    why: str = ""
    """More about it, where there is more."""
    value: float | None = None
    """V, if it was asked for and is a number."""

    def to_json(self) -> dict[str, JSON]:
        """Return one JSON object."""
        return {"reason": self.reason, "why": self.why, "value": self.value, "task": self.task.to_json()}


@dataclass(frozen=True)
class CurriculumReport:
    """How a phase came by its tasks."""

    phase: int
    generator: str
    wanted: int
    """Tasks that the phase should have."""
    accepted: int
    """Tasks that it has."""
    proposals: int
    """Tasks that the generator made; accepted and rejected together."""
    requests: int
    """Times that it was asked."""
    max_requests: int
    """Times that it might have been asked."""
    failed_requests: Mapping[str, int]
    """Requests without an answer of use, by kind of failure (``llm.KINDS``)."""
    stopped: str
    """Why no more was asked: ``enough``, ``max_requests``, or the failure that made it useless."""
    values: tuple[float, ...]
    """V of the accepted tasks, in their order; empty if rule 3 was left out."""
    rejected: tuple[Rejected, ...] = field(repr=False)
    """What was turned down, in order."""

    @property
    def shortfall(self) -> int:
        """Tasks that are missing."""
        return self.wanted - self.accepted

    @property
    def reasons(self) -> dict[str, int]:
        """Rejected proposals by reason, in the order of the rules, those that occurred."""
        counts = Counter(one.reason for one in self.rejected)
        return {reason: counts[reason] for reason in REASONS if counts[reason]}

    def line(self) -> str:
        """Return one line for the log."""
        shown = ", ".join(f"{number} {reason.replace('_', ' ')}" for reason, number in self.reasons.items())
        failed = ", ".join(f"{number} {kind}" for kind, number in sorted(self.failed_requests.items()))
        text = f"phase {self.phase}: {self.accepted} of {self.wanted} tasks from {self.proposals} proposals in "
        text += f"{self.requests} requests (turned down: {shown or 'none'}; failed requests: {failed or 'none'})"
        return text + (f"; {self.shortfall} missing, stopped by {self.stopped}" if self.shortfall else "")

    def to_json(self) -> dict[str, JSON]:
        """Return one JSON object, without the rejected tasks themselves."""
        record = {name: getattr(self, name) for name in _REPORTED}
        return {
            **record,
            "failed_requests": dict(self.failed_requests),
            "values": list(self.values),
            "shortfall": self.shortfall,
            "reasons": self.reasons,
        }


_REPORTED = tuple(
    item.name
    for item in dataclasses.fields(CurriculumReport)
    if item.name not in ("rejected", "failed_requests", "values")
)


def write_rejected(path: str | os.PathLike[str], report: CurriculumReport) -> int:
    """Write what was turned down, a line each with its reason, whole or not at all; return the number of lines."""
    return write_jsonl(path, report.rejected)


def read_rejected(path: str | os.PathLike[str]) -> tuple[Rejected, ...]:
    """Return what ``write_rejected`` wrote.

    Raises:
        TraceError: a line is something else; the message names file and line.
    """
    found = []
    # not splitlines: an instruction may hold other marks that end a line
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            task = Task.from_json(record["task"])
            found.append(Rejected(task, record["reason"], record["why"], record["value"]))
        except (ValueError, TypeError, KeyError) as error:
            raise TraceError(f"{path}, line {number}: not a rejected task: {error}") from error
    return tuple(found)


# How good the feasibility filter is ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class FilterErrors:
    """What the feasibility filter did, against the truth, in proposals."""

    passed: int = 0
    passed_wrongly: int = 0
    """Of those, cannot be done."""
    stopped: int = 0
    stopped_wrongly: int = 0
    """Of those, can be done."""

    @property
    def rate(self) -> float | None:
        """Share judged wrongly, in [0, 1]; None if nothing was judged."""
        judged = self.passed + self.stopped
        return (self.passed_wrongly + self.stopped_wrongly) / judged if judged else None


def filter_errors(
    accepted: Iterable[Task], rejected: Iterable[Rejected], can_be_done: Callable[[Task], bool | None]
) -> FilterErrors:
    """Compare the filter with the truth, which the offline generator's ``Truths`` knows.

    Args:
        accepted: tasks of a phase.
        rejected: of its report; those that the filter did not turn down do not count.
        can_be_done: the truth; None for a task that nobody knows it of, which does not count.
    """
    passed = [truth for task in accepted if (truth := can_be_done(task)) is not None]
    infeasible = [one.task for one in rejected if one.reason == "infeasible"]
    stopped = [truth for task in infeasible if (truth := can_be_done(task)) is not None]
    return FilterErrors(len(passed), passed.count(False), len(stopped), stopped.count(True))
