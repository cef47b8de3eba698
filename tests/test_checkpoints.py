import json
import logging
import shutil
from pathlib import Path

import pytest

from webrl_lite import checkpoints
from webrl_lite.batching import RuleError


def write(folder: Path, number: int, **settings: str) -> Path:
    partial = folder / checkpoints.PARTIAL / str(number)
    partial.mkdir(parents=True)
    (partial / "adapter_model.safetensors").write_bytes(b"weights %d" % number)
    (partial / "optimizer.pt").write_bytes(b"moments")
    checkpoint = folder / f"checkpoint-{number}"
    checkpoints.publish(partial, checkpoint, settings)
    return checkpoint


def test_the_newest_checkpoint_is_that_of_the_highest_number_and_not_of_the_latest_date(tmp_path: Path) -> None:
    for number in (9, 10, 2):
        write(tmp_path, number)
    assert checkpoints.newest(tmp_path) == tmp_path / "checkpoint-10"


def test_a_folder_without_checkpoints_has_none(tmp_path: Path) -> None:
    assert checkpoints.newest(tmp_path) is None
    assert checkpoints.newest(tmp_path / "nowhere") is None


def test_what_a_kill_leaves_behind_is_no_checkpoint(tmp_path: Path) -> None:
    """CKP-01: the hidden folder of an unfinished checkpoint is not looked at."""
    (tmp_path / checkpoints.PARTIAL / "checkpoint-7").mkdir(parents=True)
    (tmp_path / checkpoints.DELETED / "checkpoint-3").mkdir(parents=True)
    (tmp_path / "checkpoint-notes").mkdir()
    assert checkpoints.newest(tmp_path) is None


@pytest.mark.parametrize(
    "damage",
    ["deleted", "cut", "changed", "manifest deleted", "manifest cut", "empty folder"]
    + ["null", "[]", '{"files": null}', '{"files": {"optimizer.pt": 7}}', '{"files": {"optimizer.pt": {}}}'],
)
def test_a_damaged_checkpoint_is_skipped_and_named(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """CKP-02."""
    write(tmp_path, 1)
    bad = write(tmp_path, 2)
    weights, manifest = bad / "adapter_model.safetensors", bad / checkpoints.MANIFEST
    if damage == "deleted":
        weights.unlink()
    elif damage == "cut":
        weights.write_bytes(b"weig")
    elif damage == "changed":
        weights.write_bytes(b"weights 9")
    elif damage == "manifest deleted":
        manifest.unlink()
    elif damage == "manifest cut":
        manifest.write_text(manifest.read_text()[:20])
    elif damage == "empty folder":
        shutil.rmtree(bad)
        bad.mkdir()
    else:
        manifest.write_text(damage)
    with caplog.at_level(logging.WARNING):
        assert checkpoints.newest(tmp_path) == tmp_path / "checkpoint-1"
    assert "checkpoint-2" in caplog.text


def test_without_any_complete_checkpoint_the_faults_are_listed(tmp_path: Path) -> None:
    """CKP-02: beginning anew without a word would throw hours away."""
    (write(tmp_path, 1) / "optimizer.pt").unlink()
    (write(tmp_path, 2) / "optimizer.pt").write_bytes(b"")
    with pytest.raises(
        RuleError, match=r"checkpoint-2: optimizer.pt has 0 bytes instead of 7; checkpoint-1: .* missing"
    ):
        checkpoints.newest(tmp_path)


def test_pruning_keeps_the_newest_in_whole(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write(tmp_path, number)
    checkpoints.prune(tmp_path, None)
    assert len(list(tmp_path.glob("checkpoint-*"))) == 3
    checkpoints.prune(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-2", "checkpoint-3"]


def test_a_checkpoint_is_taken_away_from_its_name_before_it_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CKP-01, sibling: a kill while an old one is deleted leaves no half of it."""
    write(tmp_path, 1)
    monkeypatch.setattr(shutil, "rmtree", lambda *args, **kwargs: None)  # as if killed at its first file
    checkpoints.remove(tmp_path / "checkpoint-1")
    assert checkpoints.newest(tmp_path) is None


def test_a_published_checkpoint_replaces_one_of_its_name(tmp_path: Path) -> None:
    write(tmp_path, 1, seed="0")
    write(tmp_path, 1, seed="1")
    checkpoints.check_settings(tmp_path / "checkpoint-1", {"seed": "1"})


def test_a_checkpoint_that_was_asked_for_by_name_must_be_complete_too(tmp_path: Path) -> None:
    """CKP-02, sibling: ``train(resume_from_checkpoint=...)`` names one and has it checked by this."""
    checkpoint = write(tmp_path, 1, seed="0")
    (checkpoint / "optimizer.pt").write_bytes(b"mome")
    with pytest.raises(RuleError, match="no complete checkpoint: optimizer.pt has 4 bytes instead of 7"):
        checkpoints.check_settings(checkpoint, {"seed": "0"})
    with pytest.raises(RuleError, match="no complete checkpoint: complete.json is missing"):
        checkpoints.check_settings(tmp_path / "checkpoint-9", {"seed": "0"})


def test_other_settings_are_refused_and_all_listed(tmp_path: Path) -> None:
    """CKP-08."""
    checkpoint = write(tmp_path, 1, seed="0", beta="1.0", batch_size="4")
    checkpoints.check_settings(checkpoint, {"seed": "0", "beta": "1.0", "batch_size": "4"})
    with pytest.raises(RuleError) as caught:
        checkpoints.check_settings(checkpoint, {"seed": "0", "beta": "0.5", "rank": "8"})
    assert "batch_size: saved 4, here None; beta: saved 1.0, here 0.5; rank: saved None, here 8" in str(caught.value)


def test_lines_that_will_be_written_again_are_cut_from_a_log(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"step": step, "loss": 0.5}) + "\n" for step in (1, 2, 3, 4)]
    log.write_text("".join(lines) + '{"step": 5, "lo')
    checkpoints.trim_log(log, 2)
    assert log.read_text() == "".join(lines[:2])
    checkpoints.trim_log(log, 0)
    assert log.read_text() == ""
    checkpoints.trim_log(tmp_path / "none.jsonl", 0)
    assert not (tmp_path / "none.jsonl").exists()


def test_too_little_space_is_said_before_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """CKP-05."""
    with caplog.at_level(logging.WARNING):
        checkpoints.check_space(tmp_path, 1)
        assert not caplog.text
        checkpoints.check_space(tmp_path, 10**18)
    assert "checkpoints need 1000000000.0 GB" in caplog.text
