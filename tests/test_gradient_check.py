from collections.abc import Callable

import bitsandbytes.functional
import pytest
import torch
from tiny_models import load, stir
from torch import Tensor

from webrl_lite import base_model
from webrl_lite.base_model import quantized_layers
from webrl_lite.model import RuleError, Sample

SAMPLES = [Sample((5, 6, 7, 8, 9, 10), (11, 12, 1))]

needs_the_fault = pytest.mark.skipif(
    not bitsandbytes.functional.has_avx512bf16(), reason="this processor has no AVX512-BF16, so nothing is repacked"
)


@pytest.mark.parametrize("kind", ["llama", "lfm2", "gpt2"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_sound_model_passes_and_is_left_as_it_was(kind: str, checkpointing: bool) -> None:
    shared = load(kind, checkpointing=checkpointing)
    before = [shared.role_version(role) for role in ("actor", "ref", "critic", "orm")]
    shared.check_gradients()
    assert [shared.role_version(role) for role in ("actor", "ref", "critic", "orm")] == before
    assert all(parameter.grad is None for parameter in shared.model.parameters())


def test_a_model_with_adapters_on_top_passes() -> None:
    load(top_layers=2).check_gradients()


@pytest.mark.parametrize("kind", ["llama-64", "lfm2-64"])
def test_a_4_bit_model_passes(kind: str) -> None:
    load(kind, quantization="nf4").check_gradients()


def test_checkpointing_that_loses_gradients_is_noticed() -> None:
    shared = load(checkpointing=True)
    for layer in shared.model.get_base_model().model.layers:
        layer._gradient_checkpointing_func = lambda function, states: function(states.detach()).detach()
    with pytest.raises(RuleError, match="no gradient with activation checkpointing"):
        shared.check_gradients()


def test_checkpointing_that_recomputes_with_another_adapter_is_noticed() -> None:
    """ADAPTERS hazard 3: a wrong gradient at the right loss."""
    shared = load(checkpointing=True)
    stir(shared, "ref")
    layers = shared.model.get_base_model().model.layers

    class Switching(torch.autograd.Function):
        @staticmethod
        def forward(ctx, states, function):  # noqa: ANN001, ANN205
            ctx.function, ctx.states = function, states
            return function(states)

        @staticmethod
        def backward(ctx, gradient):  # noqa: ANN001, ANN205
            with torch.enable_grad():
                states = ctx.states.detach().requires_grad_()
                shared.model.base_model.set_adapter("ref")
                output = ctx.function(states)
                shared.model.base_model.set_adapter("actor")
                output.backward(gradient)
            return states.grad, None

    layers[1]._gradient_checkpointing_func = lambda function, states: Switching.apply(states, function)
    with pytest.raises(RuleError, match="checkpointing"):
        shared.check_gradients()


def test_a_wrong_gradient_at_the_right_output_is_noticed() -> None:
    shared = load(checkpointing=True)

    def doubled(function: Callable[[Tensor], Tensor], states: Tensor) -> Tensor:
        output = function(states)
        return 2 * output - output.detach()

    shared.model.get_base_model().model.layers[1]._gradient_checkpointing_func = doubled
    with pytest.raises(RuleError, match="they differ by 100.0%"):
        shared.check_gradients()


@needs_the_fault
@pytest.mark.parametrize("kind", ["llama-64", "lfm2-64"])
def test_4_bit_layers_that_rearrange_their_weights_are_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ADAPTERS: without our switch, gradients stop at every 4-bit layer after the first scoring pass."""
    monkeypatch.setattr(base_model, "stop_repacking", lambda model: None)
    with pytest.raises(RuleError, match="4-bit layer's gradient does not fit"):
        load(kind, quantization="nf4").check_gradients()


@pytest.mark.parametrize("kind", ["llama-64", "lfm2-64"])
def test_a_scoring_pass_changes_neither_4_bit_weights_nor_later_gradients(kind: str) -> None:
    """Fails without ``stop_repacking`` on a processor with AVX512-BF16."""
    shared = load(kind, quantization="nf4")
    stir(shared, "actor")
    weights = [layer.weight.detach().clone() for layer in quantized_layers(shared.model)]
    results = []
    for _ in range(2):
        with shared.role("actor", train=True):
            shared.action_logprobs(SAMPLES).sum().backward()
        results.append([parameter.grad.clone() for parameter in shared.trainable_parameters("actor")])
        for parameter in shared.trainable_parameters("actor"):
            parameter.grad = None
        with shared.role("ref"):
            shared.action_logprobs(SAMPLES)
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
    assert all(torch.equal(a, b.weight) for a, b in zip(weights, quantized_layers(shared.model), strict=True))


def test_the_switch_is_off_on_every_4_bit_layer() -> None:
    layers = quantized_layers(load("llama-64", quantization="nf4").model)
    assert len(layers) == 3 * 7
    assert not any(layer.support_avx512bf16_for_cpu for layer in layers)
