"""Speed of the environment: steps per second with 1, 2 and 4 contexts, and BrowserGym's on the same pages.

    python -m tests.benchmarks.env_steps [--steps 160] [--browsergym FOLDER]

Every environment walks the same cycle of moves over the embedded shop (open a category, scroll down, scroll up, go
back). A step is the action, the wait until the page is quiet, and the text of the page. BrowserGym's core walks it in
the same run, in a virtual environment that is made in FOLDER if it is not there, once with its own pause before each
observation and once without. The last line is one JSON object with all figures.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

from webrl_lite.browser import Browser, find_chromium
from webrl_lite.envs.embedded.backend import EmbeddedSites
from webrl_lite.envs.web_env import StopRules, WebEnvBatch
from webrl_lite.observation import Observation
from webrl_lite.trajectory import Task

HERE = Path(__file__).parent
CYCLE = ("Kitchen", "down", "up", "back", "Garden", "down", "up", "back")
FIXED = {"down": 'do(action="Scroll Down")', "up": 'do(action="Scroll Up")', "back": "go_backward()"}
WALK = Task(task_id="walk", sites=("shopping",), intent="Walk around.", start_url="__SHOPPING__/")


def reply(observation: Observation, move: str) -> str:
    """Return the reply for one move of the cycle."""
    if move in FIXED:
        return FIXED[move]
    found = next(e for e in observation.elements.values() if e.name == move and e.role == "link")
    return f'do(action="Click", element="{found.id}")'


def ours(sites: EmbeddedSites, browser: Browser, count: int, steps: int) -> dict[str, float]:
    """Walk with ``count`` contexts at once; ``steps`` is the number for all of them together."""
    rounds = steps // count
    with WebEnvBatch(
        sites, count, browser=browser, rules=StopRules(max_steps=rounds + 1, equal_replies=rounds)
    ) as batch:
        batch.reset([WALK] * count)
        begin = time.perf_counter()
        walls = []
        for number in range(rounds):
            move = CYCLE[number % len(CYCLE)]
            start = time.perf_counter()
            batch.step([reply(env.observation, move) for env in batch.envs])
            walls.append(time.perf_counter() - start)
        seconds = time.perf_counter() - begin
        parts = [step.seconds for env in batch.envs for step in env.steps]
    errors = [step.error for env in batch.envs for step in env.steps if step.error]
    if errors:
        raise SystemExit(f"a move failed: {errors[0]}")
    return {
        "steps_per_s": rounds * count / seconds,
        "median_ms": 1000 * statistics.median(walls),
        **{f"{part}_ms": 1000 * statistics.median(p[part] for p in parts) for part in ("act", "settle", "observe")},
    }


def browsergym(folder: Path, url: str, steps: int, delay: float) -> dict[str, float] | str:
    """Walk with BrowserGym's core; returns its figures, or why it could not be run."""
    python = folder / "bin" / "python"
    if not python.is_file():
        venv.create(folder, with_pip=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", "browsergym-core"], capture_output=True, text=True)
        if done.returncode != 0:
            return f"browsergym-core cannot be installed: {done.stderr.strip().splitlines()[-1]}"
    command = [python, HERE / "browsergym_steps.py", url, str(find_chromium()), str(steps), str(delay)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return f"browsergym-core did not run: {done.stderr.strip().splitlines()[-1]}"
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=160, help="steps a setting (default 160)")
    parser.add_argument(
        "--browsergym", type=Path, help="folder of BrowserGym's virtual environment (default: leave it out)"
    )
    options = parser.parse_args()
    sites = EmbeddedSites()
    figures: dict[str, object] = {}
    try:
        with Browser() as browser:
            for count in (1, 2, 4):
                figures[f"contexts_{count}"] = ours(sites, browser, count, options.steps)
                print(f"{count} contexts: {figures[f'contexts_{count}']}", flush=True)
        if options.browsergym:
            sites.start(WALK, 0)
            url = sites.server.origin("shopping", "w0") + "/"
            for name, delay in (("browsergym", 0.5), ("browsergym_no_pause", 0.0)):
                figures[name] = browsergym(options.browsergym, url, options.steps // 4, delay)
                print(f"{name}: {figures[name]}", flush=True)
                if isinstance(figures[name], dict):
                    ratio = figures["contexts_1"]["steps_per_s"] / figures[name]["steps_per_s"]
                    figures[f"times_{name}"] = ratio
    finally:
        sites.close()
    print(json.dumps(figures, default=float))


if __name__ == "__main__":
    sys.exit(main())
