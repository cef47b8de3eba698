"""How many bytes each stage of a run needs, term by term, from a model's sizes and the run's settings.

Used by ``memory``, which makes plans of it. What is counted is what the code in ``model`` and ``passes`` keeps alive:
the base (in 4 bits or not), one float32 adapter a role, gradients and AdamW's moments of the one role in training, the
input of every layer if layers are recomputed (``checkpointing``), everything inside one layer while it is recomputed,
logits of the positions that are scored, and the cache of keys and values in rollouts. ``tests/test_memory.py`` holds
the sums against measured peaks.

No equation of the paper; the authors train three full models on many cards.

In comments and names: ``d`` bytes of a hidden number, ``h`` hidden width, ``f`` width of the MLP, ``q`` and ``k``
widths of all queries and all keys, ``v`` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from webrl_lite.config import Config
from webrl_lite.model_shape import Linear, ModelShape, PlanError

Stage = Literal["rollout", "scoring", "sft", "orm", "critic", "actor"]
STAGES: tuple[Stage, ...] = ("rollout", "scoring", "sft", "orm", "critic", "actor")
"""Sampling replies; log-probs and values without gradients; the four trainings."""

HEAD_ROWS = 512
"""Positions that go through the output layer at once (``passes.HEAD_ROWS``)."""
FLOAT32 = 4


@dataclass(frozen=True)
class Setup:
    """What decides on memory besides model and card."""

    nf4: bool = True
    """Linear layers in 4 bits with double quantization."""
    dtype_bytes: Literal[2, 4] = 2
    """bfloat16 or float32 for everything else of the base and for hidden states."""
    rank: int = 16
    targets: str | tuple[str, ...] = "all-linear"
    top_layers: int | None = None
    roles: int = 4
    """Adapters that are loaded, the critic's among them."""
    checkpointing: bool = True
    """Whether training recomputes each layer."""

    @classmethod
    def of(cls, config: Config, *, gpu: bool = True) -> Setup:
        """Return the setup of a run with all roles, as ``SharedBase.load`` makes it."""
        model, lora = config.model, config.lora
        half = model.dtype == "bfloat16" or (model.dtype == "auto" and gpu)
        return cls(
            nf4=model.quantization == "nf4",
            dtype_bytes=2 if half else 4,
            rank=lora.rank,
            targets=lora.targets,
            top_layers=lora.top_layers,
            checkpointing=gpu,
        )

    def has_adapter(self, linear: Linear) -> bool:
        """Tell whether the targets name a linear layer."""
        names = (self.targets,) if isinstance(self.targets, str) else self.targets
        return names == ("all-linear",) or linear.name in names


@dataclass(frozen=True)
class Load:
    """What goes through the model at once."""

    sequences: int
    length: int
    """Tokens of each, prompt and action."""
    action: int
    """Tokens of the action, at the end."""

    @property
    def tokens(self) -> int:
        """Tokens in the micro-batch."""
        return self.sequences * self.length


@dataclass(frozen=True)
class Estimate:
    """Bytes by term, in the order in which they fill a card."""

    base: int
    """The frozen weights."""
    workspace: int
    """Driver and libraries, and one linear layer's weights unpacked from 4 bits."""
    adapters: int
    """LoRA weights of all roles, float32."""
    value_head: int
    """The critic's two outputs."""
    gradients: int
    """Of the role in training, float32."""
    optimizer: int
    """AdamW's two moments of the role in training, float32."""
    cache: int
    """Keys and values of all layers and streams."""
    checkpoints: int
    """Input of each layer that is recomputed, or all that its backward pass needs if it is not."""
    live_layer: int
    """Inside one layer at its peak, and the gradient on its way through."""
    logits: int
    """At the scored positions, with what the log-softmax and its gradient need; not at the same time as a layer."""

    @property
    def total(self) -> int:
        """Bytes at the peak."""
        return sum(self.terms().values()) - min(self.live_layer, self.logits)

    def terms(self) -> dict[str, int]:
        """Return bytes by the term's name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def estimate(shape: ModelShape, setup: Setup, stage: Stage, load: Load, *, context: int = 0) -> Estimate:
    """Return what a stage needs.

    Args:
        shape: the model.
        setup: the rest of the run.
        stage: one of ``STAGES``.
        load: what goes through at once; in a rollout all streams together.
        context: bytes of driver and libraries.

    Raises:
        PlanError: an unknown stage, or a load without tokens.
    """
    _check(shape, setup, stage, load)
    trains = stage not in ("rollout", "scoring")
    per_role = adapter_parameters(shape, setup)
    trained = (per_role + (2 * shape.hidden_size + 2 if stage == "critic" else 0)) * FLOAT32 if trains else 0
    cache, kept, live = _activations(shape, setup, stage, load)
    return Estimate(
        base=base_bytes(shape, setup),
        workspace=context + (max(x.weights for x in shape.linears()) * setup.dtype_bytes if setup.nf4 else 0),
        adapters=setup.roles * per_role * FLOAT32,
        value_head=(2 * shape.hidden_size + 2) * FLOAT32,
        gradients=trained,
        optimizer=2 * trained,
        cache=cache,
        checkpoints=kept,
        live_layer=live,
        logits=_logits(shape, setup, stage, load),
    )


def base_bytes(shape: ModelShape, setup: Setup) -> int:
    """Return bytes of the frozen weights; embedding and output layer are never quantized."""
    linears = shape.linear_weights * setup.dtype_bytes
    if setup.nf4:
        linears = sum(nf4_bytes(linear.weights) for linear in shape.linears())
    return linears + (shape.embedding_weights + shape.other_weights) * setup.dtype_bytes


def nf4_bytes(weights: int) -> int:
    """Return bytes of 4-bit weights with double quantization: 4.127 bits each.

    A block of 64 weights has one scale of 8 bits, and 256 of these scales have one of 32 bits.
    """
    blocks = -(-weights // 64)
    return -(-weights // 2) + blocks + FLOAT32 * -(-blocks // 256)


def adapter_parameters(shape: ModelShape, setup: Setup) -> int:
    """Return weights of one role's adapter: rank times inputs plus outputs, for each target.

    With ``top_layers`` in a model with convolutions, these are taken to be spread evenly.
    """
    layers = setup.top_layers or shape.layers
    whole = sum(setup.rank * (x.inputs + x.outputs) for x in shape.linears() if setup.has_adapter(x))
    return whole * layers // shape.layers


def cache_bytes(shape: ModelShape, dtype_bytes: int, sequences: int, length: int) -> int:
    """Return bytes of the keys and values of all layers, and of the short convolutions' states."""
    tokens = sequences * length
    states = shape.conv_layers * sequences * shape.hidden_size * shape.conv_kernel
    return (2 * shape.attention_layers * shape.keys * tokens + states) * dtype_bytes


def _activations(shape: ModelShape, setup: Setup, stage: Stage, load: Load) -> tuple[int, int, int]:
    """Return bytes of cache, of what is kept for the backward pass, and of the live layer."""
    d = setup.dtype_bytes
    row = 3 * 8 + 2 * shape.head_dim * d  # ids, mask, positions; cosine and sine
    if stage == "rollout":
        prompts = load.sequences * (load.length - load.action)  # all of them at once, then token by token
        cache = cache_bytes(shape, d, load.sequences, load.length)
        grown = cache // shape.layers  # a layer's cache is copied when it grows
        return cache, 0, prompts * (row + _forward_layer(shape, setup, load)) + grown
    if stage == "scoring":
        return 0, 0, load.tokens * (row + _forward_layer(shape, setup, load))
    layers = setup.top_layers or shape.layers
    saved = max(_saved_in_layer(shape, setup, load, conv=conv) for conv in _kinds(shape))
    inputs = shape.hidden_size * d
    live = row + inputs + _mask_row(load) + _transient(shape, setup)
    if setup.checkpointing:
        return 0, load.tokens * layers * inputs, load.tokens * (live + saved)
    return 0, load.tokens * layers * (inputs + saved), load.tokens * live


def _mask_row(load: Load) -> int:
    """Return bytes a token of the mask of true and false; a single row has no padding and needs none."""
    return load.length if load.sequences > 1 else 0


def _kinds(shape: ModelShape) -> list[bool]:
    return [conv for conv, count in ((False, shape.attention_layers), (True, shape.conv_layers)) if count]


def _saved_in_layer(shape: ModelShape, setup: Setup, load: Load, *, conv: bool) -> int:
    """Return bytes a token that one layer keeps for its backward pass, its input not counted.

    Norms and adapters compute in float32. On a base in bfloat16 each adapter therefore keeps its own float32 copy of
    its input, so seven adapters keep seven copies; on a base in float32 they share the input itself.
    """
    d, h, f, q, k = setup.dtype_bytes, shape.hidden_size, shape.intermediate_size, shape.queries, shape.keys
    half = d < FLOAT32
    mixer, mlp = shape.mixer(conv=conv), shape.mlp
    targets = [x for x in mixer + mlp if setup.has_adapter(x)]
    if half:
        inputs = sum(x.inputs for x in targets)
    else:  # what attention gives to its output projection is kept by attention itself
        shared = [mixer[:-1], mlp[:-1], mlp[-1:], *([mixer[-1:]] if conv else [])]
        inputs = sum(group[0].inputs for group in shared if any(map(setup.has_adapter, group)))
    adapters = FLOAT32 * (inputs + setup.rank * len(targets))
    norms = FLOAT32 * h * (shape.norms if half else shape.norms - 1) + FLOAT32 * shape.norms + (d * h if half else 0)
    if conv:
        return adapters + norms + d * (5 * h + 3 * f)
    # with a mask, attention keeps it as numbers, and keys and values are repeated for every head
    wide = q if load.sequences > 1 else k
    heads = FLOAT32 * shape.heads + (FLOAT32 * (q + k) if shape.qk_norm else 0)
    return adapters + norms + heads + d * (2 * q + 2 * wide + 3 * f + _mask_row(load))


def _transient(shape: ModelShape, setup: Setup) -> int:
    """Return bytes a token that come on top of what a layer keeps, at the peak of its recomputation and backward pass.

    In float32 the peak is in the backward pass of the down projection, in bfloat16 in the forward pass of the up
    projection, where the adapter's output stands in float32 twice.
    """
    d, h, f = setup.dtype_bytes, shape.hidden_size, shape.intermediate_size
    if not any(map(setup.has_adapter, shape.mlp)):
        return 3 * d * f
    if d == FLOAT32:
        return 8 * f
    return (10 if shape.fused_mlp else 4) * f + 8 * h


def _forward_layer(shape: ModelShape, setup: Setup, load: Load) -> int:
    """Return bytes a token inside one layer without gradients: at the up projection or in attention."""
    d, h, f, q, k = setup.dtype_bytes, shape.hidden_size, shape.intermediate_size, shape.queries, shape.keys
    width = 2 * f if shape.fused_mlp else f
    up = width * (d + 2 * FLOAT32) if any(map(setup.has_adapter, shape.mlp)) else width * d  # the adapter's part twice
    gate = 0 if shape.fused_mlp else d * f
    cast = FLOAT32 * h if d < FLOAT32 else 0
    wide = q if load.sequences > 1 else k
    attention = d * (2 * q + 2 * wide + _mask_row(load))
    return 4 * d * h + _mask_row(load) + max(gate + up + cast, attention)


def _logits(shape: ModelShape, setup: Setup, stage: Stage, load: Load) -> int:
    """Return bytes around the output layer: hidden states, and float32 logits of at most ``HEAD_ROWS`` positions."""
    d, v, h = setup.dtype_bytes, shape.vocab_size, shape.hidden_size
    if stage == "rollout":
        return load.sequences * v * 64  # sorting probabilities in float64
    rows = {"critic": 0, "orm": load.sequences}.get(stage, load.sequences * load.action)
    rows = min(rows, HEAD_ROWS)
    if stage == "scoring":
        return load.tokens * h * (d + FLOAT32) + rows * v * (2 * FLOAT32 + (d if d < FLOAT32 else 0))
    return load.tokens * h * (2 * d + FLOAT32) + rows * v * 3 * FLOAT32


def _check(shape: ModelShape, setup: Setup, stage: str, load: Load) -> None:
    if stage not in STAGES:
        raise PlanError(f"`stage` must be one of {', '.join(STAGES)}, got {stage!r}.")
    if load.sequences < 1:
        raise PlanError(f"`sequences` must be at least 1, got {load.sequences}.")
    if not 1 <= load.action < load.length:
        raise PlanError(f"`action` must be from 1 to below `length`, {load.length}, got {load.action}.")
    if load.length > shape.max_length:
        raise PlanError(f"`length` must be at most {shape.max_length}, the limit of {shape.name}, got {load.length}.")
    if not any(map(setup.has_adapter, shape.linears())):
        known = ", ".join(sorted({linear.name for linear in shape.linears()}))
        raise PlanError(f"`targets` must be all-linear or some of {known}, got {setup.targets!r}.")
    if setup.top_layers is not None and not 1 <= setup.top_layers <= shape.layers:
        raise PlanError(f"`top_layers` must be from 1 to {shape.layers}, the layers, got {setup.top_layers}.")
