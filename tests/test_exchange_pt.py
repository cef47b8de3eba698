"""The authors' ``.pt`` files become trajectories and come back; nothing of a pickle is run; steps become token ids."""

import pathlib
import pickle

import numpy
import pytest
import tiny_models
import torch
from test_exchange import ASSISTANT, CLICK, EXIT, ITEMS, USER, first, played, put, records, second
from test_prompts import llama3, text

from webrl_lite.config import preset
from webrl_lite.exchange import FORMS, main
from webrl_lite.exchange_pt import read_pt, read_pt_steps, samples, write_pt
from webrl_lite.exchange_steps import read_conversation_trajectories, read_conversations, step_prompt
from webrl_lite.experience import collect
from webrl_lite.prompts import actor_prompt
from webrl_lite.trajectory import StopReason, TraceError, Trajectory, read_jsonl, write_jsonl


def pt_step(observation, following, action, *, done, reward=1.0, intent="Buy tea.", **more):
    step = {"observation": observation, "next_observation": following, "task": intent, "reward": reward}
    return {**step, "done": done, "action": action, "trajectory_reward": int(reward >= 0.5), **more}


PT = [
    pt_step(first("P0"), second("P1"), CLICK, done=False),
    pt_step(
        second("P1"),
        # the release lets a further round follow on the same page
        f"Task Instruction: Buy tea.\n\nRound 0\n\n{USER}Buy tea.\n\n{ASSISTANT}{CLICK}\n\n"
        f"Round 1\n\n{USER}** Simplified html **\n\n{ASSISTANT}{EXIT}\n\nRound 2\n\n{USER}P1\n\n{ASSISTANT}",
        EXIT,
        done=True,
    ),
]


def test_steps_in_any_order_become_rows_of_token_ids(tmp_path):
    path = put(tmp_path / "c.jsonl", [ITEMS[1], ITEMS[0]])
    limits = {"max_length": 4000, "max_new_tokens": 100}
    rows = list(samples(read_conversations(path), llama3(), "webrl-llama3", **limits))
    assert [llama3().decode(row.row) for row in rows] == [
        f"<|begin_of_text|>{second('P1')}{EXIT}<|eot_id|>",
        f"<|begin_of_text|>{first('P0')}{CLICK}<|eot_id|>",
    ]


def test_the_text_of_a_prompt_is_the_one_that_the_rollout_has():
    replies = [CLICK, 'do(action="Scroll Down")']
    for page in ("P", "x" * 20_000):
        prompt = actor_prompt(
            llama3(), "webrl-llama3", intent="Buy tea.", replies=replies, page=page, max_length=50_000, max_new_tokens=9
        )
        assert text("webrl-llama3", prompt) == "<|begin_of_text|>" + step_prompt("Buy tea.", replies, page)
    # 15,872 characters for history and page together
    history = len(step_prompt("Buy tea.", replies, "")) - len(step_prompt("Buy tea.", [], ""))
    assert step_prompt("Buy tea.", replies, "x" * 20_000).count("x") == 15_872 - history


def test_imported_demonstrations_are_rows_of_experience(tmp_path):
    path = put(tmp_path / "c.json", ITEMS[:2])
    demonstrations = read_conversation_trajectories(path)
    rows = collect(demonstrations, tiny_models.tokenizer(), preset("tiny"), phase=0, source="sft").rows
    assert [(row.step, row.steps, row.reward) for row in rows] == [(0, 2, 1.0), (1, 2, 1.0)]


def test_every_form_runs_there_and_back(tmp_path, capsys):
    put(tmp_path / "info.json", [{"intent": "Buy tea.", "sites": ["shopping"], "start_url": "__SHOPPING__"}])
    put(tmp_path / "c.json", ITEMS[:2])
    ran = []

    def run(form, source, target, *more):
        ran.append(form)
        assert main([form, str(tmp_path / source), str(tmp_path / target), *more]) == 0, capsys.readouterr().err

    known = ("--tasks", str(tmp_path / "info.json"))
    run("from-conversations", "c.json", "t.jsonl", *known)
    run("to-conversations", "t.jsonl", "c2.json")
    run("to-pt", "t.jsonl", "t.pt")
    run("from-pt", "t.pt", "t2.jsonl", *known)
    run("to-traces", "t2.jsonl", "folder")
    run("to-fixed-traces", "t2.jsonl", "folder")
    run("from-traces", "folder", "t3.jsonl", *known)
    run("from-tasks", "info.json", "tasks.jsonl")
    run("to-info", "tasks.jsonl", "info2.json")
    run("to-tasks", "tasks.jsonl", "failed.jsonl")
    assert sorted(ran) == sorted(FORMS)
    assert records(tmp_path / "c2.json") == ITEMS[:2]
    assert records(tmp_path / "info2.json") == records(tmp_path / "info.json")
    assert records(tmp_path / "failed.jsonl") == [{"web": "shopping", "task": "Buy tea."}]
    (episode,) = read_jsonl(tmp_path / "t3.jsonl", Trajectory)
    assert (episode.task.sites, episode.verdict.score) == (("shopping",), 1.0)
    assert "c2.json: 2 steps; 0 trajectories left out" in capsys.readouterr().out


# Trajectories in .pt files ------------------------------------------------------------------------------------------


def test_a_pt_file_becomes_trajectories_and_comes_back(tmp_path):
    failed = [pt_step(first("Q"), second("Q", reply="no"), "no", done=True, reward=0, note="kept")]
    torch.save([PT, [], failed], tmp_path / "webarena_lite_sft.pt")
    episodes = list(read_pt(tmp_path / "webarena_lite_sft.pt"))
    assert [(e.trajectory_id, e.verdict.score) for e in episodes] == [
        ("webarena_lite_sft.0", 1.0),
        ("webarena_lite_sft.2", 0.0),
    ]
    assert [step.observation for step in episodes[0].steps] == ["P0", "P1"]
    assert (episodes[0].stop, episodes[0].answer) == (StopReason.EXIT, "42 €")
    assert episodes[0].evidence == {}  # all of it is told by the steps
    assert write_jsonl(tmp_path / "t.jsonl", episodes) == 2
    assert write_pt(tmp_path / "out.pt", read_jsonl(tmp_path / "t.jsonl", Trajectory)) == (2, 0)
    assert torch.load(tmp_path / "out.pt", weights_only=True) == [PT, failed]


def test_a_flat_file_with_numpy_and_torch_numbers_is_read_step_by_step(tmp_path):
    rows = [
        {**PT[1], "mc_return": numpy.float64(1.0), "rank_score": torch.tensor([0.75])},
        {**PT[0], "mc_return": numpy.float64(1.9), "rank_score": 0.5},
    ]
    torch.save(rows, tmp_path / "p_filter.pt")
    steps = list(read_pt_steps(tmp_path / "p_filter.pt"))
    assert [(step.page, step.reply, step.extra["mc_return"], step.extra["rank_score"]) for step in steps] == [
        ("P1", EXIT, 1.0, 0.75),
        ("P0", CLICK, 1.9, 0.5),
    ]
    (row, _) = samples(steps, llama3(), "webrl-llama3", max_length=4000, max_new_tokens=100)
    assert llama3().decode(row.prompt) == f"<|begin_of_text|>{second('P1')}"
    with pytest.raises(TraceError, match="holds single steps"):
        list(read_pt(tmp_path / "p_filter.pt"))


class Evil:
    def __reduce__(self):
        import os

        return os.system, ("touch /tmp/webrl_lite_was_run",)


def test_a_pickle_that_would_run_code_is_refused_and_not_run(tmp_path):
    torch.save([[{**PT[0], "task": Evil()}]], tmp_path / "evil.pt")
    (tmp_path / "bare.pt").write_bytes(pickle.dumps([Evil()]))
    for name in ("evil.pt", "bare.pt"):
        with pytest.raises(TraceError, match="restricted loader refuses the file"):
            list(read_pt(tmp_path / name))
    assert not pathlib.Path("/tmp/webrl_lite_was_run").exists()


@pytest.mark.parametrize("content", [b"", b"not a pickle", b"PK\x03\x04 cut", "{}".encode("utf-16")])
def test_what_is_no_pt_file_is_refused(tmp_path, content):
    (tmp_path / "x.pt").write_bytes(content)
    with pytest.raises(TraceError, match=r"x\.pt: "):
        list(read_pt(tmp_path / "x.pt"))


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ({"a": 1}, "must hold a list of trajectories, got dict"),
        ([["x"]], "trajectory 0, step 0: a step must be a dict"),
        ([[{**PT[0], "action": None}]], "trajectory 0, step 0: `action` must be a text, got None"),
        ([PT, [{**PT[0], "done": 1}]], "trajectory 1, step 0: `done` must be true or false"),
        ([[{**PT[0], "reward": float("nan")}]], "`reward` must be a text, a number"),
        ([[{**PT[0], "observation": "x"}]], "`observation`: a prompt must have the authors' form"),
        ([[{**PT[0], "task": "Buy milk."}]], "`task` is 'Buy milk.', but the prompt's is 'Buy tea.'"),
        ([PT[1:]], "the step has 1 earlier replies"),
        ([[PT[0], PT[0]]], "its steps are those of several episodes"),
    ],
)
def test_a_pt_file_of_something_else_names_the_place(tmp_path, content, rule):
    torch.save(content, tmp_path / "x.pt")
    with pytest.raises(TraceError) as caught:
        list(read_pt(tmp_path / "x.pt"))
    assert rule in str(caught.value)


def test_what_nobody_graded_does_not_become_a_failure(tmp_path):
    unevaluated = [pt_step(first("Q"), second("Q", reply="no"), "no", done=True, reward=-0.1)]
    torch.save([unevaluated], tmp_path / "x.pt")
    (episode,) = read_pt(tmp_path / "x.pt")
    assert episode.verdict.score is None
    demonstration, fault = played(), played(stop=StopReason.ENV_ERROR)
    assert write_pt(tmp_path / "y.pt", [episode, demonstration, fault]) == (1, 2)
    assert [step["trajectory_reward"] for step in torch.load(tmp_path / "y.pt")[0]] == [1, 1]
