"""The check for a GPU, run on the CPU with a tiny model: it works, and it fails when it should."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tiny_models import load, stir

from webrl_lite.memory_terms import Setup
from webrl_lite.model_shape import SHAPES, ModelShape

SCRIPT = Path(__file__).parent / "gpu" / "check_8b.py"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_8b", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tiny_model_goes_through_all_of_it_on_the_cpu(check, capsys):
    assert check.main(["--config", "tiny", "--device", "cpu", "--lengths", "64"]) == 0
    *table, last = capsys.readouterr().out.splitlines()
    figures = json.loads(last)
    assert figures["failures"] == []
    assert [(step["stage"], step["length"]) for step in figures["steps"]] == [("actor", 64), ("critic", 64)]
    for step in figures["steps"]:
        assert step["peak_gib"] is None and step["planned_gib"] > 0
        assert step["tokens_per_s"] == pytest.approx(64 / step["seconds"])
        assert 0 < step["useful_fraction"] < step["executed_fraction"]
    assert sum(line.startswith("| actor | 64 |") and "not measured" in line for line in table) == 1


def test_fractions_are_shares_of_the_ceiling_and_recomputing_is_not_useful(check):
    figures = check.Measured("actor", 64, 115, 100, seconds=2.0, executed=8e12, useful=6e12, ceiling=1e13).to_json()
    assert figures["executed_tflops"] == 4.0
    assert (figures["executed_fraction"], figures["useful_fraction"]) == (0.4, 0.3)
    assert (figures["tokens_per_s"], figures["ceiling_tokens_per_s"]) == (32.0, 80.0)


def test_a_peak_that_is_not_the_planners_fails(check, monkeypatch, capsys):
    monkeypatch.setattr(check.Watch, "peak", lambda self: 1000)
    assert check.main(["--config", "tiny", "--device", "cpu", "--lengths", "16"]) == 1
    out = capsys.readouterr().out
    assert out.count("FAILED: ") == 2 and "FAILED: critic at 16: the planner is off by +" in out


@pytest.mark.parametrize(("planned", "fails"), [(115, False), (116, True), (86, False), (84, True)])
def test_fifteen_percent_of_the_measured_peak_are_allowed(check, planned, fails):
    found = check.Measured("actor", 64, planned, 100, 1.0, 3.0, 2.0, 10.0)
    assert bool(found.failures()) == fails


def test_a_step_that_does_not_work_fails_and_the_others_go_on(check, monkeypatch, capsys):
    def full(*args: object, **kwargs: object) -> None:
        raise torch.OutOfMemoryError("out of memory, tried to allocate 2 GiB")

    monkeypatch.setattr(check.ActorTrainer, "compute_loss", full)
    assert check.main(["--config", "tiny", "--device", "cpu", "--lengths", "16"]) == 1
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["failures"] == ["actor at 16: OutOfMemoryError: out of memory, tried to allocate 2 GiB"]
    assert figures["steps"][0]["seconds"] is None and figures["steps"][1]["seconds"] > 0


def test_training_must_change_its_role_and_no_other(check):
    shared, faults = load(), []
    with check.only_changes(shared, "actor", faults):
        stir(shared, "critic")
    assert faults == ["the role actor was not trained", "the role critic was changed by training another"]


def test_the_base_is_the_published_one(check):
    config = check.CONFIGS["llama-3.1-8b"]
    shape = ModelShape.from_config(config.to_dict(), "Llama-3.1-8B")
    assert shape == SHAPES["Llama-3.1-8B"]
    assert shape.parameters == 8_030_261_248
    assert config.rope_parameters["rope_type"] == "llama3"


def test_matrices_differ_and_the_file_holds_their_numbers_once(check, tmp_path):
    """Embedding and output layer, 320 * 64 each, are the largest of 39 tensors: 2 * (20,480 + 64 * 39) bytes."""
    check.write_base(tmp_path, check.CONFIGS["tiny"])
    weights = torch.load(tmp_path / "pytorch_model.bin", weights_only=True)
    numbers = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in weights.values()}
    assert max(numbers.values()) == 45_952
    matrices = [tensor for tensor in weights.values() if tensor.dim() == 2]
    assert len(matrices) == 4 * 7 + 2
    assert len({tuple(matrix.flatten()[:8].tolist()) for matrix in matrices}) == len(matrices)
    assert all(0.015 < matrix.float().std() < 0.025 for matrix in matrices)


def test_operations_of_an_update_of_the_8b_model(check):
    """4096 tokens: forward 5.717e13 frozen, 3.44e11 adapters, 4.398e12 attention, 2.69e11 for 256 tokens of output.

    Backward 5.717e13 + 2 * 3.44e11 + 2 * 4.398e12 + 2.69e11. So 6.218e13 + 6.692e13 = 1.2911e14 are useful, and
    recomputing is another 6.192e13.
    """
    executed, useful = check.operations(SHAPES["Llama-3.1-8B"], Setup(), 4096, 256)
    assert useful == pytest.approx(1.2911e14, rel=1e-3)
    assert executed == pytest.approx(1.9103e14, rel=1e-3)


def test_a_length_that_has_no_room_for_a_prompt_is_refused(check, capsys):
    with pytest.raises(SystemExit):
        check.main(["--config", "tiny", "--lengths", "8"])
    assert "--lengths must be above 8" in capsys.readouterr().err
