"""The critic: V(s), the probability that the task will succeed from state s (paper Eq. 8).

Reads rows (prompt ids, reward), trains the role ``critic`` with its value head. Every state of a trajectory learns the
trajectory's outcome, with a cross-entropy and without a discount, so V is a probability and not a discounted return.
From phase to phase training goes on from the weights that ``SharedBase`` holds; adapter and head are saved and loaded
as one.

Worked example: logits 0 for failure and 4 for success give V = 1 / (1 + e^-4) = 0.982. After a success the loss is
-ln 0.982 = 0.0181, after a failure -ln 0.018 = 4.0181.

Differs from the released code, which has two heads and takes the smaller value, trains every next state as a state
once more (two graphs alive at once, ``trainer.py:87``) and, until February 2025, put a softmax before the
cross-entropy, where the example's loss would be 0.3230.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from webrl_lite.config import CriticConfig
from webrl_lite.model import SharedBase
from webrl_lite.role_arguments import RoleArguments
from webrl_lite.role_trainer import RoleTrainer, Trained

State = tuple[Sequence[int], float]
"""Ids of a state's prompt, and the reward of the trajectory that it is from: 1 for a success, 0 for a failure."""


def critic_loss(value_logits: Tensor, reward: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the cross-entropy of states against the outcomes of their trajectories (Eq. 8).

    Args:
        value_logits: (B, 2) of failure and success, not normalised; carries the gradient.
        reward: (B,) outcome of each state's trajectory, 0 or 1.

    Returns:
        The mean loss, a scalar in nats, and metrics (no gradient): ``value``, mean V; ``accuracy``, share of states
        with V above 0.5 exactly when the trajectory succeeded.
    """
    loss = nn.functional.cross_entropy(value_logits, reward.long())
    value = value_logits.detach().softmax(dim=-1)[:, 1]  # (B,)
    return loss, {"value": value.mean(), "accuracy": ((value > 0.5) == (reward > 0.5)).float().mean()}


@dataclass
class CriticArguments(RoleArguments):
    """``RoleArguments``; the paper's schedule is constant."""


class CriticTrainer(RoleTrainer[State]):
    """Trains the critic and its value head.

    Logged beside what every trainer logs: ``value``, the mean of V, which should come near the success rate;
    ``accuracy``, the share of states with V above 0.5 exactly when the trajectory succeeded.
    """

    name = "critic"
    role = "critic"

    def length(self, row: State) -> int:
        """Return the tokens of the prompt."""
        return len(row[0])

    def fault(self, row: State) -> str | None:
        """Return why a row cannot be trained on: an outcome that is neither success nor failure is no label."""
        if row[1] not in (0, 1):
            return f"its reward must be 0 or 1, got {row[1]!r}"
        return super().fault(row)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Sequence[State],
        return_outputs: bool = False,
        num_items_in_batch: int | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """Return ``critic_loss`` of the states."""
        logits = self.shared.value_logits([prompt for prompt, _ in inputs])  # (B, 2)
        reward = torch.tensor([float(reward) for _, reward in inputs], device=logits.device)
        loss, metrics = critic_loss(logits, reward)
        return (loss, metrics) if return_outputs else loss


def train(
    shared: SharedBase,
    rows: Sequence[State],
    settings: CriticConfig,
    folder: str | Path,
    *,
    seed: int = 0,
    report_to: str = "none",
) -> Trained:
    """Train the critic from the weights it has, going on from where an earlier call in the same folder was ended.

    Args:
        shared: the base; its role ``critic`` and the value head are changed.
        rows: states of successes and failures of the current phase.
        settings: the group ``critic`` of a configuration.
        folder: for checkpoints, ``metrics.jsonl`` and ``final``, the trained role with its head.
        seed: of the order of the rows.
        report_to: ``none``, ``tensorboard``, ``trackio`` or ``wandb``.

    Raises:
        ValueError, RuleError, FloatingPointError, OSError: as ``RoleTrainer`` and its ``train``.
    """
    args = CriticArguments.from_settings(settings, folder, device=shared.model.device, seed=seed, report_to=report_to)
    return CriticTrainer(shared, args, rows).fit()
