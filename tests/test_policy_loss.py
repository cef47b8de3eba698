"""The second half of the explanation in ``policy_loss.py``: its equations with numbers that a person can redo."""

import pytest
import torch

from webrl_lite.policy_loss import action_logprob, advantage, gradient_weight, policy_loss

VALUES = torch.tensor([0.2, 0.5, 0.8])


def close(found: torch.Tensor, expected: list[float]) -> None:
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-5, atol=1e-6)


def test_advantage_of_a_success():
    """Next step: .5-.2, .8-.5, 1-.8 = .3, .3, .2. Final step: 1-V = .8, .5, .2. Half of each: .55, .40, .20."""
    close(advantage(VALUES, 1.0, lam=0.5), [0.55, 0.40, 0.20])


def test_advantage_of_a_failure_keeps_the_credit_of_a_good_first_step():
    """Next step: .3, .3, 0-.8. Final step: 0-V = -.2, -.5, -.8. Half of each: .05, -.10, -.80."""
    close(advantage(VALUES, 0.0, lam=0.5), [0.05, -0.10, -0.80])


def test_advantage_of_five_steps():
    """V = .3 .4 .5 .7 .8. Success: (.1+.7)/2, (.1+.6)/2, (.2+.5)/2, (.1+.3)/2, (.2+.2)/2; failure one half less."""
    values = torch.tensor([0.3, 0.4, 0.5, 0.7, 0.8])
    close(advantage(values, 1.0), [0.40, 0.35, 0.35, 0.20, 0.20])
    close(advantage(values, 0.0), [-0.10, -0.15, -0.15, -0.30, -0.80])


def test_terminal_value_is_zero():
    """TRN-20: V = .4, .6, r = 1, lambda .5: (.2 + .6)/2 and (1-.6 + 1-.6)/2; bootstrapping on itself would give .7."""
    close(advantage(torch.tensor([0.4, 0.6]), 1.0), [0.4, 0.4])


@pytest.mark.parametrize("lam", [0.0, 0.3, 1.0])
def test_last_step_advantage_is_reward_minus_value(lam):
    assert advantage(VALUES, 1.0, lam)[-1].item() == pytest.approx(0.2)
    assert advantage(VALUES, 0.0, lam)[-1].item() == pytest.approx(-0.8)


def test_lambda_one_is_the_next_step_and_lambda_zero_the_final_step():
    close(advantage(VALUES, 1.0, lam=1.0), [0.3, 0.3, 0.2])
    close(advantage(VALUES, 1.0, lam=0.0), [0.8, 0.5, 0.2])


def test_gamma_discounts_the_next_value_and_the_outcome():
    """V = .4, .6, r = 1, gamma .5, lambda .5: next .5*.6-.4 = -.1; final .5-.4 = .1; last step 1-.6 = .4."""
    close(advantage(torch.tensor([0.4, 0.6]), 1.0, gamma=0.5), [0.0, 0.4])


def test_one_step_trajectory():
    close(advantage(torch.tensor([0.3]), 1.0), [0.7])


def test_action_logprob_is_the_sum_over_the_action_tokens_only():
    """-1 - 0.5 and -2; the prompt's -9 and whatever stands at padding, even NaN, do not count."""
    token_logprobs = torch.tensor([[-9.0, -1.0, -0.5], [-9.0, -2.0, float("nan")]])
    mask = torch.tensor([[0, 1, 1], [0, 1, 0]])
    close(action_logprob(token_logprobs, mask), [-1.5, -2.0])


def test_padding_carries_no_gradient():
    token_logprobs = torch.tensor([[-1.0, -3.0]], requires_grad=True)
    action_logprob(token_logprobs, torch.tensor([[1, 0]])).sum().backward()
    close(token_logprobs.grad, [[1.0, 0.0]])


def test_loss_of_one_action():
    """Log ratio -1.2+2.0 = .8, times .5 = .4, minus .55 = -.15, squared .0225."""
    loss, metrics = policy_loss(torch.tensor([-1.2]), torch.tensor([-2.0]), torch.tensor([0.55]), beta=0.5)
    assert loss.item() == pytest.approx(0.0225, rel=1e-5)
    assert metrics["log_ratio"].item() == pytest.approx(0.8)
    assert metrics["residual"].item() == pytest.approx(-0.15)
    assert metrics["pushed_up"].item() == 1.0
    assert metrics["target_reached"].item() == 0.0


def test_loss_is_the_mean_over_the_batch():
    """Residuals -.15 and +.35: (.0225 + .1225) / 2 = .0725; one of two is pushed up."""
    loss, metrics = policy_loss(
        torch.tensor([-1.2, -1.2]), torch.tensor([-2.0, -2.0]), torch.tensor([0.55, 0.05]), beta=0.5
    )
    assert loss.item() == pytest.approx(0.0725, rel=1e-5)
    assert metrics["pushed_up"].item() == 0.5


def test_loss_is_zero_exactly_at_the_target():
    """Log ratio .8 = A / beta = .4 / .5."""
    loss, metrics = policy_loss(torch.tensor([-1.2]), torch.tensor([-2.0]), torch.tensor([0.4]), beta=0.5)
    assert loss.item() == pytest.approx(0.0, abs=1e-12)
    assert metrics["target_reached"].item() == 1.0


def test_gradient_weight_is_the_docstring_table():
    ref = torch.full((4,), -2.0)
    weights = gradient_weight(
        torch.tensor([-2.0, -1.2, -1.2, -2.0]), ref, torch.tensor([0.55, 0.55, 0.05, -0.30]), beta=0.5
    )
    close(weights, [0.55, 0.15, -0.35, -0.30])


def test_autograd_equals_the_gradient_weight():
    """Eq. 7: dLoss/dlog pi = -2 * beta * weight / B; beta .5, B 2, weights .15 and -.35: -.075 and +.175."""
    logprob = torch.tensor([-1.2, -1.2], requires_grad=True)
    loss, _ = policy_loss(logprob, torch.tensor([-2.0, -2.0]), torch.tensor([0.55, 0.05]), beta=0.5)
    loss.backward()
    close(logprob.grad, [-0.075, 0.175])


def test_both_signs_are_learned():
    """TRN-31: at log ratio 0 a positive advantage raises the log-probability and a negative one lowers it."""
    logprob = torch.zeros(2, requires_grad=True)
    loss, _ = policy_loss(logprob, torch.zeros(2), torch.tensor([1.0, -1.0]), beta=1.0)
    loss.backward()
    assert logprob.grad[0] < 0 < logprob.grad[1]


def test_descent_lands_on_the_closed_form_optimum():
    """Under pi_ref .1 .2 .3 .4 and beta 1, A = ln 2, -ln 2, 0, 0 makes pi = pi_ref * e^A = .2 .1 .3 .4."""
    ref = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
    target = torch.tensor([2.0, 0.5, 1.0, 1.0]).log()
    logits = ref.clone().requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.05)
    for _ in range(500):
        optimizer.zero_grad()
        loss, _ = policy_loss(logits.log_softmax(0), ref, target, beta=1.0)
        loss.backward()
        optimizer.step()
    torch.testing.assert_close(logits.softmax(0).detach(), torch.tensor([0.2, 0.1, 0.3, 0.4]), rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", ["ref_logprob", "advantage"])
def test_a_constant_that_requires_a_gradient_is_refused(name):
    inputs = {"logprob": torch.zeros(1), "ref_logprob": torch.zeros(1), "advantage": torch.zeros(1)}
    inputs[name].requires_grad_()
    with pytest.raises(ValueError, match=f"`{name}` must be a constant"):
        policy_loss(**inputs, beta=1.0)
