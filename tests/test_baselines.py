"""What the paper and the released codes of WebRL and DigiRL do differently, with numbers that a person can redo."""

import itertools

import pytest
import torch

from webrl_lite.baselines import (
    METHODS,
    above_percentile,
    awr_loss,
    imitation_loss,
    outcome,
    progress,
    released_credit,
    released_loss,
    return_minus_value,
    summed_score,
)
from webrl_lite.config import PRESETS
from webrl_lite.policy_loss import advantage, policy_loss

LOSSES = [policy_loss, imitation_loss, awr_loss, released_loss]
CREDITS = [advantage, outcome, return_minus_value, progress, released_credit]


def close(found: torch.Tensor, expected: list[float]) -> None:
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-5, atol=1e-6)


def slopes(loss, ratios: list[float], ref: float, credit: list[float], beta: float = 1.0) -> torch.Tensor:
    """Slope of the loss in log pi of each action alone (times the batch size), at log ratios from one reference."""
    reference = torch.full((len(ratios),), ref)
    logprob = (reference + torch.tensor(ratios)).requires_grad_()
    value, _ = loss(logprob, reference, torch.tensor(credit), beta)
    value.backward()
    return logprob.grad * len(ratios)


# Difference 1 and 5: the advantage ----------------------------------------------------------------------------------


def test_released_return_counts_the_score_of_every_step():
    """1; 1 + .9; + .81; + .729; + .6561: 4.0951, 3.439, 2.71, 1.9, 1."""
    close(summed_score(5, 1.0, 0.9), [4.0951, 3.439, 2.71, 1.9, 1.0])
    close(summed_score(3, 0.0, 0.9), [0.0, 0.0, 0.0])


def test_released_return_without_discount_counts_the_steps_left():
    close(summed_score(3, 1.0, 1.0), [3.0, 2.0, 1.0])


def test_every_step_of_a_success_is_plus_one_in_the_release():
    """The worst case, V falling from 1 to 0: 0 - 1 - .05 + 1 + 1.9 = 1.85 and 0 - 0 - .05 + 1 + 1 = 1.95."""
    close(released_credit(torch.tensor([1.0, 0.0]), 1.0, 0.5, 0.9), [1.0, 1.0])
    close(released_credit(torch.tensor([0.9, 0.1, 0.8, 0.0, 0.7]), 1.0, 0.5, 0.9), [1.0, 1.0, 1.0, 1.0, 1.0])


def test_a_failed_step_that_raises_the_value_by_the_margin_is_plus_one_in_the_release():
    """V rises by .06, falls by .01, rises by .04, ends: +.01, -.06, -.01, -.05 after the margin."""
    values = torch.tensor([0.50, 0.56, 0.55, 0.59])
    close(released_credit(values, 0.0, 0.5, 0.9), [1.0, -0.6, -0.6, -0.6])


def test_a_rise_by_exactly_the_margin_counts_in_the_release_and_not_in_digirl():
    """0.05 - 0 - 0.05 = 0: WebRL's code asks for at least 0, DigiRL's for more than 0."""
    values = torch.tensor([0.0, 0.05])
    close(released_credit(values, 0.0, 0.5, 0.9), [1.0, -0.6])
    close(progress(values, 0.0, 0.5, 0.9), [0.0, 0.0])


def test_the_paper_keeps_size_and_both_signs_where_the_release_has_two_values():
    """TRN-19: V = .2 .5 .8, failed. Paper: .05, -.10, -.80 (lambda .5). Release: .3 and .3 pass the margin, 0 not."""
    values = torch.tensor([0.2, 0.5, 0.8])
    close(advantage(values, 0.0), [0.05, -0.10, -0.80])
    close(released_credit(values, 0.0, 0.5, 1.0), [1.0, 1.0, -0.6])


# Difference 1 and 6: lambda and gamma -------------------------------------------------------------------------------


@pytest.mark.parametrize(("lam", "gamma"), [(0.0, 1.0), (1.0, 1.0), (0.5, 0.9), (0.5, 0.01)])
def test_lambda_and_gamma_change_nothing_in_the_releases(lam, gamma):
    values = torch.tensor([0.2, 0.5, 0.4])
    close(released_credit(values, 0.0, lam, gamma), [1.0, -0.6, -0.6])
    close(released_credit(values, 1.0, lam, gamma), [1.0, 1.0, 1.0])
    close(progress(values, 0.0, lam, gamma), [1.0, 0.0, 0.0])
    close(progress(values, 1.0, lam, gamma), [1.0, 1.0, 1.0])


def test_lambda_and_gamma_change_the_papers_advantage():
    """V = .4 .6, success: lambda 1 gives .6 - .4, lambda 0 gives 1 - .4; gamma .5 halves what lies ahead."""
    values = torch.tensor([0.4, 0.6])
    close(advantage(values, 1.0, lam=1.0), [0.2, 0.4])
    close(advantage(values, 1.0, lam=0.0), [0.6, 0.4])
    close(advantage(values, 1.0, lam=1.0, gamma=0.5), [-0.1, 0.4])


def test_the_sign_of_the_released_return_is_the_outcome_under_any_discount():
    """The release's critic learns whether this is above 0: 1.0101 is, and 0 is not."""
    close(summed_score(3, 1.0, 0.01), [1.0101, 1.01, 1.0])
    close(summed_score(3, 0.0, 0.01), [0.0, 0.0, 0.0])


# Difference 7: after the last step ----------------------------------------------------------------------------------


def test_the_last_step_of_a_failure_loses_its_whole_value_in_the_paper_and_the_margin_in_the_release():
    """TRN-20: V = .8 at the end of a failure. Paper: 0 - .8. Release: V is unchanged, so -.05, whose sign gives -.6."""
    assert advantage(torch.tensor([0.1, 0.8]), 0.0)[-1].item() == pytest.approx(-0.8)
    assert advantage(torch.tensor([0.1, 0.02]), 0.0)[-1].item() == pytest.approx(-0.02)
    assert released_credit(torch.tensor([0.1, 0.8]), 0.0, 0.5, 1.0)[-1].item() == pytest.approx(-0.6)
    assert released_credit(torch.tensor([0.1, 0.02]), 0.0, 0.5, 1.0)[-1].item() == pytest.approx(-0.6)


@pytest.mark.parametrize(("reward", "released", "digirl"), [(1.0, 1.0, 1.0), (0.0, -0.6, 0.0)])
def test_one_step_trajectory(reward, released, digirl):
    close(released_credit(torch.tensor([0.3]), reward, 0.5, 0.9), [released])
    close(progress(torch.tensor([0.3]), reward, 0.5, 0.9), [digirl])


# Difference 2: negative advantages ----------------------------------------------------------------------------------


def test_bad_actions_are_pushed_down_by_the_paper_and_dropped_by_the_release():
    """TRN-31: at log ratio 0 with A = -.6 the paper's slope is -2 * 1 * -.6 = 1.2, the release's 0."""
    close(slopes(policy_loss, [0.0], -1.0, [-0.6]), [1.2])
    close(slopes(released_loss, [0.0], -1.0, [-0.6]), [0.0])


def test_a_masked_action_still_counts_in_the_mean():
    """One credited action at x = 0 (SmoothL1 of 1 is .5) and one masked: (.5 + 0) / 2."""
    loss, metrics = released_loss(torch.tensor([-1.0, -1.0]), torch.tensor([-1.0, -1.0]), torch.tensor([1.0, -0.6]), 1)
    assert loss.item() == pytest.approx(0.25)
    assert metrics["kept"].item() == 0.5


# Difference 3: beta, SmoothL1, no pull-back -------------------------------------------------------------------------

X = [-0.5, 0.0, 0.1, 0.2, 0.5, 2.0]


def test_released_slope_where_the_reference_is_unsure():
    """Mean log-prob -1 is probability .37, so beta is 1: -clip(1 - x, 0, 1)."""
    close(slopes(released_loss, X, -1.0, [1.0] * 6), [-1.0, -1.0, -0.9, -0.8, -0.5, 0.0])


def test_released_slope_where_the_reference_is_sure():
    """Mean log-prob -.1 is probability .90, so beta is 5: -clip(1 - 5x, 0, 1)."""
    close(slopes(released_loss, X, -0.1, [1.0] * 6), [-1.0, -1.0, -0.5, 0.0, 0.0, 0.0])


def test_the_papers_slope_pulls_back_beyond_the_target():
    """2 * (x - 1) with beta 1."""
    close(slopes(policy_loss, X, -1.0, [1.0] * 6), [-3.0, -2.0, -1.8, -1.6, -1.0, 2.0])


def test_the_reference_is_sure_from_a_probability_of_four_fifths():
    """The log of .8 is -.2231. At x = .1 the slope is -.5 with beta 5, and -.9 with beta 1."""
    close(slopes(released_loss, [0.1], -0.2230, [1.0]), [-0.5])
    close(slopes(released_loss, [0.1], -0.2233, [1.0]), [-0.9])


def test_released_loss_values():
    """SmoothL1(beta x, 1) / beta.

    x = 0, beta 1: .5. x = .1, beta 5: .5 * .5^2 / 5 = .025. x = -1, beta 1: 2 - .5. x = 2: beta is lowered to 1 / 2, so
    that beta x = 1, and the loss 0.
    """
    for ratio, ref, expected in [(0.0, -1.0, 0.5), (0.1, -0.1, 0.025), (-1.0, -1.0, 1.5), (2.0, -3.0, 0.0)]:
        loss, _ = released_loss(torch.tensor([ref + ratio]), torch.tensor([ref]), torch.tensor([1.0]), 1.0)
        assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_released_beta_ignores_the_configured_one():
    close(slopes(released_loss, [0.1], -1.0, [1.0], beta=0.01), [-0.9])
    close(slopes(released_loss, [0.1], -1.0, [1.0], beta=100.0), [-0.9])


# Difference 4: the token count --------------------------------------------------------------------------------------


def test_released_loss_of_a_batch_is_the_mean_of_its_actions_alone():
    """The release divides by the tokens of all credited actions in the micro-batch, so this holds for 1 only there.

    Alone: .5, .5 * .9^2 = .405, masked 0, 1.5; their mean is .60125.
    """
    ref = torch.full((4,), -1.0)
    loss, _ = released_loss(ref + torch.tensor([0.0, 0.1, 0.3, -1.0]), ref, torch.tensor([1.0, 1.0, -0.6, 1.0]), 1.0)
    assert loss.item() == pytest.approx(0.60125, rel=1e-5)


def test_the_release_takes_means_over_tokens_and_the_paper_sums():
    assert METHODS["webrl-released"].reduction == "mean"
    assert METHODS["webrl"].reduction is None
    assert PRESETS["paper"]().actor.reduction == "sum"


# Differences 9 and 20: what a batch without credit does, and the order ------------------------------------------------


@pytest.mark.parametrize("loss", [imitation_loss, released_loss])
@pytest.mark.parametrize("credit", [0.0, -0.6])
def test_a_batch_without_credit_has_zero_loss_and_zero_gradient(loss, credit):
    """The release runs such a batch backward too: only momentum and weight decay move the weights then."""
    close(slopes(loss, [-0.5, 0.0, 0.5], -1.0, [credit] * 3), [0.0, 0.0, 0.0])
    value, metrics = loss(torch.tensor([-1.0]), torch.tensor([-1.0]), torch.tensor([credit]), 1.0)
    assert value.item() == 0.0
    assert metrics["kept"].item() == 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_the_order_of_a_batch_does_not_matter(loss):
    """The release never shuffles; what differs is the order of updates, not a loss."""
    logprob, ref = torch.tensor([-1.5, -0.5, -0.1, -3.0]), torch.tensor([-1.0, -1.0, -0.15, -0.5])
    credit = torch.tensor([1.0, -0.6, 1.0, 1.0])
    forward, _ = loss(logprob, ref, credit, 0.5)
    back, _ = loss(logprob.flip(0), ref.flip(0), credit.flip(0), 0.5)
    assert back.item() == pytest.approx(forward.item(), rel=1e-6)


# The signature that all losses share --------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ratio", [0.0, -0.0, 1e-30, -1e-30, 1e-6, 50.0, -1000.0])
def test_loss_and_gradient_are_finite(loss, ratio):
    """The release divides A by the log ratio and by the capped beta: 0 / 0 must not appear."""
    for credit, ref in itertools.product((1.0, 0.0, -0.6), (-1.0, -0.01, 0.0)):
        reference = torch.tensor([ref, -1.0])
        logprob = (reference + torch.tensor([ratio, 0.2])).requires_grad_()
        value, metrics = loss(logprob, reference, torch.tensor([credit, 1.0]), 1.0)
        value.backward()
        assert value.shape == ()
        assert torch.isfinite(value)
        assert torch.isfinite(logprob.grad).all()
        assert all(torch.isfinite(m) and not m.requires_grad and m.shape == () for m in metrics.values())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["ref_logprob", "advantage"])
def test_a_constant_that_requires_a_gradient_is_refused(loss, name):
    inputs = {"logprob": torch.zeros(1), "ref_logprob": torch.zeros(1), "advantage": torch.ones(1)}
    inputs[name].requires_grad_()
    with pytest.raises(ValueError, match=f"`{name}` must be a constant"):
        loss(**inputs, beta=1.0)


@pytest.mark.parametrize("loss", [imitation_loss, awr_loss])
def test_the_reference_has_no_effect_without_a_kl_constraint(loss):
    logprob, credit = torch.tensor([-1.0, -2.0]), torch.tensor([1.0, 0.0])
    near, _ = loss(logprob, torch.tensor([-1.0, -2.0]), credit, 1.0)
    far, _ = loss(logprob, torch.tensor([-9.0, -0.1]), credit, 1.0)
    assert near.item() == far.item()


@pytest.mark.parametrize("credit", CREDITS)
@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_every_credit_has_one_finite_float_for_each_step_and_keeps_the_values(credit, steps, reward):
    values = torch.linspace(0.2, 0.8, steps)
    before = values.clone()
    found = credit(values, reward, 0.5, 0.9)
    assert found.shape == (steps,)
    assert found.dtype == torch.float32
    assert torch.isfinite(found).all()
    assert torch.equal(values, before)


# Baselines ----------------------------------------------------------------------------------------------------------


def test_imitation_is_minus_the_mean_over_the_whole_batch():
    """-(-1 + 0 - 3) / 3 with the second action without credit; slopes -1, 0, -1 over 3."""
    loss, metrics = imitation_loss(torch.tensor([-1.0, -7.0, -3.0]), torch.zeros(3), torch.tensor([1.0, 0.0, 1.0]), 1.0)
    assert loss.item() == pytest.approx(4 / 3)
    assert metrics["kept"].item() == pytest.approx(2 / 3)
    close(slopes(imitation_loss, [0.0, 0.0, 0.0], -1.0, [1.0, 0.0, 1.0]), [-1.0, 0.0, -1.0])


def test_outcome_credits_all_steps_of_a_success_and_none_of_a_failure():
    close(outcome(torch.tensor([0.2, 0.9]), 1.0, 0.5, 0.9), [1.0, 1.0])
    close(outcome(torch.tensor([0.2, 0.9]), 0.0, 0.5, 0.9), [0.0, 0.0])


def test_digirl_imitates_successes_and_progress_in_failures():
    """V rises by .3, .3 and stays: after the margin .25, .25, -.05."""
    values = torch.tensor([0.2, 0.5, 0.8])
    close(progress(values, 0.0, 0.5, 0.9), [1.0, 1.0, 0.0])
    close(progress(values, 1.0, 0.5, 0.9), [1.0, 1.0, 1.0])


def test_awr_credit_is_the_discounted_outcome_minus_the_value():
    """V = .3 .4 .5, gamma .9. Success: .81 - .3, .9 - .4, 1 - .5. Failure: minus V."""
    values = torch.tensor([0.3, 0.4, 0.5])
    close(return_minus_value(values, 1.0, 0.5, 0.9), [0.51, 0.50, 0.50])
    close(return_minus_value(values, 1.0, 0.5, 1.0), [0.7, 0.6, 0.5])
    close(return_minus_value(values, 0.0, 0.5, 0.9), [-0.3, -0.4, -0.5])


def test_awr_weights_are_exponentials():
    """A = .5, -.5 with beta 1: e^.5 = 1.6487, e^-.5 = .6065; with beta .5: e^1 = 2.7183, e^-1 = .3679."""
    close(slopes(awr_loss, [0.0, 0.0], -1.0, [0.5, -0.5], beta=1.0), [-1.64872, -0.60653])
    close(slopes(awr_loss, [0.0, 0.0], -1.0, [0.5, -0.5], beta=0.5), [-2.71828, -0.36788])


def test_awr_loss_is_the_weighted_mean():
    """A = 0 and 1 with beta 1, log-probs -2 and -1: (1 * 2 + 2.71828 * 1) / 2 = 2.35914; weights' mean 1.85914."""
    loss, metrics = awr_loss(torch.tensor([-2.0, -1.0]), torch.zeros(2), torch.tensor([0.0, 1.0]), 1.0)
    assert loss.item() == pytest.approx(2.35914, rel=1e-5)
    assert metrics["weight"].item() == pytest.approx(1.85914, rel=1e-5)


@pytest.mark.parametrize("beta", [0.1, 1e-3, 1e-30])
def test_awr_weights_end_at_twenty(beta):
    """e^(1 / .1) = 22026; smaller betas overflow. A bad action's weight goes to 0: e^-10 = .0000454."""
    found = slopes(awr_loss, [0.0, 0.0], -1.0, [1.0, -1.0], beta)
    assert found[0].item() == pytest.approx(-20.0)
    assert -0.00005 < found[1].item() <= 0.0


def test_awr_raises_bad_actions_too():
    """Its weakness against the paper's loss: no weight is negative."""
    assert slopes(awr_loss, [0.0], -1.0, [-1.0]).item() < 0 < slopes(policy_loss, [0.0], -1.0, [-1.0]).item()


# Filtered behaviour cloning -----------------------------------------------------------------------------------------


def kept(outcomes: list[float], percentile: float = 70.0) -> list[int]:
    return above_percentile(torch.tensor(outcomes), percentile).nonzero().flatten().tolist()


def test_successes_are_kept_whether_rare_or_common():
    """Of ten: with 2 successes the 70th percentile is 0, with 3 it is .3, with 5 it is 1, which nothing exceeds."""
    assert kept([1, 0, 0, 0, 0, 0, 0, 0, 0, 1]) == [0, 9]
    assert kept([1, 0, 0, 0, 1, 0, 0, 0, 0, 1]) == [0, 4, 9]
    assert kept([1, 0, 1, 0, 1, 0, 1, 0, 0, 1]) == [0, 2, 4, 6, 9]


def test_graded_outcomes_above_the_percentile_are_kept():
    """0, .1, ..., 1: the 70th percentile is .7 itself, which is not above; the 50th is .5."""
    scale = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert kept(scale) == [8, 9, 10]
    assert kept(scale, 50.0) == [6, 7, 8, 9, 10]


def test_nothing_is_kept_if_all_fail():
    assert kept([0.0, 0.0, 0.0]) == []


def test_everything_is_kept_if_all_succeed():
    assert kept([1.0, 1.0, 1.0]) == [0, 1, 2]


def test_nothing_is_kept_of_nothing():
    found = above_percentile(torch.zeros(0), 70.0)
    assert found.shape == (0,)
    assert found.dtype == torch.bool


def test_one_trajectory_is_kept_if_it_succeeded():
    assert kept([1.0]) == [0]
    assert kept([0.0]) == []


def test_the_ends_of_the_percentile():
    """Above the 0th percentile lies all but the worst; above the 100th nothing, so the best stays."""
    assert kept([0.0, 0.5, 1.0], 0.0) == [1, 2]
    assert kept([0.0, 0.5, 1.0], 100.0) == [2]


def test_whole_numbers_are_outcomes_too():
    assert above_percentile(torch.tensor([0, 1, 0, 0]), 70.0).tolist() == [False, True, False, False]


# Methods ------------------------------------------------------------------------------------------------------------


def test_the_table_has_the_methods_of_the_comparison():
    assert set(METHODS) == {
        "webrl",
        "webrl-no-kl",
        "webrl-no-replay",
        "webrl-no-kl-no-replay",
        "webrl-no-curriculum",
        "webrl-all-ppl",
        "webrl-released",
        "digirl",
        "awr",
        "filtered_bc",
        "sft",
    }


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_names_its_source(name):
    assert any(word in METHODS[name].source for word in ("Eq.", "Table", "Section", "trainer.py"))


@pytest.mark.parametrize("name", list(METHODS))
def test_a_method_has_a_loss_and_a_credit_or_neither(name):
    assert (METHODS[name].loss is None) == (METHODS[name].credit is None) == (name == "sft")


@pytest.mark.parametrize("name", list(METHODS))
def test_a_perplexity_band_needs_replay_and_new_tasks_need_rollouts(name):
    method = METHODS[name]
    assert method.replay or not method.ppl_filter
    assert method.online or not method.curriculum


@pytest.mark.parametrize(
    ("name", "loss", "credit", "replay", "ppl_filter", "curriculum", "online"),
    [
        ("webrl", policy_loss, advantage, True, True, True, True),
        ("webrl-no-kl", imitation_loss, outcome, True, True, True, True),
        ("webrl-no-replay", policy_loss, advantage, False, False, True, True),
        ("webrl-no-kl-no-replay", imitation_loss, outcome, False, False, True, True),
        ("webrl-no-curriculum", policy_loss, advantage, True, True, False, True),
        ("webrl-all-ppl", policy_loss, advantage, True, False, True, True),
        ("webrl-released", released_loss, released_credit, True, True, True, True),
        ("digirl", imitation_loss, progress, True, False, False, True),
        ("awr", awr_loss, return_minus_value, False, False, False, False),
        ("filtered_bc", imitation_loss, outcome, False, False, False, False),
    ],
)
def test_a_row_says_what_the_method_does(name, loss, credit, replay, ppl_filter, curriculum, online):
    method = METHODS[name]
    assert (method.loss, method.credit) == (loss, credit)
    assert (method.replay, method.ppl_filter, method.curriculum, method.online) == (
        replay,
        ppl_filter,
        curriculum,
        online,
    )


def test_only_filtered_behaviour_cloning_filters_by_percentile():
    assert {name: m.percentile for name, m in METHODS.items() if m.percentile is not None} == {"filtered_bc": 70.0}
