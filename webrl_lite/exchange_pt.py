"""The authors' ``.pt`` files, and steps of theirs as rows of token ids.

Reads ``webarena_lite_sft.pt`` and the files that ``process_data.py`` writes: a list of trajectories, or flat
(``*_filter.pt``) a list of steps. Such a file is a pickle, which could run any code; here it is read by PyTorch's
restricted loader, which knows texts, numbers, lists, dicts and arrays, and refuses everything else. The whole file is
in memory while it is read.

A step is a dict with ``observation`` (the prompt as text), ``next_observation``, ``task``, ``reward`` (the trajectory's
score, on every step), ``done``, ``action`` and ``trajectory_reward`` (0 or 1); in a flat file also ``mc_return`` and
``rank_score``.

Source: ``scripts/process_data.py:233-293, 324-437``.
"""

from __future__ import annotations

import math
import os
import pickle
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy
import torch

from webrl_lite.batching import Sample
from webrl_lite.exchange_steps import (
    KnownTasks,
    TextStep,
    group,
    left_over,
    make_step,
    make_trajectory,
    read_step_prompt,
    stem,
    step_prompt,
    text_steps,
)
from webrl_lite.exchange_traces import UNGRADED, verdict_of
from webrl_lite.prompt_tokens import Tokenizer
from webrl_lite.prompts import action_ids, actor_prompt
from webrl_lite.trajectory import JSON, StopReason, TraceError, Trajectory, whole_file

_KINDS = {
    **{"observation": str, "next_observation": str, "task": str, "action": str},
    **{"reward": int | float, "done": bool, "trajectory_reward": int | float},
}


def read_pt_steps(path: str | os.PathLike[str]) -> Iterator[TextStep]:
    """Yield the steps of a file, in its order; ``extra`` holds all that is not the prompt or the action.

    Args:
        path: a file of trajectories or a flat one.

    Raises:
        TraceError: the restricted loader refuses the file, or it holds something else; the place is named.
        OSError: there is no such file.
    """
    for number, item in enumerate(_load(path)):
        if isinstance(item, list):
            yield from (_step(step, f"{path}, trajectory {number}, step {i}") for i, step in enumerate(item))
        else:
            yield _step(item, f"{path}, step {number}")


def read_pt(path: str | os.PathLike[str], known: KnownTasks | None = None) -> Iterator[Trajectory]:
    """Yield the trajectories of a file that is not flat.

    Args:
        path: the file.
        known: tasks to look intents up in.

    Raises:
        TraceError: as for ``read_pt_steps``, or the file is flat, or a step does not follow from the one before it.
        OSError: there is no such file.
    """
    known = known or KnownTasks()
    for number, item in enumerate(_load(path)):
        where = f"{path}, trajectory {number}"
        if not isinstance(item, list):
            raise TraceError(
                f"{path}: the file holds single steps, and the trajectories they are from cannot be told. Use its "
                "steps one by one (`read_pt_steps`, `samples`), or the file without `_filter`."
            )
        run = [_step(step, f"{where}, step {i}") for i, step in enumerate(item)]
        if not run:
            continue
        if len(list(group(run))) != 1:
            raise TraceError(f"{where}: its steps are those of several episodes.")
        reward, outcome = run[-1].extra["reward"], run[-1].extra["trajectory_reward"]
        name = f"{stem(path)}.{number}"
        steps = [make_step(i, step.page, step.reply) for i, step in enumerate(run)]
        verdict = verdict_of(reward if reward < 0 else outcome)
        trajectory = make_trajectory(known.find(name, run[0].intent), name, steps, [], verdict)
        extra = [left_over(one, told) for one, told in zip(item, pt_steps(trajectory), strict=True)]
        yield make_trajectory(trajectory.task, name, steps, extra, verdict)


def write_pt(path: str | os.PathLike[str], trajectories: Iterable[Trajectory]) -> tuple[int, int]:
    """Write trajectories as the release reads them, whole or not at all.

    Left out are trajectories that the environment ended, that have no steps, or whose grader could not decide: there
    they would count as failures. One without any verdict is a demonstration and counts as a success.

    Returns:
        The number of trajectories written, and of those left out.
    """
    rows, left_out = [], 0
    for trajectory in trajectories:
        verdict = trajectory.verdict
        ungraded = verdict is not None and not verdict.graded
        if trajectory.stop == StopReason.ENV_ERROR or not trajectory.steps or ungraded:
            left_out += 1
        else:
            told = pt_steps(trajectory)
            rows.append([{**one, **step.extra} for one, step in zip(told, text_steps(trajectory), strict=True)])
    with whole_file(path) as file:
        torch.save(rows, file)
    return len(rows), left_out


def pt_steps(trajectory: Trajectory) -> list[dict[str, JSON]]:
    """Return the dicts of a trajectory's steps. The last one's next state is, as released, the same page again."""
    verdict = trajectory.verdict
    score = 1.0 if verdict is None else UNGRADED if verdict.score is None else verdict.score
    steps = list(text_steps(trajectory))
    prompts = [step_prompt(step.intent, step.replies, step.page) for step in steps]
    prompts.append(step_prompt(steps[-1].intent, (*steps[-1].replies, steps[-1].reply), steps[-1].page))
    return [
        {
            "observation": prompts[i],
            "next_observation": prompts[i + 1],
            "task": step.intent,
            "reward": score,
            "done": i == len(steps) - 1,
            "action": step.reply,
            "trajectory_reward": int(score >= 0.5),
        }
        for i, step in enumerate(steps)
    ]


def samples(
    steps: Iterable[TextStep], tokenizer: Tokenizer, template: str, *, max_length: int, max_new_tokens: int
) -> Iterator[Sample]:
    """Yield steps as rows of token ids, for SFT; the prompt is the one the rollout would have.

    Args:
        steps: of ``read_pt_steps`` or ``exchange_steps.read_conversations``, in any order. Those on which nothing was
            written give no row.
        tokenizer: the model's.
        template: one of ``prompts.TEMPLATES``, the authors' or another.
        max_length: most tokens of prompt and reply together.
        max_new_tokens: tokens kept free for a reply; a longer reply stays whole.

    Raises:
        PromptError: a prompt that does not fit.
    """
    for step in steps:
        if not step.reply:
            continue
        action = action_ids(tokenizer, template, step.reply)
        prompt = actor_prompt(
            tokenizer,
            template,
            intent=step.intent,
            replies=step.replies,
            page=step.page,
            max_length=max_length,
            max_new_tokens=max(max_new_tokens, len(action)),
        )
        yield Sample(prompt.ids, action)


# Reading ------------------------------------------------------------------------------------------------------------


def _load(path: str | os.PathLike[str]) -> list[JSON]:
    """Return the file's list."""
    scalar = numpy.float64(0).__reduce__()[0]
    # The release's `mc_return` is a NumPy number: its value and type are read, no function of the file's choice is run.
    numbers = [scalar, (scalar, "numpy.core.multiarray.scalar"), numpy.dtype, type(numpy.dtype("float64"))]
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with torch.serialization.safe_globals(numbers), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise TraceError(
            f"{path}: PyTorch's restricted loader refuses the file: {reason} Only lists of dicts of texts and numbers "
            "are read; nothing else of a pickle is ever run. If you trust the file, save it again as such."
        ) from error
    if not isinstance(content, list):
        raise TraceError(f"{path}: the file must hold a list of trajectories, got {type(content).__name__}.")
    return content


def _step(step: object, where: str) -> TextStep:
    """Return one step's text, checked; its numbers become Python's."""
    if not isinstance(step, dict) or not all(isinstance(name, str) for name in step):
        raise TraceError(f"{where}: a step must be a dict with text keys, got {type(step).__name__}.")
    for name, value in step.items():
        step[name] = _plain(value, f"{where}: `{name}`")
    for name, kind in _KINDS.items():
        value = step.get(name)
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise TraceError(f"{where}: `{name}` must be {_words(kind)}, got {repr(value):.60}.")
    try:
        intent, replies, page = read_step_prompt(step["observation"])
    except TraceError as error:
        raise TraceError(f"{where}: `observation`: {error}") from error
    if intent != step["task"]:
        raise TraceError(f"{where}: `task` is {repr(step['task']):.60}, but the prompt's is {repr(intent):.60}.")
    extra = {name: value for name, value in step.items() if name not in ("observation", "task", "action")}
    return TextStep(intent, replies, page, step["action"], extra, where)


def _plain(value: object, where: str) -> JSON:
    """Return a value as JSON has it: arrays of one number become that number, other arrays lists."""
    if isinstance(value, torch.Tensor | numpy.generic):
        value = value.tolist()
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(value, dict):
        return {str(name): _plain(one, where) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(one, where) for one in value]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise TraceError(f"{where} must be a text, a number or a list of such, got {repr(value):.60}.")


def _words(kind: object) -> str:
    return {str: "a text", bool: "true or false"}.get(kind, "a number")
