"""Which length and micro-batch fit a card, or which term is too much; from a model's configuration, without weights.

Reads the sizes of a model (``model_shape``), adds up what each stage keeps alive (``memory_terms``), and gives a plan,
a refusal that says what would help, or the table of the README. Used by the command ``plan``.

No equation of the paper; the authors' code has nothing like it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from webrl_lite.config import Config
from webrl_lite.memory_terms import STAGES, Estimate, Load, Setup, Stage, estimate
from webrl_lite.model_shape import SHAPES, ModelShape, PlanError

GIB = 2**30
LENGTH_STEP = 256
"""Lengths that a plan proposes are multiples of this."""


@dataclass(frozen=True)
class Card:
    """Where it must fit."""

    name: str
    total: int
    """Bytes."""
    usable: float = 0.94
    """Share that a plan may fill; the rest is lost between blocks."""
    context: int = GIB * 6 // 10
    """Bytes that the driver and its libraries take."""

    @property
    def budget(self) -> int:
        """Bytes that a plan may fill, ``context`` included."""
        return int(self.total * self.usable)


CARDS = {f"{size}GB": Card(f"{size}GB", size * GIB) for size in (24, 48, 80)}
"""Cards by name: e.g. RTX 3090 and 4090; A6000, L40S; A100, H100."""


@dataclass(frozen=True)
class StagePlan:
    """What goes through the model at once in one stage, and what it takes."""

    stage: Stage
    load: Load
    estimate: Estimate


def plan(
    shape: ModelShape,
    setup: Setup,
    card: Card,
    stage: Stage,
    *,
    length: int | None,
    action: int = 256,
    max_sequences: int = 32,
) -> StagePlan:
    """Return the largest micro-batch that fits.

    Args:
        shape: the model.
        setup: the rest of the run.
        card: where it must fit.
        stage: one of ``STAGES``.
        length: tokens of prompt and action; None: the most that fits, in steps of ``LENGTH_STEP``.
        action: tokens of the action.
        max_sequences: most rows that are of use at once.

    Raises:
        PlanError: not even one row fits; names the term that is too much and what would help.
    """
    if max_sequences < 1:
        raise PlanError(f"`max_sequences` must be at least 1, got {max_sequences}.")

    if length is None:
        length = _longest(shape, setup, card, stage, action) or action + 1
    rows = _rows(shape, setup, card, stage, length, action, max_sequences)
    if not rows:
        raise PlanError(_refusal(shape, setup, card, stage, Load(1, length, action)))
    load = Load(rows, length, action)
    return StagePlan(stage, load, estimate(shape, setup, stage, load, context=card.context))


def plan_run(shape: ModelShape, config: Config, card: Card, *, gpu: bool = True) -> tuple[StagePlan, ...]:
    """Return the plan of every stage of a run, at its own length and with no more rows than it can use.

    Raises:
        PlanError: a stage does not fit.
    """
    setup = Setup.of(config, gpu=gpu)
    most = {"rollout": config.rollout.environments, "scoring": config.actor.batch_size}
    most |= {name: getattr(config, name).batch_size for name in ("sft", "orm", "critic", "actor")}
    return tuple(
        plan(
            shape,
            setup,
            card,
            stage,
            length=config.model.max_length,
            action=config.rollout.max_new_tokens,
            max_sequences=most[stage],
        )
        for stage in STAGES
    )


def _fits(shape: ModelShape, setup: Setup, card: Card, stage: Stage, load: Load) -> bool:
    return estimate(shape, setup, stage, load, context=card.context).total <= card.budget


def _rows(shape: ModelShape, setup: Setup, card: Card, stage: Stage, length: int, action: int, most: int) -> int:
    """Return the most rows of one length that fit at once; 0 if none does."""
    return _largest(1, most, lambda rows: _fits(shape, setup, card, stage, Load(rows, length, action)))


def _longest(shape: ModelShape, setup: Setup, card: Card, stage: Stage, action: int) -> int:
    """Return the most tokens, in steps, of a single row that fits; 0 if none does."""

    def fits(steps: int) -> bool:
        return _fits(shape, setup, card, stage, Load(1, steps * LENGTH_STEP, action))

    return _largest(action // LENGTH_STEP + 1, shape.max_length // LENGTH_STEP, fits) * LENGTH_STEP


def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number from low to high that fits, 0 if none does; what is larger needs more."""
    if low > high or not fits(low):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def breaking_term(needed: Estimate, budget: int) -> str:
    """Return the term with which the sum of the terms so far exceeds a budget, or an empty text if all fit."""
    smaller = min(("live_layer", "logits"), key=lambda name: needed.terms()[name])
    filled = 0
    for name, size in needed.terms().items():
        filled += size if name != smaller else 0  # these two are not there at the same time
        if filled > budget:
            return name
    return ""


def _refusal(shape: ModelShape, setup: Setup, card: Card, stage: Stage, load: Load) -> str:
    needed = estimate(shape, setup, stage, load, context=card.context)
    term = breaking_term(needed, card.budget)
    parts = ", ".join(f"{name} {size / GIB:.2f}" for name, size in needed.terms().items() if size >= GIB / 100)
    longest = _longest(shape, setup, card, stage, load.action)
    way_out = f"A `length` of {longest} fits; or use" if longest else "No length fits; use"
    return (
        f"`length` must be such that one row fits, got {load.length}: {stage} of {shape.name} needs "
        f"{needed.total / GIB:.2f} GiB, {card.name} has {card.budget / GIB:.2f}. It breaks at `{term}` (GiB: {parts}). "
        f"{way_out} {_hint(term, setup)}."
    )


def _hint(term: str, setup: Setup) -> str:
    """Return what helps against a term, besides fewer tokens."""
    if term == "base" and not setup.nf4:
        return "4 bits (`model.quantization`), a smaller model or a larger card"
    if term == "checkpoints" and not setup.checkpointing:
        return "checkpointing, or adapters on fewer layers (`lora.top_layers`)"
    return {
        "adapters": "a lower `lora.rank`",
        "gradients": "a lower `lora.rank` or fewer `lora.targets`",
        "optimizer": "a lower `lora.rank` or fewer `lora.targets`",
        "cache": "a server for the rollouts (`rollout.base_url`) or a larger card",
        "checkpoints": "adapters on fewer layers (`lora.top_layers`) or a larger card",
        "live_layer": "fewer `lora.targets` or a larger card",
        "logits": "shorter actions or a larger card",
    }.get(term, "a smaller model or a larger card")


# The table ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One model at one length on one card."""

    model: str
    length: int
    card: str
    peak: int
    """Bytes of actor training with one row."""
    actor: int
    """Rows at once in actor training; 0: not even one fits."""
    streams: int
    """Rollouts at once."""
    breaks: str
    """The term that is too much for one row, or empty."""


def table(
    shapes: Iterable[ModelShape] = tuple(SHAPES.values()),
    lengths: Iterable[int] = (4096, 8192, 16384),
    cards: Iterable[Card] = tuple(CARDS.values()),
    setup: Setup | None = None,
    *,
    action: int = 256,
    most: int = 64,
) -> list[Row]:
    """Return what fits where, without raising.

    Args:
        shapes: models.
        lengths: tokens of prompt and action.
        cards: where it must fit.
        setup: the rest of the run; None: 4 bits, rank 16, four roles.
        action: tokens of an action.
        most: where counting rows ends.
    """
    chosen, cards, lengths = setup or Setup(), tuple(cards), tuple(lengths)
    rows = []
    for shape, length, card in itertools.product(shapes, lengths, cards):
        one = estimate(shape, chosen, "actor", Load(1, length, action), context=card.context)
        rows.append(
            Row(
                shape.name,
                length,
                card.name,
                peak=one.total,
                actor=_rows(shape, chosen, card, "actor", length, action, most),
                streams=_rows(shape, chosen, card, "rollout", length, action, most),
                breaks=breaking_term(one, card.budget),
            )
        )
    return rows


def table_text(rows: Iterable[Row]) -> str:
    """Return rows as a table in Markdown."""
    lines = ["| model | tokens | card | peak GiB | actor rows | streams | breaks |", "|--|--|--|--|--|--|--|"]
    for row in rows:
        lines.append(
            f"| {row.model} | {row.length} | {row.card} | {row.peak / GIB:.1f} | {row.actor or '–'} | "
            f"{row.streams or '–'} | {row.breaks} |"
        )
    return "\n".join(lines)
