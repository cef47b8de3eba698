"""What a phase learns from: its own steps, and steps of earlier successes that the actor finds neither known nor odd.

Reads rows (``experience``) of this phase and of all earlier ones, the demonstrations and the first actor's graded
episodes being phase 0; gives the rows of ``experience.jsonl``. A phase calls, in this order::

    rows = collect(labelled, tokenizer, config, phase=k).rows
    built = build(rows, earlier_rows, shared, config, method, seed)     # one pass of the reference
    ...                                                                 # the critic learns from built.rows (Eq. 8)
    rows = credit(built.rows, shared, config, method)                   # one pass of the critic

``build`` chooses (WebRL Section 2.3): the reference is the previous actor, so its one pass gives log pi_ref for the
loss and, from the same numbers, the perplexity for the choice. ``credit`` turns V into the advantage of every step
(Eq. 9, or the method's own rule).

The choice, in this order; what a rule drops is counted under its name in ``Report``:

1. successes only (``failed``): failed steps of old policies slow learning down;
2. one trajectory a task, the newest (``same_task``);
3. no step twice, nor one that this phase has itself (``duplicate``);
4. the perplexity of the action lies in [1/0.95, 1/0.5], ends included (``below_band``: the actor knows it already,
   ``above_band``: it would be pulled far away);
5. at most twice as many as the current steps, drawn with a seed (``over_cap``).

Steps are scored in the order of the draw, a portion at a time, and no further once rule 5 has its number
(``unscored``). The first so many of a random order are a random choice of so many: the same distribution as scoring
all and drawing then, without most of the passes when the buffer has grown.

The perplexity of an action of probability p over n tokens is p^(-1/n): 4 tokens of log-probability -2 in sum have
exp(2 / 4) = 1.65, in the band; -0.1 gives 1.03, below; -4 gives 2.72, above.

The order of the input changes nothing: rows are sorted before anything is drawn, and come out sorted.

Source: WebRL (arXiv 2411.02337) Section 2.3 and ``scripts/process_data.py:324-437``.

# differs from paper: the first actor's episodes on train tasks, which have graders here, are replayed like those of a
phase; the authors' first phase has the demonstrations alone.

# differs from release: the upper end of perplexity is in the band; the end-of-turn token counts as part of the action;
a task's trajectories are compared across all files and not within one of eight shards, and the newest stays, not the
first; draws are seeded; log pi_ref is not computed a second time in training;
a buffer is scored only as far as it is needed.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from webrl_lite.baselines import Method, above_percentile, outcome
from webrl_lite.batching import RuleError
from webrl_lite.config import Config, ReplayConfig
from webrl_lite.experience import Collected, Experience, collect, read_experience, write_experience
from webrl_lite.model import SharedBase

__all__ = [
    "Built",
    "Collected",
    "Experience",
    "Report",
    "build",
    "collect",
    "credit",
    "read_experience",
    "write_experience",
]

PORTION = 64
"""Fewest steps that are scored at once, so that micro-batches stay full."""
ROUNDING = 1e-6
"""Relative tolerance at the ends of the band, so that an end is inside although log-probs are float32."""


@dataclass(frozen=True)
class Report:
    """What became of every step that could have been trained on, in steps."""

    current: int = 0
    """Steps of this phase that are trained on, successes and failures."""
    current_successes: int = 0
    """Those of them from successes."""
    below_percentile: int = 0
    """Steps of this phase that the method's percentile left out."""
    buffer: int = 0
    """Steps of earlier phases and demonstrations; 0 for a method without replay."""
    failed: int = 0
    same_task: int = 0
    duplicate: int = 0
    below_band: int = 0
    above_band: int = 0
    over_cap: int = 0
    unscored: int = 0
    replayed: int = 0
    """Steps of the buffer that are trained on; it and the seven counts before it make ``buffer``."""
    perplexities: tuple[float, ...] = ()
    """Of every step of the buffer that was scored, ascending."""

    @property
    def share(self) -> float:
        """Replayed steps among all that are trained on, in [0, 1]."""
        total = self.current + self.replayed
        return self.replayed / total if total else 0.0

    def line(self) -> str:
        """Return one line for the log."""
        if not self.buffer:
            return f"{self.current} current steps, nothing to replay"
        dropped = ", ".join(
            f"{getattr(self, name)} {name.replace('_', ' ')}"
            for name in ("failed", "same_task", "duplicate", "below_band", "above_band", "over_cap", "unscored")
            if getattr(self, name)
        )
        return f"{self.current} current steps, {self.replayed} of {self.buffer} replayed ({dropped or 'all'})"


@dataclass(frozen=True)
class Built:
    """The rows of a phase."""

    rows: tuple[Experience, ...]
    """Scored rows, the current ones first, each part in the order of ``Experience.key``; empty if there is nothing to
    learn from, in which case a phase has no update."""
    report: Report
    """How they were chosen."""


def build(
    current: Iterable[Experience],
    buffer: Iterable[Experience],
    shared: SharedBase,
    config: Config,
    method: Method,
    seed: int,
) -> Built:
    """Choose and score what a phase learns from; the role ``ref`` must be the actor at the phase's start.

    All current steps stay, failures too. Calling it again with the same rows, weights and seed gives the same.

    Args:
        current: rows of this phase.
        buffer: rows of earlier phases and demonstrations, successes and failures, in any order; a step that is there
            twice counts once, so whole ``experience.jsonl`` files may be given. This phase's own steps, which are there
            if a run goes on, are passed over.
        shared: the model.
        config: gives ``replay``.
        method: a row of ``METHODS``; it says whether there is replay, band or percentile.
        seed: of the draw.

    Raises:
        RuleError: a current step twice, two steps of one name, a trajectory in the buffer with steps missing, or a
            log-probability that is no number.
    """
    mine = sorted(current, key=lambda row: row.key)
    for one, other in zip(mine, mine[1:], strict=False):
        if one.key == other.key:
            raise RuleError(
                f"`current` must hold every step once, {_name(one)} is there twice. Read the phase's file once."
            )
    kept = _above_percentile(mine, method.percentile)
    counts = {"below_percentile": len(mine) - len(kept)}
    earlier = sorted(_not_own(buffer, mine), key=lambda row: row.key) if method.replay else []
    counts["buffer"] = len(earlier)
    candidates = _candidates(earlier, kept, counts)
    kept = _score(kept, shared)
    cap = math.floor(config.replay.max_ratio * len(kept))
    drawn, scored = _draw(candidates, cap, shared, config.replay if method.ppl_filter else None, seed, counts)
    replayed = [_as_replay(row) for row in _with_next_states(sorted(drawn, key=lambda row: row.key), earlier)]
    report = Report(
        current=len(kept),
        current_successes=sum(row.reward == 1 for row in kept),
        replayed=len(replayed),
        perplexities=tuple(sorted(row.perplexity for row in scored)),
        **counts,
    )
    return Built((*kept, *replayed), report)


def credit(rows: Sequence[Experience], shared: SharedBase, config: Config, method: Method) -> tuple[Experience, ...]:
    """Return the rows with V and advantage, in their order; every state goes through the critic once.

    A method that credits the outcome alone asks no critic, and its rows have no value.

    Args:
        rows: of ``build``.
        shared: the model, its role ``critic`` trained on this phase.
        config: gives ``actor.lam`` and, where the method has none of its own, ``actor.gamma``.
        method: a row of ``METHODS`` with a credit.

    Raises:
        RuleError: the method learns nothing from rollouts, or a next state is missing.
    """
    if method.credit is None:
        raise RuleError("`method` must learn from rollouts, got one without a credit: sft ends after demonstrations.")
    values = {} if method.credit is outcome else _values(rows, shared)
    prompts = {row.key: row.prompt for row in rows}
    gamma = config.actor.gamma if method.gamma is None else method.gamma
    credited = []
    for row in rows:
        states = torch.full((row.steps,), math.nan)  # V of this step and the next one is all that its credit takes
        if values:
            states[row.step] = values[row.prompt]
            if row.step + 1 < row.steps:
                states[row.step + 1] = values[_next_state(row, prompts)]
        advantage = method.credit(states, row.reward, config.actor.lam, gamma)[row.step]
        credited.append(dataclasses.replace(row, value=values.get(row.prompt), advantage=advantage.item()))
    return tuple(credited)


def _next_state(row: Experience, prompts: dict[tuple[int, str, int], tuple[int, ...]]) -> tuple[int, ...]:
    """Return the state behind a row's action, from the next row or from the row itself."""
    phase, trajectory, step = row.key
    found = prompts.get((phase, trajectory, step + 1)) or row.next_prompt
    if not found:
        raise RuleError(
            f"the state after {_name(row)} is missing, and V there is needed. Give whole trajectories: all rows of a "
            "phase's file."
        )
    return found


# Choice -------------------------------------------------------------------------------------------------------------


def _above_percentile(rows: list[Experience], percentile: float | None) -> list[Experience]:
    """Return the rows of the trajectories that filtered behaviour cloning keeps."""
    if percentile is None:
        return rows
    outcomes = {row.trajectory_id: row.reward for row in rows}
    keep = above_percentile(torch.tensor(list(outcomes.values())), percentile).tolist()
    kept = {trajectory for trajectory, above in zip(outcomes, keep, strict=True) if above}
    return [row for row in rows if row.trajectory_id in kept]


def _not_own(buffer: Iterable[Experience], own: list[Experience]) -> list[Experience]:
    """Return the rows of the buffer that are not this phase's; a name that two steps have would mix up next states."""
    rows = list(buffer)
    steps: dict[tuple[int, str, int], tuple[tuple[int, ...], tuple[int, ...]]] = {}
    for row in (*own, *rows):
        step = (row.prompt, row.action)
        if steps.setdefault(row.key, step) != step:
            raise RuleError(
                f"`buffer` must have one step of a name, but {_name(row)} of phase {row.phase} is two. Give files of "
                "one run, and every episode of a phase a name of its own."
            )
    names = {row.key for row in own}
    return [row for row in rows if row.key not in names]


def _candidates(buffer: list[Experience], current: list[Experience], counts: dict[str, int]) -> list[Experience]:
    """Return the steps of the buffer that rules 1 to 3 leave."""
    successes = [row for row in buffer if row.reward == 1]
    newest: dict[str, tuple[int, str]] = {}
    for row in successes:  # ascending phases, so the last one wins; in a phase the last name
        newest[row.task_id] = row.key[:2]
    chosen = [row for row in successes if newest[row.task_id] == row.key[:2]]
    seen = {(row.prompt, row.action) for row in current}
    fresh = []
    for row in chosen:
        if (row.prompt, row.action) not in seen:
            seen.add((row.prompt, row.action))
            fresh.append(row)
    counts["failed"] = len(buffer) - len(successes)
    counts["same_task"] = len(successes) - len(chosen)
    counts["duplicate"] = len(chosen) - len(fresh)
    return fresh


def _draw(
    candidates: list[Experience],
    cap: int,
    shared: SharedBase,
    band: ReplayConfig | None,
    seed: int,
    counts: dict[str, int],
) -> tuple[list[Experience], list[Experience]]:
    """Return the rows that rules 4 and 5 leave, and all that were scored for it."""
    order = random.Random(seed).sample(candidates, len(candidates))
    scored: list[Experience] = []
    eligible: list[Experience] = []
    counts["below_band"] = counts["above_band"] = 0
    while len(eligible) < cap and len(scored) < len(order):
        portion = max(PORTION, cap - len(eligible))
        rows = _score(order[len(scored) : len(scored) + portion], shared)
        scored += rows
        eligible += rows if band is None else _in_band(rows, band, counts)
    counts["over_cap"] = max(0, len(eligible) - cap)
    counts["unscored"] = len(order) - len(scored)
    return eligible[:cap], scored


def _in_band(rows: list[Experience], config: ReplayConfig, counts: dict[str, int]) -> list[Experience]:
    """Return the rows that rule 4 leaves."""
    low, high = config.ppl_min * (1 - ROUNDING), config.ppl_max * (1 + ROUNDING)
    counts["below_band"] += sum(row.perplexity < low for row in rows)
    counts["above_band"] += sum(row.perplexity > high for row in rows)
    return [row for row in rows if low <= row.perplexity <= high]


def _with_next_states(rows: list[Experience], buffer: list[Experience]) -> list[Experience]:
    """Return the rows with the state behind each action whose next step was not chosen itself."""
    chosen = {row.key for row in rows}
    prompts = {row.key: row.prompt for row in buffer}
    complete = []
    for row in rows:
        phase, trajectory, step = row.key
        inside = step + 1 == row.steps or (phase, trajectory, step + 1) in chosen
        next_prompt = () if inside else _next_state(row, prompts)
        complete.append(dataclasses.replace(row, next_prompt=next_prompt))
    return complete


def _as_replay(row: Experience) -> Experience:
    """Return a row of the buffer under its new name, without what an earlier critic thought of it."""
    return dataclasses.replace(row, source="sft" if row.source == "sft" else "replay", value=None, advantage=None)


# Scores -------------------------------------------------------------------------------------------------------------


def _score(rows: list[Experience], shared: SharedBase) -> list[Experience]:
    """Return the rows with log pi_ref and perplexity, both from one pass."""
    with shared.role("ref"):
        logprobs = shared.action_logprobs([row.sample for row in rows]).tolist()
    scored = []
    for row, logprob in zip(rows, logprobs, strict=True):
        if not math.isfinite(logprob):
            raise RuleError(
                f"log pi_ref of {_name(row)} is {logprob}: the reference's weights are broken. Load an earlier actor."
            )
        # exp overflows beyond 709, which is far above any band
        perplexity = math.exp(min(-logprob / len(row.action), 700.0))
        scored.append(dataclasses.replace(row, ref_logprob=logprob, perplexity=perplexity))
    return scored


def _values(rows: Sequence[Experience], shared: SharedBase) -> dict[tuple[int, ...], float]:
    """Return V of every state that occurs, by its prompt."""
    states = list(dict.fromkeys(prompt for row in rows for prompt in (row.prompt, row.next_prompt) if prompt))
    with shared.role("critic"):
        values = shared.values(states).tolist()
    if not all(map(math.isfinite, values)):
        raise RuleError("V of some states is no number: the critic's weights are broken. Load an earlier critic.")
    return dict(zip(states, values, strict=True))


def _name(row: Experience) -> str:
    return f"step {row.step} of trajectory {row.trajectory_id}"
