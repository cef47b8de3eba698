"""Several processes of one run: one works, the others train along, and all end together."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from paper_source import config
from safetensors.torch import load_file

from webrl_lite import processes
from webrl_lite.processes import HelperError, helpers
from webrl_lite.run_folder import RunFolder

SCRIPT = Path(__file__).with_name("paper_source.py")
PATHS = os.pathsep.join([str(SCRIPT.parent), str(SCRIPT.parents[1])])
SLEEP = [sys.executable, "-c", "import os, time; print(os.environ['RANK'], flush=True); time.sleep(60)"]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


@pytest.fixture
def started(monkeypatch) -> list[subprocess.Popen]:
    """The helpers that were started."""
    found = []

    class Noted(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.names = kwargs["env"]
            found.append(self)

    monkeypatch.setattr(processes.subprocess, "Popen", Noted)
    return found


def test_helpers_have_ranks_of_their_own_and_end_with_the_block(started):
    with helpers(SLEEP, 3):
        assert (processes.rank(), processes.world()) == (0, 3)
        assert [one.names["RANK"] for one in started] == ["1", "2"]
        assert {one.names["MASTER_PORT"] for one in started} == {os.environ["MASTER_PORT"]}
        assert all(alive(one.pid) for one in started)
    assert not any(alive(one.pid) for one in started)
    assert (processes.rank(), processes.world()) == (0, 1) and "MASTER_PORT" not in os.environ


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_helpers_end_when_the_run_does(started, error):
    with pytest.raises(error), helpers(SLEEP, 2):
        raise error
    assert not alive(started[0].pid) and processes.world() == 1


def test_one_process_starts_none_and_a_launchers_processes_start_none(started, monkeypatch):
    with helpers(SLEEP, 1):
        pass
    monkeypatch.setenv("WORLD_SIZE", "2")
    with helpers(SLEEP, 2):
        assert processes.world() == 2
    assert started == []


def test_a_helper_that_ended_is_named_as_the_cause(started):
    """MPR: else the first process would tell of a connection that was closed."""
    with pytest.raises(HelperError, match=r"has ended \(status 3\).*--resume.*--processes 1"):
        with helpers([sys.executable, "-c", "raise SystemExit(3)"], 2):
            started[0].wait()
            raise RuntimeError("Connection closed by peer")


def test_an_error_of_the_run_itself_stays_what_it_is(started):
    with pytest.raises(RuntimeError, match="out of range"), helpers(SLEEP, 2):
        raise RuntimeError("out of range")


@pytest.mark.parametrize(("cores", "said", "expected"), [(1, None, 1), (2, None, 2), (64, None, 4), (8, "1", 1)])
def test_a_run_on_a_cpu_has_a_process_a_core_up_to_4(monkeypatch, cores, said, expected):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if said:
        monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert processes.on_a_cpu() == expected


@pytest.mark.parametrize("starter", ["1234567", None])
def test_a_helper_ends_when_its_starter_is_gone(starter):
    """Even if that one ended before the helper looked for the first time, and so is not its parent any more."""
    code = "import time; from webrl_lite.processes import be_a_helper; be_a_helper(); time.sleep(60)"
    names = {**os.environ, "PYTHONPATH": PATHS} | ({"WEBRL_LITE_STARTER": starter} if starter else {})
    begun = time.monotonic()
    if starter:
        subprocess.run([sys.executable, "-c", code], env=names)
    else:
        starting = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {code!r}]); time.sleep(3)"
        subprocess.run([sys.executable, "-c", starting], env=names, stdout=subprocess.PIPE)  # until all have ended
    assert time.monotonic() - begun < 40


# Stages -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def second(monkeypatch):
    monkeypatch.setenv("RANK", "1")


def test_a_helper_works_in_stages_done_together_only_and_writes_no_line(tmp_path, second):
    folder, calls = RunFolder(tmp_path), []

    def later(name: str) -> subprocess.Popen:
        return subprocess.Popen(["sh", "-c", f"sleep 0.3; touch {tmp_path / name}"])

    with later("tasks"):
        folder.once("tasks", tmp_path / "tasks", lambda: calls.append("tasks"))
    with later("actor"):
        folder.once("actor", tmp_path / "actor", lambda: calls.append("actor"), together=True)
    assert calls == ["actor"]
    assert (tmp_path / "tasks").exists() and (tmp_path / "actor").exists()
    assert not (tmp_path / "stages.jsonl").exists()


def test_a_helper_leaves_the_lock_to_the_first_process(tmp_path, monkeypatch):
    with RunFolder(tmp_path).lock():
        monkeypatch.setenv("RANK", "1")
        with RunFolder(tmp_path).lock():
            pass


# A whole run --------------------------------------------------------------------------------------------------------


def start(out: Path, number: int) -> subprocess.Popen:
    names = {"PYTHONPATH": PATHS, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(out), str(number)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **names},
    )  # fmt: skip


@pytest.mark.timeout(400)
def test_a_run_of_two_processes_ends_where_one_of_one_does(tmp_path):
    """Equal up to the order in which a sum is taken; the tasks and who judged them are the same.

    The actor's bound is on each matrix as a whole: AdamW divides a gradient by its own size, so a single weight whose
    gradient is hardly more than rounding (1 of 39,936 here) may end 1/100 of a step away.
    """
    for number in (1, 2):
        out, error = (process := start(tmp_path / str(number), number)).communicate(timeout=300)
        assert process.returncode == 0, error[-3000:]
    one, two = tmp_path / "1", tmp_path / "2"
    for name in ("sft", "orm", "phase_01/critic", "phase_01/actor"):
        weights = [load_file(side / name / "final" / "adapter_model.safetensors") for side in (one, two)]
        apart = {key: float((weights[1][key] - matrix).norm() / matrix.norm()) for key, matrix in weights[0].items()}
        assert max(apart.values()) < 1e-3, (name, apart)
        if name != "phase_01/actor":
            assert all(torch.allclose(weights[0][key], weights[1][key], atol=1e-4) for key in weights[0]), name
    stages = [[json.loads(line)["stage"] for line in (side / "stages.jsonl").open()] for side in (one, two)]
    assert stages[0] == stages[1]


@pytest.mark.timeout(400)
def test_a_helper_does_not_outlive_a_killed_run(tmp_path):
    process = start(tmp_path / "out", 2)
    assert process.stdout.readline() == "began\n"
    time.sleep(5)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)  # until everybody who could write to its output has ended
    assert not alive(int(children[0]))
    settings = config(tmp_path / "out")
    with RunFolder(tmp_path / "out").lock():
        RunFolder(tmp_path / "out").begin(settings, resume=True)
