"""Supervised fine-tuning: the actor learns to write what a demonstration wrote.

Reads ``Sample`` rows (prompt ids, action ids), trains the role ``actor``; its result is the policy that the first phase
starts from (paper, Section 2 and Table 4).

The loss is the cross-entropy of the action's tokens, end-of-turn token included, and a mean over all *tokens* of an
update, as ``labels`` of -100 on the prompt give it in transformers and TRL: long actions weigh more than short ones.
It is not TRL's ``SFTTrainer`` because that one runs the model's forward by itself, outside any role, makes logits for
every position of the page, cuts the end of what is too long (which is the action), and saves all roles as one.

Differs from the released code: the prompt is masked by position and not by searching for a marker, no tenth of the
demonstrations is held out (``llama3_full_policy_web.yaml:38``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from webrl_lite.config import SftConfig
from webrl_lite.model import Sample, SharedBase
from webrl_lite.role_arguments import RoleArguments
from webrl_lite.role_trainer import RoleTrainer, Trained


@dataclass
class SftArguments(RoleArguments):
    """``RoleArguments`` with the paper's schedule: cosine, the first tenth of the updates rising (Table 4)."""

    lr_scheduler_type: str = "cosine"
    warmup_steps: float = 0.1


class SftTrainer(RoleTrainer[Sample]):
    """Trains the actor on demonstrations.

    Logged beside what every trainer logs: nothing; ``loss`` is in nats a token.
    """

    name = "sft"
    role = "actor"

    def length(self, row: Sample) -> int:
        """Return the tokens of prompt and action."""
        return len(row.prompt) + len(row.action)

    def items(self, row: Sample) -> int:
        """Return the tokens of the action: the loss is a mean over them."""
        return len(row.action)

    def fault(self, row: Sample) -> str | None:
        """Return why a row cannot be trained on: without an action there is nothing to learn from it."""
        return sample_fault(row.prompt, row.action)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Sequence[Sample],
        return_outputs: bool = False,
        num_items_in_batch: int | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """Return minus the mean log-probability of the actions' tokens."""
        logprobs = self.shared.action_logprobs(inputs, reduction="tokens")  # (B, L), 0 behind shorter actions
        loss = -logprobs.sum() / sum(map(self.items, inputs))
        return (loss, {}) if return_outputs else loss


def sample_fault(prompt: Sequence[int], action: Sequence[int]) -> str | None:
    """Return why a step cannot be trained on, None if it can."""
    if not prompt or not action:
        return f"it has no {'action' if prompt else 'prompt'}"
    return None


def train(
    shared: SharedBase,
    rows: Sequence[Sample],
    settings: SftConfig,
    folder: str | Path,
    *,
    seed: int = 0,
    report_to: str = "none",
) -> Trained:
    """Train the actor on demonstrations, going on from where an earlier call in the same folder was ended.

    Args:
        shared: the base; its role ``actor`` is changed.
        rows: prompts with their actions.
        settings: the group ``sft`` of a configuration.
        folder: for checkpoints, ``metrics.jsonl`` and ``final``, the trained role.
        seed: of the order of the rows.
        report_to: ``none``, ``tensorboard``, ``trackio`` or ``wandb``.

    Raises:
        ValueError, RuleError, FloatingPointError, OSError: as ``RoleTrainer`` and its ``train``.
    """
    args = SftArguments.from_settings(settings, folder, device=shared.model.device, seed=seed, report_to=report_to)
    return SftTrainer(shared, args, rows).fit()
