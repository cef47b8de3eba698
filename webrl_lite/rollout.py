"""Rollouts: many environments, one policy that answers for all of them at once.

Reads tasks; gives trajectories, in the order of the tasks. A policy is any callable from ``Turn``s to ``Said``s, so the
actor, the bare base, a served model and a scripted agent take each other's place. All environments that wait for a
reply are answered in one batch; an environment whose episode has ended gets the next task at once.

What a reader may rely on:

* a reply depends on the seed, the task, the try and the step, not on what else is in the batch;
* the token ids that were sampled are kept, with their log-probabilities and the prompt's hash, and only these are ever
  scored again;
* an episode that the environment failed is played again, and if it fails once more it comes back as an environment
  error, which no trainer takes for a failure.

Source: paper Section 2.3 and Table 4 (temperature 1). The released code plays six workers on ranges of tasks
(``wa_parallel_run_webrl.sh``) and writes text only, which it tokenizes again for training.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from webrl_lite.config import Config
from webrl_lite.envs.web_env import WebEnvBatch
from webrl_lite.model import SharedBase
from webrl_lite.prompts import prompt_hash, reply_text, state_ids, stop_ids
from webrl_lite.trajectory import Step, StopReason, Task, Trajectory


@dataclass(frozen=True)
class Turn:
    """What a policy is asked: one environment's page, and how it came there."""

    task: Task
    replies: tuple[str, ...]
    """What the policy said before in this episode."""
    page: str
    """Text of the page now."""
    seed: int
    """For sampling; the same for the same run, task, try and step."""


@dataclass(frozen=True)
class Said:
    """What a policy answers."""

    text: str
    """The reply, as the environment takes it."""
    token_ids: tuple[int, ...] = ()
    """Ids as sampled, the end-of-turn token included; empty if the policy has none."""
    logprobs: tuple[float, ...] = ()
    """One a token, in nats, under the policy at temperature 1."""
    prompt_hash: str = ""
    """Names the prompt that was read (``prompts.prompt_hash``)."""


Policy = Callable[[Sequence[Turn]], Sequence[Said]]
"""Answers any number of turns at once, in their order."""


class ModelPolicy:
    """A role of the shared base as a policy."""

    def __init__(
        self, shared: SharedBase, config: Config, *, role: str = "actor", temperature: float | None = None
    ) -> None:
        """Take a role.

        Args:
            shared: the base.
            config: gives template, lengths and sampling.
            role: which adapter acts.
            temperature: 0 is greedy; None: ``rollout.temperature``.
        """
        self.shared, self.config, self.role = shared, config, role
        self.temperature = config.rollout.temperature if temperature is None else temperature
        self.stops = stop_ids(shared.tokenizer, config.model.template)

    def __call__(self, turns: Sequence[Turn]) -> list[Said]:
        """Sample one reply a turn.

        Raises:
            PromptError: a task that does not fit into ``model.max_length`` even without its page.
        """
        model, rollout, tokenizer = self.config.model, self.config.rollout, self.shared.tokenizer
        prompts = [
            state_ids(tokenizer, self.config, intent=turn.task.intent, replies=turn.replies, page=turn.page)
            for turn in turns
        ]
        with self.shared.role(self.role):
            sampled = self.shared.generate(
                prompts,
                temperature=self.temperature,
                top_p=rollout.top_p,
                max_new_tokens=rollout.max_new_tokens,
                stop_ids=self.stops,
                seeds=[turn.seed for turn in turns],
            )
        return [
            Said(reply_text(tokenizer, model.template, one.token_ids), one.token_ids, one.logprobs, prompt_hash(ids))
            for ids, one in zip(prompts, sampled, strict=True)
        ]


@dataclass
class _Episode:
    """A task under way in one environment."""

    index: int
    task: Task
    attempt: int = 0
    page: str = ""
    said: list[Said] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)


def rollout(
    tasks: Sequence[Task],
    environments: WebEnvBatch,
    policy: Policy,
    *,
    seed: int,
    name: str = "",
    retries: int = 1,
) -> Iterator[Trajectory]:
    """Play tasks and yield their trajectories, in the order of the tasks, as soon as all before have ended.

    Args:
        tasks: what to play; a task may stand there several times.
        environments: N environments; N episodes run at once.
        policy: answers all waiting environments in one call.
        seed: of the whole rollout.
        name: what the trajectories are told to come from, such as a role's version.
        retries: how often an episode that the environment failed is played again.

    Raises:
        ValueError: the policy gave more or fewer answers than it had turns.
    """
    waiting = [_Episode(index, task) for index, task in enumerate(tasks)][::-1]
    playing: list[_Episode | None] = [None] * len(environments.envs)
    ended: dict[int, Trajectory] = {}
    following = 0
    copies = _copies(tasks)
    while waiting or any(playing):
        _fill(environments, playing, waiting, ended, retries)
        active = [(i, episode) for i, episode in enumerate(playing) if episode is not None]
        if active:
            _turn(environments, policy, active, seed, copies)
        for i, episode in active:
            trajectory = environments.envs[i].trajectory
            if trajectory is not None:
                playing[i] = None
                _end(episode, trajectory, waiting, ended, retries)
        while following in ended:
            trajectory = ended.pop(following)
            own = f"{trajectory.task.task_id}#{copies[following]}"
            yield dataclasses.replace(trajectory, seed=seed, policy=name, trajectory_id=own)
            following += 1


def _copies(tasks: Sequence[Task]) -> list[int]:
    """Return how often each task stood there before: 0 for the first time."""
    seen: dict[str, int] = {}
    copies = []
    for task in tasks:
        copies.append(seen.get(task.task_id, 0))
        seen[task.task_id] = copies[-1] + 1
    return copies


def _fill(
    environments: WebEnvBatch,
    playing: list[_Episode | None],
    waiting: list[_Episode],
    ended: dict[int, Trajectory],
    retries: int,
) -> None:
    """Give every free environment a task, until all play or none waits."""
    while waiting and None in playing:
        fresh: list[_Episode | None] = [waiting.pop() if episode is None and waiting else None for episode in playing]
        started = environments.reset([episode.task if episode else None for episode in fresh])
        for i, (episode, result) in enumerate(zip(fresh, started, strict=True)):
            if episode is None:
                continue
            values, info = result
            if "env_error" in info:
                _end(episode, environments.envs[i].trajectory, waiting, ended, retries)
            else:
                episode.page = values["text"]
                playing[i] = episode


def _turn(
    environments: WebEnvBatch,
    policy: Policy,
    active: Sequence[tuple[int, _Episode]],
    seed: int,
    copies: Sequence[int],
) -> None:
    """Let the policy answer all environments that play, and carry the replies out."""
    turns = [
        Turn(
            episode.task,
            tuple(said.text for said in episode.said),
            episode.page,
            turn_seed(seed, episode.task.task_id, copies[episode.index], episode.attempt, len(episode.said)),
        )
        for _, episode in active
    ]
    begin = time.perf_counter()
    answers = list(policy(turns))
    if len(answers) != len(turns):
        raise ValueError(f"`policy` must answer every turn once, got {len(answers)} answers to {len(turns)} turns.")
    share = (time.perf_counter() - begin) / len(turns)
    replies: list[str | None] = [None] * len(environments.envs)
    for (i, episode), said in zip(active, answers, strict=True):
        episode.said.append(said)
        episode.seconds.append(share)
        replies[i] = said.text
    results = environments.step(replies)
    for i, episode in active:
        episode.page = results[i][0]["text"]


def _end(
    episode: _Episode, trajectory: Trajectory, waiting: list[_Episode], ended: dict[int, Trajectory], retries: int
) -> None:
    """File an ended episode; one that the environment failed is put in front of the queue while tries are left."""
    if trajectory.stop is StopReason.ENV_ERROR and episode.attempt < retries:
        waiting.append(_Episode(episode.index, episode.task, episode.attempt + 1))
        return
    steps = tuple(
        _with_sample(step, said, seconds)
        for step, said, seconds in zip(trajectory.steps, episode.said, episode.seconds, strict=True)
    )
    ended[episode.index] = dataclasses.replace(trajectory, steps=steps)


def _with_sample(step: Step, said: Said, seconds: float) -> Step:
    return dataclasses.replace(
        step,
        token_ids=said.token_ids,
        sampler_logprobs=said.logprobs,
        prompt_hash=said.prompt_hash,
        seconds={**step.seconds, "policy": seconds},
    )


def turn_seed(seed: int, task_id: str, copy: int, attempt: int, step: int) -> int:
    """Return the seed of one reply: 63 bits of SHA-256, so that neighbours have nothing to do with each other."""
    digest = hashlib.sha256(f"{seed}:{task_id}:{copy}:{attempt}:{step}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
