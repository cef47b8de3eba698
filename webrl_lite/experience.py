"""Steps as rows to learn from: token ids of prompt and action, the trajectory's outcome, and the scores that are due.

Reads labelled trajectories (``trajectory``) and demonstrations; writes ``experience.jsonl``. Used by ``replay``, which
chooses and scores rows, and by the trainers.

What was sampled is trained on: an action has the ids that the sampler stored, and a prompt is built by the function
that the rollout used and compared with the hash that the rollout stored. No equation of the paper.

# differs from release: it writes prompts as text, re-tokenises the actions, keeps early-stopped steps with an empty
action (``process_data.py:353``) and counts an ungraded trajectory as a failure with the score -0.1.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from webrl_lite.batching import RuleError, Sample
from webrl_lite.config import Config
from webrl_lite.prompt_tokens import Tokenizer
from webrl_lite.prompts import action_ids, actor_prompt, prompt_hash
from webrl_lite.trajectory import JSON, Step, StopReason, TraceError, Trajectory, read_jsonl, write_jsonl

SOURCES = ("current", "replay", "sft")


@dataclass(frozen=True)
class Experience:
    """One step of one trajectory."""

    task_id: str
    """The task."""
    trajectory_id: str
    """The episode; unique within a run."""
    step: int
    """Position among the trajectory's actions, from 0."""
    steps: int
    """T, the trajectory's actions."""
    prompt: tuple[int, ...]
    """Ids of what the agent read: the state."""
    action: tuple[int, ...]
    """Ids of what it wrote, end of turn included."""
    reward: float
    """1.0 if the *trajectory* succeeded, else 0.0; the same on each of its steps."""
    source: Literal["current", "replay", "sft"]
    """This phase's rollouts, those of an earlier phase, or the demonstrations."""
    site: str
    """First site of the task."""
    phase: int
    """Phase whose actor wrote it; 0 for demonstrations."""
    ref_logprob: float | None = None
    """log pi_ref(a | s) under the previous actor, summed over the action's tokens, in nats (by their number: the mean);
    None before scoring."""
    perplexity: float | None = None
    """exp of minus the mean token log-probability under the previous actor, at least 1; None before scoring."""
    value: float | None = None
    """V(s), in [0, 1]; None before the critic has spoken or for a method without one."""
    advantage: float | None = None
    """What the method's loss takes as A; None before."""
    next_prompt: tuple[int, ...] = ()
    """Ids of the next state where that step is not among the rows itself, since A needs V there; else empty."""

    @property
    def sample(self) -> Sample:
        """Prompt and action, for ``SharedBase`` and SFT."""
        return Sample(self.prompt, self.action)

    @property
    def key(self) -> tuple[int, str, int]:
        """Name of the step within a run; sorting by it gives an order that no reader depends on."""
        return (self.phase, self.trajectory_id, self.step)

    def to_json(self) -> dict[str, JSON]:
        """Return one JSON object; ``from_json`` reads it back equal."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, JSON]) -> Experience:
        """Build a row from one decoded line.

        Raises:
            TraceError: a field is missing, unknown, of the wrong type or out of range; the message names it.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        for name in names:
            if name not in record:
                raise TraceError(f"`{name}` is missing.")
        for name in record:
            if name not in names:
                raise TraceError(f"`{name}` is no field of a step; the file is from another version.")
        for name, (rule, holds) in _RULES.items():
            if not holds(record[name]):
                raise TraceError(f"`{name}` must be {rule}, got {_short(record[name])}.")
        if record["step"] >= record["steps"]:
            raise TraceError(f"`step` must be below `steps` ({record['steps']}), got {record['step']}.")
        ids = {name: tuple(record[name]) for name in ("prompt", "action", "next_prompt")}
        return cls(**{**record, **ids, "reward": float(record["reward"])})


def _integer(value: JSON, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _number(value: JSON, low: float = -math.inf, high: float = math.inf) -> bool:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and abs(value) <= sys.float_info.max and low <= value <= high


def _ids(value: JSON, least: int = 1) -> bool:
    if not isinstance(value, list | tuple) or len(value) < least:
        return False
    return not value or (set(map(type, value)) == {int} and min(value) >= 0)  # 60 million ids a phase: no loop here


_RULES = {
    "task_id": ("a non-empty text", lambda v: isinstance(v, str) and v != ""),
    "trajectory_id": ("a non-empty text", lambda v: isinstance(v, str) and v != ""),
    "step": ("a whole number of at least 0", _integer),
    "steps": ("a whole number of at least 1", lambda v: _integer(v, 1)),
    "prompt": ("a non-empty list of token ids", _ids),
    "action": ("a non-empty list of token ids", _ids),
    "reward": ("0 or 1", lambda v: _number(v) and v in (0, 1)),
    "source": (f"one of {', '.join(SOURCES)}", lambda v: isinstance(v, str) and v in SOURCES),
    "site": ("a text", lambda v: isinstance(v, str)),
    "phase": ("a whole number of at least 0", _integer),
    "ref_logprob": ("a number of at most 0, or null", lambda v: v is None or _number(v, high=0.0)),
    "perplexity": ("a number of at least 1, or null", lambda v: v is None or _number(v, low=1.0)),
    "value": ("a number in [0, 1], or null", lambda v: v is None or _number(v, 0.0, 1.0)),
    "advantage": ("a number, or null", lambda v: v is None or _number(v)),
    "next_prompt": ("a list of token ids", lambda v: _ids(v, 0)),
}


def write_experience(path: str | Path, rows: Iterable[Experience]) -> int:
    """Write rows to a JSONL file, whole or not at all, and return their number. See ``trajectory.write_jsonl``."""
    return write_jsonl(path, rows)


def read_experience(path: str | Path) -> tuple[Experience, ...]:
    """Return the rows of a file.

    Raises:
        TraceError: a line is not a row; the message names file, line and field.
        OSError: there is no such file.
    """
    return tuple(read_jsonl(path, Experience))


# From trajectories --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Collected:
    """Rows of trajectories, and what gave none."""

    rows: tuple[Experience, ...]
    """The rows, trajectory by trajectory, steps in order."""
    env_errors: int
    """Trajectories that ended because the environment failed."""
    ungraded: int
    """Trajectories without a verdict, or whose grader could not decide."""
    empty_actions: int
    """Steps of the other trajectories on which nothing was written."""


def collect(
    trajectories: Iterable[Trajectory],
    tokenizer: Tokenizer,
    config: Config,
    *,
    phase: int,
    source: Literal["current", "sft"] = "current",
) -> Collected:
    """Turn labelled trajectories into rows; neither an environment's fault nor a missing grade becomes a reward of 0.

    The outcome is the trajectory's ``verdict``: the grader's or, where the ORM labels, the ORM's. A demonstration may
    lack one: it counts as a success then; and it may lack a name: it is called after its task, ``<task_id>@sft``, which
    no rollout is called. Its actions are tokenised here, since nobody sampled them.

    Args:
        trajectories: of one phase, or the demonstrations.
        tokenizer: the model's.
        config: gives template and lengths.
        phase: number of the phase; 0 for demonstrations.
        source: ``current`` for rollouts, ``sft`` for demonstrations.

    Raises:
        RuleError: a ``trajectory_id`` that is missing or used twice, a reply whose sampled ids were not stored, or a
            prompt that is not the one the rollout had.
        PromptError: a prompt that does not fit ``model.max_length``.
    """
    trajectories = list(trajectories)
    if source == "sft":
        names_by_task = [t.trajectory_id or f"{t.task.task_id}@sft" for t in trajectories]
        trajectories = [
            dataclasses.replace(t, trajectory_id=name) for t, name in zip(trajectories, names_by_task, strict=True)
        ]
    names = Counter(trajectory.trajectory_id for trajectory in trajectories)
    for name, times in names.items():
        if times > 1 or not name:
            raise RuleError(
                f"`trajectory_id` must be a name used once, got {name!r} {times} times. Name every episode."
            )
    rows: list[Experience] = []
    env_errors = ungraded = empty = 0
    for trajectory in trajectories:
        if trajectory.stop == StopReason.ENV_ERROR:
            env_errors += 1
        elif source == "current" and not (trajectory.verdict and trajectory.verdict.graded):
            ungraded += 1
        else:
            steps = [step for step in trajectory.steps if step.reply or step.token_ids]
            empty += len(trajectory.steps) - len(steps)
            rows.extend(_rows(trajectory, steps, tokenizer, config, phase, source))
    return Collected(tuple(rows), env_errors, ungraded, empty)


def _rows(
    trajectory: Trajectory,
    steps: Sequence[Step],
    tokenizer: Tokenizer,
    config: Config,
    phase: int,
    source: Literal["current", "sft"],
) -> Iterable[Experience]:
    """Yield a row for each step that has an action; earlier replies stand in the prompts, empty ones included."""
    verdict = trajectory.verdict
    success = verdict.success if verdict is not None and verdict.graded else source == "sft"
    for position, step in enumerate(steps):
        action = step.token_ids
        if source == "sft":
            action = action_ids(tokenizer, config.model.template, step.reply)
        elif not action:
            raise RuleError(
                f"`token_ids` of step {step.index} of trajectory {trajectory.trajectory_id} are missing: a sampled "
                "reply is never tokenised again. Store them in the rollout."
            )
        prompt = actor_prompt(
            tokenizer,
            config.model.template,
            intent=trajectory.task.intent,
            replies=[earlier.reply for earlier in trajectory.steps if earlier.index < step.index],
            page=step.observation,
            max_length=config.model.max_length,
            max_new_tokens=max(config.rollout.max_new_tokens, len(action)),  # a long demonstration stays whole
        ).ids
        if source == "current" and step.prompt_hash and step.prompt_hash != prompt_hash(prompt):
            raise RuleError(
                f"the prompt of step {step.index} of trajectory {trajectory.trajectory_id} is not the one it was "
                "sampled from. Use the rollout's tokenizer, model.template, model.max_length and "
                "rollout.max_new_tokens, or roll out again."
            )
        yield Experience(
            task_id=trajectory.task.task_id,
            trajectory_id=trajectory.trajectory_id,
            step=position,
            steps=len(steps),
            prompt=prompt,
            action=tuple(action),
            reward=1.0 if success else 0.0,
            source=source,
            site=trajectory.task.sites[0],
            phase=phase,
        )


def _short(value: JSON) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
