"""A training run on disk: checkpoints that are whole or not there, and a log without repeated lines.

Read and written by ``role_trainer``; knows files and nothing of models. A checkpoint is written under a hidden name and
renamed when the last file is closed, so a kill at any moment leaves the one before it. Its manifest holds the size and
the digest of every file, so one that was damaged later is found out before it is loaded, and the settings that made it,
so a run goes on with the same settings or not at all.

Differs from the released code, which writes in place and cannot go on (``trainer.py:372``).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from webrl_lite.batching import RuleError

logger = logging.getLogger(__name__)

MANIFEST = "complete.json"
PARTIAL = ".partial"
"""Folder beside the checkpoints where the next one is being written."""
DELETED = ".deleted"
"""Folder beside the checkpoints where an old one goes to be deleted."""


def publish(partial: Path, folder: Path, settings: Mapping[str, str]) -> None:
    """Give a checkpoint its name, now that all its files are written.

    Args:
        partial: where it was written, on the same file system.
        folder: its name from now on; replaced if it exists.
        settings: what a run that goes on from it must have in common with it.

    Raises:
        OSError: the manifest could not be written; ``folder`` is as it was.
    """
    files = {file.name: {"bytes": file.stat().st_size, "sha256": _digest(file)} for file in sorted(partial.iterdir())}
    (partial / MANIFEST).write_text(json.dumps({"settings": dict(settings), "files": files}, indent=1), "utf-8")
    remove(folder)
    os.rename(partial, folder)


def newest(folder: Path) -> Path | None:
    """Return the newest complete checkpoint of a run, None if it has none; incomplete ones are named and skipped.

    Raises:
        RuleError: there are checkpoints, and not one is complete.
    """
    faults: list[str] = []
    for checkpoint in _checkpoints(folder):
        fault = _fault(checkpoint)
        if fault is None:
            return checkpoint
        logger.warning("%s is skipped: %s.", checkpoint, fault)
        faults.append(f"{checkpoint.name}: {fault}")
    if faults:
        raise RuleError(f"`{folder}` has no complete checkpoint ({'; '.join(faults)}). Delete it to begin anew.")
    return None


def check_settings(checkpoint: Path, settings: Mapping[str, str]) -> None:
    """Refuse to go on from a checkpoint that is not complete or was made with other settings.

    Raises:
        RuleError: names what is wrong with the files, or every setting that differs, with both values.
    """
    if fault := _fault(checkpoint):
        raise RuleError(f"`{checkpoint}` is no complete checkpoint: {fault}. Use another, or begin anew.")
    saved = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))["settings"]
    keys = sorted(saved.keys() | settings.keys())
    pairs = [(key, saved.get(key), settings.get(key)) for key in keys]
    differing = [f"{key}: saved {old}, here {new}" for key, old, new in pairs if old != new]
    if differing:
        raise RuleError(
            f"`{checkpoint}` was made with other settings: {'; '.join(differing)}. Use those, or another folder."
        )


def prune(folder: Path, keep: int | None) -> None:
    """Delete all checkpoints but the newest ``keep``; None keeps all."""
    for checkpoint in _checkpoints(folder)[keep:] if keep else []:
        remove(checkpoint)


def remove(folder: Path) -> None:
    """Delete a folder, if it is there, in a way that never leaves half of it under its name."""
    if folder.exists():
        hidden = folder.with_name(DELETED)
        shutil.rmtree(hidden, ignore_errors=True)
        os.rename(folder, hidden)
        shutil.rmtree(hidden, ignore_errors=True)


def check_space(folder: Path, needed: int) -> None:
    """Warn, before hours of training that would end at a full disk, if ``folder`` has fewer free bytes than needed."""
    folder.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(folder).free) < needed:
        logger.warning("%s has %.1f GB free, checkpoints need %.1f GB.", folder, free / 1e9, needed / 1e9)


def trim_log(file: Path, step: int) -> None:
    """Cut from a log what a run will write again: lines of later steps, and one that a kill left half written."""
    if not file.exists():
        return
    kept: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            if json.loads(line)["step"] <= step and line.endswith("\n"):
                kept.append(line)
        except json.JSONDecodeError:
            continue
    new = file.with_name(f".{file.name}.new")
    new.write_text("".join(kept), encoding="utf-8")
    os.replace(new, file)


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, complete or not, the newest first."""
    found = [path for path in folder.glob("checkpoint-*") if path.is_dir() and path.name[11:].isdigit()]
    return sorted(found, key=lambda path: int(path.name[11:]), reverse=True)


def _fault(checkpoint: Path) -> str | None:
    """Return what is wrong with a checkpoint, None if nothing is."""
    try:
        files = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))["files"]
        expected = [(name, file["bytes"], file["sha256"]) for name, file in files.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is missing or damaged"
    for name, size, digest in expected:
        file = checkpoint / name
        if not file.is_file():
            return f"{name} is missing"
        if file.stat().st_size != size:
            return f"{name} has {file.stat().st_size} bytes instead of {size}"
        if _digest(file) != digest:
            return f"{name} was changed"
    return None


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
