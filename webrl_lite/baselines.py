"""The methods WebRL is compared with, and its ablations, as rows of one table.

Each method is a row of ``METHODS``: how the steps of a trajectory are credited, the loss, and which data the phase
uses. The losses have the signature of ``policy_loss.policy_loss``, so a trainer knows nothing of methods.

Letters as in ``policy_loss``: ``B`` actions in a batch, ``T`` steps of a trajectory.

Source: WebRL (arXiv 2411.02337) Table 1, Section 3.7 and Appendix A for the rows; the released codes of WebRL
(``webrl/algorithms/webrl/trainer.py``) and DigiRL (``digirl/algorithms/digirl/trainer.py``) for what the papers leave
open. Both released codes differ from their papers; here is the one, ``policy_loss`` the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from webrl_lite.policy_loss import advantage, policy_loss

Loss = Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, dict[str, Tensor]]]
"""(logprob (B,), ref_logprob (B,), advantage (B,), beta) to a scalar and metrics."""
Credit = Callable[[Tensor, float, float, float], Tensor]
"""(values (T,), reward 0 or 1, lam, gamma) to the credit (T,) that the loss takes as its advantage."""

MARGIN = 0.05
"""A failed step counts as progress if V rises by this. (DigiRL's trainer.py:150; released WebRL trainer.py:157)"""
MAX_WEIGHT = 20.0
"""Largest weight of an action in AWR. (weight clipping of arXiv 1910.00177; 20 in its authors' awr_configs.py)"""


# Credit -------------------------------------------------------------------------------------------------------------


def outcome(values: Tensor, reward: float, lam: float, gamma: float) -> Tensor:
    """Credit every step with the trajectory's outcome: 1 in a success, 0 in a failure."""
    return torch.full_like(values, reward)


def return_minus_value(values: Tensor, reward: float, lam: float, gamma: float) -> Tensor:
    """Credit a step with its discounted return minus V(s), as AWR does.

    The outcome is discounted by the steps that are left, so the last step earns all of it.
    """
    steps_left = torch.arange(len(values) - 1, -1, -1, device=values.device)
    return gamma**steps_left * reward - values


def progress(values: Tensor, reward: float, lam: float, gamma: float) -> Tensor:
    """Credit 1 to steps worth imitating and 0 to others, as DigiRL's code does (trainer.py:150-152).

    A step of a success is always worth it, whatever lambda, gamma and the values are; a step of a failure if V rises
    by more than ``MARGIN``. After the last step V is taken to be unchanged, so that step never counts as progress.
    """
    return (_released_sum(values, reward, gamma) > 0).to(values.dtype)


def released_credit(values: Tensor, reward: float, lam: float, gamma: float) -> Tensor:
    """Credit +1 or -0.6, as WebRL's released code does (trainer.py:157-166).

    # differs from paper: the trajectory's score stands on *every* step and is summed up, lambda does not occur, and
    the sum is cut to its sign, so neither gamma nor the size of an advantage matters. A step of a success always has
    +1; a step of a failure if V rises by at least ``MARGIN``.

    # differs from paper and release: after the last step the paper has the value 0, the release what the critic says
    about the same page with one round more of history; that round is made up, so V is taken to be unchanged here, which
    like 0 never passes the margin.
    """
    raw = _released_sum(values, reward, gamma).clamp(-1, 1)
    return torch.where(raw >= 0, torch.ones_like(raw), torch.full_like(raw, -0.6))


def summed_score(steps: int, reward: float, gamma: float) -> Tensor:
    """Return what the releases call ``mc_return`` (process_data.py:112): the score of every step from here on, summed.

    # differs from paper: the score stands on each step instead of the last one only, so with gamma 0.9 a success of
    five steps has 4.10, 3.44, 2.71, 1.90, 1.00 where the outcome, discounted, would be 0.66, 0.73, 0.81, 0.90, 1.00.

    Args:
        steps: T.
        reward: the trajectory's score.
        gamma: discount in (0, 1].

    Returns:
        (T,) at least 0.
    """
    powers = gamma ** torch.arange(steps, dtype=torch.float32)  # 1, gamma, gamma^2, ...
    return reward * powers.cumsum(dim=0).flip(0)


def _released_sum(values: Tensor, reward: float, gamma: float) -> Tensor:
    """Return V(s') - V(s) - 0.05 + score + summed scores, as both releases have it: (T,)."""
    next_values = torch.cat([values[1:], values[-1:]])
    return next_values - values - MARGIN + reward + summed_score(len(values), reward, gamma).to(values)


# Losses -------------------------------------------------------------------------------------------------------------


def _require_constants(ref_logprob: Tensor, advantage: Tensor) -> None:
    """Refuse a reference or credit that would carry a gradient, as ``policy_loss`` does."""
    for name, constant in (("ref_logprob", ref_logprob), ("advantage", advantage)):
        if constant.requires_grad:
            raise ValueError(f"`{name}` must be a constant, but it requires a gradient. Compute it under no_grad().")


def imitation_loss(
    logprob: Tensor, ref_logprob: Tensor, advantage: Tensor, beta: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Raise the log-probability of the credited actions: behaviour cloning weighted by the credit.

    Args:
        logprob: (B,) log pi(a | s), in nats; carries the gradient.
        ref_logprob: (B,) not used: there is no KL constraint.
        advantage: (B,) credit, 0 or 1; actions of credit 0 (or below) add nothing.
        beta: not used.

    Returns:
        Minus the mean over the batch, and ``kept``, the share of actions with credit.

    Raises:
        ValueError: ``ref_logprob`` or ``advantage`` requires a gradient.
    """
    _require_constants(ref_logprob, advantage)
    weight = advantage.clamp(min=0)
    return -(weight * logprob).mean(), {"kept": (weight > 0).float().mean()}


def awr_loss(logprob: Tensor, ref_logprob: Tensor, advantage: Tensor, beta: float) -> tuple[Tensor, dict[str, Tensor]]:
    """Imitate every action with the weight exp(A / beta), at most ``MAX_WEIGHT`` (advantage-weighted regression).

    Args:
        logprob: (B,) log pi(a | s), in nats; carries the gradient.
        ref_logprob: (B,) not used.
        advantage: (B,) return minus V(s).
        beta: temperature, above 0.

    Returns:
        Minus the weighted mean over the batch, and ``weight``, the mean weight.

    Raises:
        ValueError: ``ref_logprob`` or ``advantage`` requires a gradient.
    """
    _require_constants(ref_logprob, advantage)
    weight = (advantage / beta).exp().clamp(max=MAX_WEIGHT)
    return -(weight * logprob).mean(), {"weight": weight.mean()}


def released_loss(
    logprob: Tensor, ref_logprob: Tensor, advantage: Tensor, beta: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the actor loss of WebRL's released code (trainer.py:168-193).

    # differs from paper: log-probabilities are means over an action's tokens; beta is 1, or 5 where the reference is
    already sure, and is lowered so that beta * x never passes A; SmoothL1 instead of the square, divided by beta;
    actions of negative credit are masked out (so the release's rule for their beta has no effect and is not here).

    # differs from release: each action is divided by its own number of tokens, the release divides by that of all
    credited actions in the micro-batch. With its micro-batch of 1 the two are the same.

    With A = 1 the gradient in x, the mean log ratio, is -1 up to x = 0 and rises to 0 at x = 1 / beta; there is no
    pull-back beyond.

    Args:
        logprob: (B,) mean log-probability of the action's tokens, in nats; carries the gradient.
        ref_logprob: (B,) the same under the reference.
        advantage: (B,) +1 or -0.6 (``released_credit``); 0 counts as masked.
        beta: not used: the code fixes its own.

    Returns:
        The mean over the batch, and ``kept``, the share of actions that are not masked.

    Raises:
        ValueError: ``ref_logprob`` or ``advantage`` requires a gradient.
    """
    _require_constants(ref_logprob, advantage)
    confidence = ref_logprob.exp()  # geometric mean of the token probabilities
    kept = advantage > 0
    log_ratio = logprob - ref_logprob  # (B,)
    target = torch.where(kept, advantage, 1.0)  # not 0 where masked: 0 / 0 below would spread through the mean
    cap = (target / log_ratio.detach()).abs()  # infinite where the ratio is 0
    scale = torch.minimum(torch.where(confidence >= 0.8, 5.0, 1.0), cap)
    distance = torch.nn.functional.smooth_l1_loss(scale * log_ratio, target, reduction="none")
    return (distance / scale * kept).mean(), {"kept": kept.float().mean()}


# Methods ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """One way to learn from rollouts."""

    loss: Loss | None
    """The actor's loss; None leaves the actor as SFT made it."""
    credit: Credit | None
    """What the loss takes as its advantage."""
    replay: bool
    """Whether successes of earlier phases are trained on again."""
    ppl_filter: bool
    """Whether replayed actions must lie in the perplexity band."""
    curriculum: bool
    """Whether each phase has new tasks made from failures; else the first tasks stay."""
    online: bool
    """Whether each phase rolls out the current actor; else the first phase's rollouts are all there is."""
    source: str
    """Where the row comes from."""
    reduction: Literal["sum", "mean"] | None = None
    """How an action's log-probability is taken; None: as ``actor.reduction`` says."""
    percentile: float | None = None
    """Trajectories whose outcome is not above this percentile of all outcomes are left out."""
    gamma: float | None = None
    """Discount of the credit; None: as ``actor.gamma`` says."""


METHODS: dict[str, Method] = {
    "webrl": Method(policy_loss, advantage, True, True, True, True, "paper Eq. 6 and 9"),
    "webrl-no-kl": Method(imitation_loss, outcome, True, True, True, True, "paper Section 3.7 (2)"),
    "webrl-no-replay": Method(policy_loss, advantage, False, False, True, True, "paper Section 3.7 (1)"),
    "webrl-no-kl-no-replay": Method(imitation_loss, outcome, False, False, True, True, "paper Section 3.7 (3)"),
    "webrl-no-curriculum": Method(policy_loss, advantage, True, True, False, True, "paper Section 3.7 (4)"),
    "webrl-all-ppl": Method(policy_loss, advantage, True, False, True, True, "paper Table 2, column [1, inf)"),
    "webrl-released": Method(
        released_loss, released_credit, True, True, True, True, "released trainer.py", reduction="mean"
    ),
    "digirl": Method(imitation_loss, progress, True, False, False, True, "paper Table 1, App. A; DigiRL's trainer.py"),
    "awr": Method(
        awr_loss, return_minus_value, False, False, False, False, "paper Tables 1 and 4; arXiv 1910.00177", gamma=0.9
    ),
    "filtered_bc": Method(
        imitation_loss, outcome, False, False, False, False, "paper Table 4: above the 70th percentile", percentile=70.0
    ),
    "sft": Method(None, None, False, False, False, False, "paper Table 1"),
}
"""The methods by the name that ``--method`` takes."""


def above_percentile(outcomes: Tensor, percentile: float) -> Tensor:
    """Tell which trajectories filtered behaviour cloning keeps.

    Args:
        outcomes: (N,) reward of each trajectory.
        percentile: in [0, 100]; the paper has 70.

    Returns:
        (N,) true where the outcome lies above the percentile or, where that would keep nothing because the best
        outcome is that common, where it equals the best and is not 0.
    """
    if not len(outcomes):
        return torch.zeros(0, dtype=torch.bool)
    kept = outcomes > torch.quantile(outcomes.float(), percentile / 100)
    return kept if kept.any() else (outcomes == outcomes.max()) & (outcomes > 0)
