"""A source of tasks without sites or browser: pages are short texts, a hash of what was said decides the outcome."""

import dataclasses
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from webrl_lite import phase
from webrl_lite.actions import Action, format_reply
from webrl_lite.config import (
    ActorConfig,
    Config,
    CriticConfig,
    CurriculumConfig,
    EvalConfig,
    LoraConfig,
    ModelConfig,
    OrmConfig,
    RolloutConfig,
    SftConfig,
)
from webrl_lite.model import SharedBase
from webrl_lite.processes import be_a_helper, helpers, rank
from webrl_lite.run_folder import RunFolder
from webrl_lite.trajectory import Step, StopReason, Task, Trajectory, Verdict


def task(name: str, split: str) -> Task:
    return Task(name, ("shopping",), f"Press {name}.", "__SHOPPING__/", split=split, family="shopping.press")


def page(one: Task, step: int) -> str:
    return f"@ shop/{one.task_id} | tab 0/1 | 0-720 of 720\n{one.task_id} [{step + 1}] button"


def succeeds(one: Task, replies: Sequence[str]) -> bool:
    return hashlib.sha256(repr((one.task_id, *replies)).encode()).digest()[0] % 2 == 0


class Env:
    """One episode of two replies."""

    trajectory: Trajectory | None = None

    def begin(self, one: Task) -> None:
        self.task, self.steps, self.trajectory = one, [], None

    def say(self, reply: str) -> None:
        number = len(self.steps)
        self.steps.append(Step(number, page(self.task, number), "http://shop/", reply))
        if number == 1:
            known = not self.task.extra.get("no grader")
            score = float(succeeds(self.task, [step.reply for step in self.steps])) if known else None
            self.trajectory = Trajectory(
                self.task, tuple(self.steps), StopReason.EXIT, verdict=Verdict(score, mode="strict", version="1")
            )


class Batch:
    """What ``rollout`` needs of a batch of environments."""

    def __init__(self, count: int) -> None:
        self.envs = tuple(Env() for _ in range(count))

    def reset(self, tasks: Sequence[Task | None]) -> list[tuple | None]:
        started = []
        for env, one in zip(self.envs, tasks, strict=True):
            if one is not None:
                env.begin(one)
            started.append(None if one is None else ({"text": page(one, 0)}, {"task_id": one.task_id}))
        return started

    def step(self, replies: Sequence[str | None]) -> list[tuple | None]:
        results = []
        for env, reply in zip(self.envs, replies, strict=True):
            if reply is not None:
                env.say(reply)
            text = None if reply is None else page(env.task, len(env.steps))
            results.append(None if reply is None else ({"text": text}, 0.0, False, False, {}))
        return results


class Maker:
    """Makes tasks of the next free numbers."""

    name = "paper"
    at_once = 10

    def propose(self, sites: tuple[str, ...], failed: Sequence[Task], count: int, seed: str) -> list[Task]:
        first = int(hashlib.sha256(seed.encode()).hexdigest()[:6], 16)
        return [dataclasses.replace(task(f"new{first + i}", ""), task_id="") for i in range(count)]


class PaperSource:
    """Ten train tasks, three test tasks."""

    def __init__(self, config: Config) -> None:
        self.environments = Batch(config.rollout.environments)
        self.train = tuple(task(f"train{i}", "train") for i in range(10))
        self.test = tuple(task(f"test{i}", "test") for i in range(3))

    def demonstrations(self, seed: int) -> tuple[Trajectory, ...]:
        found = []
        for one in self.train[:4]:
            replies = [format_reply(Action("Click", str(i + 1))) for i in range(2)]
            steps = tuple(Step(i, page(one, i), "http://shop/", reply) for i, reply in enumerate(replies))
            found.append(Trajectory(one, steps, StopReason.EXIT, verdict=Verdict(1.0)))
        return tuple(found)

    def first_tasks(self, seed: int) -> tuple[Task, ...]:
        return self.train

    def first_pages(self, tasks: Sequence[Task]) -> list[str]:
        return [page(one, 0) for one in tasks]

    def graded(self, tasks: Sequence[Task]) -> list[Task]:
        return list(tasks)

    def can_be_done(self, one: Task) -> None:
        return None

    def generator(self, log: Path) -> tuple[Maker, object]:
        return Maker(), lambda one: (True, "")

    def score(self, episodes: Sequence[Trajectory]) -> str:
        return f"{sum(one.verdict.success for one in episodes)}/{len(episodes)}"

    def close(self) -> None:
        pass


def config(out: str | Path, **settings: object) -> Config:
    """Two phases of four tasks with the tiny base, a second or two each."""
    quick = {"learning_rate": 0.01, "batch_size": 4}
    chosen = {
        "model": ModelConfig(max_length=512),
        "lora": LoraConfig(rank=2, alpha=4),
        "sft": SftConfig(**quick),
        "orm": OrmConfig(**quick, epochs=1),
        "critic": CriticConfig(learning_rate=0.001, batch_size=4),  # V in the middle: advantages well above rounding
        "actor": ActorConfig(**quick),
        "curriculum": CurriculumConfig(phases=2, tasks_per_phase=4, value_min=0.0, value_max=1.0),
        "rollout": RolloutConfig(environments=2, max_new_tokens=4),
        "eval": EvalConfig(),
    }
    return Config(out=str(out), **(chosen | settings))


def open_paper(settings: Config, folder: RunFolder) -> phase.Run:
    shared = SharedBase.load(settings.model, settings.lora, device="cpu", seed=settings.seed)
    return phase.Run(settings, folder, shared, PaperSource(settings) if rank() == 0 else None)


def whole_run(out: str, number: int = 1) -> None:
    """Begin a run or go on with it, to its end; for processes that a test ends."""
    torch.set_num_threads(1)
    settings = config(out)
    folder = RunFolder(out)
    if rank() > 0:
        be_a_helper()
    with folder.lock():
        folder.begin(settings, resume=(folder.path / "config.json").exists())
        with helpers([sys.executable, *sys.argv], number):
            print("began", flush=True)
            phase.learn(open_paper(settings, folder))


if __name__ == "__main__":
    whole_run(sys.argv[1], *map(int, sys.argv[2:]))
