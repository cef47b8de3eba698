import json
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from tiny_models import folder, load, stir
from transformers import AutoModelForCausalLM

from webrl_lite import role_files
from webrl_lite.model import RuleError, Sample, SharedBase

SAMPLES = [Sample((5, 6, 7, 8, 9, 10), (11, 12, 1)), Sample((5, 9, 40), (41, 1))]


@pytest.fixture
def shared() -> SharedBase:
    shared = load()
    stir(shared, "actor", "critic")
    return shared


@pytest.mark.parametrize("top_layers", [None, 2])
def test_a_saved_role_is_loaded_by_peft_in_one_call(tmp_path: Path, top_layers: int | None) -> None:
    """CKP-06, and what vLLM reads: adapter_config.json and adapter_model.safetensors in the folder itself."""
    shared = load(top_layers=top_layers)
    stir(shared, "actor")
    shared.save_role("actor", tmp_path / "actor")
    assert sorted(file.name for file in (tmp_path / "actor").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    other = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder("llama")), tmp_path / "actor").eval()
    ids = torch.tensor([SAMPLES[0].row])
    with torch.no_grad(), shared.role("actor"):
        assert torch.allclose(other(input_ids=ids).logits, shared.model(input_ids=ids).logits, atol=1e-6)


def test_all_tensors_are_in_the_file_and_named_without_the_role(shared: SharedBase, tmp_path: Path) -> None:
    """CKP-06: three layers of seven linear layers, two matrices each."""
    shared.save_role("actor", tmp_path / "actor")
    tensors = load_file(tmp_path / "actor" / "adapter_model.safetensors")
    assert len(tensors) == 3 * 7 * 2
    assert all(tensor.any() for tensor in tensors.values())
    assert not any("actor" in name for name in tensors)


@pytest.mark.parametrize("kind", ["llama", "lfm2", "gpt2"])
def test_a_role_comes_back_bit_for_bit(kind: str, tmp_path: Path) -> None:
    """CKP-06: critic and actor side by side, the value head too."""
    shared, other = load(kind), load(kind, seed=1)
    stir(shared, "actor", "critic")
    for role in ("actor", "critic"):
        shared.save_role(role, tmp_path / role)
        assert other.role_version(role) != shared.role_version(role)
        other.load_role(role, tmp_path / role)
        assert other.role_version(role) == shared.role_version(role)
    assert torch.equal(other.value_head.weight, shared.value_head.weight)
    assert shared.role_version("actor") != shared.role_version("critic")


def test_loading_keeps_the_parameters_that_an_optimizer_holds(shared: SharedBase, tmp_path: Path) -> None:
    shared.save_role("actor", tmp_path / "actor")
    before = shared.trainable_parameters("actor")
    shared.load_role("actor", tmp_path / "actor")
    assert all(one is other for one, other in zip(before, shared.trainable_parameters("actor"), strict=True))


def test_an_actor_can_be_loaded_as_reference_and_as_critic(shared: SharedBase, tmp_path: Path) -> None:
    """Paper §3.1: the critic starts from the SFT model; its head stays."""
    shared.save_role("actor", tmp_path / "sft")
    head = shared.value_head.weight.clone()
    for role in ("ref", "critic"):
        shared.load_role(role, tmp_path / "sft")
    with shared.role("actor"):
        expected = shared.action_logprobs(SAMPLES)
    for role in ("ref", "critic"):
        with shared.role(role):
            assert torch.equal(shared.action_logprobs(SAMPLES), expected)
    assert torch.equal(shared.value_head.weight, head)


def test_saving_twice_replaces_the_first(shared: SharedBase, tmp_path: Path) -> None:
    shared.save_role("actor", tmp_path / "role")
    stir(shared, "critic", "actor")
    shared.save_role("actor", tmp_path / "role")
    version = shared.role_version("actor")
    stir(shared, "actor")
    shared.load_role("actor", tmp_path / "role")
    assert shared.role_version("actor") == version
    assert [file.name for file in tmp_path.iterdir()] == ["role"]


def test_an_untrained_role_can_be_saved(tmp_path: Path) -> None:
    load().save_role("orm", tmp_path / "orm")


def test_a_role_that_training_reached_in_part_is_not_saved(shared: SharedBase, tmp_path: Path) -> None:
    """CKP-06: one B matrix of zeros among trained ones is a gradient that did not get there."""
    with torch.no_grad():
        next(p for n, p in shared.model.named_parameters() if "lora_B.actor" in n).zero_()
    with pytest.raises(RuleError, match="1 tensors are all zero, the first is .*lora_B"):
        shared.save_role("actor", tmp_path / "actor")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_not_saved(shared: SharedBase, tmp_path: Path, value: float) -> None:
    with torch.no_grad():
        shared.trainable_parameters("actor")[3][0, 0] = value
    with pytest.raises(RuleError, match="must be finite, 1 tensors are not"):
        shared.save_role("actor", tmp_path / "actor")


def test_a_file_without_tensors_is_noticed(shared: SharedBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CKP-06: the famous adapter file of 443 bytes."""
    monkeypatch.setattr(role_files, "save_file", lambda tensors, file, metadata: save_file({}, file, metadata))
    with pytest.raises(RuleError, match="the file does not hold the same weights"):
        shared.save_role("actor", tmp_path / "actor")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_role(shared: SharedBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CKP-05."""
    shared.save_role("actor", tmp_path / "actor")
    version = shared.role_version("actor")
    stir(shared, "critic", "actor")

    def full(tensors: object, file: Path, metadata: object) -> None:
        file.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(role_files, "save_file", full)
    with pytest.raises(OSError, match="No space left"):
        shared.save_role("actor", tmp_path / "actor")
    assert [file.name for file in tmp_path.iterdir()] == ["actor"]
    shared.load_role("actor", tmp_path / "actor")
    assert shared.role_version("actor") == version


def test_an_end_between_the_two_renames_loses_nothing(
    shared: SharedBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CKP-01: the old folder was moved away and the new one is not there yet."""
    shared.save_role("actor", tmp_path / "actor")
    version = shared.role_version("actor")
    (tmp_path / "actor").rename(tmp_path / ".actor.old")
    stir(shared, "critic", "actor")
    shared.load_role("actor", tmp_path / "actor")
    assert shared.role_version("actor") == version
    shared.save_role("actor", tmp_path / "actor")
    assert [file.name for file in tmp_path.iterdir()] == ["actor"]


def test_a_job_ended_at_any_moment_leaves_a_complete_role(shared: SharedBase, tmp_path: Path) -> None:
    """CKP-01: twenty times; each child saves one of two versions over and over until it is killed."""
    shared.save_role("actor", tmp_path / "actor")
    versions = {shared.role_version("actor")}
    stir(shared, "critic", "actor")
    versions.add(shared.role_version("actor"))
    found = set()
    for round_ in range(20):
        child = os.fork()
        if child == 0:
            try:
                while True:
                    stir(shared, *(("actor",) if time.monotonic_ns() % 2 else ("critic", "actor")))
                    shared.save_role("actor", tmp_path / "actor")
            finally:
                os._exit(1)
        time.sleep(0.02 + 0.007 * round_)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        shared.load_role("actor", tmp_path / "actor")
        found.add(shared.role_version("actor"))
    assert found <= versions and len(versions) == 2
    shared.save_role("actor", tmp_path / "actor")
    assert [file.name for file in tmp_path.iterdir()] == ["actor"]  # what the killed ones left is gone


@pytest.mark.parametrize("damage", ["no folder", "no weights", "cut weights", "no config", "cut config"])
def test_an_incomplete_folder_is_refused_and_changes_nothing(shared: SharedBase, tmp_path: Path, damage: str) -> None:
    """CKP-02."""
    place = tmp_path / "actor"
    shared.save_role("actor", place)
    weights, config = place / "adapter_model.safetensors", place / "adapter_config.json"
    if damage == "no folder":
        place = tmp_path / "other"
    elif damage == "no weights":
        weights.unlink()
    elif damage == "cut weights":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif damage == "no config":
        config.unlink()
    else:
        config.write_text(config.read_text()[:50])
    stir(shared, "critic", "actor")
    version = shared.role_version("actor")
    with pytest.raises(RuleError, match="is no complete role"):
        shared.load_role("actor", place)
    assert shared.role_version("actor") == version


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 8}, "r: saved 4, here 8"),
        ({"top_layers": 2}, r"layers_to_transform: saved None, here \[1, 2\]"),
        ({"kind": "llama-64"}, "42 of another shape"),
    ],
)
def test_a_role_of_another_shape_is_refused_with_what_differs(
    shared: SharedBase, tmp_path: Path, settings: dict[str, int | str], message: str
) -> None:
    """CKP-08."""
    shared.save_role("actor", tmp_path / "actor")
    other = load(**settings)
    version = other.role_version("actor")
    with pytest.raises(RuleError, match=message):
        other.load_role("actor", tmp_path / "actor")
    assert other.role_version("actor") == version


def test_a_role_with_biases_or_other_targets_is_refused(shared: SharedBase, tmp_path: Path) -> None:
    """TRN-17, CKP-08: trained biases would not be switched with the adapter."""
    shared.save_role("actor", tmp_path / "actor")
    file = tmp_path / "actor" / "adapter_config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps(config | {"bias": "lora_only", "target_modules": ["q_proj"]}))
    with pytest.raises(RuleError, match="bias: saved 'lora_only', here 'none'; target_modules: saved \\['q_proj'\\]"):
        shared.load_role("actor", tmp_path / "actor")


def test_unknown_roles_are_refused(shared: SharedBase, tmp_path: Path) -> None:
    for call in (
        lambda: shared.save_role("judge", tmp_path / "judge"),
        lambda: shared.load_role("judge", tmp_path / "judge"),
        lambda: shared.copy_role("actor", "judge"),
        lambda: shared.role_version("judge"),
        lambda: shared.trainable_parameters("judge"),
    ):
        with pytest.raises(RuleError, match="`role` must be one of actor, ref, critic, orm, got 'judge'"):
            call()
