import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tiny_models import load, stir
from trainer_runs import ROWS

from webrl_lite import actor
from webrl_lite.actor import ActorArguments, ActorTrainer
from webrl_lite.baselines import METHODS
from webrl_lite.batching import RuleError
from webrl_lite.config import ActorConfig
from webrl_lite.model import SharedBase
from webrl_lite.replay import Experience
from webrl_lite.role_trainer import RoleTrainer

ADVANTAGES = (0.55, -0.8, 0.4, 0.2, 0.05, -0.1, -0.3, 0.55, 0.4, 0.2, 0.35)
TRAINED = [name for name, method in METHODS.items() if method.loss is not None]


def experience(shared: SharedBase, advantages: Sequence[float] = ADVANTAGES, role: str = "ref") -> list[Experience]:
    """The rows of ``trainer_runs`` as a phase would hand them over: scored in one pass under the reference."""
    samples = ROWS[: len(advantages)]
    with shared.role(role):
        scores = shared.action_logprobs(samples).tolist()
    return [
        Experience(
            task_id="task",
            trajectory_id=f"episode-{i}",
            step=0,
            steps=1,
            prompt=sample.prompt,
            action=sample.action,
            reward=1.0,
            source="replay" if i % 4 == 3 else "current",
            site="shopping",
            phase=1,
            ref_logprob=score,
            perplexity=math.exp(-score / len(sample.action)),
            value=0.5,
            advantage=a,
        )
        for i, (sample, score, a) in enumerate(zip(samples, scores, advantages, strict=True))
    ]


def phase_start(dtype: str = "float32") -> SharedBase:
    """An actor that has learned something, and a reference that is its copy."""
    shared = load(dtype=dtype)
    stir(shared, "actor", "critic", "orm")
    shared.copy_role("actor", "ref")
    return shared


def trainer(folder: Path, shared: SharedBase, rows: Sequence[Experience], **settings: object) -> ActorTrainer:
    chosen = {"batch_size": 4, "learning_rate": 0.01, "disable_tqdm": True, "use_cpu": True}
    return ActorTrainer(shared, ActorArguments(output_dir=str(folder), **(chosen | settings)), rows)


def lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


# The start ----------------------------------------------------------------------------------------------------------


def test_the_log_ratio_is_exactly_0_where_rows_and_weights_are_the_same(tmp_path: Path) -> None:
    """TRN-13: one code path scores and trains, so equal is equal. Then residual = -A, and A > 0 is pushed up."""
    shared = phase_start()
    one = trainer(tmp_path, shared, experience(shared), batch_size=11)
    with shared.role("actor", train=True):
        loss, metrics = one.compute_loss(one.model, one.train_dataset, return_outputs=True)
    assert (metrics["log_ratio"].item(), metrics["kl"].item()) == (0.0, 0.0)
    assert loss.item() == pytest.approx(sum(a * a for a in ADVANTAGES) / 11, rel=1e-6)
    assert metrics["residual"].item() == pytest.approx(-sum(ADVANTAGES) / 11, rel=1e-6)
    assert metrics["pushed_up"].item() == pytest.approx(8 / 11)
    assert metrics["replayed"].item() == pytest.approx(2 / 11)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_other_rows_beside_it_are_no_stale_reference(tmp_path: Path, dtype: str) -> None:
    """Scored in one pass of eleven, trained one by one and in fours: rounding, which is let through."""
    shared = phase_start(dtype)
    rows = experience(shared)
    for tokens in (1, 60):
        trainer(tmp_path / str(tokens), shared, rows, tokens_per_micro_batch=tokens, learning_rate=0.0).fit()
    assert abs(lines(tmp_path / "60")[0]["actor/log_ratio"]) < (1e-4 if dtype == "float32" else 0.3)


def test_rows_scored_by_other_weights_are_refused_before_any_update(tmp_path: Path) -> None:
    """FACTS 14, TRN-17: the raw base, or an actor that has moved on, is the wrong reference."""
    shared = phase_start()
    stir(shared, "orm", "ref")  # another adapter, as if the base or an older actor had scored
    version = shared.role_version("actor")
    with pytest.raises(RuleError, match=r"episode-\d+ step 0 \(\w+\) is off by .* nats a token. It is stale"):
        trainer(tmp_path, shared, experience(shared)).fit()
    assert shared.role_version("actor") == version


def test_a_single_stale_row_is_named(tmp_path: Path) -> None:
    shared = phase_start()
    rows = experience(shared)
    rows[7] = dataclasses.replace(rows[7], ref_logprob=rows[7].ref_logprob + 0.01)
    with pytest.raises(RuleError, match=r"episode-7 step 0 \(replay\)"):
        trainer(tmp_path, shared, rows, batch_size=11).fit()


def test_a_run_that_goes_on_is_not_taken_for_stale(tmp_path: Path) -> None:
    """Behind the first update the log ratio is no longer 0, and must not be."""
    shared = phase_start()
    rows = experience(shared)
    settings = {"num_train_epochs": 2, "save_steps": 1}
    trainer(tmp_path / "whole", shared, rows, **settings).fit()
    again = phase_start()
    cut = trainer(tmp_path / "cut", again, rows, **settings)
    step = cut.training_step

    def killed(*args: object) -> torch.Tensor:
        if cut.state.global_step == 4:
            raise KeyboardInterrupt
        return step(*args)

    cut.training_step = killed
    with pytest.raises(KeyboardInterrupt):
        cut.fit()
    third = phase_start()
    assert trainer(tmp_path / "cut", third, rows, **settings).fit().steps == 6
    assert third.role_version("actor") == shared.role_version("actor")


# The update ---------------------------------------------------------------------------------------------------------


def test_good_actions_become_likelier_and_bad_ones_less_likely(tmp_path: Path) -> None:
    """TRN-31: both signs of A are learned; the release masks the negative ones out."""
    shared = phase_start()
    rows = experience(shared, [0.8, -0.8])
    trainer(tmp_path, shared, rows, num_train_epochs=15, learning_rate=0.001).fit()
    with shared.role("actor"):
        after = shared.action_logprobs([row.sample for row in rows]).tolist()
    assert after[0] > rows[0].ref_logprob
    assert after[1] < rows[1].ref_logprob


def test_training_stops_at_the_target(tmp_path: Path) -> None:
    """Beta * log(pi / pi_ref) is regressed onto A: with beta 0.5 and A = 0.4 the log ratio goes to 0.8."""
    shared = phase_start()
    rows = experience(shared, [0.4, 0.4])
    trained = trainer(tmp_path, shared, rows, beta=0.5, num_train_epochs=60, learning_rate=0.003).fit()
    assert trained.metrics["log_ratio"] == pytest.approx(0.8, abs=0.1)
    assert trained.metrics["target_reached"] == 1.0
    with shared.role("actor"):
        after = shared.action_logprobs([row.sample for row in rows]).tolist()
    assert after == pytest.approx([row.ref_logprob + 0.8 for row in rows], abs=0.15)


def test_the_mean_reduction_divides_actor_and_reference_by_the_action_length(tmp_path: Path) -> None:
    """Log ratios 1.2 over 4 tokens and 0.3 over 1 token are 1.2 and 0.3 as sums, 0.3 and 0.3 as means."""
    shared = phase_start()
    rows = experience(shared)
    longest, shortest = rows[3], rows[4]
    assert (len(longest.action), len(shortest.action)) == (4, 1)
    shifted = [
        dataclasses.replace(longest, ref_logprob=longest.ref_logprob - 1.2, advantage=0.0),
        dataclasses.replace(shortest, ref_logprob=shortest.ref_logprob - 0.3, advantage=0.0),
    ]
    losses = {}
    for reduction in ("sum", "mean"):
        one = trainer(tmp_path, shared, shifted, reduction=reduction)
        one.state.global_step = 1  # these rows are shifted on purpose
        with shared.role("actor", train=True):
            losses[reduction] = one.compute_loss(one.model, shifted).item()
    assert losses["sum"] == pytest.approx((1.44 + 0.09) / 2, abs=1e-4)
    assert losses["mean"] == pytest.approx(0.09, abs=1e-4)


def test_a_method_that_fixes_the_reduction_is_not_asked(tmp_path: Path) -> None:
    shared = phase_start()
    rows = [dataclasses.replace(row, advantage=1.0, ref_logprob=row.ref_logprob - 0.5) for row in experience(shared)]
    losses = set()
    for reduction in ("sum", "mean"):
        one = trainer(tmp_path, shared, rows, method="webrl-released", reduction=reduction)
        one.state.global_step = 1
        with shared.role("actor", train=True):
            losses.add(one.compute_loss(one.model, rows).item())
    assert len(losses) == 1


def test_the_divergence_is_estimated_from_the_whole_actions_log_ratio(tmp_path: Path) -> None:
    """e^0.5 - 1 - 0.5 = 0.148721 for a log ratio of 0.5, and it is 0 only at 0."""
    shared = phase_start()
    rows = [dataclasses.replace(row, ref_logprob=row.ref_logprob - 0.5) for row in experience(shared)]
    one = trainer(tmp_path, shared, rows, reduction="mean")
    one.state.global_step = 1
    with shared.role("actor", train=True):
        _, metrics = one.compute_loss(one.model, rows, return_outputs=True)
    assert metrics["kl"].item() == pytest.approx(0.148721, abs=1e-4)


def test_credit_of_0_for_a_whole_batch_leaves_the_weights(tmp_path: Path) -> None:
    """TRN-03: cloning successes where all failed teaches nothing, and weight decay must not go on alone."""
    shared = phase_start()
    version = shared.role_version("actor")
    rows = experience(shared, [0.0] * 4)
    trained = trainer(tmp_path, shared, rows, method="webrl-no-kl", weight_decay=0.5).fit()
    assert shared.role_version("actor") == version
    assert (trained.metrics["skipped"], trained.metrics["kept"]) == (1.0, 0.0)


def test_the_actor_alone_is_trained_and_the_reference_stays(tmp_path: Path) -> None:
    """TRN-15, TRN-17."""
    shared = phase_start()
    before = {role: shared.role_version(role) for role in ("actor", "ref", "critic", "orm")}
    settings = ActorConfig(batch_size=4, learning_rate=0.01)
    assert actor.train(shared, experience(shared), settings, tmp_path).steps == 3
    assert {role for role in before if shared.role_version(role) != before[role]} == {"actor"}


# Methods and settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", TRAINED)
def test_every_method_trains_and_logs_what_the_docstring_says(tmp_path: Path, method: str) -> None:
    shared = phase_start()
    version = shared.role_version("actor")
    actor.train(shared, experience(shared), ActorConfig(batch_size=6), tmp_path, method=method)
    assert shared.role_version("actor") != version
    words = RoleTrainer.__doc__ + ActorTrainer.__doc__
    for line in lines(tmp_path):
        assert all(f"``{name.removeprefix('actor/')}``" in words for name in line)
        assert all(math.isfinite(value) for value in line.values())


def test_settings_of_the_run_reach_the_loss(tmp_path: Path) -> None:
    settings = ActorConfig(beta=0.25, reduction="mean", batch_size=3)
    args = ActorArguments.from_settings(settings, tmp_path, device=torch.device("cpu"))
    assert (args.beta, args.reduction, args.batch_size, args.method) == (0.25, "mean", 3, "webrl")
    shared = phase_start()
    actor.train(shared, experience(shared), settings, tmp_path / "run", method="awr")
    (manifest,) = (tmp_path / "run").glob("checkpoint-*/complete.json")
    saved = json.loads(manifest.read_text())["settings"]
    assert (saved["beta"], saved["reduction"], saved["method"], saved["batch_size"]) == ("0.25", "mean", "awr", "3")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"method": "ppo"}, "`method` must be one of webrl"),
        ({"method": "sft"}, "`method` must be one that trains the actor"),
        ({"beta": 0.0}, "`beta` must be above 0"),
        ({"beta": math.nan}, "`beta` must be above 0"),
        ({"reduction": "max"}, "`reduction` must be sum or mean"),
    ],
)
def test_settings_that_cannot_work_are_refused(tmp_path: Path, setting: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ActorArguments(output_dir=str(tmp_path), **setting)


@pytest.mark.parametrize("name", ["advantage", "ref_logprob"])
@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_rows_without_their_numbers_are_named(tmp_path: Path, name: str, value: float | None) -> None:
    shared = phase_start()
    rows = experience(shared)
    rows[2] = dataclasses.replace(rows[2], **{name: value})
    with pytest.raises(ValueError, match=f"row 2: its {name} must be a finite number, got {value}"):
        trainer(tmp_path, shared, rows)


def test_a_row_without_an_action_is_named(tmp_path: Path) -> None:
    """FACTS 13.24: an early-stopped episode ends with an empty reply."""
    shared = phase_start()
    rows = experience(shared)
    rows[2] = dataclasses.replace(rows[2], action=())
    with pytest.raises(ValueError, match="row 2: it has no action"):
        trainer(tmp_path, shared, rows)
