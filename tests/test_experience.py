"""Labelled trajectories become rows, and rows survive their file."""

import dataclasses
import json

import pytest
import tiny_models

from webrl_lite.batching import RuleError
from webrl_lite.config import Config, ModelConfig, RolloutConfig
from webrl_lite.envs.embedded.demonstrations import demonstrations
from webrl_lite.experience import Experience, collect, read_experience, write_experience
from webrl_lite.prompts import actor_prompt, prompt_hash
from webrl_lite.trajectory import Step, StopReason, Task, TraceError, Trajectory, Verdict

CONFIG = Config(model=ModelConfig(max_length=2500), rollout=RolloutConfig(max_new_tokens=40))
TASK = Task("t1", ("shopping", "map"), "Buy tea.", "__SHOPPING__")
TOKENIZER = tiny_models.tokenizer()

ROW = Experience(
    task_id="t1",
    trajectory_id="a",
    step=0,
    steps=2,
    prompt=(5, 6),
    action=(7, 1),
    reward=1.0,
    source="current",
    site="shopping",
    phase=3,
    ref_logprob=-0.30000001192092896,
    perplexity=1.1618342,
    value=0.25,
    advantage=-0.5,
    next_prompt=(5, 6, 7),
)


def step(index: int, **settings: object) -> Step:
    defaults = {"observation": f"page {index}", "url": "u", "reply": f"do({index})", "token_ids": (100 + index, 1)}
    return Step(index, **(defaults | settings))


def trajectory(name: str = "a", steps: tuple[Step, ...] | None = None, score: float | None = 1.0, **settings: object):
    steps = (step(0), step(1)) if steps is None else steps
    defaults = {"stop": StopReason.EXIT, "verdict": Verdict(score), "trajectory_id": name}
    return Trajectory(TASK, steps, **(defaults | settings))


def rows_of(*trajectories: Trajectory, **settings: object) -> tuple[Experience, ...]:
    return collect(trajectories, TOKENIZER, CONFIG, **({"phase": 2} | settings)).rows


def prompt_of(replies: list[str], page: str) -> tuple[int, ...]:
    return actor_prompt(
        TOKENIZER, "chat", intent="Buy tea.", replies=replies, page=page, max_length=2500, max_new_tokens=40
    ).ids


# From trajectories --------------------------------------------------------------------------------------------------


def test_each_step_is_a_row_with_the_trajectory_s_outcome():
    first, second = rows_of(trajectory())
    assert (first.step, first.steps, second.step, second.steps) == (0, 2, 1, 2)
    assert (first.reward, second.reward) == (1.0, 1.0)
    assert (first.task_id, first.trajectory_id, first.site, first.phase) == ("t1", "a", "shopping", 2)
    assert (first.source, first.ref_logprob, first.value, first.advantage) == ("current", None, None, None)


def test_prompts_are_those_of_the_rollout_and_actions_keep_their_sampled_ids():
    """TRN-08: the ids are not those that the reply's text would be encoded as."""
    first, second = rows_of(trajectory())
    assert first.prompt == prompt_of([], "page 0")
    assert second.prompt == prompt_of(["do(0)"], "page 1")
    assert (first.action, second.action) == ((100, 1), (101, 1))
    assert first.sample.row == first.prompt + (100, 1)


def test_a_failure_is_kept_with_reward_0_and_a_partial_score_is_no_success():
    assert [row.reward for row in rows_of(trajectory(score=0.0))] == [0.0, 0.0]
    assert [row.reward for row in rows_of(trajectory(score=0.5))] == [0.0, 0.0]


def test_an_environment_s_fault_and_a_missing_grade_give_no_rows():
    broken = trajectory("b", stop=StopReason.ENV_ERROR, env_error="crashed", score=0.0)
    collected = collect(
        [broken, trajectory("c", score=None), trajectory("d", verdict=None), trajectory("e")],
        TOKENIZER,
        CONFIG,
        phase=1,
    )
    assert {row.trajectory_id for row in collected.rows} == {"e"}
    assert (collected.env_errors, collected.ungraded, collected.empty_actions) == (1, 2, 0)


def test_steps_without_any_action_are_dropped_and_counted():
    """The releases make an early stop a step with an empty action."""
    steps = (step(0), step(1), step(2, reply="", token_ids=()))
    collected = collect([trajectory(steps=steps)], TOKENIZER, CONFIG, phase=1)
    assert [(row.step, row.steps) for row in collected.rows] == [(0, 2), (1, 2)]
    assert collected.empty_actions == 1


def test_an_empty_reply_that_was_sampled_is_an_action():
    rows = rows_of(trajectory(steps=(step(0, reply="", token_ids=(1,)), step(1))))
    assert [row.action for row in rows] == [(1,), (101, 1)]
    assert rows[1].prompt == prompt_of([""], "page 1")


def test_a_sampled_reply_without_ids_is_refused():
    with pytest.raises(RuleError, match="`token_ids` of step 1 of trajectory a are missing"):
        rows_of(trajectory(steps=(step(0), step(1, token_ids=()))))


def test_a_prompt_must_be_the_one_that_was_sampled_from():
    good = step(0, prompt_hash=prompt_hash(prompt_of([], "page 0")))
    assert len(rows_of(trajectory(steps=(good,)))) == 1
    with pytest.raises(RuleError, match="step 0 of trajectory a is not the one it was sampled from"):
        rows_of(trajectory(steps=(dataclasses.replace(good, observation="another page"),)))


@pytest.mark.parametrize("names", [("a", "a"), ("a", "")])
def test_trajectories_need_names_of_their_own(names):
    with pytest.raises(RuleError, match="`trajectory_id` must be a name used once"):
        rows_of(*(trajectory(name) for name in names))


def test_demonstrations_are_successes_whose_replies_are_tokenised_with_an_end_of_turn():
    (row, _) = rows_of(trajectory(verdict=None), source="sft", phase=0)
    assert (row.reward, row.source, row.phase) == (1.0, "sft", 0)
    assert row.action == (*TOKENIZER.encode("do(0)", add_special_tokens=False), 1)
    assert row.prompt == prompt_of([], "page 0")


def test_the_demonstrations_of_the_package_are_rows_although_they_have_no_names():
    collected = collect(demonstrations()[:3], TOKENIZER, CONFIG, phase=0, source="sft")
    assert [row.trajectory_id for row in collected.rows] == [
        f"shopping.price.train.{i}@sft" for i in range(3) for _ in range(2)
    ]
    assert {row.reward for row in collected.rows} == {1.0}
    assert rows_of(trajectory("mine"), source="sft")[0].trajectory_id == "mine"


def test_a_demonstration_that_was_graded_a_failure_is_one():
    assert {row.reward for row in rows_of(trajectory(score=0.0), source="sft")} == {0.0}


def test_a_demonstration_longer_than_a_reply_stays_whole_and_its_page_is_cut():
    long = "word " * 100
    (row,) = rows_of(trajectory(steps=(step(0, reply=long, observation="page\n" * 2000),)), source="sft")
    assert row.action == (*TOKENIZER.encode(long, add_special_tokens=False), 1)
    assert len(row.action) > 40
    assert len(row.sample.row) <= 2500


def test_no_trajectories_give_no_rows():
    assert collect([], TOKENIZER, CONFIG, phase=1).rows == ()


# Files --------------------------------------------------------------------------------------------------------------


def test_rows_come_back_from_their_file_bit_for_bit(tmp_path):
    bare = dataclasses.replace(ROW, ref_logprob=None, perplexity=None, value=None, advantage=None, next_prompt=())
    path = tmp_path / "phase_03" / "experience.jsonl"
    assert write_experience(path, [ROW, bare]) == 2
    assert read_experience(path) == (ROW, bare)
    assert [p.name for p in path.parent.iterdir()] == ["experience.jsonl"]


def test_an_empty_file_has_no_rows(tmp_path):
    write_experience(tmp_path / "e.jsonl", [])
    assert read_experience(tmp_path / "e.jsonl") == ()


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "e.jsonl"
    write_experience(path, [ROW])
    with pytest.raises(ValueError):
        write_experience(path, [ROW, dataclasses.replace(ROW, advantage=float("nan"))])
    assert read_experience(path) == (ROW,)
    assert [p.name for p in tmp_path.iterdir()] == ["e.jsonl"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task_id": ""}, "`task_id` must be a non-empty text, got ''"),
        ({"trajectory_id": 4}, "`trajectory_id` must be a non-empty text, got 4"),
        ({"step": -1}, "`step` must be a whole number"),
        ({"step": True}, "`step` must be a whole number"),
        ({"step": 2}, r"`step` must be below `steps` \(2\), got 2"),
        ({"steps": 0}, "`steps` must be a whole number of at least 1"),
        ({"prompt": []}, "`prompt` must be a non-empty list of token ids"),
        ({"prompt": "text"}, "`prompt` must be"),
        ({"action": [1, "2"]}, "`action` must be"),
        ({"action": [1, -2]}, "`action` must be"),
        ({"action": [1, True]}, "`action` must be"),
        ({"action": [1.0]}, "`action` must be"),
        ({"reward": 0.5}, "`reward` must be 0 or 1, got 0.5"),
        ({"reward": None}, "`reward` must be 0 or 1"),
        ({"source": "old"}, "`source` must be one of current, replay, sft, got 'old'"),
        ({"site": None}, "`site` must be a text"),
        ({"phase": 1.5}, "`phase` must be"),
        ({"ref_logprob": 0.1}, "`ref_logprob` must be a number of at most 0, or null"),
        ({"perplexity": 0.9}, "`perplexity` must be"),
        ({"perplexity": float("inf")}, "`perplexity` must be"),
        ({"value": 1.5}, r"`value` must be a number in \[0, 1\], or null"),
        ({"advantage": float("nan")}, "`advantage` must be"),
        ({"advantage": 10**400}, "`advantage` must be"),
        ({"next_prompt": None}, "`next_prompt` must be"),
        ({"colour": 1}, "`colour` is no field"),
    ],
)
def test_a_bad_field_is_named_with_file_and_line(tmp_path, change, message):
    path = tmp_path / "e.jsonl"
    path.write_text(json.dumps(ROW.to_json()) + "\n" + json.dumps(ROW.to_json() | change) + "\n")
    with pytest.raises(TraceError, match=rf"e.jsonl, line 2: {message}"):
        read_experience(path)


@pytest.mark.parametrize(
    ("line", "message"), [("{", "line 1"), ("[]", "one JSON object"), ("{}", "`task_id` is missing")]
)
def test_a_line_that_is_no_row_is_named(tmp_path, line, message):
    path = tmp_path / "e.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(TraceError, match=message):
        read_experience(path)
