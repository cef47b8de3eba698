"""The actor: the policy update of a phase (paper Eq. 6, in ``policy_loss``), or of the method that is compared with it.

Reads ``Experience`` rows, each with its stored token ids, its advantage and log pi_ref; trains the role ``actor``. The
loss and the way an action's log-probability is taken come from the method's row in ``baselines.METHODS``; beta and the
reduction of the other methods from the settings.

pi_ref is the actor at the start of the phase, also for replayed actions: every row was scored by the weights that
training starts from. So the first update's log ratios are 0, and rows of that update that differ are refused
(``_check_start``); later ones cannot be told from what has been learned.

Differs from the released code, which runs a second full model for log pi_ref at every batch; here it is a number that
came with the row.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from webrl_lite.baselines import METHODS
from webrl_lite.batching import RuleError
from webrl_lite.config import ActorConfig
from webrl_lite.model import SharedBase
from webrl_lite.replay import Experience
from webrl_lite.role_arguments import RoleArguments
from webrl_lite.role_trainer import RoleTrainer, Trained
from webrl_lite.sft import sample_fault

ROUNDING = {torch.float32: 1e-4, torch.bfloat16: 0.1}
"""Most nats a token by which the same weights may differ between two passes with other rows beside, by base type."""


@dataclass
class ActorArguments(RoleArguments):
    """``RoleArguments`` with the method's settings; see ``config.ActorConfig`` for their sources."""

    method: str = "webrl"
    """A row of ``baselines.METHODS``."""
    beta: float = 1.0
    """Strength of the KL constraint; a temperature in AWR."""
    reduction: Literal["sum", "mean"] = "sum"
    """Log-probability of an action: sum over its tokens or mean; a method that fixes it is not asked."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in METHODS:
            raise ValueError(f"`method` must be one of {', '.join(METHODS)}, got {self.method!r}.")
        if METHODS[self.method].loss is None:
            raise ValueError(f"`method` must be one that trains the actor, got {self.method!r}. Skip this stage.")
        if not (math.isfinite(self.beta) and self.beta > 0):
            raise ValueError(f"`beta` must be above 0, got {self.beta}. For no KL constraint use webrl-no-kl.")
        if self.reduction not in ("sum", "mean"):
            raise ValueError(f"`reduction` must be sum or mean, got {self.reduction!r}.")


class ActorTrainer(RoleTrainer[Experience]):
    """Trains the actor on experience.

    Logged beside what every trainer logs:

    * of ``policy_loss``: ``log_ratio``, mean of log(pi / pi_ref) in nats (a token, where the reduction is the mean), 0
      at the first update; ``residual``, mean of beta * log ratio - A; ``target_reached``, share of actions with a
      residual below 0.1; ``pushed_up``, share of actions whose probability the update raises. Other methods: ``kept``,
      share of actions with credit; ``weight``, mean weight.
    * ``kl``: estimate of KL(pi_ref || pi) in nats an action, the mean of x - 1 - log x with x = pi / pi_ref; 0 at the
      first update and never below. Replayed actions, sampled by an older policy, make it rougher.
    * ``advantage``: mean of A. ``replayed``: share of actions that are not from the current phase.
    """

    name = "actor"
    role = "actor"
    args: ActorArguments

    def length(self, row: Experience) -> int:
        """Return the tokens of prompt and action."""
        return len(row.prompt) + len(row.action)

    def fault(self, row: Experience) -> str | None:
        """Return why a row cannot be trained on: no action, or a number that was not computed."""
        for name, value in (("advantage", row.advantage), ("ref_logprob", row.ref_logprob)):
            if value is None or not math.isfinite(value):
                return f"its {name} must be a finite number, got {value}"
        return sample_fault(row.prompt, row.action)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Sequence[Experience],
        return_outputs: bool = False,
        num_items_in_batch: int | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """Return the method's loss of the actions."""
        method = METHODS[self.args.method]
        logprob = self.shared.action_logprobs([row.sample for row in inputs])  # (B,)
        ref_logprob, advantage, tokens, replayed = torch.tensor(
            [[row.ref_logprob, row.advantage, len(row.action), row.source != "current"] for row in inputs],
            device=logprob.device,
        ).T  # (B,) each
        log_ratio = logprob.detach() - ref_logprob
        if self.state.global_step == 0:
            self._check_start(log_ratio / tokens, inputs)
        if (method.reduction or self.args.reduction) == "mean":
            logprob, ref_logprob = logprob / tokens, ref_logprob / tokens
        loss, metrics = method.loss(logprob, ref_logprob, advantage, self.args.beta)
        if not return_outputs:
            return loss
        metrics["kl"] = (log_ratio.clamp(max=20).exp() - 1 - log_ratio).mean()  # beyond 20 nats it would overflow
        metrics["advantage"] = advantage.mean()
        metrics["replayed"] = replayed.mean()
        return loss, metrics

    def _check_start(self, per_token: Tensor, rows: Sequence[Experience]) -> None:
        """Refuse rows of the first update that were not scored by the weights that training starts from."""
        limit = ROUNDING[self.shared.model.get_base_model().get_input_embeddings().weight.dtype]
        worst = int(per_token.abs().argmax())
        if not abs(per_token[worst]) <= limit:
            row = rows[worst]
            raise RuleError(
                f"`ref_logprob` must be the actor's own log-probability before the first update, but that of "
                f"{row.trajectory_id} step {row.step} ({row.source}) is off by {per_token[worst]:.3g} nats a token. "
                "It is stale, or of another template or tokenizer: score all rows, replayed ones too, with the actor "
                "of this phase's start."
            )


def train(
    shared: SharedBase,
    rows: Sequence[Experience],
    settings: ActorConfig,
    folder: str | Path,
    *,
    method: str = "webrl",
    seed: int = 0,
    report_to: str = "none",
) -> Trained:
    """Train the actor on a phase's experience, going on from where an earlier call in the same folder was ended.

    Args:
        shared: the base; its role ``actor`` is changed, ``ref`` is neither read nor changed.
        rows: steps of the current phase and replayed ones, with advantage and log pi_ref.
        settings: the group ``actor`` of a configuration.
        folder: for checkpoints, ``metrics.jsonl`` and ``final``, the trained role.
        method: a row of ``baselines.METHODS`` that has a loss.
        seed: of the order of the rows.
        report_to: ``none``, ``tensorboard``, ``trackio`` or ``wandb``.

    Raises:
        ValueError, RuleError, FloatingPointError, OSError: as ``RoleTrainer`` and its ``train``.
    """
    args = ActorArguments.from_settings(settings, folder, device=shared.model.device, seed=seed, report_to=report_to)
    args = dataclasses.replace(args, method=method)
    return ActorTrainer(shared, args, rows).fit()
