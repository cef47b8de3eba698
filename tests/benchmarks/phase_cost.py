"""What the learning of one phase costs, by stage: tokens through the model, seconds, memory; and with naive wiring.

    python -m tests.benchmarks.phase_cost [--preset tiny] [--tasks 16] [--growth 1 2 4] [--threads 2]

The phase's episodes are demonstrations that are told to be rollouts, every second one a failure; the buffer of earlier
successes is four times as large. So no browser runs, and the wiring alone is measured: ``select`` (one pass gives
perplexity and log pi_ref), ``critic``, ``advantage`` (V of every state once), ``actor``. A token counts when it goes
through the base, padding not counted; ``forward`` without a gradient, ``trained`` with one.

Naive wiring: perplexity in a pass of its own, log pi_ref again at every use in training, V of a state and of the next
one at every use (as ``trainer.py:149-150`` and ``llama_agent.py:102-124`` of the released code do), and logits over
the whole vocabulary for the whole prompt. Its update is the same. ``--growth`` repeats our side with so many times the
tasks: seconds a task should stay flat.

The last line is one JSON object. Figures of a busy machine mean little; token counts are exact.
"""

import argparse
import dataclasses
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from webrl_lite import actor, critic
from webrl_lite.baselines import METHODS
from webrl_lite.batching import micro_batches
from webrl_lite.config import Config, ReplayConfig, preset
from webrl_lite.envs.embedded.demonstrations import demonstrations
from webrl_lite.experience import Experience
from webrl_lite.model import SharedBase
from webrl_lite.replay import build, collect, credit
from webrl_lite.run_folder import peak_bytes

BUFFER = 4
"""Earlier episodes for each of the phase."""


class Meter:
    """Counts what goes through the base, stage by stage."""

    def __init__(self, shared: SharedBase) -> None:
        self.stages: dict[str, dict[str, float]] = {}
        self._now: dict[str, float] | None = None
        passes = shared._passes
        hidden = passes.hidden

        def counted(rows: list, prompts: list) -> object:
            if self._now is not None:
                kind = "trained" if torch.is_grad_enabled() else "forward"
                self._now[kind] += sum(map(len, rows))
            return hidden(rows, prompts)

        passes.hidden = counted

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside under a name."""
        self._now = self.stages[name] = {"forward": 0, "trained": 0}
        begin = time.perf_counter()
        yield
        self._now["seconds"] = round(time.perf_counter() - begin, 2)
        self._now["peak_mib"] = round(peak_bytes() / 2**20)
        self._now = None

    def total(self, kind: str) -> float:
        """Return a sum over all stages."""
        return sum(numbers[kind] for numbers in self.stages.values())


def rows_of(config: Config, shared: SharedBase, tasks: int) -> tuple[list[Experience], list[Experience]]:
    """Return the phase's rows and the buffer's."""
    solved = demonstrations()
    need = tasks * (1 + BUFFER)
    chosen = [
        dataclasses.replace(one, trajectory_id=f"{one.task.task_id}#{i // len(solved)}", task=one.task)
        for i, one in enumerate((solved * (need // len(solved) + 1))[:need])
    ]
    rows = [list(collect([one], shared.tokenizer, config, phase=0, source="sft").rows) for one in chosen]
    current = [
        dataclasses.replace(row, source="current", phase=1, reward=float(number % 2 == 0))
        for number, episode in enumerate(rows[:tasks])
        for row in episode
    ]
    return current, [row for episode in rows[tasks:] for row in episode]


def ours(shared: SharedBase, config: Config, tasks: int, folder: Path) -> Meter:
    """Run a phase's learning as ``phase`` wires it."""
    meter, method = Meter(shared), METHODS["webrl"]
    current, buffer = rows_of(config, shared, tasks)
    with meter.stage("select"):
        rows = build(current, buffer, shared, config, method, 0).rows
    with meter.stage("critic"):
        states = [(row.prompt, row.reward) for row in rows if row.source == "current"]
        critic.train(shared, states, config.critic, folder / "critic")
    with meter.stage("advantage"):
        rows = credit(rows, shared, config, method)
    with meter.stage("actor"):
        actor.train(shared, rows, config.actor, folder / "actor", method="webrl")
    return meter


def naive(shared: SharedBase, config: Config, tasks: int, folder: Path) -> Meter:
    """Run the same learning with everything asked for again wherever it is used."""
    meter, method = Meter(shared), METHODS["webrl"]
    current, buffer = rows_of(config, shared, tasks)
    with meter.stage("select"):
        rows = build(current, buffer, shared, config, method, 0).rows
    # the pass above scores current steps too, which a filter on perplexity alone has no use for
    meter.stages["select"]["forward"] -= sum(len(row.prompt) + len(row.action) for row in current)
    with meter.stage("critic"):
        states = [(row.prompt, row.reward) for row in rows if row.source == "current"]
        critic.train(shared, states, config.critic, folder / "critic")
    rows = credit(rows, shared, config, method)
    prompts = {row.key: row.prompt for row in rows}
    with meter.stage("actor"):
        groups = micro_batches([len(r.prompt) + len(r.action) for r in rows], config.actor.batch_size * 256)
        for row_group in groups * int(config.actor.epochs):
            some = [rows[i] for i in row_group]
            with shared.role("ref"):
                shared.action_logprobs([row.sample for row in some])
            following = [prompts.get((*row.key[:2], row.step + 1)) or row.next_prompt for row in some]
            with shared.role("critic"):
                shared.values([row.prompt for row in some] + [state for state in following if state])
        with whole_logits(shared):
            actor.train(shared, rows, config.actor, folder / "actor", method="webrl")
    return meter


@contextmanager
def whole_logits(shared: SharedBase) -> Iterator[None]:
    """Let every training pass make logits for all positions, in float32, as ``model(**inputs)`` does."""
    passes = shared._passes
    hidden = passes.hidden

    def with_logits(rows: list, prompts: list) -> object:
        states, batch = hidden(rows, prompts)
        if torch.is_grad_enabled():
            # added with weight 0, so that autograd keeps them alive until backward
            states = states + 0 * passes.logits(states).float().logsumexp(dim=-1, keepdim=True)
        return states, batch

    passes.hidden = with_logits
    try:
        yield
    finally:
        passes.hidden = hidden


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--preset", default="tiny", help="one with a model for a CPU (default tiny)")
    parser.add_argument("--tasks", type=int, default=16, help="tasks of the phase (default 16)")
    parser.add_argument("--growth", type=int, nargs="*", default=[1, 2, 4], help="times the tasks (default 1 2 4)")
    parser.add_argument("--threads", type=int, default=2, help="of torch (default 2)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    base = preset(options.preset)
    # every earlier success counts, so that the size of the buffer and not the base's taste decides
    config = dataclasses.replace(base, replay=ReplayConfig(ppl_min=1.0, ppl_max=float("inf")))

    def measured(wiring: Callable[..., Meter], tasks: int) -> Meter:
        shared = SharedBase.load(config.model, config.lora, device="cpu")
        with tempfile.TemporaryDirectory() as folder:
            return wiring(shared, config, tasks, Path(folder))

    result: dict[str, object] = {}
    for name, wiring in (("ours", ours), ("naive", naive)):
        meter = measured(wiring, options.tasks)
        result[name] = meter.stages
        print(f"{name}: {meter.total('forward'):,} forward and {meter.total('trained'):,} trained tokens")
        for stage, numbers in meter.stages.items():
            print(f"  {stage:10}", ", ".join(f"{key} {value:,}" for key, value in numbers.items()))
    total = {name: sum(numbers["forward"] for numbers in result[name].values()) for name in ("ours", "naive")}
    result["forward_ratio"] = round(total["ours"] / total["naive"], 3)
    print(f"forward tokens, ours / naive: {result['forward_ratio']} (aim: at most 0.667)")
    flat = {}
    for times in options.growth:
        meter = measured(ours, options.tasks * times)
        flat[times] = round(meter.total("seconds") / (options.tasks * times), 3)
        print(f"{options.tasks * times} tasks: {flat[times]} s a task")
    result["seconds_a_task"] = flat
    print(json.dumps(result))


if __name__ == "__main__":
    main()
