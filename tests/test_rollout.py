"""Rollouts: every task is played once, answers come in batches, and what was sampled is kept."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import pytest

from tests import tiny_models
from webrl_lite.config import Config, ModelConfig, RolloutConfig
from webrl_lite.envs import make_env
from webrl_lite.prompts import actor_prompt, prompt_hash
from webrl_lite.rollout import ModelPolicy, Said, Turn, rollout, turn_seed
from webrl_lite.trajectory import Step, StopReason, Task, Trajectory


def task(name: str) -> Task:
    return Task(task_id=name, sites=("map",), intent=f"Do {name}.", start_url="__MAP__/")


class Batch:
    """Environments whose episodes last as many steps as the task's name has letters, with faults where told."""

    def __init__(self, count: int, faults: dict[str, int] | None = None, bad_starts: dict[str, int] | None = None):
        self.envs = [SimpleNamespace(trajectory=None, task=None, steps=[]) for _ in range(count)]
        self.faults, self.bad_starts = faults or {}, bad_starts or {}
        self.asked: list[list[str]] = []

    def reset(self, tasks):
        results = []
        for env, given in zip(self.envs, tasks, strict=True):
            if given is None:
                results.append(None)
                continue
            assert env.task is None or env.trajectory is not None, "an episode was cut off"
            env.task, env.steps, env.trajectory = given, [], None
            if self.bad_starts.get(given.task_id, 0) > 0:
                self.bad_starts[given.task_id] -= 1
                env.trajectory = Trajectory(task=given, steps=(), stop=StopReason.ENV_ERROR, env_error="no site")
                results.append(({"text": ""}, {"env_error": "no site"}))
            else:
                results.append(({"text": f"{given.task_id} page 0"}, {}))
        return results

    def step(self, replies):
        self.asked.append([reply for reply in replies if reply is not None])
        results = []
        for env, said in zip(self.envs, replies, strict=True):
            if said is None:
                results.append(None)
                continue
            page = f"{env.task.task_id} page {len(env.steps)}"
            env.steps.append(Step(len(env.steps), page, "u", said, seconds={"act": 1.0}))
            stop = None
            if self.faults.get(env.task.task_id, 0) > 0 and len(env.steps) == 2:
                self.faults[env.task.task_id] -= 1
                stop = StopReason.ENV_ERROR
            elif len(env.steps) == len(env.task.task_id):
                stop = StopReason.EXIT
            if stop is not None:
                env.trajectory = Trajectory(env.task, tuple(env.steps), stop, env_error="x" * (stop == "env_error"))
            results.append(({"text": f"{env.task.task_id} page {len(env.steps)}"}, 0.0, False, False, {}))
        return results


class Echo:
    """Answers with the task, the page's number and the seed's last digits; keeps what it was asked."""

    def __init__(self):
        self.turns: list[Turn] = []

    def __call__(self, turns):
        self.turns += turns
        return [Said(f"{t.task.task_id}-{t.page.split()[-1]}", (len(t.replies), 7), (-0.5, -0.1), "h") for t in turns]


def play(names, count, **given):
    batch = Batch(count, **{k: given.pop(k) for k in ("faults", "bad_starts") if k in given})
    policy = Echo()
    found = list(rollout([task(name) for name in names], batch, policy, seed=given.pop("seed", 3), **given))
    return found, policy, batch


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_every_task_is_played_once_and_comes_back_in_its_place(count):
    names = ["aaa", "b", "cc", "dddd", "e", "ff"]
    found, _, _ = play(names, count)
    assert [t.task.task_id for t in found] == names
    assert [len(t.steps) for t in found] == [3, 1, 2, 4, 1, 2]
    assert [s.reply for s in found[3].steps] == ["dddd-0", "dddd-1", "dddd-2", "dddd-3"]


def test_all_that_wait_are_answered_at_once_and_a_free_environment_takes_the_next_task():
    _, _, batch = play(["aaa", "b", "cc"], 2)
    assert batch.asked == [["aaa-0", "b-0"], ["aaa-1", "cc-0"], ["aaa-2", "cc-1"]]


def test_trajectories_come_as_soon_as_all_before_them_have_ended():
    batch = Batch(2)
    stream = rollout([task("a"), task("bbbb"), task("cc")], batch, Echo(), seed=0)
    assert next(stream).task.task_id == "a"
    assert len(batch.asked) == 1


def test_what_was_sampled_is_kept_with_the_step():
    found, _, _ = play(["aa"], 1, name="actor@12ab")
    first, second = found[0].steps
    assert (first.token_ids, second.token_ids) == ((0, 7), (1, 7))
    assert second.sampler_logprobs == (-0.5, -0.1) and second.prompt_hash == "h"
    assert set(second.seconds) == {"act", "policy"} and second.seconds["act"] == 1.0
    assert (found[0].policy, found[0].seed, found[0].trajectory_id) == ("actor@12ab", 3, "aa#0")


def test_the_policy_sees_its_own_replies_and_the_page_after_them():
    _, policy, _ = play(["aaa"], 1)
    assert [(t.replies, t.page) for t in policy.turns] == [
        ((), "aaa page 0"), (("aaa-0",), "aaa page 1"), (("aaa-0", "aaa-1"), "aaa page 2"),
    ]  # fmt: skip


def test_an_episode_that_the_environment_failed_is_played_again_from_its_start():
    found, policy, _ = play(["aaa", "b"], 1, faults={"aaa": 1})
    assert [t.stop for t in found] == [StopReason.EXIT, StopReason.EXIT]
    assert [s.reply for s in found[0].steps] == ["aaa-0", "aaa-1", "aaa-2"]
    assert [s.token_ids for s in found[0].steps] == [(0, 7), (1, 7), (2, 7)]
    assert len(policy.turns) == 2 + 3 + 1


def test_one_that_fails_again_comes_back_as_an_environment_error():
    found, _, _ = play(["aaa", "b"], 2, faults={"aaa": 2})
    assert [t.stop for t in found] == [StopReason.ENV_ERROR, StopReason.EXIT]
    found, _, _ = play(["aaa"], 1, faults={"aaa": 1}, retries=0)
    assert found[0].stop is StopReason.ENV_ERROR


def test_an_episode_that_could_not_start_is_tried_again():
    found, _, _ = play(["aa", "b"], 2, bad_starts={"aa": 1})
    assert [(t.stop, len(t.steps)) for t in found] == [(StopReason.EXIT, 2), (StopReason.EXIT, 1)]
    found, _, _ = play(["aa", "b"], 2, bad_starts={"aa": 2})
    assert [(t.stop, len(t.steps)) for t in found] == [(StopReason.ENV_ERROR, 0), (StopReason.EXIT, 1)]


@pytest.mark.parametrize("answers", [0, 1, 3])
def test_a_policy_that_leaves_out_or_adds_answers_is_refused(answers):
    batch = Batch(2)
    with pytest.raises(ValueError, match=f"`policy` must answer every turn once, got {answers} answers to 2 turns"):
        list(rollout([task("a"), task("b")], batch, lambda turns: [Said("x")] * answers, seed=0))
    assert batch.asked == []


def test_no_tasks_make_no_trajectories_and_ask_nothing():
    found, policy, batch = play([], 2)
    assert found == [] and policy.turns == [] and batch.asked == []


def test_seeds_depend_on_run_task_try_and_step_and_on_nothing_else():
    """The same whatever the number of environments; another one for the second try and for a copy of the task."""

    def seeds(names, count, **given):
        _, policy, _ = play(names, count, **given)
        return sorted((t.task.task_id, len(t.replies), t.seed) for t in policy.turns)

    assert seeds(["aaa", "b", "cc"], 1) == seeds(["aaa", "b", "cc"], 3) == seeds(["cc", "aaa", "b"], 2)
    assert not {s[2] for s in seeds(["aaa"], 1)} & {s[2] for s in seeds(["aaa"], 1, seed=4)}
    for given in ({"names": ["aaa", "aaa"], "count": 1}, {"names": ["aaa"], "count": 1, "faults": {"aaa": 1}}):
        all_seeds = [s[2] for s in seeds(**given)]
        assert len(set(all_seeds)) == len(all_seeds)


def test_a_seed_is_a_number_that_a_generator_takes():
    assert turn_seed(0, "a", 0, 0, 0) == 7300506022974224981
    assert all(0 <= turn_seed(n, "x", n, n, n) < 2**63 for n in range(50))


# The model as a policy ----------------------------------------------------------------------------------------------

CONFIG = dataclasses.replace(
    Config(),
    model=ModelConfig(name=str(tiny_models.folder("llama")), max_length=2048),
    rollout=RolloutConfig(max_new_tokens=12),
)


@pytest.fixture(scope="module")
def shared():
    return tiny_models.load("llama")


def turn(page: str, seed: int = 1, replies: tuple[str, ...] = ()) -> Turn:
    return Turn(task("t"), replies, page, seed)


def test_the_actor_answers_its_prompt_and_says_which(shared):
    (said,) = ModelPolicy(shared, CONFIG)([turn("@ a", replies=("do(x)",))])
    prompt = actor_prompt(
        shared.tokenizer, "chat", intent="Do t.", replies=("do(x)",), page="@ a", max_length=2048, max_new_tokens=12
    )
    assert said.prompt_hash == prompt_hash(prompt.ids)
    assert 1 <= len(said.token_ids) == len(said.logprobs) <= 12
    stopped = said.token_ids[-1] == shared.tokenizer.eos_token_id
    kept = said.token_ids[:-1] if stopped else said.token_ids
    assert said.text == shared.tokenizer.decode(kept)


def test_a_reply_does_not_depend_on_the_rest_of_the_batch(shared):
    policy = ModelPolicy(shared, CONFIG)
    alone = policy([turn("@ a", 5)])
    assert policy([turn("@ another and longer page", 6), turn("@ a", 5)])[1].token_ids == alone[0].token_ids


def test_the_seed_draws_and_temperature_0_does_not(shared):
    drawn = {ModelPolicy(shared, CONFIG)([turn("@ a", seed)])[0].token_ids for seed in range(6)}
    greedy = {ModelPolicy(shared, CONFIG, temperature=0)([turn("@ a", seed)])[0].token_ids for seed in range(6)}
    assert len(drawn) > 1 and len(greedy) == 1


def test_the_actor_plays_real_tasks(shared):
    """End to end through Chromium: whatever a random model says, the episode ends by a rule and not by a fault."""
    with make_env(split="train", count=2) as batch:
        tasks = list(batch.envs[0].tasks[:3])
        found = list(rollout(tasks, batch, ModelPolicy(shared, CONFIG), seed=0, name="random"))
    assert [t.task for t in found] == tasks
    assert all(t.stop is StopReason.PARSE_FAILURES and len(t.steps) == 5 for t in found)
    assert all(s.token_ids and s.prompt_hash for t in found for s in t.steps)
