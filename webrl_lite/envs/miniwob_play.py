"""Plays MiniWoB++ by its oracles, for demonstrations and for the table of what can be done."""

from __future__ import annotations

from webrl_lite.actions import Action, format_action
from webrl_lite.envs.embedded.oracle import OracleLost, Page
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
        OracleLost: a page does not show what the oracle looks for, or goes on after its last reply.
        BrowserError: the task could not be started.
    """
    env.reset(options={"task": task})
    solution = ORACLES[task.family.removeprefix("miniwob.")](Page.of(env.observation), task.intent)
    try:
        reply = next(solution)
        while True:
            last = [step.reply for step in env.steps[1 - env.rules.equal_replies :]]
            if last == [reply] * (env.rules.equal_replies - 1):
                env.step(format_action(Action("Wait")))
            if env.trajectory is None:
                env.step(reply)
            if env.trajectory is not None:
                return env.trajectory
            reply = solution.send(Page.of(env.observation))
    except StopIteration:
        raise OracleLost(f"the page goes on after the oracle's last reply:\n{env.observation.text}") from None
