"""Plays MiniWoB++ by its oracles, for demonstrations and for the table of what can be done."""

from __future__ import annotations

from webrl_lite.actions import Action, format_action
from webrl_lite.envs.embedded.oracle import Moves, OracleLost, Page
from webrl_lite.envs.miniwob_tasks import ORACLES
from webrl_lite.envs.web_env import WebEnv
from webrl_lite.trajectory import Task, Trajectory


def play_oracle(env: WebEnv, task: Task) -> Trajectory:
    """Play an instance by its page's oracle.

    Where the oracle would say the same so often that a stop rule ended the episode, a ``Wait`` is put in between.

    Args:
        env: an environment on ``MiniwobPages``.
        task: the instance.

    Raises:
        OracleLost: a page is not as the oracle expects it, or goes on after its last reply.
        BrowserError: the task could not be started.
    """
    env.reset(options={"task": task})
    solution = ORACLES[task.family.removeprefix("miniwob.")](Page.of(env.observation), task.intent)
    reply = _next(solution, None)
    while True:
        last = [step.reply for step in env.steps[1 - env.rules.equal_replies :]]
        if last == [reply] * (env.rules.equal_replies - 1):
            env.step(format_action(Action("Wait")))
        if env.trajectory is None:
            env.step(reply)
        if env.trajectory is not None:
            return env.trajectory
        reply = _next(solution, Page.of(env.observation))


def _next(solution: Moves[None], page: Page | None) -> str:
    """Return an oracle's next reply. A script that stumbles has met a page that it was not written for."""
    try:
        return solution.send(page)
    except StopIteration:
        raise OracleLost(f"the page goes on after the oracle's last reply:\n{page.text}") from None
    except OracleLost:
        raise
    except (LookupError, TypeError, ValueError, RuntimeError) as error:  # RuntimeError: nothing found inside a script
        raise OracleLost(f"the oracle stumbled ({type(error).__name__}: {error}) on:\n{page and page.text}") from error
