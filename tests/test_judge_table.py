"""The table of judges over a run's folder."""

import hashlib
import json

import pytest
import test_released
from local_llm import says, serving

from webrl_lite import judge_table, released
from webrl_lite.config import LlmConfig, to_dict
from webrl_lite.config import preset as preset_of
from webrl_lite.orm import Judgement
from webrl_lite.run import main
from webrl_lite.run_folder import RunFolder
from webrl_lite.trajectory import Step, StopReason, Task, Trajectory, Verdict, write_jsonl

YES = Judgement(score=0.9, mass=1.0)


def episode(name: str, grader: float | None, orm: float) -> Trajectory:
    """One that the ORM labelled and, where ``grader`` is a number, a grader graded."""
    task = Task(name, ("map",), f"Find {name}.", "__MAP__/")
    evidence = {"grader": grader, "orm": {"score": orm, "mass": 1.0}}
    verdict = Verdict(float(orm > 0.5), "orm", "threshold 0.5")
    return Trajectory(task, (Step(0, "@ map", "u", "exit()"),), StopReason.EXIT, verdict=verdict, evidence=evidence)


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    config = preset_of("tiny")
    RunFolder(folder).begin(config, resume=False)
    assert json.loads((folder / "config.json").read_text())["llm"] == to_dict(config)["llm"]
    write_jsonl(folder / "phase_00" / "evaluation.jsonl", [episode("seen", 1.0, 0.0)])
    write_jsonl(
        folder / "phase_01" / "labelled.jsonl",
        [episode("a", 1.0, 0.9), episode("b", 0.0, 0.8), episode("c", 0.0, 0.1), episode("d", None, 0.9)],
    )
    one = episode("e", None, 0.2)
    opinion = {"orm": one.evidence["orm"]}
    evaluated = Trajectory(one.task, one.steps, one.stop, verdict=Verdict(1.0, "strict", "1"), evidence=opinion)
    write_jsonl(folder / "phase_01" / "evaluation.jsonl", [evaluated])
    return folder


def test_the_orm_and_a_served_judge_are_compared_on_the_same_graded_episodes(run, capsys):
    """Graded are a, b, c of the rollouts and e of the evaluation, as 1, 0, 0, 1.

    The ORM says 1, 1, 0, 0 and the judge 1, 1, 1, 1: two of four right each. d has no grade, phase 0 does not count.
    """
    with serving(says("[YES]")) as server:
        assert main(["judges", "--run", str(run), "--llm.base_url", server.url, "--llm.model", "m"]) == 0
    shown = capsys.readouterr().out
    assert "| orm | 50.0 [15.0, 85.0] | 50.0 | 50.0 | 4 | 0 |" in shown
    assert "| text (m) | 50.0 [15.0, 85.0] | 50.0 | 100.0 | 4 | 0 |" in shown
    assert "Over 4 labelled rollouts, 2 of them successes" in shown
    assert (run / "judges.md").read_text().strip() in shown
    assert len((run / "judges.jsonl").read_text().splitlines()) == 4


def test_a_dead_judge_is_a_row_of_ungraded_episodes(run, capsys):
    quick = ["--llm.base_url", "http://127.0.0.1:9/v1", "--llm.retries", "0"]
    assert main(["judges", "--run", str(run), "--judges", "text", "screenshot", "--limit", "2", *quick]) == 0
    shown = capsys.readouterr().out
    assert f"| text ({LlmConfig().model}) | - | - | - | 0 | 2 |" in shown
    assert f"| screenshot ({LlmConfig().model}) | - | - | - | 0 | 2 |" in shown


def test_another_model_is_asked_as_an_orm_with_the_instruction_of_a_file(run, capsys, monkeypatch, tmp_path):
    """A random model under the released judge's name: its row has all four episodes, in the authors' prompt."""
    model = tmp_path / "webrl-orm-llama-3.1-8b"
    model.symlink_to(test_released.folder("webrl-llama3").name)
    instruction = tmp_path / "orm.txt"
    instruction.write_text("Judge it.")
    monkeypatch.setattr(released, "ORM_SYSTEM_SHA256", hashlib.sha256(b"Judge it.").hexdigest())
    asked = []
    monkeypatch.setattr(judge_table.orm, "judge", lambda shared, prompts: asked.extend(prompts) or [YES] * len(prompts))
    words = f"judges --run {run} --judges orm --orm-model {model} --orm-instruction {instruction}"
    assert main(words.split()) == 0
    assert f"| {model} | 50.0 [15.0, 85.0] | 50.0 | 100.0 | 4 | 0 |" in capsys.readouterr().out
    text = test_released.TOKENIZERS["webrl-llama3"]().decode(asked[0])
    assert text.startswith("<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nJudge it.<|eot_id|>")


def test_a_run_without_graded_episodes_is_refused(tmp_path, capsys):
    RunFolder(tmp_path / "run").begin(preset_of("tiny"), resume=False)
    write_jsonl(tmp_path / "run" / "phase_01" / "labelled.jsonl", [episode("d", None, 0.9)])
    assert main(["judges", "--run", str(tmp_path / "run")]) == 2
    assert "`--run` must hold graded episodes" in capsys.readouterr().err
