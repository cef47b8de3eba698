"""A role on disk: a folder that PEFT and vLLM load in one call, written whole or not at all.

``adapter_config.json`` and ``adapter_model.safetensors`` as PEFT writes them, and ``value_head.safetensors`` beside
them for the critic. Read and written by ``model``. A folder appears under its name only when it is complete and has
been read back; a training job that is ended at any moment leaves the old folder or the new one.

Differs from the released code, which saves full models and misses the last update (``trainer.py:372``).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from peft import PeftModel
from peft.utils import get_peft_model_state_dict
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from webrl_lite.batching import RuleError

ADAPTER = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
HEAD = "value_head.safetensors"

SHAPE_KEYS = ("peft_type", "r", "lora_alpha", "layers_to_transform", "bias", "use_dora", "use_rslora")
"""Settings of an adapter that must be equal to load it into another, beside its target modules."""


def role_tensors(model: PeftModel, role: str) -> dict[str, Tensor]:
    """Return the tensors of a role's adapter by their names on disk; they share memory with the model."""
    return dict(get_peft_model_state_dict(model, adapter_name=role, save_embedding_layers=False))


def role_hash(tensors: Mapping[str, Tensor]) -> str:
    """Return twelve hex digits that change with any weight."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:12]


def save_role(model: PeftModel, role: str, folder: Path, head: nn.Module | None) -> None:
    """Write a role to a folder, in place of what was there.

    Args:
        model: the model with its adapters.
        role: which adapter.
        folder: where; its parent is made if needed.
        head: module to be saved beside the adapter.

    Raises:
        RuleError: the weights are not fit to be saved, or the file does not hold what the model holds.
        OSError: the disk is full or not writable; the old folder is left as it was.
    """
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in role_tensors(model, role).items()}
    head_tensors = {name: t.detach().cpu().contiguous() for name, t in head.state_dict().items()} if head else {}
    _check_weights(role, tensors)
    new, old = _beside(folder, "new"), _beside(folder, "old")
    folder.parent.mkdir(parents=True, exist_ok=True)
    for leftover in (new, old):
        if leftover.exists() and (leftover is new or folder.exists()):
            shutil.rmtree(leftover)
    try:
        new.mkdir()
        config = model.peft_config[role]
        frozen, config.inference_mode = config.inference_mode, True  # PEFT's own convention for files
        try:
            config.save_pretrained(str(new))
        finally:
            config.inference_mode = frozen
        save_file(tensors, new / ADAPTER, metadata={"format": "pt"})
        if head_tensors:
            save_file(head_tensors, new / HEAD, metadata={"format": "pt"})
        _check_file(role, new / ADAPTER, tensors)
        if folder.exists():
            os.rename(folder, old)  # between these two lines `old` is the complete one; `_complete` looks there
        os.rename(new, folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def load_role(model: PeftModel, role: str, folder: Path, head: nn.Module | None) -> None:
    """Read a role from a folder into the adapter of that name; nothing changes unless everything fits.

    Args:
        model: the model with its adapters.
        role: which adapter is overwritten.
        folder: what ``save_role`` or PEFT wrote.
        head: module that was saved beside the adapter; left as it is if the folder has none.

    Raises:
        RuleError: a file is missing or damaged, or its shape is not that of this model's adapters; the differing
            settings are listed.
    """
    folder = _complete(folder)
    try:
        saved = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        tensors = load_file(folder / ADAPTER)
        head_tensors = load_file(folder / HEAD) if head is not None and (folder / HEAD).is_file() else None
    except Exception as error:  # safetensors has an error type of its own for a cut file
        raise RuleError(f"`{folder}` is no complete role: {error}. Use another checkpoint.") from error
    _check_settings(role, saved, json.loads(json.dumps(model.peft_config[role].to_dict(), default=sorted)))
    own = role_tensors(model, role)
    _check_shapes(folder / ADAPTER, tensors, own)
    _check_weights(role, tensors)
    if head_tensors is not None:
        _check_shapes(folder / HEAD, head_tensors, head.state_dict())
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)
        if head_tensors is not None:
            head.load_state_dict(head_tensors)


def _beside(folder: Path, word: str) -> Path:
    return folder.with_name(f".{folder.name}.{word}")


def _complete(folder: Path) -> Path:
    """Return the folder, or the old one if a job was ended between the two renames."""
    if not folder.exists() and _beside(folder, "old").exists():
        return _beside(folder, "old")
    return folder


def _check_weights(role: str, tensors: Mapping[str, Tensor]) -> None:
    """Refuse what a failed training run leaves: no tensors, NaN, or an update that reached only some layers."""
    if not tensors:
        raise RuleError(f"`{role}` has no tensors, so there is nothing to save or load.")
    broken = [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]
    if broken:
        raise RuleError(f"`{role}` must be finite, {len(broken)} tensors are not, the first is {broken[0]}.")
    zero = [name for name, tensor in tensors.items() if "lora_A" in name and not tensor.any()]
    second = [name for name in tensors if "lora_B" in name]
    untrained = [name for name in second if not tensors[name].any()]
    if 0 < len(untrained) < len(second):  # all zero is an adapter that was not trained yet
        zero += untrained
    if zero:
        raise RuleError(
            f"`{role}` must have no layer that training left out, {len(zero)} tensors are all zero, the first is "
            f"{zero[0]}. Run check_gradients()."
        )


def _check_file(role: str, file: Path, tensors: Mapping[str, Tensor]) -> None:
    written = load_file(file)
    if written.keys() != tensors.keys() or any(not torch.equal(written[n], tensors[n]) for n in tensors):
        raise RuleError(f"`{role}` was written to {file}, but the file does not hold the same weights. Check the disk.")


def _check_settings(role: str, saved: Mapping[str, object], own: Mapping[str, object]) -> None:
    pairs = [(key, saved.get(key), own.get(key)) for key in SHAPE_KEYS]
    pairs.append(("target_modules", *(sorted(side["target_modules"]) for side in (saved, own))))
    differing = [f"{key}: saved {old!r}, here {new!r}" for key, old, new in pairs if old != new]
    if differing:
        raise RuleError(f"`{role}` was saved with other settings: {'; '.join(differing)}. Use the settings of the run.")


def _check_shapes(file: Path, saved: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    missing = sorted(own.keys() - saved.keys())
    extra = sorted(saved.keys() - own.keys())
    other = [name for name in own.keys() & saved.keys() if own[name].shape != saved[name].shape]
    if missing or extra or other:
        first = (missing + extra + sorted(other))[0]
        raise RuleError(
            f"`{file}` does not fit this model: {len(missing)} tensors missing, {len(extra)} unknown, {len(other)} of "
            f"another shape, the first is {first}. Load it with the base it was trained on."
        )
