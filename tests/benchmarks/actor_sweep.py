"""What one phase's policy update does under other settings, without playing a single episode.

    python -m tests.benchmarks.actor_sweep runs/webrl [--phase 1] [--learning_rate 1e-4 3e-4] [--beta 1 0.1]
        [--epochs 1] [--warmup 0.1] [--sample 200]

Takes the rows of a phase of a run (``experience.jsonl``) and the actor before it, trains that actor on them once for
every combination, and asks afterwards, in nats an action:

* ``moved``: mean log ratio of the rows, by where they are from and what they were credited with, beside the mean that
  the loss asks for (A / beta);
* ``loss``: what is left of the loss, beside what it was before the first update;
* ``others``: mean log-probability of demonstrations that were not trained on, before and after. If it falls while
  ``moved`` rises, the update learns its rows by heart.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import random
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from webrl_lite import actor
from webrl_lite.experience import Experience, read_experience
from webrl_lite.model import SharedBase
from webrl_lite.run_folder import RunFolder


def logprobs(shared: SharedBase, rows: Sequence[Experience]) -> list[float]:
    """Return log pi of each action under the actor."""
    with shared.role("actor"):
        return shared.action_logprobs([row.sample for row in rows]).tolist()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--phase", type=int, default=1)
    parser.add_argument("--sample", type=int, default=200, help="demonstrations that are only looked at")
    for name, default in (("learning_rate", [1e-4, 3e-4, 1e-3]), ("beta", [1.0]), ("epochs", [1.0]), ("warmup", [0.1])):
        parser.add_argument(f"--{name}", type=float, nargs="+", default=default)
    options = parser.parse_args()
    config = RunFolder(options.run).config()
    before = f"phase_{options.phase - 1:02d}/actor" if options.phase > 1 else "sft"
    rows = read_experience(options.run / f"phase_{options.phase:02d}" / "experience.jsonl")
    trained = {(row.prompt, row.action) for row in rows}
    shown = read_experience(options.run / "phase_00" / "experience.jsonl")
    others = [row for row in shown if (row.prompt, row.action) not in trained]
    others = random.Random(0).sample(others, min(options.sample, len(others)))
    shared = SharedBase.load(config.model, config.lora, roles=("actor",))
    print(f"{len(rows)} rows, {len(others)} others")
    print(
        "| learning rate | beta | epochs | warmup | moved / asked for | loss before -> after | others before -> after |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for rate, beta, epochs, warmup in itertools.product(
        options.learning_rate, options.beta, options.epochs, options.warmup
    ):
        shared.load_role("actor", options.run / before / "final")
        old = mean(logprobs(shared, others))
        settings = dataclasses.replace(config.actor, learning_rate=rate, beta=beta, epochs=epochs, warmup=warmup)
        with tempfile.TemporaryDirectory() as folder:
            actor.train(shared, rows, settings, folder, method=config.method, seed=config.seed)
        ratios = [new - row.ref_logprob for new, row in zip(logprobs(shared, rows), rows, strict=True)]
        groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for row, ratio in zip(rows, ratios, strict=True):
            kind = f"{row.source} {'success' if row.reward else 'failure'}"
            groups[kind].append((ratio, row.advantage / beta))
        moved = "; ".join(
            f"{kind} {mean(r for r, _ in pairs):+.2f} / {mean(a for _, a in pairs):+.2f}"
            for kind, pairs in sorted(groups.items())
        )
        loss = mean((beta * ratio - row.advantage) ** 2 for ratio, row in zip(ratios, rows, strict=True))
        first = mean(row.advantage**2 for row in rows)
        new = mean(logprobs(shared, others))
        numbers = f"{first:.3f} -> {loss:.3f} | {old:.3f} -> {new:.3f}"
        print(f"| {rate:g} | {beta:g} | {epochs:g} | {warmup:g} | {moved} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
