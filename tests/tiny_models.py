"""Tiny random models and tokenizers, built on the spot: nothing is downloaded."""

import atexit
import functools
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from webrl_lite.config import LoraConfig, ModelConfig
from webrl_lite.model import SharedBase

torch.set_num_threads(1)  # tensors this small only wait for each other

VOCABULARY = 320

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""A template that writes the first token itself and has no marks around what the assistant says."""

SPECIAL = ("<|begin|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>")


def tokenizer(*, whole_words: tuple[str, ...] = ("YES", "NO")) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer whose padding token is its end-of-turn token."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=list(SPECIAL), initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tok.train_from_iterator([*whole_words * 50, "hello he llo click the button in the shop"], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tok,
        bos_token="<|begin|>",
        eos_token="<|end|>",
        pad_token="<|end|>",
        chat_template=CHAT_TEMPLATE,
        padding_side="right",
    )


def llama(*, width: int = 32, layers: int = 3, vocabulary: int = VOCABULARY, **settings: float) -> LlamaForCausalLM:
    """A random Llama whose outputs differ clearly from token to token."""
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        initializer_range=0.2,
        bos_token_id=0,
        eos_token_id=1,
        **settings,
    )
    return LlamaForCausalLM(config).eval()


def lfm2(*, width: int = 32, layers: int = 4) -> Lfm2ForCausalLM:
    """A random LFM2: short convolutions and attention by turns."""
    torch.manual_seed(2)
    config = Lfm2Config(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        layer_types=["conv", "full_attention"] * (layers // 2),
        block_auto_adjust_ff_dim=False,
        initializer_range=0.2,
        bos_token_id=0,
        eos_token_id=1,
    )
    return Lfm2ForCausalLM(config).eval()


def gpt2(*, width: int = 32, layers: int = 2) -> GPT2LMHeadModel:
    """A random GPT-2, with absolute positions and dropout in its configuration."""
    torch.manual_seed(3)
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=width,
        n_layer=layers,
        n_head=4,
        n_positions=4096,
        initializer_range=0.2,
        bos_token_id=0,
        eos_token_id=1,
    )
    return GPT2LMHeadModel(config).eval()


def save(folder: Path, model: PreTrainedModel) -> Path:
    """Write a model with the tokenizer to a folder that ``SharedBase.load`` reads."""
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@functools.cache
def folder(kind: str) -> Path:
    """A folder with a model that all tests of a process share: ``llama``, ``lfm2``, ``gpt2``, ``llama-64`` (width)."""
    builders = {"llama": llama, "lfm2": lfm2, "gpt2": gpt2}
    name, _, width = kind.partition("-")
    place = tempfile.TemporaryDirectory(prefix="tiny-model-")
    atexit.register(place.cleanup)
    return save(Path(place.name), builders[name](width=int(width or 32)))


def load(
    kind: str = "llama",
    *,
    quantization: str = "none",
    dtype: str = "float32",
    top_layers: int | None = None,
    rank: int = 4,
    max_length: int = 2500,
    **settings: object,
) -> SharedBase:
    """A shared base over one of these models, on the CPU."""
    model = ModelConfig(name=str(folder(kind)), quantization=quantization, dtype=dtype, max_length=max_length)
    return SharedBase.load(model, LoraConfig(rank=rank, alpha=8, top_layers=top_layers), device="cpu", **settings)


def stir(shared: SharedBase, *roles: str) -> None:
    """Give adapters random weights, as training would; a fresh one changes nothing."""
    for number, role in enumerate(roles):
        generator = torch.Generator().manual_seed(number)
        with torch.no_grad():
            for parameter in shared.trainable_parameters(role):
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
