"""What lies below the lowest adapter is the same for all roles and never changes: computed once, kept, reused.

With LoRA on the top k layers only, a row's hidden states under these layers serve scoring, values and every training
pass of actor, reference, critic and ORM. They are exact: the same layers, only not run again. A prompt whose states
were computed together with its action is a prefix of them, because a causal model's states do not depend on what
follows.

Read by ``model``. The states are kept in memory within a budget, the least recently used leave first, to disk if a
folder was given, else for good. What it costs per token: width times 2 bytes (bfloat16) or 4 (float32).

No equation of the paper and nothing of the released code: a saving that changes no result.
"""

from __future__ import annotations

import copy
import hashlib
import tempfile
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from webrl_lite.batching import Batch, RuleError, pad

FINAL_NORMS = ("norm", "embedding_norm", "final_layernorm", "ln_f")
"""Names of the norm after the last layer in the models of transformers."""


@dataclass(frozen=True)
class TrunkBudget:
    """How much a trunk may keep."""

    memory_bytes: int = 2**30
    """Most bytes of hidden states in memory (1 GiB: 0.9 million tokens of width 576 in bfloat16); 0 keeps none."""
    folder: Path | None = None
    """Where states go that memory has no room for; None: they are computed again when needed."""
    disk_bytes: int = 8 * 2**30
    """Most bytes in that folder; it is emptied when the run ends."""


def cut(body: PreTrainedModel, first: int, last: int, final_norm: bool) -> PreTrainedModel:
    """Return a view of a decoder with only layers ``first`` to ``last`` (exclusive); weights are shared, not copied.

    Args:
        body: a decoder without its output layer.
        first: lowest layer of the view, counted from 0.
        last: the layer after the view's highest.
        final_norm: whether the norm after the last layer is applied.

    Raises:
        RuleError: the architecture keeps its layers under another name.
    """
    names = [name for name in FINAL_NORMS if name in body._modules]
    if "layers" not in body._modules or len(names) != 1:
        raise RuleError(
            f"`lora.top_layers` needs a decoder with `layers` and one final norm, got {type(body).__name__}. Use None."
        )
    view = copy.copy(body)
    view._modules = dict(body._modules)  # the copy is shallow and would share this dict
    view._modules["layers"] = body.layers[first:last]
    if not final_norm:
        view._modules[names[0]] = nn.Identity()
    view.config = copy.deepcopy(body.config)
    view.config.num_hidden_layers = last - first
    if getattr(body.config, "layer_types", None):
        view.config.layer_types = list(body.config.layer_types[first:last])
    return view


class Trunk:
    """The lower layers of a base with the hidden states they gave."""

    def __init__(self, body: PreTrainedModel, below: int, budget: TrunkBudget) -> None:
        """Cut a decoder.

        Args:
            body: the decoder.
            below: number of layers without adapters, from the bottom.
            budget: what may be kept.

        Raises:
            RuleError: cutting this architecture changes its output.
        """
        layers = body.config.num_hidden_layers
        self.below = below
        self.hits = 0
        """Rows that were found."""
        self.misses = 0
        """Rows that were computed."""
        self._body = body
        self._lower = cut(body, 0, below, final_norm=False)
        self._upper = cut(body, below, layers, final_norm=True)
        self._budget = budget
        self._memory: OrderedDict[bytes, Tensor] = OrderedDict()
        self._memory_bytes = 0
        self._disk: OrderedDict[bytes, int] = OrderedDict()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._prefixes: dict[bytes, tuple[bytes, int]] = {}
        self._check_cut()

    def states(self, rows: Sequence[tuple[int, ...]], prompts: Sequence[int], batch: Batch) -> Tensor:
        """Return the hidden states under the lowest adapter, found or computed; without a gradient.

        Args:
            rows: B rows of token ids.
            prompts: tokens of each row that are its prompt; later, the prompt alone is found too.
            batch: the same rows, padded.

        Returns:
            (B, S, width) in the base's type, zero at padding.
        """
        found = [self._find(row) for row in rows]
        missing = [i for i, states in enumerate(found) if states is None]
        self.hits += len(rows) - len(missing)
        self.misses += len(missing)
        if missing:
            # if all are missing, in the padded shape that was asked for, so that no bit differs from a plain pass
            part = batch if len(missing) == len(rows) else pad([rows[i] for i in missing], batch.input_ids.device)
            with torch.no_grad():
                computed = self._run(self._lower, part, input_ids=part.input_ids)
            for i, states, start in zip(missing, computed, part.starts, strict=True):
                found[i] = states[start : start + len(rows[i])]
                self._keep(rows[i], prompts[i], found[i])
        width = found[0].shape[-1]
        result = found[0].new_zeros((*batch.input_ids.shape, width), device=batch.input_ids.device)
        for i, states in enumerate(found):
            result[i, batch.starts[i] : batch.starts[i] + len(rows[i])] = states.to(result.device)
        return result

    def top(self, states: Tensor, batch: Batch) -> Tensor:
        """Return the decoder's last hidden states (B, S, width) from those under the lowest adapter."""
        return self._run(self._upper, batch, inputs_embeds=states)

    def clear(self) -> None:
        """Forget all states, in memory and on disk."""
        self._memory.clear()
        self._disk.clear()
        self._prefixes.clear()
        self._memory_bytes = 0
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _run(self, view: PreTrainedModel, batch: Batch, **inputs: Tensor) -> Tensor:
        view.training = self._body.training
        output = view(attention_mask=batch.attention_mask, position_ids=batch.position_ids, use_cache=False, **inputs)
        return output.last_hidden_state

    def _check_cut(self) -> None:
        """Compare lower and upper part, one after the other, with the whole on two short rows."""
        device = self._body.get_input_embeddings().weight.device
        batch = pad([(1, 2, 3, 4, 5), (3, 1)], device)
        with torch.no_grad():
            whole = self._run(self._body, batch, input_ids=batch.input_ids)
            parts = self.top(self._run(self._lower, batch, input_ids=batch.input_ids), batch)
        real = batch.attention_mask.bool()
        if not torch.allclose(whole[real].float(), parts[real].float(), rtol=1e-3, atol=1e-4):
            raise RuleError(
                f"`lora.top_layers` cannot be used with {type(self._body).__name__}: run in two parts, it gives other "
                "hidden states. Use None."
            )

    def _find(self, row: tuple[int, ...]) -> Tensor | None:
        key = _key(row)
        states = self._load(key)
        if states is None and key in self._prefixes:
            longer, length = self._prefixes[key]
            states = self._load(longer)
            if states is None:
                del self._prefixes[key]
                return None
            states = states[:length]
        return states

    def _load(self, key: bytes) -> Tensor | None:
        if key in self._memory:
            self._memory.move_to_end(key)
            return self._memory[key]
        if key in self._disk:
            self._disk.move_to_end(key)
            return load_file(self._file(key))["states"]
        return None

    def _keep(self, row: tuple[int, ...], prompt: int, states: Tensor) -> None:
        size = states.numel() * states.element_size()
        if size > self._budget.memory_bytes:
            return
        key = _key(row)
        if key in self._memory:  # the same row twice in one call
            return
        self._memory[key] = states.detach().to("cpu", copy=True)
        self._memory_bytes += size
        if prompt < len(row):
            self._prefixes[_key(row[:prompt])] = (key, prompt)
        while self._memory_bytes > self._budget.memory_bytes:
            oldest, leaving = self._memory.popitem(last=False)
            self._memory_bytes -= leaving.numel() * leaving.element_size()
            self._spill(oldest, leaving)

    def _spill(self, key: bytes, states: Tensor) -> None:
        if self._budget.folder is None:
            return
        if self._folder is None:
            self._budget.folder.mkdir(parents=True, exist_ok=True)
            self._folder = tempfile.TemporaryDirectory(prefix="trunk-", dir=self._budget.folder)
        save_file({"states": states}, self._file(key))
        self._disk[key] = states.numel() * states.element_size()
        while sum(self._disk.values()) > self._budget.disk_bytes:
            oldest, _ = self._disk.popitem(last=False)
            self._file(oldest).unlink()

    def _file(self, key: bytes) -> Path:
        return Path(self._folder.name) / f"{key.hex()}.safetensors"


def _key(row: Sequence[int]) -> bytes:
    return hashlib.blake2b(array("q", row).tobytes(), digest_size=16).digest()
