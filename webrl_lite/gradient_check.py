"""Does training on this machine compute the gradients that it should? Asked once, before hours are spent.

Run by ``SharedBase.check_gradients`` on two layers of the loaded model. Two faults train something wrong at a loss that
looks right: activation checkpointing that loses or mixes up gradients, and 4-bit layers whose backward pass reads
weights that their forward pass has rearranged. The first shows when the same step is taken with and without
checkpointing, a pass of another role in between; the second when a layer's gradient is not the transpose of its output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from webrl_lite.base_model import quantized_layers
from webrl_lite.batching import Batch, RuleError, pad
from webrl_lite.role_guard import RoleGuard

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 5e-2}
"""Most relative difference of two gradients that should be equal, by the base's type."""


def check_gradients(guard: RoleGuard, layers: nn.Module, embeddings: nn.Module, seed: int = 0) -> None:
    """Take one step's gradients in three ways and refuse if they disagree; nothing is changed.

    Args:
        guard: the roles.
        layers: a decoder of few layers, all with adapters.
        embeddings: the model's input embeddings.
        seed: of the made-up batch.

    Raises:
        RuleError: a gradient is missing, zero or differs; says which and what to do.
    """
    device = embeddings.weight.device
    generator = torch.Generator().manual_seed(seed)
    rows = [tuple(torch.randint(embeddings.num_embeddings, (n,), generator=generator).tolist()) for n in (13, 7)]
    batch = pad(rows, device)
    with torch.no_grad():
        inputs = embeddings(batch.input_ids)
    direction = torch.randn(inputs.shape, generator=generator).to(device)
    tolerance = TOLERANCE[inputs.dtype]
    roles = list(guard.parameters)
    with guard.enter(roles[0], False):
        for layer in quantized_layers(layers):
            _check_transpose(layer, inputs.dtype, device, generator)
    for number, role in enumerate(roles):
        names = {parameter: name for name, parameter in layers.named_parameters() if f".{role}." in name}
        with _stirred(list(names), generator):
            with guard.enter(role, True), _checkpointing(layers, False):
                plain = _gradients(layers, inputs, direction, batch, list(names))
            with guard.enter(roles[number - 1], False):
                _forward(layers, inputs, batch)
            with guard.enter(role, True), _checkpointing(layers, True):
                again = _gradients(layers, inputs, direction, batch, list(names))
        for name, one, other in zip(names.values(), plain, again, strict=True):
            _compare(f"{role}: {name}", one, other, tolerance)


def _forward(layers: nn.Module, inputs: Tensor, batch: Batch) -> Tensor:
    output = layers(
        inputs_embeds=inputs, attention_mask=batch.attention_mask, position_ids=batch.position_ids, use_cache=False
    )
    return output.last_hidden_state


def _gradients(
    layers: nn.Module, inputs: Tensor, direction: Tensor, batch: Batch, parameters: Sequence[nn.Parameter]
) -> list[Tensor | None]:
    for parameter in parameters:
        parameter.grad = None
    output = _forward(layers, inputs.detach().requires_grad_(), batch)
    real = batch.attention_mask[..., None].bool()
    if output.requires_grad:
        (output.float() * direction).masked_fill(~real, 0.0).sum().backward()
    gradients = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    return gradients


@contextmanager
def _stirred(parameters: Sequence[nn.Parameter], generator: torch.Generator) -> Iterator[None]:
    """Give an adapter random weights for a while; a new one has zeros and gives half of its gradients none."""
    before = [(parameter.detach().clone(), parameter.grad) for parameter in parameters]
    try:
        with torch.no_grad():
            for parameter in parameters:
                parameter.copy_(0.05 * torch.randn(parameter.shape, generator=generator))
        yield
    finally:
        with torch.no_grad():
            for parameter, (value, gradient) in zip(parameters, before, strict=True):
                parameter.copy_(value)
                parameter.grad = gradient


@contextmanager
def _checkpointing(layers: nn.Module, on: bool) -> Iterator[None]:
    """Turn activation checkpointing on or off for a while, in the way it is set up, else in the usual one."""
    modules = [module for module in layers.modules() if hasattr(module, "gradient_checkpointing")]
    before = [module.gradient_checkpointing for module in modules]
    try:
        for module in modules:
            module.gradient_checkpointing = on
            if on and not hasattr(module, "_gradient_checkpointing_func"):
                module._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False)
        yield
    finally:
        for module, value in zip(modules, before, strict=True):
            module.gradient_checkpointing = value


def _compare(name: str, one: Tensor | None, other: Tensor | None, tolerance: float) -> None:
    for gradient, way in ((one, "without"), (other, "with")):
        if gradient is None or not gradient.any():
            raise RuleError(f"`{name}` has no gradient {way} activation checkpointing, so it would not be trained.")
    difference = ((one - other).norm() / one.norm()).item()
    if not difference <= tolerance:
        raise RuleError(
            f"`{name}` must have the same gradient with and without activation checkpointing, they differ by "
            f"{difference:.1%}. Load with checkpointing=False."
        )


def _check_transpose(layer: nn.Module, dtype: torch.dtype, device: torch.device, generator: torch.Generator) -> None:
    """For a linear layer W and any v, let g = W^T v, which the backward pass gives: then (W g) v = g g."""
    v = torch.randn(4, layer.out_features, generator=generator).to(device, dtype)
    x = torch.zeros(4, layer.in_features, device=device, dtype=dtype)
    with torch.no_grad():
        offset = layer(x)  # a bias, if there is one; and the pass after which some versions are at fault
    with torch.enable_grad():
        x.requires_grad_()
        (gradient,) = torch.autograd.grad(layer(x), x, v, allow_unused=True)
    gradient = torch.zeros_like(x) if gradient is None else gradient
    with torch.no_grad():
        left = ((layer(gradient) - offset).float() * v.float()).sum()
        right = gradient.float().square().sum()
    if not (right > 0 and abs(left - right) <= 0.05 * right):
        raise RuleError(
            "a 4-bit layer's gradient does not fit its output: its backward pass reads other weights than its forward "
            "pass. Update bitsandbytes, or use `model.quantization` none."
        )
