"""Steps as the authors' text: one prompt and one reply, as their SFT file and their ``.pt`` files hold them.

Reads and writes ``conversations`` JSON (LLaMA-Factory's ShareGPT form, ``web_policy_sft.json``); turns such steps into
trajectories and back. Standard library only; ``exchange_pt`` reads ``.pt`` files and makes rows of token ids.

The text of a prompt is read back into what it was made of: the intent, the replies before, and the page. Steps that
follow each other in a file make a trajectory; a file of single steps (shuffled, filtered) has none, and is used step by
step. What of a file is not told by that, such as a ``system`` text, stays in ``evidence["released"]``, one object a
step, and is written back.

Source: WebRL's ``scripts/process_data.py:233-293``; format of prompts in ``prompts``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webrl_lite.actions import ActionError, parse
from webrl_lite.exchange_files import read_records, write_list
from webrl_lite.prompts import PAST_PAGE, RELEASED_CHARACTERS
from webrl_lite.trajectory import JSON, Step, StopReason, Task, TraceError, Trajectory, Verdict

_USER = "<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
_ASSISTANT = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"
_ROLES = {"human": "human", "user": "human", "gpt": "gpt", "assistant": "gpt"}
RELEASED = "released"
"""Key of ``Trajectory.evidence``: what of the authors' steps has no other place, a list of objects."""


@dataclass(frozen=True)
class TextStep:
    """One step, as text."""

    intent: str
    """The task's instruction."""
    replies: tuple[str, ...]
    """The agent's replies before, oldest first."""
    page: str
    """What it saw, cut as the file has it."""
    reply: str
    """What it wrote: the target."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """What else the file has of it."""
    where: str = ""
    """File and place, for messages."""


class KnownTasks:
    """Tasks by id and intent: the authors' steps name neither site nor start page."""

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        """Take the tasks, for example of ``WebArena-Lite_info.json``."""
        self._by_id: dict[str, Task] = {}
        self._by_intent: dict[str, list[Task]] = {}
        for task in tasks:
            self._by_id[task.task_id] = task
            self._by_intent.setdefault(task.intent, []).append(task)

    def find(self, task_id: str, intent: str) -> Task:
        """Return the task of that id and intent, else the one of that intent, else a task without a site."""
        named = self._by_id.get(task_id)
        if named is not None and named.intent == intent:
            return named
        alike = self._by_intent.get(intent, [])
        if len({(task.sites, task.start_url) for task in alike}) == 1:
            return alike[0]
        return Task(task_id, sites=("unknown",), intent=intent, start_url="about:blank")


# Prompts ------------------------------------------------------------------------------------------------------------


def step_prompt(intent: str, replies: Sequence[str], page: str) -> str:
    """Return the authors' prompt as text, without the begin-of-text token; the page is cut to what they leave it.

    # differs from release: a history over 15,872 characters leaves no page, there a wrong part of it
    """
    history = "".join(
        f"Round {i}\n\n{_USER}{PAST_PAGE if i else intent}\n\n{_ASSISTANT}{reply}\n\n"
        for i, reply in enumerate(replies)
    )
    shown = page[: max(0, RELEASED_CHARACTERS - len(history))]
    return f"Task Instruction: {intent}\n\n{history}Round {len(replies)}\n\n{_USER}{shown}\n\n{_ASSISTANT}"


def read_step_prompt(text: str) -> tuple[str, tuple[str, ...], str]:
    """Return intent, earlier replies and page of the authors' prompt.

    Raises:
        TraceError: the text has another form.
    """
    start, head, rest = text.partition(f"\n\nRound 0\n\n{_USER}")
    intent = start.removeprefix("Task Instruction: ")
    if not head or intent == start or not rest.endswith(f"\n\n{_ASSISTANT}"):
        raise TraceError(
            f"a prompt must have the authors' form, from `Task Instruction: ` to the assistant's header, got "
            f"{_short(text)}"
        )
    replies: list[str] = []
    while True:
        past = f"{PAST_PAGE if replies else intent}\n\n{_ASSISTANT}"
        reply, next_round, after = rest[len(past) :].partition(f"\n\nRound {len(replies) + 1}\n\n{_USER}")
        if not rest.startswith(past) or not next_round:
            return intent, tuple(replies), rest.removesuffix(f"\n\n{_ASSISTANT}")
        replies.append(reply)
        rest = after


# Trajectories -------------------------------------------------------------------------------------------------------


def make_step(index: int, page: str, reply: str) -> Step:
    """Return a step with its action, or with the reason why its reply holds none."""
    try:
        action = parse(reply).action
    except ActionError as refusal:
        return Step(index, page, url="", reply=reply, error=str(refusal))
    return Step(index, page, url="", reply=reply, action=vars(action).copy())


def ending(steps: Sequence[Step]) -> tuple[StopReason, str]:
    """Return why an episode ended and its answer, from its replies: no file of the authors tells.

    An episode that neither exits nor meets another rule counts as one at its step limit. A last reply that is empty is
    the release's sign of an early stop and no reply.
    """
    action = steps[-1].action or {}
    if action.get("name") == "Exit":
        return StopReason.EXIT, str(action.get("argument") or "")
    played = steps[:-1] if not steps[-1].reply else steps
    last = played[-5:]
    if len(last) == 5 and all(step.action is None for step in last):
        return StopReason.PARSE_FAILURES, ""
    if len(last) == 5 and len({step.reply for step in last}) == 1:
        return StopReason.REPEATED_REPLY, ""
    return StopReason.MAX_STEPS, ""


def make_trajectory(
    task: Task, name: str, steps: Sequence[Step], extra: Sequence[Mapping[str, JSON]], verdict: Verdict | None
) -> Trajectory:
    """Return the trajectory of steps that were read; ``extra`` is what else the file has, one object a step."""
    stop, answer = ending(steps)
    evidence: dict[str, JSON] = {RELEASED: [dict(one) for one in extra]} if any(extra) else {}
    return Trajectory(
        task, tuple(steps), stop, answer, verdict=verdict, evidence=evidence, trajectory_id=name, policy="imported"
    )


def extras(trajectory: Trajectory) -> list[dict[str, JSON]]:
    """Return what a file had beside the steps themselves, one object a step."""
    kept = trajectory.evidence.get(RELEASED)
    if isinstance(kept, list) and len(kept) == len(trajectory.steps) and all(isinstance(one, dict) for one in kept):
        return kept
    return [{} for _ in trajectory.steps]


def left_over(fields: Mapping[str, JSON], told: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the fields that ``told`` has not, or has otherwise; 1 and 1.0 are the same, 1 and true are not."""
    return {
        name: value
        for name, value in fields.items()
        if name not in told or told[name] != value or isinstance(told[name], bool) != isinstance(value, bool)
    }


def text_steps(trajectory: Trajectory) -> Iterator[TextStep]:
    """Yield the steps of a trajectory as text, empty replies included, since later prompts have them."""
    replies: list[str] = []
    for step, extra in zip(trajectory.steps, extras(trajectory), strict=True):
        where = f"{trajectory.trajectory_id or trajectory.task.task_id}, step {step.index}"
        yield TextStep(trajectory.task.intent, tuple(replies), step.observation, step.reply, extra, where)
        replies.append(step.reply)


def group(steps: Iterable[TextStep]) -> Iterator[list[TextStep]]:
    """Yield runs of steps in which each has the one before it as its history.

    Raises:
        TraceError: a step whose history does not stand before it.
    """
    run: list[TextStep] = []
    for step in steps:
        if not step.replies:
            if run:
                yield run
            run = [step]
        elif run and step.intent == run[-1].intent and step.replies == (*run[-1].replies, run[-1].reply):
            run.append(step)
        else:
            raise TraceError(
                f"{step.where}: the step has {len(step.replies)} earlier replies, and the step before it is not the "
                "last of them. The file is not in the order of its trajectories; use its steps one by one "
                "(`exchange_pt.samples`)."
            )
    if run:
        yield run


# Conversations ------------------------------------------------------------------------------------------------------


def read_conversations(path: str | os.PathLike[str]) -> Iterator[TextStep]:
    """Yield the steps of an SFT file, in its order.

    Args:
        path: objects with ``conversations``: a message from ``human`` and one from ``gpt`` (or ``user`` and
            ``assistant``).

    Raises:
        TraceError: the file cannot be read, or an item is no step of the authors' form; file and line are named.
    """
    for line, record in read_records(path):
        where = f"{path}, line {line}"
        try:
            prompt, reply = _messages(record.get("conversations"))
            intent, replies, page = read_step_prompt(prompt)
        except TraceError as error:
            raise TraceError(f"{where}: {error}") from error
        yield TextStep(intent, replies, page, reply, left_over(record, _item(intent, replies, page, reply)), where)


def read_conversation_trajectories(
    path: str | os.PathLike[str], known: KnownTasks | None = None
) -> Iterator[Trajectory]:
    """Yield the trajectories of an SFT file whose steps are in order; ungraded, as demonstrations are.

    Args:
        path: see ``read_conversations``.
        known: tasks to look intents up in.

    Raises:
        TraceError: as for ``read_conversations``, or the steps are not in order.
    """
    known = known or KnownTasks()
    for number, run in enumerate(group(read_conversations(path))):
        name = f"{stem(path)}.{number}"
        steps = [make_step(i, step.page, step.reply) for i, step in enumerate(run)]
        yield make_trajectory(known.find(name, run[0].intent), name, steps, [step.extra for step in run], None)


def write_conversations(path: str | os.PathLike[str], trajectories: Iterable[Trajectory]) -> tuple[int, int]:
    """Write the steps of demonstrations as an SFT file, whole or not at all.

    Left out are trajectories that failed or that the environment ended, and steps on which nothing was written.

    Returns:
        The number of steps written, and of trajectories left out.
    """
    left_out = 0

    def items() -> Iterator[dict[str, JSON]]:
        nonlocal left_out
        for trajectory in trajectories:
            verdict = trajectory.verdict
            if trajectory.stop == StopReason.ENV_ERROR or (verdict is not None and not verdict.success):
                left_out += 1
                continue
            for step in text_steps(trajectory):
                if step.reply:
                    yield {**_item(step.intent, step.replies, step.page, step.reply), **step.extra}

    return write_list(path, items()), left_out


def _item(intent: str, replies: Sequence[str], page: str, reply: str) -> dict[str, JSON]:
    prompt = step_prompt(intent, replies, page)
    return {"conversations": [{"from": "human", "value": prompt}, {"from": "gpt", "value": reply}]}


def _messages(messages: JSON) -> tuple[str, str]:
    """Return the prompt and the reply of a conversation."""
    if not isinstance(messages, list) or len(messages) != 2 or not all(isinstance(one, dict) for one in messages):
        raise TraceError(f"`conversations` must be a list of two messages, got {_short(messages)}")
    for number, (message, role) in enumerate(zip(messages, ("human", "gpt"), strict=True)):
        name, value = message.get("from"), message.get("value")
        if not isinstance(name, str) or _ROLES.get(name) != role or not isinstance(value, str):
            raise TraceError(f"`conversations[{number}]` must be a text from {role}, got {_short(message)}")
    return messages[0]["value"], messages[1]["value"]


def stem(path: str | os.PathLike[str]) -> str:
    """Return a file's name without its endings."""
    return re.sub(r"\.(jsonl?|pt)(\.gz)?$", "", Path(path).name)


def _short(value: JSON) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
