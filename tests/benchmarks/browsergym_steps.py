"""Step BrowserGym's core environment over the pages of ``env_steps.py`` and print its times as one JSON line.

Runs in a virtual environment of its own (BrowserGym pins an old Playwright), started by ``env_steps.py``:

    python browsergym_steps.py URL CHROMIUM STEPS DELAY

URL is the start page, DELAY BrowserGym's pause before an observation in seconds (its default is 0.5).
"""

import json
import re
import statistics
import sys
import time

import browsergym.core  # noqa: F401  (registers the environments)
import gymnasium
from browsergym.utils.obs import flatten_axtree_to_str
from playwright.sync_api import BrowserType

CYCLE = ("Kitchen", "down", "up", "back", "Garden", "down", "up", "back")


def link(tree: str, name: str) -> str:
    """Return the id of the link with this name."""
    return re.search(rf"\[(\w+)\] link '{re.escape(name)}'", tree)[1]


def main() -> None:
    url, chromium, steps, delay = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    launch = BrowserType.launch  # its chat window is a second browser, which takes no path of its own
    BrowserType.launch = lambda self, **options: launch(self, **{**options, "executable_path": chromium})
    env = gymnasium.make(
        "browsergym/openended",
        task_kwargs={"start_url": url},
        headless=True,
        pre_observation_delay=delay,
    )
    observation, _ = env.reset()
    fixed = {"down": "scroll(0, 480)", "up": "scroll(0, -480)", "back": "go_back()"}
    times = []
    for number in range(steps):
        move = CYCLE[number % len(CYCLE)]
        # the text that an agent reads is part of a step, as it is in WebEnv
        tree = flatten_axtree_to_str(
            observation["axtree_object"], extra_properties=observation["extra_element_properties"]
        )
        begin = time.perf_counter()
        observation, _, _, _, _ = env.step(fixed.get(move) or f"click('{link(tree, move)}')")
        flatten_axtree_to_str(observation["axtree_object"], extra_properties=observation["extra_element_properties"])
        times.append(time.perf_counter() - begin)
        if observation["last_action_error"]:
            raise SystemExit(f"{move}: {observation['last_action_error']}")
    env.close()
    print(json.dumps({"steps_per_s": steps / sum(times), "median_ms": 1000 * statistics.median(times)}))


if __name__ == "__main__":
    main()
