"""The policy update of WebRL (arXiv 2411.02337).

The idea is a target. Stay close to the policy of the previous phase, pi_ref, and gain advantage A: the best
compromise under a KL penalty of strength beta is the policy that stands to pi_ref as exp(A / beta). So we regress
beta * log(pi / pi_ref) onto A with a square, for good actions and for bad ones alike.

The chain, in the paper's order:

    Eq. 8   the critic learns V(s), the probability that the task will succeed from state s    (``critic.py``)
    Eq. 9   V and the outcome r give the advantage A of every step                             ``advantage``
    Eq. 6   A, log pi and log pi_ref give the loss                                             ``policy_loss``
    Eq. 7   the loss's gradient, which explains it                                             ``gradient_weight``

Equation numbers are those of version 1; version 3 numbers Eq. 6 as 5 and Eq. 9 as 8.

Letters: ``B`` actions in a batch, ``L`` tokens of an action, ``T`` steps of a trajectory (not tokens). An action is
everything the agent writes in one step. All tensors are float32; this file needs torch and nothing else.

How this differs from the released code (``baselines.released_loss``):

* the release adds its terms without lambda, cuts A to +1 or -0.6 and drops every action below 0; here A keeps its size
  and both signs;
* the release takes the mean log-probability of an action's tokens; here it is the sum, the log-probability of the
  action, so a value of beta means something else there;
* the release uses a beta that depends on the state, a SmoothL1 and no pull-back beyond the target; here beta is one
  number and the loss is the square.
"""

from __future__ import annotations

import torch
from torch import Tensor


def action_logprob(token_logprobs: Tensor, action_mask: Tensor) -> Tensor:
    """Return the log-probability of each action: the sum over its tokens, end-of-turn token included.

    Sum and not mean, because Eq. 6 speaks of the probability of the whole action. The end-of-turn token counts,
    because stopping there was part of the choice.

    Args:
        token_logprobs: (B, L) log-probability of each token, in nats, at most 0; whatever stands at padding is ignored.
        action_mask: (B, L) true at the action's tokens, false at prompt and padding.

    Returns:
        (B,) in nats, at most 0.
    """
    return token_logprobs.masked_fill(~action_mask.bool(), 0.0).sum(dim=-1)  # (B,)


def advantage(values: Tensor, reward: float, lam: float = 0.5, gamma: float = 1.0) -> Tensor:
    """Return the advantage of every step of one trajectory (Eq. 9).

    Two estimators of how much a step helped, blended by lambda: did the next state look better than this one, and did
    the trajectory end better than this state promised? The reward comes at the last step only, and after the last
    step there is no state: its value is 0 (Eq. 3).

    With V = (0.2, 0.5, 0.8) and lambda 0.5 a success gives (0.55, 0.40, 0.20) and a failure (0.05, -0.10, -0.80):
    a good first step keeps its credit in a failed trajectory.

    Where gamma stands: Eq. 9 is printed without it, and V, the chance of success, is learned without it (Eq. 8), so 1
    is the value that fits; the paper's Table 4 lists 0.9 and does not say where. Here it discounts what lies ahead:
    V(s_{t+1}) by one step and the outcome by the steps that are left, so it shifts every A but the last one down.

    Args:
        values: (T,) V(s_t), in [0, 1].
        reward: r, the outcome of the whole trajectory, 0 or 1.
        lam: lambda in [0, 1]; 1 uses the next step only, 0 the final step only. Paper: 0.5.
        gamma: discount in (0, 1].

    Returns:
        (T,) unitless, about -1 to 1.
    """
    rewards = torch.zeros_like(values)
    rewards[-1] = reward  # r_t: the reward is earned at the last step
    next_values = torch.cat([values[1:], values.new_zeros(1)])  # (T,) V(s_{t+1}), terminal value 0
    steps_left = torch.arange(len(values) - 1, -1, -1, device=values.device)  # (T,) T-1, ..., 1, 0
    next_step = rewards + gamma * next_values - values
    final_step = gamma**steps_left * reward - values
    return lam * next_step + (1 - lam) * final_step  # (T,)


def policy_loss(
    logprob: Tensor, ref_logprob: Tensor, advantage: Tensor, beta: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the squared distance between beta * log(pi / pi_ref) and A (Eq. 6), and what shows that it works.

    Args:
        logprob: (B,) log pi(a | s) of the policy in training, in nats; carries the gradient.
        ref_logprob: (B,) the same under the previous phase's policy; constant.
        advantage: (B,) A; constant.
        beta: strength of the KL constraint, above 0; large keeps the policy near pi_ref.

    Returns:
        The mean loss, a scalar, and metrics (scalars, no gradient): ``log_ratio``, mean of log(pi / pi_ref) in nats;
        ``residual``, mean of beta * log ratio - A; ``target_reached``, share of actions with a residual below 0.1;
        ``pushed_up``, share of actions whose probability the next update raises.

    Raises:
        ValueError: ``ref_logprob`` or ``advantage`` requires a gradient.
    """
    for name, constant in (("ref_logprob", ref_logprob), ("advantage", advantage)):
        if constant.requires_grad:
            raise ValueError(f"`{name}` must be a constant, but it requires a gradient. Compute it under no_grad().")
    log_ratio = logprob - ref_logprob  # (B,)
    residual = beta * log_ratio - advantage  # (B,)
    loss = residual.square().mean()
    seen = residual.detach()
    metrics = {
        "log_ratio": log_ratio.detach().mean(),
        "residual": seen.mean(),
        "target_reached": (seen.abs() < 0.1).float().mean(),
        "pushed_up": (seen < 0).float().mean(),
    }
    return loss, metrics


def gradient_weight(logprob: Tensor, ref_logprob: Tensor, advantage: Tensor, beta: float) -> Tensor:
    """Return the weight of each action's gradient (Eq. 7): the update follows weight * grad log pi, times 2 * beta.

    With beta = 0.5:

        log ratio   A      weight
        0.0         0.55    0.55    a good action, untouched: push up hard
        0.8         0.55    0.15    already likelier than before: push up gently
        0.8         0.05   -0.35    raised by more than it deserves: push DOWN, though A > 0
        0.0        -0.30   -0.30    a bad action: push down

    The third line is the KL constraint at work.

    Args:
        logprob: (B,) log pi(a | s), in nats.
        ref_logprob: (B,) log pi_ref(a | s), in nats.
        advantage: (B,) A.
        beta: strength of the KL constraint, above 0.

    Returns:
        (B,) A - beta * log(pi / pi_ref); positive raises the action's probability.
    """
    return (advantage - beta * (logprob - ref_logprob)).detach()
