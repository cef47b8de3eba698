"""The command line on the real sites, in Chromium, with runs as small as they can be."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import test_released
import tiny_models

from webrl_lite import ablation, phase
from webrl_lite.browser import BrowserError
from webrl_lite.config import Config
from webrl_lite.run import COMMANDS, main
from webrl_lite.trajectory import Trajectory, read_jsonl

pytestmark = pytest.mark.timeout(420)  # whole runs in processes of their own
ROOT = Path(__file__).parent.parent
SMALL = (
    "--sft.episodes 3 --orm.rollouts 4 --orm.epochs 1 --eval.tasks 2 --curriculum.phases 1 "
    "--curriculum.tasks_per_phase 2 --rollout.max_steps 2 --rollout.max_new_tokens 24 --rollout.environments 2 "
    "--processes 2"
).split()


def command(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "webrl_lite.run", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=420, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess]:
    folder = tmp_path_factory.mktemp("run") / "out"
    return folder, command("--out", str(folder), *SMALL)


def test_one_command_goes_from_demonstrations_to_a_report(done):
    folder, result = done
    assert result.returncode == 0, result.stderr[-2000:]
    assert "phase_01/actor" in result.stdout and "| start" in result.stdout
    report = folder / "report" / "index.html"
    assert report.is_file() and str(report) in result.stdout
    stages = [json.loads(line)["stage"] for line in (folder / "stages.jsonl").read_text().splitlines()]
    assert stages[0] == "demonstrations" and stages[-1] == "phase_01/evaluation"


def test_going_on_with_a_finished_run_shows_its_table(done):
    folder, _ = done
    before = (folder / "stages.jsonl").read_text()
    result = command("--resume", str(folder))
    assert result.returncode == 0 and "| start" in result.stdout
    assert (folder / "stages.jsonl").read_text() == before


def test_going_on_with_other_settings_ends_with_2_and_names_them(done, capsys):
    folder, _ = done
    assert main(["--resume", str(folder), "--actor.beta", "0.5"]) == 2
    assert "`actor.beta` was 1.0 and is 0.5" in capsys.readouterr().err


def test_a_folder_that_has_a_run_is_not_used_again(done, capsys):
    folder, _ = done
    assert main(["--out", str(folder), *SMALL]) == 2
    assert f"--resume {folder}" in capsys.readouterr().err


def test_the_report_is_written_again(done, capsys):
    folder, _ = done
    assert main(["report", str(folder)]) == 0
    assert "report:" in capsys.readouterr().out
    assert main(["report", str(folder / "none")]) == 2


def test_an_actor_of_a_folder_is_evaluated(done, tmp_path):
    folder, _ = done
    adapter = folder / "phase_01" / "actor" / "final"
    result = command("eval", "--adapter", str(adapter), "--out", str(tmp_path / "eval"), *SMALL)
    assert result.returncode == 0, result.stderr[-2000:]
    again = (tmp_path / "eval" / "phase_00" / "evaluation.jsonl").read_text().splitlines()
    before = (folder / "phase_01" / "evaluation.jsonl").read_text().splitlines()
    said = [[step["reply"] for step in json.loads(line)["steps"]] for line in again]
    assert said == [[step["reply"] for step in json.loads(line)["steps"]] for line in before]


def test_methods_are_compared_from_one_start(tmp_path):
    methods = ["webrl-no-kl-no-replay", "webrl-no-kl", "sft"]
    result = command("ablate", "--methods", *methods, "--seeds", "0", "--out", str(tmp_path / "a"), *SMALL)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    assert "| webrl-no-kl" in result.stdout and "| webrl-no-kl" in (tmp_path / "a" / "ablation.md").read_text()
    starts = [(tmp_path / "a" / name / "sft" / "final" / "adapter_model.safetensors").read_bytes()
              for name in ("start", "sft-0", "webrl-no-kl-0")]  # fmt: skip
    assert starts[0] == starts[1] == starts[2]
    assert not (tmp_path / "a" / "sft-0" / "phase_01").exists()
    first, second = (tmp_path / "a" / f"{method}-0" for method in methods[:2])
    assert (second / "phase_01" / "evaluation.jsonl").is_file()
    for name in ("tasks.jsonl", "rollouts.jsonl", "labelled.jsonl"):  # the same for both methods, so made once
        assert (first / "phase_01" / name).read_bytes() == (second / "phase_01" / name).read_bytes()
    stages = [(folder / "stages.jsonl").read_text() for folder in (first, second)]
    assert ["phase_01/rollout" in one for one in stages] == [True, False]
    assert ["phase_01/select" in one for one in stages] == [True, True]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("labelled", [True, False])
def test_a_run_of_a_comparison_begins_with_what_is_there(tmp_path, labelled):
    """Where graders label there is no ORM; a first run that failed before its labels leaves nothing to take over."""
    start, first, mine = (tmp_path / name for name in ("start", "webrl-0", "webrl-no-kl-0"))
    made = [start / "sft/final/adapter", start / "phase_00/rollouts.jsonl", start / "tasks_test.jsonl",
            first / "phase_01/rollouts.jsonl", first / "phase_01/selected.jsonl"]  # fmt: skip
    for path in [*made, first / "phase_01/labelled.jsonl"] if labelled else made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    ablation._prepare(start, mine, Config(out=str(mine)), first)
    shared = ["phase_01/labelled.jsonl", "phase_01/rollouts.jsonl"] if labelled else []
    assert files(mine) == ["config.json", "phase_00/rollouts.jsonl", *shared, "sft/final/adapter", "tasks_test.jsonl"]


def test_only_methods_that_learn_take_over_a_first_phase(tmp_path, monkeypatch):
    """SFT has no curriculum either, but ends before the phases; each seed has a first run of its own."""

    def ran(name, folder, config, tell, *, cores):
        begun[folder.name] = (folder / "phase_01").exists()
        if name == "train" and not folder.name.startswith("sft"):
            (folder / "phase_01").mkdir(exist_ok=True)
            (folder / "phase_01" / "labelled.jsonl").touch()
        return 0

    begun = {}
    monkeypatch.setattr(ablation, "_run", ran)
    monkeypatch.setattr(ablation.report, "ablation_table", lambda folders: SimpleNamespace(markdown="", csv=""))
    methods = ("digirl", "sft", "awr", "webrl")
    assert ablation.compare(Config(out=str(tmp_path)), methods=methods, seeds=(0, 1), jobs=1, tell=print) == 0
    assert begun.pop("start") is False
    assert [name for name, taken_over in begun.items() if taken_over] == ["awr-0", "awr-1"] and len(begun) == 8


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ablate", "--methods", "webrl2"], "`--methods` must be rows of webrl"),
        (["ablate", "--seeds", "1", "1"], "`--seeds` must be different numbers"),
        (["ablate", "--jobs", "0"], "`--jobs` must be at least 1"),
        (["trian"], "`command` must be one of"),
        (["--method", "webrl2"], "`method` must be one of"),
    ],
)
def test_what_cannot_be_ends_with_2_before_anything_is_loaded(arguments, said, capsys, tmp_path):
    assert main([*arguments, "--out", str(tmp_path / "x")] if arguments != ["trian"] else arguments) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_ctrl_c_ends_with_130_says_how_to_go_on_and_leaves_no_browser(tmp_path):
    """MPR-01."""
    process = subprocess.Popen(
        [sys.executable, "-m", "webrl_lite.run", "--out", str(tmp_path / "out"), *SMALL],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    for line in process.stdout:
        if "phase_00/evaluation" in line:
            break
    time.sleep(2)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait(timeout=60) == 130
    assert f"--resume {tmp_path / 'out'}" in rest
    gone, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def test_what_fails_because_of_ctrl_c_is_ctrl_c(tmp_path, monkeypatch, capsys):
    """A browser that cannot be closed in the middle of a step is no fault of the run."""

    class Stopped:
        def close(self) -> None:
            raise BrowserError("it did not close")

    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(phase, "open_run", lambda config, folder, roles: Stopped())
    monkeypatch.setattr(phase, "learn", interrupted)
    assert main(["--out", str(tmp_path / "out"), "--processes", "1"]) == 130
    assert f"train --resume {tmp_path / 'out'}" in capsys.readouterr().out
    monkeypatch.setattr(phase, "learn", lambda run: None)
    assert main(["--out", str(tmp_path / "other"), "--processes", "1"]) == 1

    def interrupted_and_broken(request):
        with contextlib.closing(Stopped()):
            raise KeyboardInterrupt

    monkeypatch.setitem(COMMANDS, "doctor", interrupted_and_broken)
    assert main(["doctor"]) == 130


@pytest.mark.parametrize("policy", ["actor", "chat"])
def test_a_released_checkpoint_or_any_model_in_its_chat_form_is_evaluated(tmp_path, policy):
    """A small random model under the checkpoint's name: what is stored are the hashes of the prompts it read."""
    model = tmp_path / "webrl-llama-3.1-8b"
    if policy == "actor":
        model.symlink_to(test_released.folder("webrl-llama3").name)
    else:
        model = tiny_models.folder("llama")
    words = f"eval --model.name {model} --policy {policy} --eval.tasks 1 --rollout.max_steps 1"
    limits = "--rollout.max_new_tokens 6 --rollout.environments 1 --model.max_length 4000 --env.evaluator strict"
    assert main([*words.split(), *limits.split(), "--out", str(tmp_path / "out")]) == 0
    [played] = read_jsonl(tmp_path / "out" / "phase_00" / "evaluation.jsonl", Trajectory)
    [step] = played.steps
    observed = step.observation.startswith("<html")
    assert observed == (policy == "actor")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["model"]["template"] == ("webrl-llama3" if policy == "actor" else "chat")
    assert len(step.token_ids) <= 6 and len(step.prompt_hash) == 16


def test_a_dead_server_ends_an_evaluation_with_1_and_its_address(tmp_path, capsys):
    words = "eval --policy prompted --eval.tasks 1 --llm.base_url http://127.0.0.1:9/v1 --llm.retries 0"
    assert main([*words.split(), "--rollout.environments", "1", "--out", str(tmp_path / "out")]) == 1
    assert "http://127.0.0.1:9/v1 failed at step 0 of task" in capsys.readouterr().err
