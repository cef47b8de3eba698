"""The sizes of a decoder, read from its configuration: how many weights it has, and in which linear layers.

Reads the numbers of a ``config.json``, never weights; used by ``memory``. Llama and whatever has its keys, Qwen3, GLM-4
in both layouts, and LFM2 are told apart; an architecture that is not known is counted as a Llama.

No equation of the paper.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from webrl_lite.config import JSON


class PlanError(ValueError):
    """Something that does not fit or cannot be planned: says the rule, the value got and the way out."""


@dataclass(frozen=True)
class Linear:
    """One linear layer by the name that LoRA's targets use."""

    name: str
    inputs: int
    outputs: int
    bias: bool = False

    @property
    def weights(self) -> int:
        """Number of weights without the bias."""
        return self.inputs * self.outputs


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a decoder."""

    name: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_length: int
    """Most tokens of a row."""
    tied: bool = False
    """Whether the output layer is the embedding."""
    qkv_bias: bool = False
    qk_norm: bool = False
    """Whether queries and keys are normalised."""
    norms: int = 2
    """Norms of a layer's width in each layer."""
    fused_mlp: bool = False
    """Whether gate and up projection are one layer, ``gate_up_proj``."""
    fused_qkv: bool = False
    """Whether the three projections of attention are one layer, ``query_key_value``."""
    conv_layers: int = 0
    """Layers that have a short convolution in place of attention (LFM2)."""
    conv_kernel: int = 0

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "intermediate_size", "layers", "heads", "kv_heads", "head_dim"):
            if getattr(self, name) < 1:
                raise PlanError(f"`{name}` must be at least 1, got {getattr(self, name)}. Check the configuration.")
        if self.conv_layers > self.layers:
            raise PlanError(f"`conv_layers` must be at most {self.layers}, the layers, got {self.conv_layers}.")

    @classmethod
    def from_config(cls, config: Mapping[str, JSON], name: str = "") -> ModelShape:
        """Read a configuration of transformers: Llama and what has its keys, Qwen3, GLM-4 (both layouts), LFM2.

        Args:
            config: the content of ``config.json``; of a model with images, its text part is taken.
            name: for messages and tables; else the configuration's own.

        Raises:
            PlanError: a key is missing, or the model is a mixture of experts.
        """
        if isinstance(config.get("text_config"), Mapping):
            return cls.from_config(config["text_config"], name)
        if any(config.get(key) for key in ("num_experts", "num_local_experts", "n_routed_experts")):
            raise PlanError("`config` must be of a dense model, got a mixture of experts. Its layers are not counted.")
        kind = str(config.get("model_type", ""))
        chatglm = "ffn_hidden_size" in config  # the layout of the authors' GLM-4 base, with code of its own
        heads = _whole(config, "num_attention_heads")
        hidden = _whole(config, "hidden_size")
        layers = _whole(config, "num_layers", "num_hidden_layers") if chatglm else _whole(config, "num_hidden_layers")
        conv = _conv_layers(config, layers) if kind == "lfm2" else 0
        return cls(
            name=name or str(config.get("_name_or_path") or kind or "model"),
            vocab_size=_whole(config, "padded_vocab_size", "vocab_size"),
            hidden_size=hidden,
            intermediate_size=_lfm2_width(config) if kind == "lfm2" else _whole(config, *_WIDTH_KEYS),
            layers=layers,
            heads=heads,
            kv_heads=_whole(config, "multi_query_group_num", "num_key_value_heads", default=heads),
            head_dim=_whole(config, "kv_channels", "head_dim", default=hidden // heads),
            max_length=_whole(config, "seq_length", "max_position_embeddings", default=2**17),
            tied=bool(config.get("tie_word_embeddings", config.get("tie_embedding", kind == "lfm2"))),
            qkv_bias=bool(config.get("add_qkv_bias", config.get("attention_bias", kind == "qwen2"))),
            qk_norm=kind in ("qwen3", "lfm2"),
            norms=4 if kind == "glm4" else 2,
            fused_mlp=chatglm or kind in ("glm", "glm4"),
            fused_qkv=chatglm,
            conv_layers=conv,
            conv_kernel=_whole(config, "conv_L_cache", default=3) if conv else 0,
        )

    @classmethod
    def read(cls, path: str | Path) -> ModelShape:
        """Read a ``config.json``, or the one in a folder.

        Raises:
            PlanError: there is none, or it is no JSON object.
        """
        path = Path(path)
        file = path / "config.json" if path.is_dir() else path
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PlanError(f"`{file}` must be a readable config.json, got {error}.") from error
        if not isinstance(config, dict):
            raise PlanError(f"`{file}` must be a JSON object, got {type(config).__name__}.")
        return cls.from_config(config, file.resolve().parent.name)

    @property
    def queries(self) -> int:
        """Width of all heads together."""
        return self.heads * self.head_dim

    @property
    def keys(self) -> int:
        """Width of all key (or value) heads together."""
        return self.kv_heads * self.head_dim

    @property
    def attention_layers(self) -> int:
        """Layers with attention."""
        return self.layers - self.conv_layers

    def mixer(self, *, conv: bool = False) -> tuple[Linear, ...]:
        """Return the linear layers of attention, or of the short convolution in its place; the last is its output."""
        h, q, k, bias = self.hidden_size, self.queries, self.keys, self.qkv_bias
        if conv:
            return Linear("in_proj", h, 3 * h), Linear("out_proj", h, h)
        if self.fused_qkv:
            return Linear("query_key_value", h, q + 2 * k, bias), Linear("dense", q, h)
        projections = (Linear("q_proj", h, q, bias), Linear("k_proj", h, k, bias), Linear("v_proj", h, k, bias))
        return *projections, Linear("out_proj" if self.conv_layers else "o_proj", q, h)

    @property
    def mlp(self) -> tuple[Linear, ...]:
        """The linear layers behind attention; the last is the down projection."""
        h, f = self.hidden_size, self.intermediate_size
        if self.fused_mlp:
            up, down = ("dense_h_to_4h", "dense_4h_to_h") if self.fused_qkv else ("gate_up_proj", "down_proj")
            return Linear(up, h, 2 * f), Linear(down, f, h)
        gate, up, down = ("w1", "w3", "w2") if self.conv_layers else ("gate_proj", "up_proj", "down_proj")
        return Linear(gate, h, f), Linear(up, h, f), Linear(down, f, h)

    def linears(self) -> list[Linear]:
        """Return the linear layers of the whole decoder, the output layer not counted."""
        mixers = self.mixer() * self.attention_layers + self.mixer(conv=True) * self.conv_layers
        return [*mixers, *self.mlp * self.layers]

    @property
    def linear_weights(self) -> int:
        """Weights in linear layers, the output layer not counted: what NF4 makes small."""
        return sum(linear.weights for linear in self.linears())

    @property
    def embedding_weights(self) -> int:
        """Weights of the embedding, and of the output layer where it is another."""
        return self.vocab_size * self.hidden_size * (1 if self.tied else 2)

    @property
    def other_weights(self) -> int:
        """Norms, biases and convolutions."""
        h = self.hidden_size
        biases = sum(linear.outputs for linear in self.linears() if linear.bias)
        heads = 2 * self.head_dim * self.attention_layers if self.qk_norm else 0
        return (self.layers * self.norms + 1) * h + heads + biases + self.conv_layers * h * self.conv_kernel

    @property
    def parameters(self) -> int:
        """All weights."""
        return self.linear_weights + self.embedding_weights + self.other_weights


_WIDTH_KEYS = ("ffn_hidden_size", "intermediate_size")


def _whole(config: Mapping[str, JSON], *keys: str, default: int | None = None) -> int:
    """Return the first of some keys that is set, a whole number of at least 1."""
    found = next(((key, config[key]) for key in keys if config.get(key) is not None), None)
    if found is None and default is not None:
        return default
    key, value = found or (keys[-1], None)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise PlanError(
            f"`{key}` must be a whole number of at least 1, got {value!r}. Is this a language model's file?"
        )
    return value


def _conv_layers(config: Mapping[str, JSON], layers: int) -> int:
    kinds, attention = config.get("layer_types"), config.get("full_attn_idxs")
    if isinstance(kinds, list):
        return kinds.count("conv")
    return layers - len(attention) if isinstance(attention, list) else 0


def _lfm2_width(config: Mapping[str, JSON]) -> int:
    """LFM2 states a width that its code changes: two thirds, times a factor, rounded up."""
    width = _whole(config, "block_ff_dim", "intermediate_size")
    if not config.get("block_auto_adjust_ff_dim", True):
        return width
    factor, step = config.get("block_ffn_dim_multiplier", 1.0), _whole(config, "block_multiple_of", default=256)
    width = int((1.0 if factor is None else float(factor)) * int(2 * width / 3))
    return -(-width // step) * step


# What the table shows ------------------------------------------------------------------------------------------------

SHAPES = {
    shape.name: shape
    for shape in (
        ModelShape("Llama-3.1-8B", 128256, 4096, 14336, 32, 32, 8, 128, 131072),
        ModelShape("GLM-4-9B", 151552, 4096, 13696, 40, 32, 2, 128, 131072, qkv_bias=True, fused_mlp=True),
        ModelShape("Qwen3-8B", 151936, 4096, 12288, 36, 32, 8, 128, 40960, qk_norm=True),
        ModelShape("Llama-3.1-70B", 128256, 8192, 28672, 80, 64, 8, 128, 131072),
    )
}
"""Models by name. From ``config.json`` of meta-llama/Llama-3.1-8B-Instruct, THUDM/glm-4-9b-chat-hf, Qwen/Qwen3-8B and
meta-llama/Llama-3.1-70B-Instruct."""
