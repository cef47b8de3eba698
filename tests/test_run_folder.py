"""A run's folder: what is done stays done, and one process works in it."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from webrl_lite import run_folder
from webrl_lite.config import ActorConfig, Config
from webrl_lite.run_folder import RunError, RunFolder, flat, write_json


def begun(path: Path, **settings: object) -> RunFolder:
    folder = RunFolder(path)
    folder.begin(Config(**settings), resume=False)
    return folder


def stages(path: Path) -> list[dict]:
    return [json.loads(line) for line in (path / "stages.jsonl").read_text().splitlines()]


# Settings -----------------------------------------------------------------------------------------------------------


def test_the_settings_come_back_equal(tmp_path):
    chosen = Config(seed=3, actor=ActorConfig(beta=0.5))
    folder = RunFolder(tmp_path / "run")
    folder.begin(chosen, resume=False)
    assert folder.config() == chosen


def test_a_run_is_not_begun_twice(tmp_path):
    begun(tmp_path / "run")
    with pytest.raises(RunError, match=r"--resume .*/run"):
        begun(tmp_path / "run")


def test_going_on_with_other_settings_names_those_that_differ(tmp_path):
    """CKP-08: before any work, with both values."""
    folder = begun(tmp_path / "run")
    with pytest.raises(RunError) as raised:
        folder.begin(Config(seed=1, actor=ActorConfig(beta=0.5)), resume=True)
    assert "`seed` was 0 and is 1" in str(raised.value) and "`actor.beta` was 1.0 and is 0.5" in str(raised.value)
    assert "actor.lam" not in str(raised.value)


def test_a_harmless_change_is_allowed(tmp_path):
    begun(tmp_path / "run").begin(Config(out="elsewhere", report_to="tensorboard"), resume=True)


@pytest.mark.parametrize("content", [None, "", "{", '{"seed": -1}', '{"sed": 1}', "[]"])
def test_a_folder_without_readable_settings_is_refused(tmp_path, content):
    """CLI-06: no run, half a file, and settings of another version."""
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match=r"holds no run|cannot be read"):
        RunFolder(tmp_path).begin(Config(), resume=True)


def test_a_file_where_the_folder_is_due_is_refused(tmp_path):
    """CLI-06."""
    (tmp_path / "run").write_text("")
    with pytest.raises(RunError, match="must be a folder that can be written"):
        begun(tmp_path / "run")


def test_settings_by_their_paths():
    assert flat({"a": {"b": 1, "c": {"d": (2, 3)}}, "e": None}) == {"a.b": 1, "a.c.d": [2, 3], "e": None}


# Stages -------------------------------------------------------------------------------------------------------------


def test_a_stage_runs_once(tmp_path):
    folder = begun(tmp_path / "run")
    calls = []

    def work():
        calls.append(1)
        (tmp_path / "result").write_text("done")
        return {"tasks": 3}

    for _ in range(2):
        folder.once("tasks", tmp_path / "result", work)
    assert calls == [1]
    (line,) = stages(tmp_path / "run")
    assert line["stage"] == "tasks" and line["tasks"] == 3 and line["seconds"] < 5


def test_a_stage_that_fails_is_not_done_and_leaves_earlier_ones(tmp_path):
    """CKP-05: a full disk in the middle of a stage."""
    folder = begun(tmp_path / "run")
    folder.once("first", tmp_path / "a", lambda: (tmp_path / "a").write_text("a") and None)

    def full():
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        folder.once("second", tmp_path / "b", full)
    assert [line["stage"] for line in stages(tmp_path / "run")] == ["first"]
    assert (tmp_path / "a").read_text() == "a"
    folder.once("second", tmp_path / "b", lambda: (tmp_path / "b").write_text("b") and None)
    assert (tmp_path / "b").read_text() == "b"


def test_too_little_space_is_said_before_the_work(tmp_path, monkeypatch):
    """CKP-05: an early warning."""
    folder = begun(tmp_path / "run")
    monkeypatch.setattr(run_folder, "LEAST_SPACE", 2**60)
    with pytest.raises(RunError, match=r"tasks needs .* MiB of free disk.*--resume"):
        folder.once("tasks", tmp_path / "a", lambda: pytest.fail("worked"))


def test_a_stage_without_its_result_is_a_fault_of_ours(tmp_path):
    with pytest.raises(RunError, match="fault of the program"):
        begun(tmp_path / "run").once("tasks", tmp_path / "a", dict)


def test_progress_is_told_with_what_was_counted(tmp_path):
    lines = []
    folder = RunFolder(tmp_path / "run", tell=lines.append)
    folder.begin(Config(), resume=False)
    folder.once("sft", tmp_path / "a", lambda: (tmp_path / "a").write_text("a") and {"loss": 0.123456, "updates": 7})
    assert lines[0] == "[00:00] sft"
    assert lines[1].startswith("[00:00] sft: 0 s; loss 0.123, updates 7")


def test_half_a_file_never_has_the_files_name(tmp_path):
    """CKP-01: what cannot be written whole is not there, and the old one stays."""
    write_json(tmp_path / "a.json", {"x": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"x": object()})
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": 1}


# One process --------------------------------------------------------------------------------------------------------


def test_a_second_process_is_kept_out_until_the_first_one_ends(tmp_path):
    """MPR-02: and a killed one keeps nobody out."""
    script = (
        "import sys, time; from webrl_lite.run_folder import RunFolder\n"
        "with RunFolder(sys.argv[1]).lock():\n    print('in', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "run")],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent,
    )  # fmt: skip
    assert process.stdout.readline() == "in\n"
    with pytest.raises(RunError, match="another process works in"), RunFolder(tmp_path / "run").lock():
        pass
    process.kill()
    process.wait()
    with RunFolder(tmp_path / "run").lock():
        pass
