"""The data that flows between the parts: tasks, steps, trajectories, verdicts, and their JSONL form.

Reads and writes JSON Lines files (``tasks.jsonl``, ``rollouts.jsonl``). Standard library only.

One line of a trajectory file holds everything that is needed to grade the episode again offline: the whole task,
every reply, the observation it answered, and the evidence that the grader read (answer, final URL, page texts,
database changes). The fields are documented one by one on the classes below; a line is ``dataclasses.asdict`` of a
``Trajectory`` plus ``"format"``, the version of this layout.

Source: the task schema is WebArena's (``config_files/test.raw.json``); ``StopReason`` names every way an episode ends.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

FORMAT = 1
"""Version of the JSONL layout; a reader refuses a line of a later version."""

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]
"""Any value that JSON can hold."""


class TraceError(ValueError):
    """A task or trace file that cannot be read: names the file, the line, the field and the rule."""


class StopReason(StrEnum):
    """Why an episode ended."""

    EXIT = "exit"
    """The agent called ``exit(message=...)``."""
    MAX_STEPS = "max_steps"
    """The step limit was reached (30 in WebArena-Lite)."""
    PARSE_FAILURES = "parse_failures"
    """Five replies in a row held no action that can be read."""
    REPEATED_REPLY = "repeated_reply"
    """The same reply came five times in a row."""
    TASK_ENDED = "task_ended"
    """The task ended the episode by itself, as a page of MiniWoB++ does after one attempt, right or wrong."""
    ENV_ERROR = "env_error"
    """The environment failed (crash, time-out, site gone). Neither a success nor a failure; never trained on."""


@dataclass(frozen=True)
class Task:
    """One task in WebArena's schema, with what a training kit needs beside it."""

    task_id: str
    """Unique name; WebArena's integers are kept as their decimal text."""
    sites: tuple[str, ...]
    """Site keys: ``shopping``, ``shopping_admin``, ``reddit``, ``gitlab``, ``map``, ``wikipedia``, ``miniwob``."""
    intent: str
    """The instruction, as the agent reads it."""
    start_url: str
    """Where the episode starts; a placeholder such as ``__SHOPPING__`` stands for the site's address, and several
    tabs are joined by `` |AND| ``."""
    eval: dict[str, JSON] | None = None
    """WebArena's ``eval`` object; None where a task has no grader (generated tasks, labelled by the ORM)."""
    split: str = ""
    """``train``, ``test`` or ``test_families`` for the embedded sites; empty elsewhere."""
    family: str = ""
    """Template that the task was made from, for example ``shopping.order_total``."""
    kind: str = ""
    """``retrieve`` (an answer), ``navigate`` (a page) or ``change`` (a state); empty if unknown."""
    entities: tuple[str, ...] = ()
    """Named rows the task is about, as ``kind:name``; no entity of ``test`` occurs in ``train``."""
    required_steps: int | None = None
    """Replies the scripted oracle needs, ``exit`` included."""
    requirements: int | None = None
    """Number of conditions the instruction states."""
    intent_template: str = ""
    """The wording before the values were filled in."""
    instantiation_dict: dict[str, JSON] = field(default_factory=dict)
    """The values filled in."""
    extra: dict[str, JSON] = field(default_factory=dict)
    """Keys of the source file that this class does not know, kept as they were."""

    @classmethod
    def from_json(cls, record: dict[str, JSON]) -> Task:
        """Build a task from one decoded JSON object.

        Args:
            record: an object in WebArena's schema; unknown keys go to ``extra``.

        Raises:
            TraceError: a required key is missing or has the wrong type.
        """
        record = dict(record)
        known: dict[str, object] = {}
        task_id = record.pop("task_id", None)
        if isinstance(task_id, bool) or not isinstance(task_id, int | str) or task_id == "":
            raise TraceError(f"`task_id` must be a number or a non-empty string, got {task_id!r}.")
        known["task_id"] = str(task_id)
        sites = record.pop("sites", None)
        if not isinstance(sites, list | tuple) or not sites or not all(isinstance(s, str) for s in sites):
            raise TraceError(f"task {task_id}: `sites` must be a non-empty list of names, got {sites!r}.")
        known["sites"] = tuple(sites)
        for name in ("intent", "start_url"):
            value = record.pop(name, None)
            if not isinstance(value, str) or not value:
                raise TraceError(f"task {task_id}: `{name}` must be a non-empty string, got {value!r}.")
            known[name] = value
        optional = {
            "eval": dict | None,
            "split": str,
            "family": str,
            "kind": str,
            "required_steps": int | None,
            "requirements": int | None,
            "intent_template": str,
            "instantiation_dict": dict,
            "extra": dict,
        }
        for name, kind in optional.items():
            if name in record:
                value = record.pop(name)
                if not isinstance(value, kind) or isinstance(value, bool):
                    raise TraceError(f"task {task_id}: `{name}` has the wrong type: {value!r}.")
                known[name] = value
        known["entities"] = tuple(record.pop("entities", None) or ())
        known["extra"] = {**known.get("extra", {}), **record}
        return cls(**known)

    def to_json(self) -> dict[str, JSON]:
        """Return the task as one JSON object in WebArena's schema; ``from_json`` reads it back equal."""
        record = dataclasses.asdict(self)
        extra = record.pop("extra")
        return {**record, "sites": list(self.sites), "entities": list(self.entities), **extra}


@dataclass(frozen=True)
class Step:
    """One reply of the agent and what the environment did with it."""

    index: int
    """Position in the trajectory, from 0."""
    observation: str
    """The text the agent read before it replied."""
    url: str
    """Address of the active tab at that time."""
    reply: str
    """What the policy wrote, unchanged, comments included."""
    action: dict[str, JSON] | None = None
    """The parsed action as ``{"name", "element", "argument"}``; None if the reply could not be read."""
    error: str = ""
    """The line that the environment returned for the next observation (refusal, dialog text, ...); empty if none."""
    element: str = ""
    """What the element id stood for, as role and name; empty if the action names no element."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of the step's parts in seconds: ``act``, ``settle``, ``observe``, and ``policy`` where known."""
    html: str = ""
    """The page source where a run stores it (the authors' trace format wants it); empty otherwise."""
    prompt_hash: str = ""
    """SHA-256 of the prompt's token ids, first 16 hex digits; filled by the rollout."""
    token_ids: tuple[int, ...] = ()
    """Token ids that were sampled for the reply, end-of-turn token included; filled by the rollout."""
    sampler_logprobs: tuple[float, ...] = ()
    """Log-probability of each sampled token under the sampling policy, in nats; filled by the rollout."""


@dataclass(frozen=True)
class Verdict:
    """What a grader said."""

    score: float | None
    """1.0 success, 0.0 failure, None *ungraded* (no judge, site gone): never read None as 0."""
    mode: str = ""
    """Evaluator that spoke: ``vab``, ``webarena``, ``strict``, ``miniwob``, ``orm``."""
    version: str = ""
    """Version of that evaluator; scores of different versions are not comparable."""
    reasons: tuple[str, ...] = ()
    """One line a rule: what was expected and what was found."""

    @property
    def graded(self) -> bool:
        """Whether the grader could decide."""
        return self.score is not None

    @property
    def success(self) -> bool:
        """Whether the task is solved: a score of exactly 1, never a partial one."""
        return self.score == 1.0


@dataclass(frozen=True)
class Trajectory:
    """One episode from its first observation to its grade."""

    task: Task
    """The task, whole, so that a line can be read alone."""
    steps: tuple[Step, ...]
    """(T,) the steps in order."""
    stop: StopReason
    """Why it ended."""
    answer: str = ""
    """Text of ``exit``; empty if the agent did not exit."""
    final_url: str = ""
    """Address of the active tab when the episode ended."""
    verdict: Verdict | None = None
    """The grade; None before grading and where the task has no grader."""
    evidence: dict[str, JSON] = field(default_factory=dict)
    """What the grader read beside the answer and the URL: page texts by rule, database changes."""
    env_error: str = ""
    """What failed in the environment, if ``stop`` is ``env_error``."""
    seed: int | None = None
    """Seed of the reset."""
    trajectory_id: str = ""
    """Unique name of the episode within its run."""
    policy: str = ""
    """Name and version of the policy that replied, for example ``actor@phase_02`` or ``oracle``."""

    @classmethod
    def from_json(cls, record: dict[str, JSON]) -> Trajectory:
        """Build a trajectory from one decoded line.

        Raises:
            TraceError: the line has another format version or lacks a field.
        """
        record = dict(record)
        version = record.pop("format", None)
        if version != FORMAT:
            raise TraceError(f"`format` must be {FORMAT}, got {version!r}: the trace is from another version.")
        try:
            record["task"] = Task.from_json(record["task"])
            record["stop"] = StopReason(record["stop"])
            record["steps"] = tuple(
                Step(
                    **{
                        **step,
                        "token_ids": tuple(step.get("token_ids", ())),
                        "sampler_logprobs": tuple(step.get("sampler_logprobs", ())),
                    }
                )
                for step in record["steps"]
            )
            if record.get("verdict") is not None:
                verdict = dict(record["verdict"])
                record["verdict"] = Verdict(**{**verdict, "reasons": tuple(verdict.get("reasons", ()))})
            return cls(**record)
        except (KeyError, TypeError, ValueError) as error:
            raise TraceError(f"not a trajectory: {error}") from error

    def to_json(self) -> dict[str, JSON]:
        """Return the trajectory as one JSON object; ``from_json`` reads it back equal."""
        return {"format": FORMAT, **dataclasses.asdict(self), "task": self.task.to_json(), "stop": str(self.stop)}


def write_jsonl(path: str | os.PathLike[str], items: Iterable[Task | Trajectory]) -> int:
    """Write a file of tasks or trajectories, whole or not at all.

    The lines go to a temporary name beside ``path``, are flushed to the disk and renamed, so that a kill or a full
    disk leaves either the old file or the new one.

    Args:
        path: the file to write, compressed if its name ends in ``.gz``; its folder is made if it is missing.
        items: tasks or trajectories.

    Returns:
        The number of lines written.
    """
    count = 0
    with whole_file(path) as file:
        for item in items:
            file.write(encode_line(item).encode())
            count += 1
    return count


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that gets its name only when all is written; compressed if its name ends in ``.gz``."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        with open(partial, "wb") as file:
            if path.suffix == ".gz":
                # no time of writing inside, so equal items give equal files
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                    yield packed
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def encode_line(item: Task | Trajectory) -> str:
    """Return one JSONL line, newline included; text keeps its code points, but half a surrogate pair is escaped."""
    line = json.dumps(item.to_json(), ensure_ascii=False, allow_nan=False)
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, as a page's script can make
        line = json.dumps(item.to_json(), ensure_ascii=True, allow_nan=False)
    return line + "\n"


def read_jsonl(path: str | os.PathLike[str], kind: type[Task] | type[Trajectory]) -> Iterator[Task | Trajectory]:
    """Yield the tasks or trajectories of a file.

    Args:
        path: a JSONL file, compressed if its name ends in ``.gz``; blank lines are passed over.
        kind: ``Task`` or ``Trajectory``.

    Raises:
        TraceError: a line is not JSON or not of that kind; the message names file and line. Or a compressed file is
            broken.
    """
    with (gzip.open if Path(path).suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(_whole(file, path), start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise TraceError(f"a line must hold one JSON object, got {type(record).__name__}.")
                yield kind.from_json(record)
            except (json.JSONDecodeError, TraceError) as error:
                raise TraceError(f"{path}, line {number}: {error}") from error


def _whole(file: Iterable[str], path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield a file's lines, and say so if its compressed form ends or breaks in the middle."""
    try:
        yield from file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path}: a compressed file that is cut off or damaged ({error}). Copy it again.") from error
