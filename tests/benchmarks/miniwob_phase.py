"""SFT, a judge and one phase of WebRL on a few pages of MiniWoB++ with the tiny preset, through the loop.

    python -m tests.benchmarks.miniwob_phase [--out DIR] [--tasks click-button ...]

Prints one line a stage and the success on the test seeds before and after the phase. Needs the package ``miniwob`` and
a browser; some minutes on two CPU cores.
"""

import argparse
import dataclasses
import json
from pathlib import Path

from webrl_lite import phase
from webrl_lite.config import EvalConfig, preset
from webrl_lite.evaluators import success_rate
from webrl_lite.miniwob_source import MiniwobSource
from webrl_lite.model import SharedBase
from webrl_lite.run_folder import RunFolder
from webrl_lite.trajectory import Trajectory, read_jsonl


def main() -> None:
    parser = argparse.ArgumentParser(description="One phase on MiniWoB++.")
    parser.add_argument("--out", type=Path, default=Path("runs/miniwob"))
    parser.add_argument("--tasks", nargs="+", default=["click-link", "choose-list", "enter-text"])
    parser.add_argument("--train-seeds", type=int, default=16, help="train instances of each page")
    parser.add_argument("--test-seeds", type=int, default=10, help="test instances of each page")
    parser.add_argument("--new-tasks", type=int, default=16, help="new instances in the phase")
    options = parser.parse_args()
    base = preset("tiny")
    config = dataclasses.replace(
        base,
        out=str(options.out),
        curriculum=dataclasses.replace(base.curriculum, phases=1, tasks_per_phase=options.new_tasks),
        orm=dataclasses.replace(base.orm, rollouts=24),
        eval=EvalConfig(),
        rollout=dataclasses.replace(base.rollout, environments=2),
    )
    folder = RunFolder(options.out)
    folder.begin(config, resume=False)
    shared = SharedBase.load(config.model, config.lora, seed=config.seed)
    source = MiniwobSource(
        config,
        lambda text: len(shared.tokenizer.encode(text, add_special_tokens=False)),
        tuple(shared.tokenizer.get_added_vocab()),
        tasks=options.tasks,
        train_seeds=range(options.train_seeds),
        test_seeds=range(1000, 1000 + options.test_seeds),
    )
    run = phase.Run(config, folder, shared, source)
    try:
        phase.learn(run)
    finally:
        run.close()
    for line in (options.out / "stages.jsonl").read_text(encoding="utf-8").splitlines():
        print(json.dumps(json.loads(line)))
    for k in (0, 1):
        print(f"phase {k}:", success_rate(read_jsonl(run.path(k, "evaluation.jsonl"), Trajectory)))


if __name__ == "__main__":
    main()
