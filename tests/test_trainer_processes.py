"""Training runs in processes of their own: killed at any moment, or two that share the work."""

import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import trainer_runs
from safetensors.torch import load_file

PATHS = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])


def lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.timeout(400)  # processes import torch anew, which a busy machine takes its time for
def test_kill_at_ten_random_moments_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty updates with a checkpoint after each, ended ten times by SIGKILL; so most moments fall into a save."""
    monkeypatch.setenv("PYTHONPATH", PATHS)  # or the server could not preload, and every child would import torch anew
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["trainer_runs"])
    whole = context.Process(target=trainer_runs.long_run, args=(tmp_path / "whole",))
    whole.start()
    moments, killed = random.Random(0), 0
    while killed < 10:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=trainer_runs.long_run, args=(tmp_path / "killed", theirs))
        process.start()
        theirs.close()
        assert ours.poll(60) and ours.recv() == "began"
        time.sleep(moments.uniform(0, 0.12))
        process.kill()
        process.join(60)
        assert process.exitcode == -9, "it was done before it was killed"
        killed += 1
    last = context.Process(target=trainer_runs.long_run, args=(tmp_path / "killed",))
    last.start()
    for process in (whole, last):
        process.join(60)
        assert process.exitcode == 0
    files = [(tmp_path / name / "final" / "adapter_model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert files[0] == files[1]
    for name in ("whole", "killed"):
        assert [line["step"] for line in lines(tmp_path / name)] == list(range(1, 61))
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == ["checkpoint-60", "final", "metrics.jsonl"]


@pytest.mark.timeout(400)  # processes import torch anew, which a busy machine takes its time for
def test_two_processes_of_accelerate_launch_train_what_one_does(tmp_path: Path) -> None:
    """Eleven rows in updates of 5, 5 and 1: one process has a row more than the other, and in the end all there is."""
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    environment = os.environ | {"PYTHONPATH": PATHS, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*command, trainer_runs.__file__, str(tmp_path / "two")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads((tmp_path / "two" / "processes.json").read_text()) == 2
    trainer_runs.two_trainers(tmp_path / "one")
    for name in ("critic", "sft"):
        one, two = lines(tmp_path / "one" / name), lines(tmp_path / "two" / name)
        assert len(one) == len(two) == 6
        for left, right in zip(one, two, strict=True):
            assert left.keys() == right.keys()
            for key in left.keys() - {f"{name}/tokens_per_second"}:
                assert left[key] == pytest.approx(right[key], rel=1e-5), key
        weights = [load_file(tmp_path / side / name / "final/adapter_model.safetensors") for side in ("one", "two")]
        assert all(torch.allclose(weights[0][key], weights[1][key], atol=1e-6) for key in weights[0])
