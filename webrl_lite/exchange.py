"""Files of others to ours and back: the authors' traces, tasks, SFT conversations and ``.pt`` trajectories.

``python -m webrl_lite.exchange FORM IN OUT`` converts a file:

    from-tasks           task records (``{"web","task"}``, ``WebArena-Lite_info.json``, WebArena's schema) to tasks
    from-traces          a trace file or a folder of them to trajectories
    from-conversations   SFT conversations, in order, to trajectories
    from-pt              a ``.pt`` list of trajectories to trajectories
    to-tasks             tasks, or the failed tasks of trajectories, to ``{"web","task"}`` lines, for the generator
    to-info              tasks to a list like ``WebArena-Lite_info.json``
    to-traces            trajectories to a folder with ``traces`` and ``actions``
    to-fixed-traces      the same with ``fixed_traces``
    to-conversations     successes and demonstrations to SFT conversations
    to-pt                graded trajectories and demonstrations to a ``.pt`` list

``--tasks FILE`` names task records in which ``from-traces``, ``from-conversations`` and ``from-pt`` look up site and
start page, which those forms lack. A file is written whole or not at all. Each form has its own module
(``exchange_traces``, ``exchange_steps``, ``exchange_pt``); task records are read here.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from webrl_lite.exchange_files import read_records, write_lines, write_list
from webrl_lite.exchange_steps import KnownTasks, read_conversation_trajectories, stem, write_conversations
from webrl_lite.exchange_traces import read_traces, write_traces
from webrl_lite.trajectory import JSON, Task, TraceError, Trajectory, write_jsonl

Kind = TypeVar("Kind", Task, Trajectory)


def read_tasks(path: str | os.PathLike[str]) -> Iterator[Task]:
    """Yield the tasks of a file of records, whichever of the three kinds each one is.

    A record without ``task_id`` is called after the file and its place, ``failed.0``. ``{"web","task"}`` starts on the
    site's front page.

    Args:
        path: a list of objects or one a line: ``{"web","task"}``; ``intent``, ``sites`` and ``start_url``; or
            WebArena's schema. Keys that ``Task`` does not know go to ``extra``.

    Raises:
        TraceError: a record is none of these; the message names file and line.
        OSError: there is no such file.
    """
    for number, (line, record) in enumerate(read_records(path)):
        record = dict(record)
        try:
            if "web" in record or "task" in record:
                site, intent = record.pop("web", None), record.pop("task", None)
                for name, value in (("web", site), ("task", intent)):
                    if not isinstance(value, str) or not value:
                        raise TraceError(f"`{name}` must be a non-empty text, got {value!r}.")
                taken = sorted({"intent", "start_url"} & set(record))
                if taken:
                    raise TraceError(f"a record with `web` and `task` must not have `{taken[0]}` too.")
                sites = record.pop("sites", [site])  # our own note, where a task has several
                start = " |AND| ".join(f"__{one.upper()}__" for one in sites if isinstance(one, str))
                record |= {"sites": sites, "intent": intent, "start_url": start}
            record.setdefault("task_id", f"{stem(path)}.{number}")
            yield Task.from_json(record)
        except TraceError as error:
            raise TraceError(f"{path}, line {line}: {error}") from error


def write_task_records(path: str | os.PathLike[str], tasks: Iterable[Task]) -> int:
    """Write ``{"web","task"}`` lines, as the release's generator reads them, and return their number.

    ``web`` is the first site; a task of several has a further key, ``sites``, which only ``read_tasks`` reads.
    """
    return write_lines(path, map(_task_record, tasks))


def _task_record(task: Task) -> dict[str, JSON]:
    several: dict[str, JSON] = {"sites": list(task.sites)} if len(task.sites) > 1 else {}
    return {"web": task.sites[0], "task": task.intent, **several, **task.extra}


def write_info(path: str | os.PathLike[str], tasks: Iterable[Task]) -> int:
    """Write a list of ``intent``, ``sites`` and ``start_url``, and return its length."""
    bare = ({"intent": t.intent, "sites": list(t.sites), "start_url": t.start_url, **t.extra} for t in tasks)
    return write_list(path, bare)


def failed_tasks(trajectories: Iterable[Trajectory]) -> Iterator[Task]:
    """Yield the tasks that were graded as failed, once each: what new tasks are made from."""
    seen: set[tuple[tuple[str, ...], str]] = set()
    for trajectory in trajectories:
        task, verdict = trajectory.task, trajectory.verdict
        if verdict is not None and verdict.graded and not verdict.success and (task.sites, task.intent) not in seen:
            seen.add((task.sites, task.intent))
            yield task


def read_trajectories(path: str | os.PathLike[str], known: KnownTasks | None = None) -> Iterator[Trajectory]:
    """Yield the trajectories of a file, whichever form it has.

    Args:
        path: trajectories of ours; the authors' trace file or a folder of them; SFT conversations, in order; ``.pt``.
        known: tasks to look sites up in, for the authors' forms, which name none.

    Raises:
        TraceError: it has none of these forms, or cannot be read.
        OSError: there is no such file.
    """
    path = Path(path)
    if path.suffix == ".pt":
        from webrl_lite import exchange_pt

        yield from exchange_pt.read_pt(path, known)
        return
    first: dict[str, JSON] = {} if path.is_dir() else next((record for _, record in read_records(path)), {})
    if path.is_dir() or "trace_id" in first:
        yield from read_traces(path, known)
    elif "conversations" in first:
        yield from read_conversation_trajectories(path, known)
    elif "steps" in first:
        yield from _ours(path, Trajectory)
    else:
        raise TraceError(
            f"{path}: must hold trajectories, the authors' traces or SFT conversations, but its first object has "
            f"{', '.join(first) or 'nothing'}. See `python -m webrl_lite.exchange --help`."
        )


# Command line -------------------------------------------------------------------------------------------------------


def convert(form: str, source: Path, target: Path, tasks: Path | None = None) -> str:
    """Convert a file and return what came of it in a few words.

    Args:
        form: one of ``FORMS``.
        source: the file, or the folder of traces, to read.
        target: the file, or for traces the folder, to write.
        tasks: task records to look sites up in, for forms without.

    Raises:
        TraceError: the source cannot be read.
        OSError: it is not there, or the target cannot be written.
    """
    known = KnownTasks(read_tasks(tasks) if tasks else ())
    if form == "from-tasks":
        return f"{write_jsonl(target, read_tasks(source))} tasks"
    if form == "from-traces":
        return f"{write_jsonl(target, read_traces(source, known))} trajectories"
    if form == "from-conversations":
        return f"{write_jsonl(target, read_conversation_trajectories(source, known))} trajectories"
    if form == "to-tasks":
        return f"{write_task_records(target, _our_tasks(source))} tasks"
    if form == "to-info":
        return f"{write_info(target, _our_tasks(source))} tasks"
    if form == "from-pt":
        from webrl_lite import exchange_pt

        return f"{write_jsonl(target, exchange_pt.read_pt(source, known))} trajectories"
    trajectories = _ours(source, Trajectory)
    if form == "to-pt":
        from webrl_lite import exchange_pt

        written, left_out = exchange_pt.write_pt(target, trajectories)
    elif form == "to-conversations":
        steps, left_out = write_conversations(target, trajectories)
        return f"{steps} steps; {left_out} trajectories left out"
    else:
        written, left_out = write_traces(target, trajectories, fixed=form == "to-fixed-traces")
    return f"{written} trajectories; {left_out} left out"


FORMS = (
    *("from-tasks", "from-traces", "from-conversations", "from-pt"),
    *("to-tasks", "to-info", "to-traces", "to-fixed-traces", "to-conversations", "to-pt"),
)
"""What ``convert`` can do."""


def _our_tasks(path: Path) -> Iterator[Task]:
    """Yield the tasks of a file of ours: of trajectories those that failed."""
    first: dict[str, JSON] = next((record for _, record in read_records(path)), {})
    return failed_tasks(_ours(path, Trajectory)) if "steps" in first else _ours(path, Task)


def _ours(path: Path, kind: type[Kind]) -> Iterator[Kind]:
    """Yield the lines of a file of ours, which somebody may have edited on Windows or saved as one list."""
    for line, record in read_records(path):
        try:
            yield kind.from_json(record)
        except TraceError as error:
            raise TraceError(f"{path}, line {line}: {error}") from error


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m webrl_lite.exchange",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("form", metavar="FORM", choices=FORMS, help="one of the forms above")
    parser.add_argument("source", metavar="IN", type=Path, help="file (or folder of traces) to read")
    parser.add_argument("target", metavar="OUT", type=Path, help="file (for traces: folder) to write")
    parser.add_argument("--tasks", type=Path, help="task records with the sites that FORM lacks")
    options = parser.parse_args(arguments)
    try:
        result = convert(options.form, options.source, options.target, options.tasks)
    except (TraceError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{options.target}: {result}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
