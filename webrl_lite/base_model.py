"""The one base that all roles share: in 4 bits (NF4, double quantization) or as it is, frozen, with its adapters.

Reads a folder, a name on the model hub, a GGUF file or the weights in this package; writes nothing. Used by ``model``.
The base is frozen by hand: PEFT's ``prepare_model_for_kbit_training`` would also turn embedding and output layer into
float32, 2 GB for a model of 8 billion parameters.

No equation of the paper; the authors train all weights.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from peft import LoraConfig as PeftLoraConfig
from peft import PeftModel, get_peft_model
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    GgufConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from webrl_lite.batching import RuleError
from webrl_lite.config import LoraConfig, ModelConfig
from webrl_lite.trunk import cut

TINY_FOLDER = Path(__file__).parent / "tiny_weights"
"""Weights and tokenizer of the model in this package."""

HEAD_SCALE = 1e-3
"""Spread of a fresh value head's logits for hidden states of size 1: V starts within 0.5 +- 0.02 on any base."""

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def pick_device(device: str) -> torch.device:
    """Return a device; ``auto`` is this process's GPU if there is one."""
    if device == "auto":
        device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


def pick_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """Return a type; ``auto`` is bfloat16 on a GPU, float32 on a CPU."""
    if dtype == "auto":
        dtype = "float32" if device.type == "cpu" else "bfloat16"
    return DTYPES[dtype]


def source(model: ModelConfig) -> str:
    """Return the folder or hub name of the weights.

    Raises:
        RuleError: the package's own weights are asked for and not there.
    """
    if model.name != "tiny":
        return model.name
    if not (TINY_FOLDER / "config.json").is_file():
        raise RuleError(
            "`model.name` is tiny, but its weights are missing. Get them again with the package, or make "
            "them: python -m webrl_lite.tiny_base, then python -m webrl_lite.tiny_base --ship."
        )
    return str(TINY_FOLDER)


def load_tokenizer(model: ModelConfig) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a model."""
    return AutoTokenizer.from_pretrained(source(model), revision=model.revision or "main", gguf_file=model.gguf_file)


def load_base(model: ModelConfig, device: torch.device) -> PreTrainedModel:
    """Return the base, frozen, in evaluation mode, without dropout.

    Raises:
        RuleError: GGUF together with NF4, or a model shorter than ``model.max_length``.
    """
    if model.gguf_file and model.quantization == "nf4":
        raise RuleError(
            "`model.quantization` must be none with `model.gguf_file`, got nf4: GGUF weights are unpacked on loading. "
            "Save what webrl_lite.base_model.load_base returns for the file (and load_tokenizer) once with "
            "save_pretrained(), and load that folder in nf4."
        )
    where = {"revision": model.revision or "main", "gguf_file": model.gguf_file}
    config = AutoConfig.from_pretrained(source(model), **where)
    _check_length(config, model.max_length)
    _drop_dropout(config)
    dtype = pick_dtype(model.dtype, device)
    quantization = None
    if model.gguf_file:
        # Left to itself, transformers keeps the file's packed blocks wherever it has a kernel for them, and takes the
        # model for a quantized one, which cannot be saved, where it has none.
        quantization = GgufConfig(dequantize=True)
    if model.quantization == "nf4":
        quantization = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype,
        )
    base = AutoModelForCausalLM.from_pretrained(
        source(model), config=config, dtype=dtype, quantization_config=quantization, device_map={"": device}, **where
    )
    for module in base.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    stop_repacking(base)
    base.requires_grad_(False)
    return base.eval()


def quantized_layers(model: nn.Module) -> list[nn.Module]:
    """Return the 4-bit linear layers of a model."""
    return [module for module in model.modules() if type(module).__name__ == "Linear4bit" and _is_bitsandbytes(module)]


def stop_repacking(model: nn.Module) -> None:
    """Keep bitsandbytes from rearranging 4-bit weights on the first pass without gradients.

    On CPUs with AVX512-BF16 it does so, and from then on a backward pass reads the rearranged bytes as if they were the
    old ones: gradients stop at every 4-bit layer while the loss looks right (bitsandbytes 0.50; compare its issue
    2078). ``SharedBase.check_gradients`` notices if a later version needs another switch.
    """
    for module in quantized_layers(model):
        module.support_avx512bf16_for_cpu = False


def _is_bitsandbytes(module: nn.Module) -> bool:
    return type(module).__module__.startswith("bitsandbytes.")  # PEFT's wrapper has the same class name


def _check_length(config: PreTrainedConfig, max_length: int) -> None:
    longest = getattr(config, "max_position_embeddings", None)
    if longest is not None and max_length > longest:
        raise RuleError(f"`model.max_length` must be at most {longest}, the model's own limit, got {max_length}.")


def _drop_dropout(config: PreTrainedConfig) -> None:
    """Set every dropout of a configuration to 0: log-probs in training must equal those in scoring."""
    for name, value in config.to_dict().items():
        if ("dropout" in name or name.endswith("pdrop")) and isinstance(value, float):
            setattr(config, name, 0.0)


def add_adapters(base: PreTrainedModel, lora: LoraConfig, seeds: Mapping[str, int], below: int) -> PeftModel:
    """Add one adapter a role, in float32 on any base.

    Args:
        base: the frozen base.
        lora: shape of the adapters.
        seeds: of each role's first weights.
        below: layers without adapters, from the bottom.

    Raises:
        RuleError: layers without adapters are asked of an architecture that cannot be cut.
    """
    layers = base.config.num_hidden_layers
    targets = _targets(base, lora, below)
    model: PeftModel | None = None
    with torch.random.fork_rng():
        for role, seed in seeds.items():
            torch.manual_seed(seed)
            config = PeftLoraConfig(
                r=lora.rank,
                lora_alpha=lora.alpha,
                lora_dropout=0.0,  # log-probs in training must equal those in scoring
                target_modules=targets,
                layers_to_transform=list(range(below, layers)) if below else None,
                task_type="CAUSAL_LM",
            )
            if model is None:
                model = get_peft_model(base, config, adapter_name=role, autocast_adapter_dtype=True)
            else:
                model.add_adapter(role, config, autocast_adapter_dtype=True)
    return model


def _targets(base: PreTrainedModel, lora: LoraConfig, below: int) -> str | list[str]:
    """Return the layers that get an adapter; PEFT takes ``all-linear`` only if it means all of the model."""
    if lora.targets == "all-linear" and below:
        layers = cut(base.base_model, below, base.config.num_hidden_layers, final_norm=True).layers
        return sorted({name.split(".")[-1] for name, m in layers.named_modules() if isinstance(m, nn.Linear)})
    return lora.targets if isinstance(lora.targets, str) else list(lora.targets)


def value_head(width: int, device: torch.device, seed: int) -> nn.Linear:
    """Return the critic's fresh head: hidden states of a width to the logits of failure and success, near 0 both."""
    generator = torch.Generator().manual_seed(seed)
    head = nn.utils.skip_init(nn.Linear, width, 2)  # its own first weights would take from the global random numbers
    with torch.no_grad():
        head.weight.copy_(HEAD_SCALE / width**0.5 * torch.randn(2, width, generator=generator))
        head.bias.zero_()
    return head.to(device)
