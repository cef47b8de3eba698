"""A run as numbers: success, labels against the grader, values against outcomes, tasks, replay, losses, times.

Takes a ``Run`` (``report_run``); gives tables, one row a phase or finer, from which ``report`` makes CSVs, plots and
the page. A table is empty if its files are not there. No torch.

An episode that the environment failed, or that nobody could grade, is neither a success nor a failure: it is left out
of ``n`` and counted beside it. Intervals are 95 %.

No equation of the paper, which gives success rates without n or interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import pandas as pd

from webrl_lite.curriculum_report import REASONS
from webrl_lite.evaluators import wilson
from webrl_lite.report_run import Episode, Phase, Run, StepValue, finite
from webrl_lite.trajectory import JSON, Task

BINS = 10
"""Bins of equal width over [0, 1] in which a probability is compared with what happened."""
LOW_MASS = 0.5
"""Below this probability of YES and NO together a judgement is not to be trusted (``orm.LOW_MASS``)."""
STAGES = ("rollouts", "evaluation")
DROPPED = ("failed", "same_task", "duplicate", "below_band", "above_band", "over_cap", "unscored")
"""Rules of ``replay`` in their order; with ``replayed`` they make ``buffer``."""

Stage = Literal["rollouts", "evaluation"]


# Success ------------------------------------------------------------------------------------------------------------


def percent(share: float | None) -> str:
    """Return a share as ``32.0 %``, or a dash for none."""
    return "-" if share is None or math.isnan(share) else f"{100 * share:.1f} %"


def interval(row: Mapping[str, float]) -> str:
    """Return ``low`` and ``high`` as ``25.1 to 39.8``, or a dash where n is 0."""
    return f"{100 * row['low']:.1f} to {100 * row['high']:.1f}" if row["n"] else "-"


def tally(episodes: Iterable[Episode]) -> dict[str, float | int | None]:
    """Return ``n``, ``successes``, ``share``, ``low``, ``high``, ``env_errors``, ``ungraded`` and ``mean_steps``.

    ``n`` counts the graded episodes only; ``mean_steps`` is theirs. With none, share and mean are None.
    """
    episodes = list(episodes)
    graded = [episode for episode in episodes if episode.success is not None]
    n, successes = len(graded), sum(episode.success for episode in graded)
    low, high = wilson(successes, n)
    env_errors = sum(episode.env_error for episode in episodes)
    return {
        "n": n,
        "successes": successes,
        "share": successes / n if n else None,
        "low": low,
        "high": high,
        "env_errors": env_errors,
        "ungraded": len(episodes) - n - env_errors,
        "mean_steps": sum(episode.steps for episode in graded) / n if n else None,
    }


def success(run: Run, stage: Stage = "evaluation", by: Literal["", "site", "family", "split"] = "") -> pd.DataFrame:
    """Return success by phase: a row for each phase that has the stage and, with ``by``, each group in it.

    Columns: ``phase``, the group, and those of ``tally``. In rollouts the ORM's label decides, except in phase 0.
    """
    rows = []
    for phase in run.phases:
        groups: dict[str, list[Episode]] = {}
        for episode in getattr(phase, stage):
            groups.setdefault(getattr(episode, by) if by else "", []).append(episode)
        for group in sorted(groups):
            rows.append({"phase": phase.number} | ({by: group} if by else {}) | tally(groups[group]))
    return pd.DataFrame(rows)


# Probabilities against what happened --------------------------------------------------------------------------------


def bins(pairs: Iterable[tuple[float, bool]]) -> list[dict[str, float | int]]:
    """Return ``BINS`` bins: ``from``, ``to``, ``n``, ``mean`` of the probabilities, ``share`` that came true.

    A bin holds its lower end, the last one both; empty bins are left out.
    """
    found: dict[int, list[tuple[float, bool]]] = {}
    for probability, happened in pairs:
        found.setdefault(min(int(probability * BINS), BINS - 1), []).append((probability, happened))
    return [
        {
            "from": number / BINS,
            "to": (number + 1) / BINS,
            "n": len(group),
            "mean": sum(probability for probability, _ in group) / len(group),
            "share": sum(happened for _, happened in group) / len(group),
        }
        for number, group in sorted(found.items())
    ]


def calibration_error(found: Sequence[Mapping[str, float | int]]) -> float:
    """Return the mean distance of ``mean`` and ``share`` over bins, weighted by ``n``."""
    return sum(one["n"] * abs(one["mean"] - one["share"]) for one in found) / sum(one["n"] for one in found)


def _judged(run: Run) -> Iterator[tuple[dict[str, JSON], list[Episode]]]:
    """Yield phase and stage with the episodes that both the ORM and the grader have judged, if there are any."""
    for phase in run.phases:
        for stage in STAGES:
            judged = [one for one in getattr(phase, stage) if one.score is not None and one.truth is not None]
            if judged:
                yield {"phase": phase.number, "stage": stage}, judged


def orm(run: Run) -> pd.DataFrame:
    """Return the ORM against the grader by phase and stage; both must have judged an episode for it to count.

    Columns: ``n``; the confusion ``yes_right``, ``yes_wrong``, ``no_right``, ``no_wrong`` (what the ORM said, and
    whether the grader agrees); ``accuracy`` with ``low`` and ``high``; ``ece``, calibration error; ``untrusted``, share
    of judgements with less than ``LOW_MASS`` on the two words. A score equal to the threshold says no.
    """
    threshold = finite(run.setting("orm.threshold")) or 0.5
    rows = []
    for where, judged in _judged(run):
        seen = Counter((one.score > threshold, one.truth) for one in judged)
        right = seen[True, True] + seen[False, False]
        low, high = wilson(right, len(judged))
        found = bins((one.score, one.truth) for one in judged)
        rows.append(
            where
            | {"n": len(judged), "yes_right": seen[True, True], "yes_wrong": seen[True, False]}
            | {"no_right": seen[False, False], "no_wrong": seen[False, True]}
            | {"accuracy": right / len(judged), "low": low, "high": high, "ece": calibration_error(found)}
            | {"untrusted": sum(one.mass is not None and one.mass < LOW_MASS for one in judged) / len(judged)}
        )
    return pd.DataFrame(rows)


def orm_calibration(run: Run) -> pd.DataFrame:
    """Return ``bins`` of the ORM's score against the grader, by phase and stage."""
    judged = [(where, bins((one.score, one.truth) for one in episodes)) for where, episodes in _judged(run)]
    return pd.DataFrame([where | one for where, found in judged for one in found])


def _valued(run: Run) -> Iterator[tuple[int, list[StepValue]]]:
    """Yield a phase and its own steps that have a value, if there are any."""
    for phase in run.phases:
        valued = [step for step in phase.experience.values() if step.value is not None]
        if valued:
            yield phase.number, valued


def values(run: Run) -> pd.DataFrame:
    """Return V against the outcome by phase, in steps of the phase's own rollouts.

    The outcome is the reward that the critic learned from, and it has seen these steps: this is how well it fits, not
    how well it foretells. Replayed steps, all of them from successes, would bend the curve and are left out.

    Columns: ``phase``, ``n``, ``on_success`` and ``on_failure`` (mean V, None without such steps), ``ece``.
    """
    rows = []
    for number, steps in _valued(run):
        good, bad = ([step.value for step in steps if step.reward == wanted] for wanted in (1.0, 0.0))
        rows.append(
            {"phase": number, "n": len(steps)}
            | {"on_success": sum(good) / len(good) if good else None}
            | {"on_failure": sum(bad) / len(bad) if bad else None}
            | {"ece": calibration_error(bins((step.value, step.reward == 1) for step in steps))}
        )
    return pd.DataFrame(rows)


def value_calibration(run: Run) -> pd.DataFrame:
    """Return ``bins`` of V against the outcome, by phase; see ``values``."""
    found = [(number, bins((step.value, step.reward == 1) for step in steps)) for number, steps in _valued(run)]
    return pd.DataFrame([{"phase": number} | one for number, group in found for one in group])


# The other parts ----------------------------------------------------------------------------------------------------


def curriculum(run: Run) -> pd.DataFrame:
    """Return how the phases came by their tasks.

    Columns: ``phase``, ``wanted``, ``accepted``, ``proposals``, ``requests``, a column for each of ``REASONS``, and
    ``filter_errors``, share of proposals that the feasibility filter judged wrongly where the truth is known.
    """
    rows = []
    for phase in run.phases:
        report = phase.curriculum
        if report is None:
            continue
        reasons = report.get("reasons") or Counter(one.reason for one in phase.rejected)
        judged = report.get("filter") or {}
        rows.append(
            {"phase": phase.number}
            | {name: report.get(name) for name in ("wanted", "accepted", "proposals", "requests")}
            | {reason: reasons.get(reason, 0) for reason in REASONS}
            | {"filter_errors": finite(judged.get("rate"))}
        )
    return pd.DataFrame(rows)


def examples(phase: Phase, each: int) -> list[tuple[str, Task, str]]:
    """Return tasks of a phase to look at: up to ``each`` accepted ones, then as many for each reason of rejection.

    Returns:
        ``accepted`` or the reason, the task, and more about it: the rejection's own words and V where they are known.
    """
    values = (phase.curriculum or {}).get("values") or []
    shown = [
        ("accepted", task, f"V = {values[place]:.2f}" if place < len(values) else "")
        for place, task in enumerate(phase.tasks[:each])
    ]
    for reason in REASONS:
        turned_down = [one for one in phase.rejected if one.reason == reason]
        for one in turned_down[:each]:
            value = "" if one.value is None else f"V = {one.value:.2f}"
            shown.append((reason, one.task, "; ".join(part for part in (value, one.why) if part)))
    return shown


def replay(run: Run) -> pd.DataFrame:
    """Return what became of the buffer by phase, in steps.

    Columns: ``phase``, ``current``, ``buffer``, a column for each of ``DROPPED``, ``replayed``; ``kept``, replayed
    among the buffer; ``share``, replayed among all that is trained on. A share of nothing is None.
    """
    rows = []
    for phase in run.phases:
        if phase.replay is not None:
            counts = {name: phase.replay.get(name, 0) for name in ("current", "buffer", *DROPPED, "replayed")}
            trained = counts["current"] + counts["replayed"]
            kept = counts["replayed"] / counts["buffer"] if counts["buffer"] else None
            share = counts["replayed"] / trained if trained else None
            rows.append({"phase": phase.number} | counts | {"kept": kept, "share": share})
    return pd.DataFrame(rows)


def perplexities(run: Run) -> dict[int, list[float]]:
    """Return the perplexities of all scored steps of the buffer by phase, for a histogram."""
    found = {phase.number: (phase.replay or {}).get("perplexities") or [] for phase in run.phases}
    return {number: list(several) for number, several in found.items() if several}


def losses(run: Run) -> pd.DataFrame:
    """Return what the trainers logged: ``trainer``, ``phase`` (none before the phases), ``step`` and their numbers.

    The columns have the names of ``metrics.jsonl`` without the trainer's: ``loss``, ``grad_norm``, ``log_ratio``, ...
    """
    rows = []
    for trainer, phase, lines in run.metrics:
        for line in lines:
            numbers = {name.removeprefix(f"{trainer}/"): finite(value) for name, value in line.items()}
            rows.append({"trainer": trainer, "phase": phase} | numbers)
    frame = pd.DataFrame(rows)
    return frame.astype({"phase": "Int64"}) if rows else frame


def timings(run: Run) -> pd.DataFrame:
    """Return how long each stage took: ``part``, ``stage``, ``seconds``, ``peak_gib`` (None if not measured).

    ``part`` is ``phase_01`` for a stage of a phase, else ``setup``. A stage that was run again after a kill counts with
    its last time.
    """
    rows = {}
    for line in run.stages:
        part, _, stage = str(line.get("stage", "")).partition("/")
        if not part.startswith("phase_"):
            part, stage = "setup", str(line.get("stage", ""))
        peak = finite(line.get("peak_bytes"))
        seconds = finite(line.get("seconds"))
        rows[part, stage] = {"part": part, "stage": stage, "seconds": seconds, "peak_gib": peak and peak / 2**30}
    return pd.DataFrame(list(rows.values()))
