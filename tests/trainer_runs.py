"""Small training runs that tests start in processes of their own; also a script for ``accelerate launch``."""

import gc
import json
import multiprocessing.connection
import sys
from pathlib import Path

import torch
from tiny_models import load, stir
from transformers import TrainerCallback

from webrl_lite.critic import CriticArguments, CriticTrainer, State
from webrl_lite.model import Sample, SharedBase
from webrl_lite.sft import SftArguments, SftTrainer

gc.freeze()  # every run collects garbage once, and what was imported so far is none

ROWS = [
    Sample(tuple(range(20 + i, 30 + 2 * i)), tuple(50 + (5 * i + j) % 90 for j in range(i % 4)) + (1,))
    for i in range(11)
]
"""Eleven steps with prompts of 10 to 20 tokens and actions of 1 to 4."""
STATES: list[State] = [(row.prompt, i % 3 == 0) for i, row in enumerate(ROWS)]


def arguments(folder: Path, **settings: object) -> SftArguments:
    """Arguments for ``ROWS``: batches of 4, 4 and 3."""
    chosen = {"batch_size": 4, "learning_rate": 0.01, "max_grad_norm": 100.0, "disable_tqdm": True, "use_cpu": True}
    return SftArguments(output_dir=str(folder), **(chosen | settings))


def sft(folder: Path, shared: SharedBase | None = None, **settings: object) -> SftTrainer:
    """A trainer that is ready to ``fit``."""
    return SftTrainer(shared or load(), arguments(folder, **settings), ROWS)


class _Began(TrainerCallback):
    """Tells the parent when training begins."""

    def __init__(self, pipe: multiprocessing.connection.Connection) -> None:
        self.pipe = pipe

    def on_step_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
        if self.pipe is not None:
            self.pipe.send("began")
            self.pipe = None


def long_run(folder: Path, pipe: multiprocessing.connection.Connection | None = None) -> None:
    """Sixty updates with a checkpoint after each; a parent may end it at any moment and call again."""
    trainer = sft(folder, num_train_epochs=20, save_steps=1, weight_decay=0.01, max_grad_norm=1.0)
    if pipe is not None:
        trainer.add_callback(_Began(pipe))
    trainer.fit()


def two_trainers(folder: Path) -> None:
    """What ``accelerate launch`` starts in every process: the critic, then the actor of one base."""
    shared = load()
    stir(shared, "actor", "critic")
    settings = {"batch_size": 5, "num_train_epochs": 2, "learning_rate": 0.001, "use_cpu": True, "disable_tqdm": True}
    settings |= {"tokens_per_micro_batch": 30, "weight_decay": 0.1}  # 11 rows: updates of 5, 5 and 1
    critic = CriticTrainer(shared, CriticArguments(output_dir=str(folder / "critic"), **settings), STATES)
    critic.fit()
    actor = SftTrainer(shared, SftArguments(output_dir=str(folder / "sft"), **settings), ROWS)
    actor.fit()
    if actor.is_world_process_zero():
        (folder / "processes.json").write_text(json.dumps(actor.args.world_size), encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    two_trainers(Path(sys.argv[1]))
