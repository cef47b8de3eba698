"""What a paper-sized run needs on cards of one's own: what fits, and the hours of every stage; the command ``plan``.

Reads a configuration and the sizes of its model, never weights; gives rows, of which ``hours_report`` makes a text.
Nothing is measured here: tokens
are counted, FLOPs follow from them, and the rates that make hours of FLOPs are assumptions that the text states. The
one check there is: the authors' run, counted the same way, must come near the time that they report.

FLOPs of one row of T tokens, with P weights in linear layers, A in the adapter, q the width of all queries in each of L
layers with attention, and s positions that are scored against a vocabulary of v at width h:

    forward          2 (P + A) T        + F               + 2 v h s        F = 2 q L T^2
    LoRA training    2 (3 P + 4 A) T    + 4.5 F           + 2 * 2 v h s
    full training    2 * 4 P T          + 4.5 F           + 3 * 2 v h s

A forward pass takes two FLOPs a weight and token (Kaplan et al. 2020, Section 2.1); F is attention that looks back
only, half of 4 q L T^2. Training recomputes each layer (Chen et al. 2016), which is a second forward pass, and needs
the gradients of the inputs, which cost as much again; gradients of weights cost a fourth time, but a frozen base has
none (QLoRA, Dettmers et al. 2023). So a LoRA update is 2 P forward and 4 P more. Attention's backward pass is 2.5
forward passes (FlashAttention-2, Dao 2023, Section 4.1). Norms, embeddings and the value head are left out.

No equation of the paper, which says nothing of time. Not counted: the curriculum's values of proposed tasks (the paper
never says how many there were), starting and saving, resets of hosted sites, what several cards lose by waiting, and
what ``lora.top_layers`` saves. The run is one of the method ``webrl``; others leave stages out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from webrl_lite.config import Config, preset
from webrl_lite.local_model import shape_of
from webrl_lite.memory import GIB, Card, StagePlan, plan_run
from webrl_lite.memory_terms import Setup, adapter_parameters
from webrl_lite.model_shape import SHAPES, ModelShape, PlanError

# Cards and rates ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gpu:
    """A card by its maker's sheet."""

    name: str
    gib: int
    """Memory."""
    peak: float
    """FLOPs a second: dense matrix products in bfloat16, summed in float32."""
    source: str
    """Where the peak is from."""

    @property
    def card(self) -> Card:
        """The card as the memory planner takes it."""
        return Card(self.name, self.gib * GIB)


GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("A100-80GB", 80, 312e12, "NVIDIA A100 datasheet, BFLOAT16 Tensor Core without sparsity"),
        Gpu("H100", 80, 989e12, "NVIDIA H100 datasheet, SXM, half of the figure with sparsity"),
        Gpu("RTX 4090", 24, 165.2e12, "NVIDIA Ada architecture paper, appendix, BF16 with FP32 accumulate"),
        Gpu("RTX 3090", 24, 71e12, "NVIDIA GA102 architecture paper, BF16 with FP32 accumulate"),
        Gpu("A6000", 48, 154.8e12, "NVIDIA GA102 architecture paper, RTX A6000, BF16 with FP32 accumulate"),
        Gpu("L40S", 48, 362e12, "NVIDIA L40S datasheet, BFLOAT16 Tensor Core without sparsity"),
    )
}
"""Cards by name."""

TRAINING_SHARE = 0.35
"""Share of the peak that training reaches. (ours: assumed; torchtune states 2,413 tokens/s for QLoRA of an 8B model on
an RTX 4090, which is 0.68 with compiled kernels; plain 4-bit layers unpack their weights at every product)"""
FORWARD_SHARE = 0.4
"""Share of the peak in passes without gradients: reading prompts, judging, scoring, values. (ours: assumed)"""
BROWSER_SECONDS = 2.0
"""Seconds of a step outside the model: act, wait until the page is quiet, read it. (ours: assumed for hosted WebArena
sites; 0.2 on the embedded ones, measured, see the README; the authors' harness sleeps 3 after each action)"""


@dataclass(frozen=True)
class Sampler:
    """How replies are written."""

    streams: int
    """Episodes at once on each card."""
    token_seconds: float
    """Seconds until all of them have one more token."""


OWN_TOKEN_SECONDS = 0.05
"""The loop in ``generation``, on any card: some 2,000 small kernels a token, started one by one, and a batch waits for
its longest reply. (ours: assumed)"""
SERVER = Sampler(32, 0.02)
"""An OpenAI-compatible server such as vLLM on a card of the same kind, with the adapter loaded. (ours: assumed)"""

AUTHORS_HOURS = 6.0
AUTHORS_GPUS = 64
"""SFT and eight phases of an 8B model on 64 A100-80GB. (authors, issues 13 and 48 of THUDM/WebRL: *about* 6 hours;
whether rollouts are in it is not said, and they are not in our count)"""
WITHIN = 2.0
"""Factor within which our count of the authors' run lies from their hours, as a test asserts."""

PAGE_TOKENS = {"webrl": 3500, "lite": 1750}
"""Tokens of a mean page by format. (own: the released SFT file has 96 MB for 9,469 steps, so 10,100 characters a step,
about 4,000 tokens with instruction and history; without boxes, as in ``lite``, a page is half as long)"""
OTHER_TOKENS = 500
"""Tokens of a mean prompt beside its page: instruction, earlier replies, headers. (own, as above)"""


def find_gpu(name: str) -> Gpu:
    """Return a card by its name, or by ``24GB``, ``48GB``, ``80GB``; case, spaces and hyphens do not matter.

    Raises:
        PlanError: it is not in ``GPUS``.
    """
    known = {_plain(gpu): gpu for gpu in GPUS}
    known |= {_plain(gpu.removeprefix("RTX ")): gpu for gpu in GPUS} | {"a100": "A100-80GB"}
    known |= {"24gb": "RTX 4090", "48gb": "A6000", "80gb": "A100-80GB"}
    if _plain(name) not in known:
        near = difflib.get_close_matches(_plain(name), known, 1)
        hint = f" Did you mean {known[near[0]]}?" if near else ""
        raise PlanError(f"`card` must be one of {', '.join(GPUS)}, got {name!r}.{hint}")
    return GPUS[known[_plain(name)]]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


# FLOPs --------------------------------------------------------------------------------------------------------------


def forward_flops(shape: ModelShape, length: int, scored: int, adapter: int = 0) -> float:
    """Return the FLOPs of a pass without gradients.

    Args:
        shape: the model.
        length: tokens of the row.
        scored: positions that go through the output layer.
        adapter: weights of the adapter.
    """
    return 2 * (shape.linear_weights + adapter) * length + _attention(shape, length) + _output(shape, scored)


def training_flops(shape: ModelShape, length: int, scored: int, adapter: int | None) -> float:
    """Return the FLOPs of a row's forward pass, recomputation and backward pass.

    Args:
        shape: the model.
        length: tokens of the row.
        scored: positions that go through the output layer.
        adapter: weights of the adapter in training; None: all weights of the model are trained.
    """
    weights, attention = shape.linear_weights, 4.5 * _attention(shape, length)
    if adapter is None:
        return 2 * 4 * weights * length + attention + 3 * _output(shape, scored)
    return 2 * (3 * weights + 4 * adapter) * length + attention + 2 * _output(shape, scored)


def _attention(shape: ModelShape, length: int) -> int:
    return 2 * shape.queries * shape.attention_layers * length**2


def _output(shape: ModelShape, scored: int) -> int:
    return 2 * shape.vocab_size * shape.hidden_size * scored


# Work ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """How much a run does; the defaults are the paper's."""

    prompt: int
    """Tokens of a mean prompt."""
    action: int = 60
    """Tokens of a mean reply, its end included. (own: one call with a line for the element)"""
    demonstrations: int = 9990
    """Steps of SFT data. (paper: 1,186 trajectories; 8.42 steps each, as in the 1,124 that were released)"""
    sft_epochs: float = 1.0
    orm_rollouts: int = 12_200
    """Rollouts that the ORM learns from. (paper Appendix A)"""
    orm_epochs: float = 4.0
    phases: int = 8
    tasks: int = 500
    """Tasks of a phase."""
    test_tasks: int = 165
    steps: int = 8
    """Replies of a mean episode. (authors, issue 4: 500 tasks give 3,000 to 5,000)"""
    replay: float = 2.0
    """Replayed steps for each step of the phase, at most."""
    success: float = 0.4
    """Share of a phase's steps that lie in successes and so enter the buffer. (paper Table 1: 42.4 % at the end)"""

    def __post_init__(self) -> None:
        for name in ("prompt", "action", "phases", "tasks", "test_tasks", "steps"):
            if getattr(self, name) < 1:
                raise PlanError(f"`{name}` must be at least 1, got {getattr(self, name)}.")
        for name in ("demonstrations", "sft_epochs", "orm_rollouts", "orm_epochs", "replay", "success"):
            if getattr(self, name) < 0:
                raise PlanError(f"`{name}` must be at least 0, got {getattr(self, name)}.")

    @property
    def phase_steps(self) -> int:
        """Steps that a phase plays."""
        return self.tasks * self.steps

    def buffer(self, phase: int) -> int:
        """Return the steps that may be replayed in a phase, counted from 1: demonstrations and earlier successes."""
        return self.demonstrations + round((phase - 1) * self.phase_steps * self.success)

    def replayed(self, phase: int) -> int:
        """Return the steps that are replayed at most."""
        return min(round(self.phase_steps * self.replay), self.buffer(phase))


def paper_sized(config: Config) -> Work:
    """Return the paper's amount of work with a configuration's prompts, epochs and replay."""
    page = min(PAGE_TOKENS[config.env.observation], config.env.observation_tokens)
    return Work(
        prompt=max(1, min(page + OTHER_TOKENS, config.model.max_length - config.rollout.max_new_tokens)),
        action=min(60, config.rollout.max_new_tokens),
        sft_epochs=config.sft.epochs,
        orm_epochs=config.orm.epochs,
        replay=config.replay.max_ratio,
    )


@dataclass(frozen=True)
class Passes:
    """What one stage of a whole run sends through the model."""

    stage: str
    length: int
    """Tokens of a row."""
    scored: int
    """Positions of a row that go through the output layer."""
    read: int = 0
    """Rows that go forward only."""
    trained: int = 0
    """Rows that go forward and backward."""
    decoded: int = 0
    """Tokens that are written one by one."""
    steps: int = 0
    """Steps in a browser."""

    @property
    def forward_tokens(self) -> int:
        """Tokens that go forward, recomputation not counted."""
        return (self.read + self.trained) * self.length + self.decoded

    @property
    def backward_tokens(self) -> int:
        """Tokens that go backward."""
        return self.trained * self.length


def passes(work: Work) -> tuple[Passes, ...]:
    """Return what the stages of a run do, all phases together, as this kit does them.

    The prompt is read anew at every step. log pi_ref and perplexity are one pass, over the phase's steps and everything
    that might be replayed. V is asked once a state: of every step, and of the state behind a replayed one. Critic and
    actor learn from the same rows.
    """
    phases = range(1, work.phases + 1)
    row = work.prompt + work.action
    replayed = sum(map(work.replayed, phases))
    learned = work.phases * work.phase_steps + replayed
    candidates = sum(map(work.buffer, phases)) if work.replay else 0
    tests = (work.phases + 1) * work.test_tasks
    episodes = work.phases * work.tasks

    def played(stage: str, number: int) -> Passes:
        steps = number * work.steps
        return Passes(stage, work.prompt, 1, read=steps, decoded=steps * work.action, steps=steps)

    return (
        Passes("sft", row, work.action, trained=round(work.demonstrations * work.sft_epochs)),
        played("orm rollouts", work.orm_rollouts),
        Passes("orm", work.prompt, 1, trained=round(work.orm_rollouts * work.orm_epochs)),
        played("rollout", episodes),
        Passes("judging", work.prompt, 1, read=episodes + tests),
        Passes("scoring", row, work.action, read=work.phases * work.phase_steps + candidates),
        Passes("critic", work.prompt, 0, trained=learned),
        Passes("values", work.prompt, 0, read=learned + replayed),
        Passes("actor", row, work.action, trained=learned),
        played("evaluation", tests),
    )


def authors_passes(work: Work) -> tuple[Passes, ...]:
    """Return what the released code does for SFT and the phases, rollouts and ORM left out.

    Source: ``trainer.py:87-103`` trains the critic on every state and once more on every next state; ``:149-150`` asks
    it for both in every actor batch; ``llama_agent.py:102-124`` runs the reference in every actor batch;
    ``process_data.py:347-355`` scores perplexities in a program of its own.
    """
    phases = range(1, work.phases + 1)
    row = work.prompt + work.action
    learned = work.phases * work.phase_steps + sum(map(work.replayed, phases))
    return (
        Passes("sft", row, work.action, trained=round(work.demonstrations * work.sft_epochs)),
        Passes("perplexity", row, work.action, read=sum(map(work.buffer, phases))),
        Passes("critic", work.prompt, 0, trained=2 * learned),
        Passes("values", work.prompt, 0, read=2 * learned),
        Passes("reference", row, work.action, read=learned),
        Passes("actor", row, work.action, trained=learned),
    )


# Hours --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StageHours:
    """One stage of a whole run, all phases together, on all cards."""

    passes: Passes
    flops: float
    """Of the passes with many tokens at once; what is decoded counts in time, not here."""
    model_hours: float
    """Reading, scoring, training."""
    decode_hours: float
    browser_hours: float

    @property
    def hours(self) -> float:
        """All of it; a kit of one process does one after the other."""
        return self.model_hours + self.decode_hours + self.browser_hours


def stage_hours(
    work: Iterable[Passes], shape: ModelShape, adapter: int | None, gpu: Gpu, gpus: int, sampler: Sampler
) -> tuple[StageHours, ...]:
    """Return the hours of some stages; every card takes its share of the rows and of the episodes.

    Args:
        work: what is done.
        shape: the model.
        adapter: weights of an adapter; None: full training.
        gpu: the card.
        gpus: how many.
        sampler: how replies are written.

    Raises:
        PlanError: no card.
    """
    if gpus < 1:
        raise PlanError(f"`gpus` must be at least 1, got {gpus}.")
    rows = []
    for one in work:
        read = one.read * forward_flops(shape, one.length, one.scored, adapter or 0)
        trained = one.trained * training_flops(shape, one.length, one.scored, adapter)
        seconds = read / (gpu.peak * FORWARD_SHARE) + trained / (gpu.peak * TRAINING_SHARE)
        decode, browser = one.decoded * sampler.token_seconds, one.steps * BROWSER_SECONDS
        per_card = gpus * 3600
        per_stream = per_card * sampler.streams
        rows.append(StageHours(one, read + trained, seconds / per_card, decode / per_stream, browser / per_stream))
    return tuple(rows)


def authors_hours() -> float:
    """Return the hours of the authors' run by the same count: full training of an 8B model on their cards."""
    rows = stage_hours(
        authors_passes(paper_sized(preset("paper"))),
        SHAPES["Llama-3.1-8B"],
        None,
        GPUS["A100-80GB"],
        AUTHORS_GPUS,
        SERVER,
    )
    return sum(row.hours for row in rows)


@dataclass(frozen=True)
class PaperRun:
    """A paper-sized run of a configuration on some cards."""

    config: Config
    shape: ModelShape
    gpu: Gpu
    gpus: int
    work: Work
    memory: tuple[StagePlan, ...]
    """Of every stage, on each card; empty if one does not fit."""
    refusal: str
    """Why it does not fit, and what would help; empty if it does."""
    sampler: Sampler
    """How replies are written."""
    rows: tuple[StageHours, ...]
    more: tuple[StageHours, ...]
    """The same with one card more, all stages on all cards."""
    served: tuple[StageHours, ...]
    """The same with one card more that is a server and writes all replies."""

    @property
    def hours(self) -> float:
        """Of the whole run."""
        return sum(row.hours for row in self.rows)

    @property
    def longest(self) -> StageHours:
        """The stage that takes most of the time."""
        return max(self.rows, key=lambda row: row.hours)


def paper_run(config: Config, gpu: Gpu, gpus: int = 1, work: Work | None = None) -> PaperRun:
    """Return what a paper-sized run needs.

    Args:
        config: gives model, adapter, lengths, epochs and environments; its own phases and tasks do not count.
        gpu: the card.
        gpus: how many; each holds the whole model and takes its share of rows and episodes.
        work: how much is done; None: as much as in the paper.

    Raises:
        PlanError: the model's sizes are not known, or there is no card.
    """
    shape = shape_of(config.model)
    memory: tuple[StagePlan, ...] = ()
    refusal = ""
    try:
        memory = plan_run(shape, config, gpu.card)
    except PlanError as error:
        refusal = str(error)
    work = work or paper_sized(config)
    adapter = adapter_parameters(shape, Setup.of(config))
    fit = [plan.load.sequences for plan in memory if plan.stage == "rollout"]
    own = Sampler(min([config.rollout.environments, *fit]), OWN_TOKEN_SECONDS)
    sampler = SERVER if config.rollout.base_url else own
    rows, more = (stage_hours(passes(work), shape, adapter, gpu, n, sampler) for n in (gpus, gpus + 1))
    server = stage_hours(passes(work), shape, adapter, gpu, 1, SERVER)
    served = tuple(theirs if theirs.passes.steps else ours for ours, theirs in zip(rows, server, strict=True))
    return PaperRun(config, shape, gpu, gpus, work, memory, refusal, sampler, rows, more, served)
