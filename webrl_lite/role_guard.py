"""Which role a forward pass belongs to, and that its gradients end up there.

All roles share one base, so choosing a role is changing the base's layers in place. Four sequences train something
else than was meant, and none of them raises by itself (measured with PEFT 0.21):

    forward of A, switch to B, backward of both            A gets no gradient at all
    the same with activation checkpointing                 the layers are recomputed with B's adapter: wrong by 7 to 9x
    backward of A inside a block of B                      no gradient, or wrong ones
    a passing look at another adapter (``disable_adapter``) gradients come back on for an adapter that was frozen

``RoleGuard`` makes them errors. Outputs of a training role are watched: a role is not entered while another role's
graph still waits for its backward pass, and a backward pass outside its role's block is refused. What is safe stays
possible: a pass *without* gradients under another role inside a training block (say, the reference's scores), since the
training role is set again before its backward pass.

No equation of the paper; the released code has two full models and needs no guard.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from peft import PeftModel
from torch import Tensor, nn

from webrl_lite.batching import RuleError


@dataclass(frozen=True)
class Entry:
    """A role in use."""

    role: str
    train: bool


@dataclass
class _Graph:
    """A result of a training role whose backward pass is still to come."""

    role: str
    guard: RoleGuard
    node: weakref.ref[torch.autograd.function.FunctionCtx] | None = None
    done: bool = False
    abandoned: bool = False

    @property
    def waiting(self) -> bool:
        return not self.done and not self.abandoned and self.node is not None and self.node() is not None

    def begin_backward(self) -> None:
        current = self.guard.current
        way_out = f'Call backward() inside the same `with shared.role("{self.role}", train=True):`.'
        if self.abandoned:
            raise RuleError(
                f"a backward pass of `{self.role}` was asked for after its block had ended in an error. "
                "Compute the loss again."
            )
        if current != Entry(self.role, train=True):
            where = f"inside a block of `{current.role}` (train={current.train})" if current else "outside any block"
            raise RuleError(
                f"a backward pass of `{self.role}` must run inside its own block, it ran {where}. {way_out}"
            )
        self.done = True


class _Watched(torch.autograd.Function):
    """The identity; its node lives exactly as long as the graph behind it and is told when backward begins."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, output: Tensor, graph: _Graph) -> Tensor:
        ctx.graph = graph
        return output.view_as(output)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        ctx.graph.begin_backward()
        return gradient, None


@dataclass
class RoleGuard:
    """Chooses the adapter of a role together with all that depends on it.

    Outside any block every parameter is frozen and the model is in evaluation mode.
    """

    model: PeftModel
    heads: Mapping[str, nn.Module]
    """Modules beside the adapters that belong to a role."""
    parameters: dict[str, list[nn.Parameter]] = field(init=False)
    """What a role trains: its adapter's weights and its head's."""
    _stack: list[Entry] = field(default_factory=list)
    _graphs: list[_Graph] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parameters = {role: [] for role in self.model.peft_config}
        for name, parameter in self.model.named_parameters():
            for role in self.parameters:
                # PEFT names an adapter's tensors `...lora_A.<role>.weight`
                if f".{role}." in name and "lora_" in name:
                    self.parameters[role].append(parameter)
        for role, head in self.heads.items():
            self.parameters[role].extend(head.parameters())
        self._set(None)

    @property
    def current(self) -> Entry | None:
        """The role in use, None outside any block."""
        return self._stack[-1] if self._stack else None

    def require(self) -> Entry:
        """Return the role in use.

        Raises:
            RuleError: none is.
        """
        if self.current is None:
            raise RuleError('a pass needs a role, got none. Write `with shared.role("actor"):` around it.')
        return self.current

    def watch(self, output: Tensor) -> Tensor:
        """Return the output of the role in use, watched if a backward pass may follow."""
        if not output.requires_grad:
            return output
        graph = _Graph(self.require().role, self)
        watched = _Watched.apply(output, graph)
        graph.node = weakref.ref(watched.grad_fn)
        self._graphs = [g for g in self._graphs if g.waiting] + [graph]
        return watched

    @contextmanager
    def enter(self, role: str, train: bool) -> Iterator[None]:
        """Use a role; gradients are recorded only with ``train``. See ``SharedBase.role``."""
        before = self.current
        entry = Entry(role, train)
        self._check(entry, before)
        self._stack.append(entry)
        try:
            if entry != before:
                self._set(entry)
            with torch.set_grad_enabled(train):
                yield
        except BaseException:
            if train and entry != before:
                for graph in self._graphs:
                    graph.abandoned = True  # the exception's frames keep it alive; that must not block the next role
            raise
        finally:
            self._stack.pop()
            if entry != before:
                self._set(before)

    def _check(self, entry: Entry, before: Entry | None) -> None:
        if entry.role not in self.parameters:
            raise RuleError(f"`role` must be one of {', '.join(self.parameters)}, got {entry.role!r}.")
        if before is not None:
            if entry.train and entry != before:
                raise RuleError(
                    f"`{entry.role}` cannot be trained inside a block of `{before.role}` (train={before.train}): only "
                    "passes without gradients may stand there. End that block first."
                )
            return
        if any(graph.waiting and graph.role != entry.role for graph in self._graphs):
            gc.collect()  # a graph that only a reference cycle keeps is no mistake
        for graph in self._graphs:
            if graph.waiting and graph.role != entry.role:
                raise RuleError(
                    f"`{entry.role}` cannot be entered while a result of `{graph.role}` waits for its backward pass: "
                    "its layers would be recomputed with the wrong adapter. Call backward() inside its block, or drop "
                    "the result (`del loss`), or keep `result.detach()`."
                )

    def _set(self, entry: Entry | None) -> None:
        train = entry is not None and entry.train
        if entry is not None:
            self.model.set_adapter(entry.role, inference_mode=not train)
        for role, parameters in self.parameters.items():
            for parameter in parameters:
                parameter.requires_grad_(train and role == entry.role)
        self.model.train(train)  # checkpointing works in training mode only; there is no dropout anywhere
        for role, head in self.heads.items():
            head.train(train and role == entry.role)
