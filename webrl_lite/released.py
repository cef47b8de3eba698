"""The authors' released checkpoints: which settings a name stands for, and how their judge is asked.

Reads a model's name among the user's settings; gives a ``Config`` under which rollout and evaluation send the authors'
prompt, stop where theirs stop and cut where theirs cut. The strings themselves are in ``prompts``. Standard library
only.

=========================  ==============  ==========================================================================
checkpoint                 template        how far its prompt is known
=========================  ==============  ==========================================================================
webrl-llama-3.1-8b         webrl-llama3    from the code that trained and evaluated it
webrl-llama-3.1-70b        webrl-llama3    the same code
webrl-orm-llama-3.1-8b     webrl-llama3    from the code that asked it (``process_data.py:169-186, 302``)
webrl-glm-4-9b             webrl-glm4      ours: the rounds in GLM-4's own tokens. The public code has only Llama's
                                           tokens and nothing for GLM-4, so what it was trained with is not known
=========================  ==============  ==========================================================================

Source: VisualAgentBench's ``wa_parallel_run_webrl.sh`` and ``run.py`` (settings), WebRL's ``scripts/process_data.py``
(prompts, judge).

# differs from release: a tie of YES and NO is a failure everywhere (theirs: a success where labels are made); the
judge's prompt is cut in the page and not at its end; an episode that was stopped has no empty last action.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from webrl_lite.config import JSON, PRESETS, Config, from_dict
from webrl_lite.prompt_tokens import Prompt, PromptError, Tokenizer
from webrl_lite.prompts import orm_prompt
from webrl_lite.trajectory import Trajectory

CONTEXT = 16384
"""Tokens of prompt and answer together. (paper Table 4; released process_data.py:306)"""

_ACTS: dict[str, JSON] = {
    "rollout": {
        "eval_temperature": 0.0,  # wa_parallel_run_webrl.sh:9
        "top_p": 0.9,  # run.py:187; of no effect at temperature 0
        "max_new_tokens": 2048,  # wa_parallel_run_webrl.sh:56
        "max_steps": 30,  # run.py:136
        "parse_failures": 5,  # wa_parallel_run_webrl.sh:59
        "equal_replies": 5,  # wa_parallel_run_webrl.sh:60
    },
    # a token has a character or more, so the authors' limit of 15,872 characters cuts first
    "env": {"observation": "webrl", "observation_tokens": 15872, "evaluator": "vab"},
}
_JUDGES: dict[str, JSON] = {"orm": {"threshold": 0.5}, "env": {"observation": "webrl", "observation_tokens": 15872}}

_GLM_NOTE = (
    "The form of its prompt is ours, since the authors' code has none for GLM-4. Its files are in ChatGLM's layout, "
    "which needs the repository's own code: convert them to transformers' `glm` and give that folder, named alike."
)
_ORM_NOTE = (
    "It was trained with an instruction that is not in this package: take it from the authors' process_data.py with "
    "`released.orm_system`. With another one it judges otherwise."
)

ORM_SYSTEM_SHA256 = "977cde2526f5605b713872517475ed29a1502278f7bec6b19de25add9d99aae9"
"""Digest of the instruction that the released judge was trained with (process_data.py:186), in UTF-8."""


@dataclass(frozen=True)
class Checkpoint:
    """One released model."""

    name: str
    """On the model hub; the organisation is also called zai-org."""
    role: Literal["actor", "orm"]
    template: str
    """Value of ``model.template``."""
    note: str
    """What to know before a score of it is believed; empty if nothing."""
    other: Mapping[str, JSON]
    """Settings beside those of the group ``model``."""

    @property
    def settings(self) -> dict[str, JSON]:
        """Return the settings that the name stands for, as ``config.from_dict`` takes them."""
        return {**self.other, "model": {"template": self.template, "max_length": CONTEXT}}


CHECKPOINTS = {
    checkpoint.name.partition("/")[2]: checkpoint
    for checkpoint in (
        Checkpoint("THUDM/webrl-llama-3.1-8b", "actor", "webrl-llama3", "", _ACTS),
        Checkpoint("THUDM/webrl-llama-3.1-70b", "actor", "webrl-llama3", "", _ACTS),
        Checkpoint("THUDM/webrl-glm-4-9b", "actor", "webrl-glm4", _GLM_NOTE, _ACTS),
        Checkpoint("THUDM/webrl-orm-llama-3.1-8b", "orm", "webrl-llama3", _ORM_NOTE, _JUDGES),
    )
}
"""Released models by the last part of their names."""


def checkpoint(model: str) -> Checkpoint | None:
    """Return the released model that a hub name or a local folder is called after, None for any other."""
    return CHECKPOINTS.get(Path(model).name.lower())


def over(base: Config, model: str) -> Config:
    """Return a configuration for a model: with what its name stands for if it is a released one, else with the name.

    How many layers get adapters is a preset's choice for its own model, so another one gets them in all.

    Args:
        base: a preset; what the user sets goes over the result.
        model: name on the hub, or a folder.
    """
    found = checkpoint(model)
    settings = found.settings if found else {"model": {}}
    settings["model"] = {"name": model, **settings["model"]}
    if model != base.model.name:
        settings["lora"] = {"top_layers": None}
    groups = {group: dataclasses.replace(getattr(base, group), **values) for group, values in settings.items()}
    return dataclasses.replace(base, **groups)


def configure(values: Mapping[str, JSON]) -> Config:
    """Build a configuration from the user's settings; where these name a released model, over what its name stands for.

    A model that is not the preset's own gets adapters in all layers, as in ``over``.

    Args:
        values: nested settings as for ``config.from_dict``; what they set wins.

    Raises:
        ConfigError: as ``config.from_dict``.
    """
    model = values.get("model")
    name = model.get("name") if isinstance(model, Mapping) else None
    found = checkpoint(name) if isinstance(name, str) else None
    merged = dict(found.settings if found else {})
    chosen = values.get("preset", "tiny")
    if isinstance(name, str) and isinstance(chosen, str) and chosen in PRESETS and name != PRESETS[chosen]().model.name:
        merged["lora"] = {"top_layers": None}
    for key, value in values.items():
        below = merged.get(key)
        merged[key] = {**below, **value} if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return from_dict(merged)


# The judge ----------------------------------------------------------------------------------------------------------


def orm_question(
    tokenizer: Tokenizer, trajectory: Trajectory, *, template: str, max_length: int, system: str
) -> Prompt:
    """Return what the judge reads about an episode; ``orm.judge`` reads its YES or NO.

    The page is the one on which the last action was written, as in the authors' traces: after ``exit`` nothing has
    changed, after the step limit the effect of the last action is not seen.

    Args:
        tokenizer: the judge's.
        trajectory: an episode with at least one step.
        template: ``model.template`` of the judge.
        max_length: ``model.max_length`` of the judge.
        system: its instruction: ``orm_system`` for the released judge, ``prompts.ORM_SYSTEM`` for one trained here.

    Raises:
        PromptError: no step was made, or as ``prompts.orm_prompt``.
    """
    if not trajectory.steps:
        raise PromptError(f"`trajectory` must have a step to be judged, {trajectory.task.task_id} has none. Drop it.")
    return orm_prompt(
        tokenizer,
        template,
        intent=trajectory.task.intent,
        replies=[step.reply for step in trajectory.steps],
        page=trajectory.steps[-1].observation,
        max_length=max_length,
        system=system,
    )


def orm_system(path: Path) -> str:
    """Return the instruction that the released judge was trained with, and make sure that it is that one.

    Args:
        path: WebRL's ``scripts/process_data.py`` as released, or a text file with nothing else in it.

    Raises:
        ValueError: it is not in there.
        OSError: the file cannot be read.
    """
    content = path.read_text(encoding="utf-8")
    for text in _texts(content):
        if hashlib.sha256(text.encode()).hexdigest() == ORM_SYSTEM_SHA256:
            return text
    raise ValueError(
        f"`{path}` must hold the instruction of the released judge, but no text in it is the one. Take "
        "scripts/process_data.py of https://github.com/THUDM/WebRL."
    )


def _texts(content: str) -> Iterator[str]:
    """Yield the whole text, and if it is Python, every text that it spells."""
    yield content.strip()
    try:
        nodes = ast.walk(ast.parse(content))
    except SyntaxError:
        return
    yield from (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
