from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tiny_models import load, stir
from torch import Tensor
from trainer_runs import ROWS

from webrl_lite import sft
from webrl_lite.config import SftConfig
from webrl_lite.model import Sample, SharedBase, TrunkBudget
from webrl_lite.sft import SftArguments, SftTrainer


def gradients(shared: SharedBase) -> list[Tensor]:
    found = [parameter.grad.clone() for parameter in shared.trainable_parameters("actor")]
    for parameter in shared.trainable_parameters("actor"):
        parameter.grad = None
    return found


def ours(shared: SharedBase, rows: Sequence[Sample], folder: Path) -> tuple[float, list[Tensor]]:
    trainer = SftTrainer(shared, SftArguments(output_dir=str(folder), use_cpu=True), rows)
    loss = trainer.training_step(trainer.model, list(enumerate(rows))).item()
    return loss, gradients(shared)


def labelled(shared: SharedBase, rows: Sequence[Sample]) -> tuple[float, list[Tensor]]:
    """The loss that transformers computes by itself from labels of -100 on prompt and padding, which TRL uses."""
    width = max(len(row.row) for row in rows)
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    labels, mask = torch.full_like(ids, -100), torch.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row.row)] = torch.tensor(row.row)
        mask[place, : len(row.row)] = 1
        labels[place, len(row.prompt) : len(row.row)] = torch.tensor(row.action)
    with shared.role("actor", train=True):
        loss = shared.model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
    return loss.item(), gradients(shared)


def test_loss_and_gradient_are_those_of_masked_labels_in_transformers(tmp_path: Path) -> None:
    shared = load()
    stir(shared, "actor")
    loss, gradient = ours(shared, ROWS, tmp_path)
    expected, expected_gradient = labelled(shared, ROWS)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(gradient, expected_gradient, strict=True))


def test_the_end_of_turn_is_learned_although_it_is_the_padding_token_too(tmp_path: Path) -> None:
    """TRN-01: 1 is end of turn and padding. Without preference among 320 tokens the loss is ln 320 = 5.768321."""
    rows = [Sample((5, 6, 7, 8), (9, 1)), Sample((5, 6), (1,))]
    shared = load()
    assert shared.tokenizer.pad_token_id == shared.tokenizer.eos_token_id == 1
    with torch.no_grad():
        shared.model.get_base_model().lm_head.weight.zero_()
    trainer = SftTrainer(shared, SftArguments(output_dir=str(tmp_path), use_cpu=True), rows)
    loss = trainer.training_step(trainer.model, list(enumerate(rows))).item()
    assert loss == pytest.approx(5.768321, abs=1e-5)

    shared = load()
    settings = SftConfig(learning_rate=0.02, batch_size=2, epochs=30, warmup=0.0)
    sft.train(shared, rows, settings, tmp_path / "run")
    with shared.role("actor"):
        replies = shared.generate([row.prompt for row in rows], temperature=0, top_p=1, max_new_tokens=5, stop_ids=[1])
    assert [reply.token_ids for reply in replies] == [(9, 1), (1,)]


def test_the_mean_is_over_tokens_so_long_actions_weigh_more(tmp_path: Path) -> None:
    shared = load()
    stir(shared, "actor")
    rows = [Sample((5, 6, 7), (8,)), Sample((5, 6, 7), (9, 10, 1))]
    one, three = (ours(shared, [row], tmp_path)[0] for row in rows)
    assert ours(shared, rows, tmp_path)[0] == pytest.approx((one + 3 * three) / 4, rel=1e-5)


def test_ids_are_trained_as_they_are_and_not_tokenised_again(tmp_path: Path) -> None:
    """TRN-08: `he` and `llo` decode to `hello`, which encodes to other ids; so do ids that are no text at all."""
    shared = load()
    ids = tuple(shared.tokenizer.convert_tokens_to_ids(["he", "l", "l", "o"]))
    assert tuple(shared.tokenizer.encode(shared.tokenizer.decode(ids), add_special_tokens=False)) != ids
    seen = []
    action_logprobs = shared.action_logprobs
    shared.action_logprobs = lambda samples, **how: seen.extend(samples) or action_logprobs(samples, **how)
    ours(shared, [Sample((0, 3, 5), (*ids, 1))], tmp_path)
    assert seen == [Sample((0, 3, 5), (*ids, 1))]


def test_only_the_actor_is_trained(tmp_path: Path) -> None:
    shared = load()
    before = {role: shared.role_version(role) for role in ("actor", "ref", "critic", "orm")}
    trained = sft.train(shared, ROWS, SftConfig(batch_size=4), tmp_path)
    assert {role for role in before if shared.role_version(role) != before[role]} == {"actor"}
    assert (trained.steps, trained.folder) == (3, tmp_path / "final")
    assert trained.metrics["loss"] > 0


def test_adapters_on_the_top_layers_train_the_same_with_the_trunk_cached(tmp_path: Path) -> None:
    found = []
    for budget in (TrunkBudget(memory_bytes=0), TrunkBudget()):
        shared = load(top_layers=1, trunk=budget)
        sft.train(shared, ROWS, SftConfig(batch_size=4, epochs=2), tmp_path / str(len(found)))
        found.append(shared.role_version("actor"))
    assert found[0] == found[1]
