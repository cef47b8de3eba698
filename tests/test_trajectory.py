"""What is written is what is read, and a broken file names the line and the rule."""

import gzip
import json

import pytest

from webrl_lite.trajectory import (
    Step,
    StopReason,
    Task,
    TraceError,
    Trajectory,
    Verdict,
    read_jsonl,
    write_jsonl,
)

RECORD = {
    "task_id": 7,
    "sites": ["map"],
    "intent": "Find the café.",
    "start_url": "__MAP__/",
    "eval": {"eval_types": ["string_match"], "reference_answers": {"exact_match": "x"}},
    "storage_state": None,
    "string_note": "kept",
}


def make_trajectory(text: str = "page") -> Trajectory:
    step = Step(
        index=0,
        observation=text,
        url="http://x/",
        reply='exit(message="x")',
        action={"name": "Exit", "element": None, "argument": "x"},
        seconds={"act": 0.5},
        token_ids=(1, 2),
        sampler_logprobs=(-0.5, -0.25),
    )
    return Trajectory(
        task=Task.from_json(RECORD),
        steps=(step,),
        stop=StopReason.EXIT,
        answer="x",
        final_url="http://x/",
        verdict=Verdict(1.0, "strict", "1", ("exact",)),
        evidence={"reads": {"a": "b"}},
        seed=3,
    )


def test_a_trajectory_is_read_back_equal(tmp_path):
    assert write_jsonl(tmp_path / "r.jsonl", [make_trajectory(), make_trajectory("other")]) == 2
    assert list(read_jsonl(tmp_path / "r.jsonl", Trajectory)) == [make_trajectory(), make_trajectory("other")]


def test_a_compressed_file_is_read_back_equal_and_equal_items_make_equal_files(tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        assert write_jsonl(tmp_path / name, [make_trajectory("é" * 500)]) == 1
    assert list(read_jsonl(tmp_path / "a.jsonl.gz", Trajectory)) == [make_trajectory("é" * 500)]
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert json.loads(gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()))["answer"] == "x"


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-20], lambda data: b"no" + data, lambda data: data[:40] + b"x" * 40]
)
def test_a_damaged_compressed_file_is_named(tmp_path, damage):
    write_jsonl(tmp_path / "a.jsonl.gz", [make_trajectory(str(n)) for n in range(50)])
    whole = (tmp_path / "a.jsonl.gz").read_bytes()
    (tmp_path / "a.jsonl.gz").write_bytes(damage(whole))
    with pytest.raises(TraceError, match=r"a\.jsonl\.gz: a compressed file that is cut off or damaged"):
        list(read_jsonl(tmp_path / "a.jsonl.gz", Trajectory))


def test_a_task_keeps_unknown_keys_and_its_id_becomes_text():
    task = Task.from_json(RECORD)
    assert task.task_id == "7"
    assert task.extra == {"storage_state": None, "string_note": "kept"}
    assert Task.from_json(task.to_json()) == task


@pytest.mark.parametrize(
    "text",
    [
        "Größe 価格 ¥1,200 café",
        "e\u0301 \u200d zero-width",
        "مرحبا",
        "😀",
        "line\u2028separator\x0band\x85others",
        "lone \ud800 surrogate",
        "tab\tand\nnewline\r\n",
    ],
)
def test_text_keeps_its_code_points(tmp_path, text):
    """HTML-11: the trace file returns what the page held, also what some readers take for an end of line."""
    write_jsonl(tmp_path / "r.jsonl", [make_trajectory(text)])
    (read,) = read_jsonl(tmp_path / "r.jsonl", Trajectory)
    assert read.steps[0].observation == text


def test_success_is_a_score_of_exactly_one():
    """EVA-16: partial scores are no success, and an ungraded episode is neither."""
    assert [Verdict(score).success for score in (0.0, 0.1, 0.5, 0.999, 1.0, None)] == [False] * 4 + [True, False]
    assert not Verdict(None).graded
    assert Verdict(0.0).graded


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task_id": None}, "`task_id`"),
        ({"task_id": True}, "`task_id`"),
        ({"sites": []}, "task 7: `sites`"),
        ({"sites": "map"}, "task 7: `sites`"),
        ({"intent": ""}, "task 7: `intent`"),
        ({"start_url": 3}, "task 7: `start_url`"),
        ({"eval": "x"}, "task 7: `eval`"),
        ({"required_steps": "3"}, "task 7: `required_steps`"),
    ],
)
def test_a_malformed_task_is_refused_by_field(change, message):
    with pytest.raises(TraceError, match=message):
        Task.from_json({**RECORD, **change})


@pytest.mark.parametrize("line", ["{", "[]", '{"format": 1}', '{"format": 2}', '{"format": 1, "task": 3}'])
def test_a_broken_line_is_named(tmp_path, line):
    write_jsonl(tmp_path / "r.jsonl", [make_trajectory()])
    with open(tmp_path / "r.jsonl", "a") as file:
        file.write(line + "\n")
    with pytest.raises(TraceError, match=r"r\.jsonl, line 2"):
        list(read_jsonl(tmp_path / "r.jsonl", Trajectory))


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    """CKP-01: a kill or an error in mid-write must not destroy what was there."""

    def items():
        yield make_trajectory()
        raise RuntimeError("power cut")

    write_jsonl(tmp_path / "r.jsonl", [make_trajectory("old")])
    with pytest.raises(RuntimeError):
        write_jsonl(tmp_path / "r.jsonl", items())
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]
    assert json.loads((tmp_path / "r.jsonl").read_text())["steps"][0]["observation"] == "old"


def test_nan_is_refused_when_written(tmp_path):
    with pytest.raises(ValueError):
        write_jsonl(
            tmp_path / "r.jsonl",
            [Trajectory(Task.from_json(RECORD), (), StopReason.EXIT, verdict=Verdict(float("nan")))],
        )
