"""The benchmark of a training step: every kind of side trains the same rows, and ratios say what they should."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch

FOLDER = Path(__file__).parent / "benchmarks"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


parent, side = script("train_step"), script("train_step_side")
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    settings = {"model": "tiny", "dtype": "float32", "lengths": [8, 24], "action": 4, "batch": 4, "updates": 2}
    settings |= {"micro_batch": 64, "threads": 1, "top_layers": 1, "folder": str(tmp_path_factory.mktemp("base"))}
    assert side.prepare(settings)["parameters"] > 100_000
    return settings


@pytest.mark.parametrize("name", ["trl", "trl_grouped", "trl_top", "sft", "actor_trunk", "four_roles", "three_models"])
def test_a_side_trains_and_gives_its_figures(told, tmp_path, name):
    figures = side.SIDES[name](dict(told), str(tmp_path))
    assert figures["tokens_per_s"] > 0 and figures["tokens_per_cpu_s"] > 0


def test_the_second_epoch_with_the_trunk_stands_beside_the_first(told, tmp_path):
    assert side.SIDES["sft_trunk"](dict(told), str(tmp_path))["first_epoch_tokens_per_s"] > 0


def test_prompts_lie_between_the_two_lengths_and_are_mostly_longer_than_actions(told):
    """Eight rows; actions have half of 4 tokens and up to 4 more, in steps of a half."""
    rows = side.samples(told)
    lengths = sorted(len(row.prompt) for row in rows)
    assert len(rows) == 8 and lengths[0] == 8 and lengths[-1] == 24 and len(set(lengths)) == 8
    assert [len(row.action) for row in rows] == [2, 2, 3, 3, 4, 4, 5, 5]
    assert side.samples(told) == rows


def test_the_sides_of_both_scripts_are_the_same():
    assert {*parent.SPEED, *parent.MEMORY, *parent.OPTIONAL} == set(side.SIDES)
    assert {name for _, ours, theirs, _ in parent.RATIOS for name in (ours, theirs)} <= set(side.SIDES)


def test_ratios_are_of_medians_with_their_spread_and_know_the_aim():
    """Medians 300 and 200 give 1.5; one by one 1.0, 2.0, 1.25. Memory 50 of 100 is above 0.45."""

    def runs(*figures: tuple[float, float]) -> list[dict[str, float]]:
        return [{"tokens_per_s": s, "tokens_per_cpu_s": s, "peak_mib": m} for s, m in figures]

    found = parent.ratios(
        {
            "sft": runs((200, 10), (400, 10), (300, 10)),
            "trl": runs((200, 10), (200, 10), (240, 10)),
            "four_roles": runs((1, 50)),
            "three_models": runs((1, 100)),
        }
    )
    speed = next(row for row in found if row["figure"] == "tokens_per_s")
    assert (speed["ratio"], speed["least"], speed["most"], speed["reached"]) == (1.5, 1.0, 2.0, True)
    shared = next(row for row in found if row["theirs"] == "three_models")
    assert (shared["ratio"], shared["reached"]) == (0.5, False)
    lines = parent.ratio_lines(found)
    assert "| tokens_per_s: sft / trl | 1.50 (1.00 to 2.00) | >= 1.5 | reached |" in lines
    assert "| peak_mib: four_roles / three_models | 0.50 (0.50 to 0.50) | <= 0.45 | missed |" in lines


def test_sides_run_in_turns_in_processes_of_their_own(monkeypatch, capsys):
    order: list[str] = []

    def stand_in(side: str, settings: dict[str, object]) -> dict[str, float]:
        order.append(side)
        return {"tokens_per_s": 1.0, "tokens_per_cpu_s": 1.0, "peak_mib": 1.0}

    monkeypatch.setattr(parent, "run_side", stand_in)
    assert parent.main(["--sides", "trl", "sft", "one_role", "--repetitions", "2", "--threads", "1"]) == 0
    assert order == ["prepare", "trl", "sft", "sft", "trl", "one_role", "one_role"]
    assert len(json.loads(capsys.readouterr().out.splitlines()[-1])["runs"]["trl"]) == 2


def test_a_side_that_fails_is_reported_with_its_reason(monkeypatch, tmp_path):
    (tmp_path / "side.py").write_text("import sys; sys.exit(f'no memory for {sys.argv[1]}')")
    monkeypatch.setattr(parent, "SIDE", tmp_path / "side.py")
    with pytest.raises(SystemExit, match=r"the side sft failed:\nno memory for sft"):
        parent.run_side("sft", {"threads": 1})
