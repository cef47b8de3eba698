"""Command line of the embedded sites: serve them, print the tasks, run the oracles.

python -m webrl_lite.envs.embedded                                 serve the sites for a person to click through
python -m webrl_lite.envs.embedded tasks --split test              print the tasks, one JSON object a line
python -m webrl_lite.envs.embedded oracle --split test --limit 20  solve tasks by script through Chromium
python -m webrl_lite.envs.embedded measure                         run all oracles, store required_steps.json
python -m webrl_lite.envs.embedded record                          record the demonstrations again
python -m webrl_lite.envs.embedded record --world 1 --out F.jsonl  record what the tiny base is pre-trained on
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.backend import EmbeddedSites
from webrl_lite.envs.embedded.demonstrations import DEMONSTRATIONS
from webrl_lite.envs.embedded.families import SPLITS, all_families, required_steps
from webrl_lite.envs.embedded.other_worlds import record_world
from webrl_lite.envs.embedded.play import Tally, play_all
from webrl_lite.trajectory import Task, Trajectory, whole_file, write_jsonl

FAMILY_HELP = "only this family, for example shopping.order_total, or all of a site, for example map"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m webrl_lite.envs.embedded", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command")
    tasks = commands.add_parser("tasks", help="print the tasks, one JSON object a line")
    tasks.add_argument("--split", choices=SPLITS, help="only this split (default: all)")
    oracle = commands.add_parser("oracle", help="solve tasks by script through Chromium")
    oracle.add_argument("--split", choices=SPLITS, help="only this split (default: all)")
    oracle.add_argument("--family", help=FAMILY_HELP)
    oracle.add_argument("--limit", type=int, help="at most so many tasks, drawn with --seed (default: all)")
    oracle.add_argument("--seed", type=int, default=0, help="seed of the draw (default 0)")
    oracle.add_argument("--workers", type=int, default=2, help="episodes at once (default 2)")
    oracle.add_argument("--only-oracle", action="store_true", help="leave out the null, N/A and wrong-answer agents")
    oracle.add_argument("--verbose", action="store_true", help="print every reply and observation")
    measure = commands.add_parser("measure", help="run all oracles and store required_steps.json")
    measure.add_argument("--family", help=FAMILY_HELP)
    measure.add_argument("--workers", type=int, default=2, help="episodes at once (default 2)")
    record = commands.add_parser("record", help="let the oracles solve the train tasks and store what they did")
    record.add_argument("--workers", type=int, default=2, help="episodes at once (default 2)")
    record.add_argument("--world", type=int, help="seed of a world of other data, with the pre-training's families")
    record.add_argument(
        "--out", type=Path, default=DEMONSTRATIONS, help="file, JSONL or JSONL.gz (default: the package's)"
    )
    options = parser.parse_args(arguments)
    if options.command is None:
        return serve()
    if options.command == "tasks":
        return print_tasks(options.split)
    if options.command == "measure":
        return store_steps(options.family, options.workers)
    if options.command == "record":
        if options.world is not None:
            if options.out == DEMONSTRATIONS:
                parser.error("--out must be a file of your own with --world, for example runs/world_1.jsonl.gz")
            print(json.dumps(summary(record_world(options.out, options.world, options.workers))))
            return 0
        return store_demonstrations(options.out, options.workers)
    return run_oracles(options)


def serve() -> int:
    """Serve one world until Ctrl-C or the end of the standard input's terminal."""
    with tempfile.TemporaryDirectory(prefix="webrl_lite_worlds_") as folder:
        sites = EmbeddedSites(Path(folder))
        try:
            world.reset(sites.folder, "w0")
            print("Five sites are up. Changes last until this command ends (Ctrl-C).\n")
            for site in world.SITES:
                data = import_module(f"webrl_lite.envs.embedded.{site}.data")
                print(f"{site:15} {sites.server.origin(site, 'w0')}/")
                if data.ACCOUNT is not None:
                    print(f"{'':15} sign in as {data.ACCOUNT} with the password {sites.password(site, data.ACCOUNT)}")
            sites.server.process.wait()
        except KeyboardInterrupt:
            print()
        finally:
            sites.close()
    return 0


def print_tasks(split: str | None) -> int:
    """Print the tasks of a split, one JSON object a line."""
    sites = EmbeddedSites()
    try:
        for task in sites.tasks:
            if split in (None, task.split):
                print(json.dumps(task.to_json(), ensure_ascii=False))
    finally:
        sites.close()
    return 0


def run_oracles(options: argparse.Namespace) -> int:
    """Run the oracles of some tasks and print one JSON line at the end; status 1 if a task was not solved."""
    sites = EmbeddedSites()
    try:
        chosen = [t for t in select(sites, options.family) if options.split in (None, t.split)]
        if not chosen:
            names = ", ".join(family.name for family in all_families())
            print(
                f"No task of split {options.split!r} and family {options.family!r}. Families: {names}.", file=sys.stderr
            )
            return 2
        if options.limit is not None:
            chosen = random.Random(options.seed).sample(chosen, min(options.limit, len(chosen)))
        others = not options.only_oracle

        def show(task: Task, agent: str, success: bool, note: str) -> None:
            if agent == "oracle" or success:
                print(f"{'solved' if success else 'FAILED':7}{agent:8}{task.task_id:50} {note}", flush=True)

        tally = play_all(sites, chosen, workers=options.workers, others=others, report=show, verbose=options.verbose)
    finally:
        sites.close()
    print(json.dumps(summary(tally)))
    return 0 if tally.oracle == tally.tried else 1


def summary(tally: Tally) -> dict[str, int | None]:
    """Return the figures of the last line: tasks solved by the oracle and by agents that know nothing."""
    return {
        "solved": tally.oracle,
        "tried": tally.tried,
        "null_agent": tally.null,
        "na_agent": tally.na,
        "wrong_agent": tally.wrong,
        "env_errors": tally.env_errors,
    }


def select(sites: EmbeddedSites, family: str | None) -> list[Task]:
    """Return the tasks of a family or of a site; all if None."""
    return [t for t in sites.tasks if family is None or t.family == family or t.family.startswith(f"{family}.")]


def store_steps(family: str | None, workers: int) -> int:
    """Run oracles and store how many replies each needed; status 1 if a task was not solved (its entry is dropped)."""
    sites = EmbeddedSites()
    try:
        chosen = select(sites, family)
        tally = play_all(sites, chosen, workers=workers, others=False)
    finally:
        sites.close()
    for task_id, reason in tally.failures:
        print(f"FAILED {task_id}: {reason}", file=sys.stderr)
    played = {task.task_id for task in chosen}
    known = {task.task_id for task in sites.tasks} - played
    steps = {name: number for name, number in required_steps().items() if name in known} | tally.steps
    target = Path(__file__).with_name("required_steps.json")
    with whole_file(target) as file:
        file.write((json.dumps(steps, indent=0, sort_keys=True) + "\n").encode())
    print(json.dumps(summary(tally)))
    return 0 if tally.oracle == tally.tried else 1


def store_demonstrations(out: Path, workers: int) -> int:
    """Record the oracles on the train tasks; status 1 and no file if one was not solved."""
    sites = EmbeddedSites()
    kept: list[Trajectory] = []
    try:
        tally = play_all(
            sites,
            [task for task in sites.tasks if task.split == "train"],
            workers=workers,
            others=False,
            keep=kept.append,
        )
    finally:
        sites.close()
    for task_id, reason in tally.failures:
        print(f"FAILED {task_id}: {reason}", file=sys.stderr)
    print(json.dumps(summary(tally)))
    if tally.oracle < tally.tried:
        return 1
    write_jsonl(out, kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
