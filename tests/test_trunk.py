from pathlib import Path

import pytest
import torch
from tiny_models import load, stir
from torch import Tensor

from webrl_lite import trunk as trunk_module
from webrl_lite.model import RuleError, Sample, SharedBase, TrunkBudget

SAMPLES = [
    Sample((5, 6, 7, 8, 9, 10), (11, 12, 1)),
    Sample((5, 9, 40), (41, 1)),
    Sample(tuple(range(20, 60)), (77, 3, 4, 9, 9, 1)),
]
PROMPTS = [sample.prompt for sample in SAMPLES]
ROW_BYTES = [9 * 32 * 4, 5 * 32 * 4, 46 * 32 * 4]
"""Tokens times width times four bytes: 1,152, 640 and 5,888."""


def everything(shared: SharedBase) -> list[Tensor]:
    """Log-probabilities, value logits, answers, and the gradients of actor and critic."""
    results: list[Tensor] = []
    with shared.role("actor", train=True):
        scores = shared.action_logprobs(SAMPLES, reduction="tokens")
        scores.sum().backward()
        results.append(scores.detach())
    with shared.role("critic", train=True):
        values = shared.value_logits(PROMPTS)
        values[:, 1].sum().backward()
        results.append(values.detach())
    with shared.role("orm"):
        results.append(shared.answer_logprobs(PROMPTS, [3, 4]))
    for role in ("actor", "critic"):
        for parameter in shared.trainable_parameters(role):
            results.append(parameter.grad.clone())
            parameter.grad = None
    return results


@pytest.mark.parametrize("kind", ["llama", "lfm2"])
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("top_layers", [1, 2])
def test_scores_and_gradients_equal_the_plain_path_bit_for_bit(kind: str, checkpointing: bool, top_layers: int) -> None:
    """First computed, then from the cache, then without a trunk; the attention or convolution may be on either side."""
    shared = load(kind, top_layers=top_layers, checkpointing=checkpointing)
    stir(shared, "actor", "critic", "orm")
    first, cached = everything(shared), everything(shared)
    shared._passes.trunk = None
    plain = everything(shared)
    for one, two, three in zip(first, cached, plain, strict=True):
        assert torch.equal(one, three)
        assert torch.equal(two, three)


@pytest.mark.parametrize("kind", ["llama-64", "lfm2-64"])
def test_a_4_bit_base_gives_the_same_from_the_cache(kind: str) -> None:
    shared = load(kind, top_layers=1, quantization="nf4")
    stir(shared, "actor", "critic", "orm")
    first, cached = everything(shared), everything(shared)
    assert all(torch.equal(one, two) for one, two in zip(first, cached, strict=True))


def test_another_batch_gives_the_same_within_rounding() -> None:
    """States computed in a batch of three, used one row at a time."""
    shared = load(top_layers=2)
    stir(shared, "actor")
    with shared.role("actor"):
        together = shared.action_logprobs(SAMPLES)
        alone = torch.cat([shared.action_logprobs([sample]) for sample in SAMPLES])
    assert shared.trunk.misses == 3
    assert torch.allclose(together, alone, rtol=1e-6, atol=1e-5)


def test_states_from_a_scoring_pass_serve_training() -> None:
    shared = load(top_layers=2)
    stir(shared, "actor", "critic", "orm")
    with shared.role("ref"):
        shared.action_logprobs(SAMPLES)
    cached = everything(shared)
    assert shared.trunk.misses == 3
    shared._passes.trunk = None
    assert all(torch.equal(one, two) for one, two in zip(cached, everything(shared), strict=True))


def test_lower_layers_run_once_for_all_roles_and_passes() -> None:
    shared = load(top_layers=2)
    calls = []
    shared.model.get_base_model().model.layers[0].register_forward_pre_hook(lambda *_: calls.append(1))
    everything(shared)
    with shared.role("ref"):
        shared.action_logprobs(SAMPLES)
    everything(shared)
    assert len(calls) == 1


def test_a_prompt_is_found_in_the_row_it_was_scored_in() -> None:
    shared = load(top_layers=2)
    with shared.role("actor"):
        shared.action_logprobs(SAMPLES)
    with shared.role("critic"):
        shared.values(PROMPTS)
    assert (shared.trunk.hits, shared.trunk.misses) == (3, 3)


def test_adapters_lie_on_the_top_layers_alone() -> None:
    shared = load(top_layers=1)
    names = [name for name, _ in shared.model.named_parameters() if ".actor." in name]
    assert names and all(".layers.2." in name for name in names)
    assert len(names) == 7 * 2


def test_the_least_recently_used_row_leaves_when_the_budget_is_full() -> None:
    """Room for the first and the third row; the first is used again, so the second drives out the third."""
    shared = load(top_layers=2, trunk=TrunkBudget(memory_bytes=ROW_BYTES[0] + ROW_BYTES[2]))
    with shared.role("actor"):
        for number in (0, 2, 0, 1):
            shared.action_logprobs([SAMPLES[number]])
        assert (shared.trunk.hits, shared.trunk.misses) == (1, 3)
        shared.action_logprobs(SAMPLES[:2])
        assert (shared.trunk.hits, shared.trunk.misses) == (3, 3)
        shared.action_logprobs(SAMPLES[2:])
        assert (shared.trunk.hits, shared.trunk.misses) == (3, 4)


def test_a_budget_of_nothing_keeps_nothing_and_gives_the_same() -> None:
    shared = load(top_layers=2, trunk=TrunkBudget(memory_bytes=0))
    stir(shared, "actor", "critic", "orm")
    first, again = everything(shared), everything(shared)
    assert shared.trunk.hits == 0
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))


def test_what_memory_has_no_room_for_goes_to_disk_and_comes_back(tmp_path: Path) -> None:
    shared = load(top_layers=2, trunk=TrunkBudget(memory_bytes=ROW_BYTES[2], folder=tmp_path))
    stir(shared, "actor", "critic", "orm")
    first, again = everything(shared), everything(shared)
    assert shared.trunk.misses == 3
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1  # the longest came first and made room for the two others
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    shared.trunk.clear()
    assert list(tmp_path.iterdir()) == []


def test_the_disk_has_a_budget_too(tmp_path: Path) -> None:
    budget = TrunkBudget(memory_bytes=ROW_BYTES[2], folder=tmp_path, disk_bytes=ROW_BYTES[0])
    shared = load(top_layers=2, trunk=budget)
    with shared.role("actor"):
        shared.action_logprobs(SAMPLES)
        shared.action_logprobs(SAMPLES)
    assert len(list(tmp_path.rglob("*.safetensors"))) <= 1


def test_the_same_row_twice_is_counted_once() -> None:
    shared = load(top_layers=2, trunk=TrunkBudget(memory_bytes=ROW_BYTES[0]))
    with shared.role("actor"):
        twice = shared.action_logprobs([SAMPLES[0], SAMPLES[0]])
        shared.action_logprobs([SAMPLES[0]])
    assert twice[0] == twice[1]
    assert (shared.trunk.hits, shared.trunk.misses) == (1, 2)


def test_new_adapters_need_no_new_states() -> None:
    """CKP-09: the cache holds nothing that an adapter can change."""
    shared = load(top_layers=2)
    with shared.role("actor"):
        old = shared.action_logprobs(SAMPLES)
    stir(shared, "actor")
    with shared.role("actor"):
        new = shared.action_logprobs(SAMPLES)
    shared._passes.trunk = None
    with shared.role("actor"):
        plain = shared.action_logprobs(SAMPLES)
    assert torch.equal(new, plain)
    assert not torch.allclose(new, old, atol=0.1)


def test_an_architecture_without_a_list_of_layers_is_refused() -> None:
    with pytest.raises(RuleError, match="`lora.top_layers` needs a decoder .* got GPT2Model"):
        load("gpt2", top_layers=1)


def test_a_cut_that_changes_the_output_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the lower part would apply the final norm; an architecture that scales its input would fail likewise."""
    plain = trunk_module.cut
    monkeypatch.setattr(trunk_module, "cut", lambda body, first, last, final_norm: plain(body, first, last, True))
    with pytest.raises(RuleError, match="run in two parts, it gives other hidden states"):
        load(top_layers=1)
