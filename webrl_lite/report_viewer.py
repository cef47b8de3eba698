"""Episodes for the report's viewer: some of a run's, spread evenly, with page texts, replies, V and advantages.

Reads ``labelled.jsonl`` (or ``rollouts.jsonl``) and ``evaluation.jsonl`` of the phases once more, line by line, since
``report_run`` keeps no texts; gives plain JSON, made safe to stand inside an HTML page. No equation of the paper.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from webrl_lite.report_numbers import STAGES
from webrl_lite.report_run import Phase, Run, StepValue, phase_folder, phase_name, rollouts_file
from webrl_lite.trajectory import JSON, Step, Trajectory, read_jsonl

EPISODES = 120
"""Most episodes that a page holds; with 10 steps of 2,000 characters each that is 2.4 MB."""
PAGE_CHARACTERS = 6000
"""Most characters of a page's text, or of a reply, that a step shows."""


def shares(sizes: Mapping[tuple[int, str], int], total: int) -> dict[tuple[int, str], int]:
    """Divide places among groups: none gets more than it has, and what a small one leaves goes to the others.

    Groups of 2, 10 and 10 share 12 places as 2, 5 and 5.
    """
    left, given = total, {}
    for rank, group in enumerate(sorted(sizes, key=lambda name: (sizes[name], name))):
        given[group] = min(sizes[group], left // (len(sizes) - rank))
        left -= given[group]
    return given


def episodes(run: Run, most: int = EPISODES) -> list[dict[str, JSON]]:
    """Return up to ``most`` episodes, by phase and stage, in the order of their files.

    In every file they are spread evenly, so two evaluations of the same tasks show the same ones.
    """
    sizes = {(phase.number, stage): len(getattr(phase, stage)) for phase in run.phases for stage in STAGES}
    given = shares(sizes, most)
    found = []
    for phase in run.phases:
        for stage in STAGES:
            size, share = sizes[phase.number, stage], given[phase.number, stage]
            wanted = {place * size // share for place in range(share)}
            if wanted:
                found.extend(_shown(one, phase, stage) for one in _lines(_file(run.folder, phase, stage), wanted))
    return found


def embedded(found: list[dict[str, JSON]]) -> str:
    """Return JSON that may stand inside a script element: ASCII, and without a character that HTML or JavaScript reads.

    A page's text with ``</script>`` or ``<!--`` would end or hide the element otherwise.
    """
    text = json.dumps(found, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _file(folder: Path, phase: Phase, stage: str) -> Path:
    if stage == "rollouts":
        return rollouts_file(folder, phase.number)
    return folder / phase_folder(phase.number) / "evaluation.jsonl"


def _lines(path: Path, wanted: set[int]) -> Iterator[Trajectory]:
    for place, trajectory in enumerate(read_jsonl(path, Trajectory)):
        if place in wanted:
            yield trajectory


def _shown(trajectory: Trajectory, phase: Phase, stage: str) -> dict[str, JSON]:
    """Return what the page's script shows of an episode; it has the words, the script only lays them out."""
    kind, outcome = _outcome(trajectory)
    evidence, task = trajectory.evidence, trajectory.task
    facts = [", ".join(task.sites), task.family, f"{len(trajectory.steps)} steps, ended by {trajectory.stop}"]
    orm = evidence.get("orm")
    if isinstance(orm, dict) and isinstance(orm.get("score"), int | float):
        facts.append(f"ORM P(YES) {orm['score']:.2f}")
    if evidence.get("grader") is not None:
        facts.append(f"grader: {'success' if evidence['grader'] == 1 else 'failure'}")
    why = [f"Answer: {trajectory.answer}"] if trajectory.answer else []
    why += [trajectory.env_error] if trajectory.env_error else []
    why += list(trajectory.verdict.reasons) if trajectory.verdict else []
    steps, position = [], 0
    for step in trajectory.steps:
        acted = bool(step.reply or step.token_ids)  # experience rows count actions, not steps
        own = stage == "rollouts" and acted
        credit = phase.experience.get((trajectory.trajectory_id, position)) if own else None
        position += acted
        steps.append(_step(step, credit))
    return {
        "phase": phase_name(phase.number),
        "stage": stage,
        "task": task.task_id,
        "mark": {"success": "✓", "failure": "✗"}.get(kind, "·"),
        "kind": kind,
        "outcome": outcome,
        "intent": task.intent,
        "facts": [fact for fact in facts if fact],
        "why": [_cut(line) for line in why],
        "steps": steps,
    }


def _outcome(trajectory: Trajectory) -> tuple[str, str]:
    """Return a kind for the style sheet and the words."""
    if trajectory.stop == "env_error":
        return "error", "environment error"
    if trajectory.verdict is None or not trajectory.verdict.graded:
        return "ungraded", "not graded"
    kind = "success" if trajectory.verdict.success else "failure"
    return kind, f"{kind}, says the {'ORM' if trajectory.verdict.mode == 'orm' else 'grader'}"


def _step(step: Step, credit: StepValue | None) -> dict[str, JSON]:
    scores = []
    if credit is not None and credit.value is not None:
        scores.append(f"V {credit.value:.2f}")
    if credit is not None and credit.advantage is not None:
        scores.append(f"A {credit.advantage:+.2f}")
    return {
        "url": step.url,
        "page": _cut(step.observation),
        "reply": _cut(step.reply),
        "element": step.element,
        "error": step.error,
        "scores": scores,
    }


def _cut(text: str) -> str:
    """Return the text, or its beginning and how much more there is."""
    more = len(text) - PAGE_CHARACTERS
    return text if more <= 0 else f"{text[:PAGE_CHARACTERS]}\n[{more:,} more characters]"
