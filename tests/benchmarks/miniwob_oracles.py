"""Plays pages of MiniWoB++ by their oracles and writes how often each was won, as a Markdown table.

    python -m tests.benchmarks.miniwob_oracles [--tasks click-test ...] [--seeds 0 1 2 3 4] [--out FILE.md]

Needs the package ``miniwob`` and a browser. Every episode goes through ``WebEnv``: the agent's observation, grammar and
executor, one try each; an episode that the environment failed is counted apart. Without ``--out`` it only prints; rows
of pages that are not played stay in the file as they are.
"""

import argparse
import re
import sys
import time
from pathlib import Path

from webrl_lite.browser import Browser, BrowserError
from webrl_lite.envs.embedded.oracle import OracleLost
from webrl_lite.envs.miniwob import MiniwobPages
from webrl_lite.envs.miniwob_play import play_oracle
from webrl_lite.envs.miniwob_tasks import HELD_OUT, SUPPORTED, UNSUPPORTED
from webrl_lite.envs.web_env import WebEnv
from webrl_lite.trajectory import StopReason, Task

ROW = re.compile(r"\| [\w-]+ \| \d+ \| \d+ \|")
COMMAND = "python -m tests.benchmarks.miniwob_oracles"


def play(env: WebEnv, task: Task) -> tuple[str, str]:
    """Return ``won``, ``lost`` or ``fault``, and why not won."""
    try:
        episode = play_oracle(env, task)
    except OracleLost as error:
        return "lost", str(error)
    except BrowserError as error:
        return "fault", str(error)
    if episode.stop is StopReason.ENV_ERROR:
        return "fault", episode.env_error
    return ("won" if episode.verdict.success else "lost"), f"{episode.stop}: {'; '.join(episode.verdict.reasons)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Oracles on MiniWoB++.")
    parser.add_argument("--tasks", nargs="+", default=list(SUPPORTED))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    old = options.out.read_text(encoding="utf-8") if options.out is not None and options.out.exists() else ""
    rows = {row.split(" | ")[0][2:]: row for row in old.split("\n") if ROW.match(row)}
    notes = {note[2:].split(" (")[0]: note[2:] for note in old.split("\n") if note.startswith("- miniwob.")}
    with Browser() as browser:
        pages = MiniwobPages(options.tasks, train_seeds=(), test_seeds=options.seeds, browser=browser)
        env = WebEnv(pages, browser=browser)
        for name in pages.names:
            outcomes, steps, since = [], [], time.perf_counter()
            for task in (task for task in pages.tasks if task.family == f"miniwob.{name}"):
                outcome, why = play(env, task)
                outcomes.append(outcome)
                steps += [len(env.steps)] if outcome == "won" else []
                notes.pop(task.task_id, None)
                if outcome != "won":
                    notes[task.task_id] = f"{task.task_id} ({task.intent}): {' '.join(why.split())[:200]}"
            seconds = (time.perf_counter() - since) / len(outcomes)
            mean = f"{sum(steps) / len(steps):.1f}" if steps else "-"
            held = "yes" if name in HELD_OUT else ""
            counts = [outcomes.count(kind) for kind in ("won", "fault")]
            rows[name] = f"| {name} | {len(outcomes)} | {counts[0]} | {counts[1]} | {mean} | {seconds:.1f} | {held} |"
            print(rows[name], flush=True)
        env.close()
        pages.close()
    rows = {name: rows[name] for name in SUPPORTED if name in rows}
    tried, won, faults = (sum(int(row.split(" | ")[column]) for row in rows.values()) for column in (1, 2, 3))
    summary = f"{len(rows)} pages, {tried} instances: {won} won, {faults} environment faults."
    print(summary, *notes.values(), sep="\n")
    if options.out is not None:
        options.out.write_text(document(list(rows.values()), summary, list(notes.values())), encoding="utf-8")
    sys.exit(0 if won == tried else 1)


def document(rows: list[str], summary: str, notes: list[str]) -> str:
    """Return the file's text."""
    lost = [f"- {note}" for note in notes] or ["Nothing."]
    return "\n".join(
        [
            "# MiniWoB++ by its oracles",
            "",
            f"Made by `{COMMAND} --out tests/benchmarks/MINIWOB.md` with `miniwob` 1.1.0. An oracle reads the text",
            "observation and writes replies of the action grammar; won is a raw reward of exactly 1, at one try. Steps",
            "are the mean of won episodes, seconds the mean of all, the page's start included. Held out are the pages",
            "of split `test_families`. Seeds are 0 to 4. A page whose oracle was changed is played again with",
            "`--tasks`, so that seconds are of several runs, on two busy CPU cores.",
            "",
            summary,
            "",
            "| page | seeds | won | faults | steps | seconds | held out |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
            "## Not won",
            "",
            *lost,
            "",
            "## Pages that are not supported",
            "",
            "| page | why |",
            "| --- | --- |",
            *(f"| {name} | {why} |" for name, why in UNSUPPORTED.items()),
            "",
        ]
    )


if __name__ == "__main__":
    main()
