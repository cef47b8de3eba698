import errno
import functools
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from tiny_models import folder as model_folder
from tiny_models import load, stir
from torch import Tensor, nn
from trainer_runs import ROWS, STATES, arguments, sft
from transformers import AutoModelForCausalLM, TrainerCallback

from webrl_lite.batching import RuleError
from webrl_lite.config import OrmConfig, SftConfig
from webrl_lite.critic import CriticArguments, CriticTrainer
from webrl_lite.model import ROLES, Sample, SharedBase
from webrl_lite.orm import OrmArguments
from webrl_lite.role_trainer import RoleTrainer
from webrl_lite.sft import SftArguments, SftTrainer

NUMBERED = list(enumerate(ROWS))


def gradients(trainer: RoleTrainer, rows: list[tuple[int, Sample]] = NUMBERED) -> list[Tensor]:
    """One update's gradient, without the update."""
    trainer.training_step(trainer.model, rows)
    found = [parameter.grad.clone() for parameter in trainer.model.parameters()]
    trainer.model.zero_grad()
    return found


def close(left: Sequence[Tensor], right: Sequence[Tensor], rtol: float = 1e-4) -> bool:
    return all(torch.allclose(a, b, rtol=rtol, atol=1e-6) for a, b in zip(left, right, strict=True))


def lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def stirred() -> SharedBase:
    shared = load()
    stir(shared, "actor", "critic")
    return shared


class Breaking(SftTrainer):
    """Its loss goes through a function from the update's number (from 1) and the loss."""

    change: Callable[[int, Tensor], Tensor]

    def compute_loss(
        self, model: nn.Module, inputs: Sequence[Sample], return_outputs: bool = False, num_items_in_batch: None = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        loss = super().compute_loss(model, inputs)
        return self.change(self.state.global_step + 1, loss), {}


def breaking(folder: Path, change: Callable[[int, Tensor], Tensor], **settings: object) -> Breaking:
    trainer = Breaking(load(), arguments(folder, **settings), ROWS)
    trainer.change = change
    return trainer


class Stop(TrainerCallback):
    """Ends a run after some updates, as Ctrl+C does."""

    def __init__(self, after: int) -> None:
        self.after = after

    def on_step_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
        if state.global_step == self.after:
            raise KeyboardInterrupt


def interrupted(trainer: RoleTrainer, after: int) -> None:
    trainer.add_callback(Stop(after))
    with pytest.raises(KeyboardInterrupt):
        trainer.fit()


# Batches ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [1, 25, 60])
def test_how_a_batch_is_split_into_micro_batches_does_not_change_its_gradient(tmp_path: Path, tokens: int) -> None:
    """TRN-22: rows have actions of 1 to 4 tokens, so a mean of means would differ."""
    shared = stirred()
    whole = gradients(sft(tmp_path, shared))
    assert close(gradients(sft(tmp_path, shared, tokens_per_micro_batch=tokens)), whole)


def test_micro_batches_weigh_by_their_items(tmp_path: Path) -> None:
    """TRN-22: one token with loss 4 and nine with loss 1 make 13 / 10 = 1.3; the mean of means would be 2.5."""
    rows = [Sample((5, 6), (7,)), Sample((5, 6, 7), (8,) * 9)]

    class Fixed(SftTrainer):
        def compute_loss(
            self,
            model: nn.Module,
            inputs: Sequence[Sample],
            return_outputs: bool = False,
            num_items_in_batch: None = None,
        ) -> tuple[Tensor, dict[str, Tensor]]:
            (row,) = inputs
            loss = super().compute_loss(model, inputs)
            return loss * 0 + (4.0 if len(row.action) == 1 else 1.0), {}

    trainer = Fixed(load(), arguments(tmp_path, tokens_per_micro_batch=1), rows)
    assert trainer.training_step(trainer.model, list(enumerate(rows))).item() == pytest.approx(1.3)


def test_batch_one_with_accumulation_four_is_batch_four(tmp_path: Path) -> None:
    pairs = [{"per_device_train_batch_size": 1, "gradient_accumulation_steps": 4}, {"per_device_train_batch_size": 4}]
    pairs = [{"batch_size": None} | pair for pair in pairs]
    versions = set()
    for number, settings in enumerate([*pairs, {"batch_size": 4}]):
        trainer = sft(tmp_path / str(number), **settings)
        assert trainer.fit().steps == 3
        versions.add(trainer.shared.role_version("actor"))
    assert len(versions) == 1


def test_the_gradient_is_that_of_a_model_without_checkpointing(tmp_path: Path) -> None:
    """TRN-18, PRF-03: with activation checkpointing every adapter still has its gradient."""
    found = []
    for checkpointing in (False, True):
        shared = load(checkpointing=checkpointing)
        stir(shared, "actor")
        found.append(gradients(sft(tmp_path, shared)))
    assert all(gradient.any() for gradient in found[1])
    assert close(*found, rtol=1e-5)


def test_the_last_small_batch_takes_the_mean_over_its_own_rows(tmp_path: Path) -> None:
    trainer = sft(tmp_path, learning_rate=0.0, num_train_epochs=1)
    trainer.fit()
    losses = [line["sft/loss"] for line in lines(tmp_path)]
    sizes = [sum(len(ROWS[i].action) for i in batch) for batch in trainer.get_train_dataloader().batch_sampler]
    whole = trainer.training_step(trainer.model, NUMBERED).item()
    assert len(losses) == 3
    assert sum(loss * size for loss, size in zip(losses, sizes, strict=True)) / sum(sizes) == pytest.approx(whole)


@pytest.mark.parametrize(
    ("epochs", "batch_size", "updates"), [(1, 4, 3), (2, 4, 6), (0.5, 4, 2), (1.4, 4, 5), (0.01, 4, 1), (1, 64, 1)]
)
def test_the_number_of_updates(tmp_path: Path, epochs: float, batch_size: int, updates: int) -> None:
    """Eleven rows; a fraction of an epoch is that fraction of its updates, rounded up."""
    assert sft(tmp_path, num_train_epochs=epochs, batch_size=batch_size).fit().steps == updates
    assert [line["step"] for line in lines(tmp_path)] == list(range(1, updates + 1))


# Roles --------------------------------------------------------------------------------------------------------------


def test_training_one_role_leaves_the_others_and_the_base_bit_identical(tmp_path: Path) -> None:
    """TRN-15: critic, then actor, then critic again, with weight decay, which moves even what has no gradient."""
    shared = load()

    def state() -> dict[str, str]:
        base = sum(p.double().sum().item() for n, p in shared.model.named_parameters() if "lora" not in n)
        return {role: shared.role_version(role) for role in ROLES} | {"base": str(base)}

    for number, role in enumerate(("critic", "actor", "critic")):
        before = state()
        folder = tmp_path / str(number)
        settings = {"batch_size": 4, "learning_rate": 0.01, "weight_decay": 0.1, "use_cpu": True}
        if role == "critic":
            CriticTrainer(shared, CriticArguments(output_dir=str(folder), **settings), STATES).fit()
        else:
            SftTrainer(shared, SftArguments(output_dir=str(folder), **settings), ROWS).fit()
        after = state()
        assert {name for name in before if before[name] != after[name]} == {role}
        assert not any(p.requires_grad for p in shared.model.parameters())


def test_the_optimizer_holds_the_roles_parameters_and_no_others(tmp_path: Path) -> None:
    trainer = CriticTrainer(load(), CriticArguments(output_dir=str(tmp_path), use_cpu=True), STATES)
    held = {p for group in trainer.create_optimizer().param_groups for p in group["params"]}
    assert held == set(trainer.shared.trainable_parameters("critic"))
    assert trainer.shared.value_head.weight in held


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tmp_path: Path) -> None:
    versions = []
    for number, seed in enumerate((7, 7, 8)):
        trainer = sft(tmp_path / str(number), seed=seed, num_train_epochs=2)
        trainer.fit()
        versions.append(trainer.shared.role_version("actor"))
    assert versions[0] == versions[1] != versions[2]


@pytest.mark.parametrize("how", [{"quantization": "nf4"}, {"dtype": "bfloat16"}, {"top_layers": 1}], ids=str)
def test_every_kind_of_base_is_trained_and_goes_on_exactly(tmp_path: Path, how: dict[str, object]) -> None:
    def start() -> SharedBase:
        return load("llama-64", **how)

    whole = sft(tmp_path / "whole", start(), save_steps=1)
    whole.fit()
    interrupted(sft(tmp_path / "cut", start(), save_steps=1), after=2)
    again = sft(tmp_path / "cut", start(), save_steps=1)
    again.fit()
    assert again.shared.role_version("actor") == whole.shared.role_version("actor") != start().role_version("actor")


# The update ---------------------------------------------------------------------------------------------------------


def test_a_step_of_the_optimizer_is_no_longer_than_the_clipped_gradient(tmp_path: Path) -> None:
    """Plain gradient descent with a step size of 1 moves the weights by exactly the clipped length."""
    shared = stirred()
    before = [p.detach().clone() for p in shared.trainable_parameters("actor")]
    settings = {"optim": "sgd", "learning_rate": 1.0, "lr_scheduler_type": "constant", "warmup_steps": 0}
    sft(tmp_path, shared, max_grad_norm=0.25, batch_size=11, **settings).fit()
    moved = torch.cat([(p - b).flatten() for p, b in zip(shared.trainable_parameters("actor"), before, strict=True)])
    assert moved.norm().item() == pytest.approx(0.25, rel=1e-4)
    (line,) = lines(tmp_path)
    assert line["sft/clipped"] == 1.0
    assert line["sft/grad_norm"] > 0.25


@pytest.mark.parametrize(
    ("schedule", "warmup", "expected"),
    [
        ("constant", 0.0, [1.0, 1.0, 1.0, 1.0, 1.0]),
        ("constant", 0.4, [0.0, 0.5, 1.0, 1.0, 1.0]),
        ("cosine", 0.0, [1.0, 0.904508, 0.654508, 0.345492, 0.095492]),
        ("cosine", 0.2, [0.0, 1.0, 0.853553, 0.5, 0.146447]),
    ],
)
def test_schedules(tmp_path: Path, schedule: str, warmup: float, expected: list[float]) -> None:
    """Five updates; cosine is (1 + cos(pi k / n)) / 2 over the n updates behind the warm-up."""
    settings = SftConfig(learning_rate=1.0, schedule=schedule, warmup=warmup, batch_size=4, epochs=5 / 3)
    args = SftArguments.from_settings(settings, tmp_path, device=torch.device("cpu"))
    trainer = SftTrainer(load(), args, ROWS)
    args.max_grad_norm = 1e-6  # the step size is what is looked at; the weights should stay sane
    trainer.fit()
    assert [line["sft/learning_rate"] for line in lines(tmp_path)] == pytest.approx(expected, abs=1e-5)


def test_an_update_without_a_gradient_moves_no_weight(tmp_path: Path) -> None:
    """TRN-03, FACTS 13.9: AdamW's momentum and decay would go on alone."""
    versions = {}

    def change(update: int, loss: Tensor) -> Tensor:
        versions.setdefault(update, trainer.shared.role_version("actor"))
        return loss * 0 if update == 2 else loss

    trainer = breaking(tmp_path, change, weight_decay=0.1, lr_scheduler_type="constant", warmup_steps=0)
    trainer.fit()
    assert versions[1] != versions[2] == versions[3]
    assert [line["sft/skipped"] for line in lines(tmp_path)] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("loss", lambda update, loss: loss * (math.nan if update == 2 else 1)),
        ("loss", lambda update, loss: loss + (math.inf if update == 2 else 0)),
        ("gradient", lambda update, loss: loss + ((loss * 0).sqrt() if update == 2 else 0)),
    ],
    ids=["nan loss", "inf loss", "finite loss, gradient of a root at 0"],
)
def test_what_is_not_finite_stops_before_a_weight_is_touched(
    tmp_path: Path, what: str, change: Callable[[int, Tensor], Tensor]
) -> None:
    versions = []

    def record(update: int, loss: Tensor) -> Tensor:
        versions.append(trainer.shared.role_version("actor"))
        return change(update, loss)

    trainer = breaking(tmp_path, record, tokens_per_micro_batch=1)  # one row each, the longest first
    longest = max(list(trainer.get_train_dataloader().batch_sampler)[1], key=lambda row: len(ROWS[row].row))
    with pytest.raises(FloatingPointError, match=f"the {what} of sft .* at update 2 in rows {longest} of `train_data"):
        trainer.fit()
    assert trainer.shared.role_version("actor") == versions[-1]
    assert all(p.grad is None for p in trainer.model.parameters())
    with trainer.shared.role("critic", train=True):
        pass  # nothing of the failed update is in the way


def test_rows_that_memory_had_no_room_for_are_named_and_the_run_can_go_on(tmp_path: Path) -> None:
    """PRF-06: out of memory in the second update, after a checkpoint."""

    def change(update: int, loss: Tensor) -> Tensor:
        if update == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return loss

    trainer = breaking(tmp_path, change, save_steps=1)
    rows = ", ".join(map(str, sorted(list(trainer.get_train_dataloader().batch_sampler)[1])))
    with pytest.raises(torch.OutOfMemoryError) as caught:
        trainer.fit()
    assert caught.value.__notes__ == [f"In rows {rows} of sft. Use a lower `tokens_per_micro_batch`."]
    assert sft(tmp_path, save_steps=1, tokens_per_micro_batch=30).fit().steps == 3


# Rows and arguments -------------------------------------------------------------------------------------------------


def test_no_rows_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`train_dataset` of sft must have at least one row"):
        SftTrainer(load(), arguments(tmp_path), [])


def test_rows_that_cannot_be_used_are_counted_and_named(tmp_path: Path) -> None:
    """TRN-02, TRN-05: never a batch without labels."""
    rows = [*ROWS, Sample((5, 6), ()), Sample((), (5,))]
    with pytest.raises(ValueError, match="has 2 rows .* row 11: it has no action; row 12: it has no prompt"):
        SftTrainer(load(), arguments(tmp_path), rows)


def test_a_row_beyond_the_models_length_is_named_before_any_update(tmp_path: Path) -> None:
    rows = [*ROWS, Sample(tuple([5] * 2499), (6, 7))]
    shared = load()
    version = shared.role_version("actor")
    with pytest.raises(ValueError, match="row 11: it has 2501 tokens, the model takes 2500"):
        SftTrainer(shared, arguments(tmp_path, batch_size=1), rows)
    assert shared.role_version("actor") == version


@pytest.mark.parametrize(
    "setting",
    [
        {"bf16": True},
        {"gradient_checkpointing": True},
        {"eval_strategy": "steps", "eval_steps": 1},
        {"dataloader_drop_last": True},
        {"neftune_noise_alpha": 5.0},
        {"data_seed": 5},
    ],
)
def test_an_argument_that_would_do_nothing_is_refused(tmp_path: Path, setting: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be left off"):
        arguments(tmp_path, **setting)


def test_training_under_autocast_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `accelerate launch --mixed_precision bf16` would have it; the log ratio of equal weights would not be 0."""
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    with pytest.raises(RuleError, match="`mixed_precision` must be no"):
        sft(tmp_path)


@pytest.mark.parametrize("setting", [{"batch_size": 0}, {"tokens_per_micro_batch": 0}])
def test_sizes_must_be_positive(tmp_path: Path, setting: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        arguments(tmp_path, **setting)


def test_every_setting_of_a_run_reaches_the_arguments(tmp_path: Path) -> None:
    settings = OrmConfig(
        learning_rate=0.5, schedule="cosine", warmup=0.25, epochs=2.5, batch_size=7, tokens_per_micro_batch=99,
        max_grad_norm=0.3, weight_decay=0.2,
    )  # fmt: skip
    args = OrmArguments.from_settings(settings, tmp_path, device=torch.device("cpu"), seed=5, report_to="tensorboard")
    assert (args.learning_rate, args.lr_scheduler_type, args.warmup_steps, args.num_train_epochs) == (
        0.5, "cosine", 0.25, 2.5,
    )  # fmt: skip
    assert (args.batch_size, args.tokens_per_micro_batch, args.max_grad_norm, args.weight_decay) == (7, 99, 0.3, 0.2)
    assert (args.seed, args.report_to, args.output_dir, args.use_cpu) == (5, ["tensorboard"], str(tmp_path), True)


# Numbers ------------------------------------------------------------------------------------------------------------


def documented(trainer: type[RoleTrainer]) -> set[str]:
    """Names between double backquotes in the docstrings' lists of numbers."""
    shared = RoleTrainer.__doc__.split("Logged by every trainer", 1)[1]
    own = trainer.__doc__.split("Logged beside", 1)[1]
    names = set(re.findall(r"``(\w+)``[,:;]", shared + own)) - {"metrics", "policy_loss", "max_grad_norm"}
    return {name if name in ("step", "epoch") else f"{trainer.name}/{name}" for name in names}


def test_every_logged_number_has_a_sentence_in_the_docstring(tmp_path: Path) -> None:
    sft(tmp_path / "sft").fit()
    assert {name for line in lines(tmp_path / "sft") for name in line} == documented(SftTrainer)
    CriticTrainer(load(), CriticArguments(output_dir=str(tmp_path / "critic"), use_cpu=True), STATES).fit()
    assert {name for line in lines(tmp_path / "critic") for name in line} == documented(CriticTrainer)


def test_numbers_go_to_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sft(tmp_path, report_to="tensorboard").fit()
    (file,) = tmp_path.rglob("events.out.tfevents.*")
    events = EventAccumulator(str(file)).Reload()
    assert [event.step for event in events.Scalars("train/loss")] == [1, 2, 3]


def test_the_progress_bar_names_the_trainer_and_shows_the_loss(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sft(tmp_path, disable_tqdm=False).fit()
    out, err = capfd.readouterr()
    assert not out
    assert re.search(r"sft: 100%.* 3/3 .*loss=\d", err)
    assert "grad_norm" not in err


# Files --------------------------------------------------------------------------------------------------------------


def test_the_result_and_every_checkpoint_load_in_peft_in_one_call(tmp_path: Path) -> None:
    """ADAPTERS 3: the layout that vLLM reads too, adapter_config.json beside adapter_model.safetensors."""
    trainer = sft(tmp_path)
    trained = trainer.fit()
    assert trained.folder == tmp_path / "final"
    ids = torch.tensor([[5, 9, 40, 41, 7]])
    with trainer.shared.role("actor"):
        expected = trainer.shared.model(ids).logits
    for folder in (trained.folder, tmp_path / "checkpoint-3"):
        base = AutoModelForCausalLM.from_pretrained(model_folder("llama"))
        model = PeftModel.from_pretrained(base, folder).eval()
        with torch.no_grad():
            assert torch.allclose(model(ids).logits, expected, atol=1e-5)
        config = json.loads((folder / "adapter_config.json").read_text())
        assert (config["peft_type"], config["r"], config["modules_to_save"], config["bias"]) == (
            "LORA",
            4,
            None,
            "none",
        )


def test_adapters_that_were_trained_have_weights_in_every_layer(tmp_path: Path) -> None:
    """CKP-06: 3 layers with 7 linear layers of 2 matrices each; the critic's head lies beside them."""
    sft(tmp_path / "sft").fit()
    CriticTrainer(load(), CriticArguments(output_dir=str(tmp_path / "critic"), use_cpu=True), STATES).fit()
    for name in ("sft", "critic"):
        tensors = load_file(tmp_path / name / "final" / "adapter_model.safetensors")
        assert len(tensors) == 42
        assert all(tensor.any() for tensor in tensors.values())
    assert (tmp_path / "critic" / "final" / "value_head.safetensors").is_file()
    assert not (tmp_path / "sft" / "final" / "value_head.safetensors").exists()


def test_only_the_last_checkpoints_are_kept_while_training_and_one_in_the_end(tmp_path: Path) -> None:
    trainer = sft(tmp_path, num_train_epochs=2, save_steps=1)
    interrupted(trainer, after=5)
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-3", "checkpoint-4"]
    sft(tmp_path, num_train_epochs=2, save_steps=1).fit()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-6", "final", "metrics.jsonl"]


@pytest.mark.parametrize("after", [1, 3, 4])
@pytest.mark.parametrize("epochs", [2, 1.4])
def test_a_run_that_was_interrupted_ends_in_the_same_weights(tmp_path: Path, after: int, epochs: float) -> None:
    settings = {"num_train_epochs": epochs, "save_steps": 2, "weight_decay": 0.01}
    sft(tmp_path / "whole", **settings).fit()
    interrupted(sft(tmp_path / "cut", **settings), after)
    sft(tmp_path / "cut", **settings).fit()
    read = functools.partial(Path.read_bytes)
    assert read(tmp_path / "cut/final/adapter_model.safetensors") == read(
        tmp_path / "whole/final/adapter_model.safetensors"
    )
    timeless = [
        [{k: v for k, v in line.items() if "second" not in k} for line in lines(tmp_path / n)] for n in ("cut", "whole")
    ]  # noqa: E501
    assert timeless[0] == timeless[1]


@pytest.mark.parametrize("epochs", [1, 0.5])
def test_a_finished_run_is_loaded_and_not_trained_further(tmp_path: Path, epochs: float) -> None:
    first = sft(tmp_path, num_train_epochs=epochs)
    done = first.fit()
    again = sft(tmp_path, num_train_epochs=epochs)
    assert again.fit() == done
    assert again.shared.role_version("actor") == first.shared.role_version("actor")
    assert len(lines(tmp_path)) == done.steps


def test_a_run_goes_on_with_the_same_settings_and_data_or_not_at_all(tmp_path: Path) -> None:
    """CKP-08: every differing key is listed before any work; how often numbers are logged is no difference."""
    sft(tmp_path).fit()
    with pytest.raises(RuleError, match="learning_rate: saved 0.01, here 0.5; seed: saved 0, here 3"):
        sft(tmp_path, learning_rate=0.5, seed=3).fit()
    with pytest.raises(RuleError, match="data: saved .*; rows: saved 11, here 10"):
        SftTrainer(load(), arguments(tmp_path), ROWS[1:]).fit()
    with pytest.raises(RuleError, match="base: saved"):
        sft(tmp_path, load("lfm2")).fit()
    with pytest.raises(RuleError, match="other settings: r: saved 4, here 8"):
        sft(tmp_path, load(rank=8)).fit()
    with pytest.raises(RuleError, match="other settings: lr_scheduler_kwargs: saved None, here {'num_cycles': 2}"):
        sft(tmp_path, lr_scheduler_kwargs={"num_cycles": 2}).fit()
    sft(tmp_path, logging_steps=5, report_to="tensorboard", save_total_limit=7, tokens_per_micro_batch=64).fit()


def test_a_base_that_differs_above_its_embeddings_is_another_base(tmp_path: Path) -> None:
    """CKP-08: a fine-tuned model often has its parent's embeddings; so has the same one in another precision."""
    versions = {sft(tmp_path).settings["base"]}
    tuned = load()
    with torch.no_grad():
        tuned.model.get_base_model().model.layers[2].mlp.up_proj.base_layer.weight.mul_(2)
    for shared in (tuned, load(dtype="bfloat16"), load("llama-64"), load("llama-64", quantization="nf4")):
        versions.add(sft(tmp_path, shared).settings["base"])
    assert len(versions) == 5
    trained = stirred()
    assert sft(tmp_path, trained).settings["base"] == sft(tmp_path).settings["base"]  # adapters are no part of it


def test_train_alone_does_not_overwrite_an_earlier_run(tmp_path: Path) -> None:
    sft(tmp_path).fit()
    with pytest.raises(RuleError, match="has checkpoints of an earlier run"):
        sft(tmp_path).train()
    assert sft(tmp_path).train(resume_from_checkpoint=True).global_step == 3
    with pytest.raises(RuleError, match="no checkpoint to go on from"):
        sft(tmp_path / "other").train(resume_from_checkpoint=True)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), RuntimeError("file write failed")])
def test_a_full_disk_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """CKP-05: torch reports a full disk as a RuntimeError."""
    settings = {"num_train_epochs": 2, "save_steps": 2}
    sft(tmp_path / "whole", **settings).fit()
    save = torch.save

    def full(what: object, file: str) -> None:
        if "checkpoint-4" in file and "scheduler" in file:
            raise error
        save(what, file)

    with (
        monkeypatch.context() as patched,
        pytest.raises(OSError, match="checkpoint-4` was not written: .*before it is"),
    ):
        patched.setattr(torch, "save", full)
        sft(tmp_path / "full", **settings).fit()
    assert sorted(path.name for path in (tmp_path / "full").iterdir()) == ["checkpoint-2", "metrics.jsonl"]
    assert sft(tmp_path / "full", **settings).fit().steps == 6
    same = [(tmp_path / name / "final/adapter_model.safetensors").read_bytes() for name in ("whole", "full")]
    assert same[0] == same[1]
