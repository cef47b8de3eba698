"""Scripted agents on the embedded tasks: the oracles, and three agents that must fail.

Every shipped task is proved by its oracle: it acts through the agent's grammar and observation, and the grader says
1. An agent that stops at once, one that always answers ``N/A`` and one that gives a wrong answer show what the
graders give away for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

from webrl_lite.actions import Action, format_action
from webrl_lite.browser import Browser
from webrl_lite.envs.embedded.backend import EmbeddedSites
from webrl_lite.envs.embedded.families import all_families
from webrl_lite.envs.embedded.oracle import OracleLost, Page, solve
from webrl_lite.envs.web_env import WebEnv
from webrl_lite.trajectory import StopReason, Task, Trajectory

AGENTS = ("oracle", "null", "na", "wrong")
"""The scripted agents: the solution, stop at once, answer ``N/A``, answer something wrong."""

Report = Callable[[Task, str, bool, str], None]
"""Called after each episode with the task, the agent, its success and a note."""


@dataclass
class Tally:
    """What the scripted agents reached."""

    tried: int = 0
    oracle: int = 0
    null: int | None = 0
    """Tasks solved by stopping at once; None where that agent was not run."""
    na: int | None = 0
    wrong: int | None = 0
    env_errors: int = 0
    steps: dict[str, int] = field(default_factory=dict)
    """Replies that the oracle needed, by task id; solved tasks only."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Task id and reason of every task that the oracle did not solve."""


def play_oracle(env: WebEnv, task: Task, *, verbose: bool = False) -> Trajectory:
    """Play one task by its family's oracle.

    Raises:
        OracleLost: a page does not show what the oracle looks for.
    """
    family = next(family for family in all_families() if family.name == task.family)
    env.reset(options={"task": task})
    solution = solve(family.oracle, Page.of(env.observation), task.instantiation_dict)
    return _play(env, solution, verbose)


def play_answer(env: WebEnv, task: Task, answer: str) -> Trajectory:
    """Play one task by stopping at once with an answer."""
    env.reset(options={"task": task})
    env.step(format_action(Action("Exit", argument=answer)))
    return env.trajectory


def _play(env: WebEnv, solution: Generator[str, Page, None], verbose: bool) -> Trajectory:
    reply = next(solution)
    while True:
        if verbose:
            print(f"{env.observation.text}\n>>> {reply}\n", flush=True)  # noqa: T201  (asked for on the command line)
        _, _, terminated, truncated, _ = env.step(reply)
        if terminated or truncated:
            return env.trajectory
        reply = solution.send(Page.of(env.observation))


def play_all(
    sites: EmbeddedSites,
    tasks: Sequence[Task],
    *,
    workers: int = 2,
    others: bool = True,
    report: Report | None = None,
    keep: Callable[[Trajectory], None] | None = None,
    verbose: bool = False,
) -> Tally:
    """Play tasks by their oracles and, if asked, by the three agents that must fail.

    Args:
        sites: the running sites.
        tasks: tasks of the embedded sites.
        workers: episodes at once, each in a world of its own.
        others: whether the null, N/A and wrong-answer agents play too.
        report: called after each episode.
        keep: called with each episode that an oracle solved, in the order of the tasks.
        verbose: print every observation and reply.

    Returns:
        The counts. An episode that the environment failed is played once more before it counts as an error.
    """
    wrong = {family.name: family.wrong for family in all_families()}
    tally = Tally() if others else Tally(null=None, na=None, wrong=None)
    agents = AGENTS if others else AGENTS[:1]
    free: SimpleQueue[WebEnv] = SimpleQueue()

    def episodes(task: Task) -> list[tuple[str, Trajectory | None, str]]:
        env = free.get()
        try:
            return [(agent, *_episode(env, task, agent, wrong[task.family], verbose)) for agent in agents]
        finally:
            free.put(env)

    with Browser() as browser:
        for worker in range(workers):
            free.put(WebEnv(sites, browser=browser, worker=worker))
        with ThreadPoolExecutor(workers) as pool:
            for task, outcomes in zip(tasks, pool.map(episodes, tasks), strict=True):
                _count(tally, task, outcomes, report)
                if keep and task.task_id in tally.steps:
                    keep(next(trajectory for agent, trajectory, _ in outcomes if agent == "oracle"))
        while not free.empty():
            free.get().close()
    return tally


def _episode(env: WebEnv, task: Task, agent: str, wrong: str, verbose: bool) -> tuple[Trajectory | None, str]:
    answers = {"null": "", "na": "N/A", "wrong": wrong}
    for _ in range(2):  # an environment fault is tried once more
        try:
            if agent == "oracle":
                trajectory = play_oracle(env, task, verbose=verbose)
            else:
                trajectory = play_answer(env, task, answers[agent])
        except OracleLost as error:
            return None, str(error)
        if trajectory.stop is not StopReason.ENV_ERROR:
            break
    return trajectory, trajectory.env_error


def _count(
    tally: Tally, task: Task, outcomes: Iterable[tuple[str, Trajectory | None, str]], report: Report | None
) -> None:
    tally.tried += 1
    for agent, trajectory, note in outcomes:
        success = bool(trajectory and trajectory.verdict and trajectory.verdict.success)
        if trajectory and trajectory.stop is StopReason.ENV_ERROR:
            tally.env_errors += 1
        elif trajectory and not success:
            errors = [step.error for step in trajectory.steps if step.error]
            note = "; ".join([*(trajectory.verdict.reasons if trajectory.verdict else ()), *errors])
        if success:
            setattr(tally, agent, getattr(tally, agent) + 1)
        if agent == "oracle" and success:
            tally.steps[task.task_id] = len(trajectory.steps)
            note = f"{len(trajectory.steps)} steps"
        elif agent == "oracle":
            tally.failures.append((task.task_id, note))
        if report:
            report(task, agent, success, note)
