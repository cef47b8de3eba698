"""What this machine has of a configuration's model: its folder and its sizes, without loading or downloading anything.

Reads the package, a folder, or the local cache of the model hub, whose layout is
``models--OWNER--NAME/snapshots/COMMIT``; used by ``hours`` and ``doctor``. Standard library only, so that it works
where packages are missing. No equation of the paper.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from webrl_lite.config import ModelConfig
from webrl_lite.model_shape import SHAPES, ModelShape, PlanError

TINY_FOLDER = Path(__file__).parent / "tiny_weights"
_SMOL = ModelShape("SmolLM2-135M", 49152, 576, 1536, 30, 9, 3, 64, 8192, tied=True)
_NAMES = {
    "huggingfacetb/smollm2-135m-instruct": _SMOL,
    "huggingfacetb/smollm2-135m": _SMOL,
    **dict.fromkeys(
        ("meta-llama/llama-3.1-8b-instruct", "meta-llama/llama-3.1-8b", "thudm/webrl-llama-3.1-8b"),
        SHAPES["Llama-3.1-8B"],
    ),
    **dict.fromkeys(("thudm/glm-4-9b-chat-hf", "zai-org/glm-4-9b-chat-hf", "thudm/webrl-glm-4-9b"), SHAPES["GLM-4-9B"]),
    "qwen/qwen3-8b": SHAPES["Qwen3-8B"],
    **dict.fromkeys(
        ("meta-llama/llama-3.1-70b-instruct", "meta-llama/llama-3.1-70b", "thudm/webrl-llama-3.1-70b"),
        SHAPES["Llama-3.1-70B"],
    ),
}


def shape_of(model: ModelConfig) -> ModelShape:
    """Return the sizes of a configuration's model: of the package, a folder, the hub's local cache, or a known name.

    Raises:
        PlanError: it is none of these; nothing is downloaded.
    """
    if model.name == "tiny":
        return replace(ModelShape.read(TINY_FOLDER), name="tiny")
    folder = Path(model.name) if Path(model.name).is_dir() else cached(model)
    if folder is not None and (folder / "config.json").is_file():
        return replace(ModelShape.read(folder), name=model.name.rstrip("/").rpartition("/")[2])
    if model.name.casefold() in _NAMES:
        return _NAMES[model.name.casefold()]
    raise PlanError(
        f"`model.name` must be tiny, a folder with a config.json, a model in the hub's local cache or one that is "
        f"known here, got {model.name!r}. Download its config.json and give its folder."
    )


def hub_cache() -> Path:
    """Return the folder where downloads from the model hub lie, by the hub's own environment variables."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(home).expanduser() / "hub"


def cached(model: ModelConfig) -> Path | None:
    """Return the folder of a hub model's revision in the local cache, None if it is not there."""
    root = hub_cache() / f"models--{model.name.replace('/', '--')}"
    revision = model.revision or "main"
    reference = root / "refs" / revision
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    folder = root / "snapshots" / commit
    return folder if commit and folder.is_dir() else None


def lacks(folder: Path, model: ModelConfig) -> str:
    """Return what a model's folder lacks, in words, or an empty text."""
    if model.gguf_file:
        return "" if (folder / model.gguf_file).is_file() else f"`model.gguf_file` {model.gguf_file} is missing"
    if not (folder / "config.json").is_file():
        return "config.json is missing"
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            wanted = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (ValueError, TypeError, KeyError, AttributeError):
            return f"{index.name} cannot be read"
        missing = sorted(name for name in wanted if not (folder / name).is_file())
        if missing:
            return f"{len(missing)} of {len(wanted)} files of weights are missing, such as {missing[0]}"
    elif not any(file.is_file() for kind in ("*.safetensors", "*.bin") for file in folder.glob(kind)):
        return "no weights (*.safetensors)"
    names = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")
    return "" if any((folder / name).is_file() for name in names) else "no tokenizer"


def hub_token() -> bool:
    """Tell whether the hub's token is set, in a variable or in its file."""
    if any(os.environ.get(name, "").strip() for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")):
        return True
    return Path(os.environ.get("HF_TOKEN_PATH") or hub_cache().parent / "token").is_file()
