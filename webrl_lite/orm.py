"""The outcome reward model: did a rollout reach what its instruction asked for? YES or NO (paper, Section 2.2).

Reads rows (prompt ids, label), trains the role ``orm``, and labels rollouts with it: ``judge`` gives the probability of
YES against NO as the next token behind the prompt, which ends with the header of the assistant's turn.

The loss is the cross-entropy of the word over the *whole* vocabulary at that position, as fine-tuning on the word gives
it, so the model learns to answer with one of the two and not only which of them. The end-of-turn token behind the word
is not trained, since nobody ever generates it.

A rollout is a success if YES has *more* than the threshold; a tie is a failure, everywhere. Normalising over two words
hides when the model says neither, so their common probability (``mass``) is kept beside the ratio.

Differs from the released code: it calls a tie a success in one place and a failure in another (``process_data.py:311``
and ``:198``), and does not shift the logits before ``exp`` (``:310``), which overflows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from webrl_lite.config import OrmConfig
from webrl_lite.model import SharedBase, answer_ids
from webrl_lite.role_arguments import RoleArguments
from webrl_lite.role_trainer import RoleTrainer, Trained

Labelled = tuple[Sequence[int], bool]
"""Ids of a prompt about a rollout, and whether the rollout was a success."""

ANSWERS = ("YES", "NO")
BINS = 10
"""Bins of equal width over [0, 1] in which ``evaluate`` compares confidence with success."""
LOW_MASS = 0.5
"""Below this probability of YES and NO together a judgement is not to be trusted."""
TAIL = 32
"""Last tokens of a prompt behind which the answer's tokens are looked up."""


@dataclass(frozen=True)
class Judgement:
    """What the model says of one rollout."""

    score: float
    """P(YES) / (P(YES) + P(NO)), in [0, 1]."""
    mass: float
    """P(YES) + P(NO), in [0, 1]."""

    @property
    def trusted(self) -> bool:
        """Whether the model answers with one of the two words at all."""
        return self.mass >= LOW_MASS

    def success(self, threshold: float = 0.5) -> bool:
        """Tell whether the rollout counts as a success; a score equal to the threshold does not."""
        return self.score > threshold


@dataclass(frozen=True)
class OrmReport:
    """How judgements compare with the truth."""

    rollouts: int
    accuracy: float
    """Share that is judged rightly."""
    precision: float | None
    """Share of successes among rollouts judged to be successes; None if none was."""
    recall: float | None
    """Share judged to be successes among the successes; None if there was none."""
    ece: float
    """Expected calibration error: mean distance of score and share of successes over ``BINS`` bins, by rollouts."""
    brier: float
    """Mean squared distance of score and truth; 0.25 for one that always says 0.5."""
    untrusted: float
    """Share of judgements with less than ``LOW_MASS`` on the two words."""


def judgement(yes: float, no: float) -> Judgement:
    """Return what the log-probabilities of the two words say; finite wherever they lie.

    Logits give the same score, for it depends on the difference only, but not the mass.

    Args:
        yes: of YES, in nats; 100 against 99 and -200 against -201 both give a score of 0.731.
        no: of NO.

    Raises:
        ValueError: one of them is not finite.
    """
    if not (math.isfinite(yes) and math.isfinite(no)):
        raise ValueError(f"`yes` and `no` must be finite, got {yes} and {no}. Are the weights of the role damaged?")
    odds = math.exp(-abs(yes - no))  # of the less likely word, at most 1
    likely = 1 / (1 + odds)
    return Judgement(likely if yes >= no else odds * likely, min(1.0, math.exp(min(0, yes)) + math.exp(min(0, no))))


def judge(shared: SharedBase, prompts: Sequence[Sequence[int]]) -> list[Judgement]:
    """Judge rollouts with the role ``orm``.

    Args:
        shared: the base.
        prompts: ids of prompts that end where the answer begins.

    Returns:
        One judgement a prompt, in their order.

    Raises:
        RuleError: YES or NO is not one token behind the prompts, or a prompt is too long.
    """
    if not prompts:
        return []
    answers = yes_no(shared, prompts[0])
    with shared.role("orm"):
        logprobs = shared.answer_logprobs(prompts, answers)  # (B, 2)
    return [judgement(yes, no) for yes, no in logprobs.tolist()]


def yes_no(shared: SharedBase, prompt: Sequence[int]) -> tuple[int, ...]:
    """Return the tokens of YES and NO as they follow a prompt, asked from the tokenizer and not assumed.

    Raises:
        RuleError: one of them is not a single token there.
    """
    text = shared.tokenizer.decode(list(prompt[-TAIL:]), clean_up_tokenization_spaces=False)
    return answer_ids(shared.tokenizer, text, ANSWERS)


def evaluate(judgements: Sequence[Judgement], labels: Sequence[bool], threshold: float = 0.5) -> OrmReport:
    """Compare judgements with the truth.

    Args:
        judgements: of N rollouts.
        labels: whether each was a success, by its grader.
        threshold: in (0, 1), as in ``Judgement.success``.

    Raises:
        ValueError: no rollouts, or not one label for each judgement.
    """
    if not judgements or len(judgements) != len(labels):
        raise ValueError(f"`labels` must be one for each judgement, got {len(labels)} for {len(judgements)}.")
    said = [one.success(threshold) for one in judgements]
    hits = sum(s and t for s, t in zip(said, labels, strict=True))
    bins: dict[int, list[tuple[float, bool]]] = {}
    for one, truth in zip(judgements, labels, strict=True):
        bins.setdefault(min(int(one.score * BINS), BINS - 1), []).append((one.score, truth))
    gaps = [abs(sum(score for score, _ in group) - sum(truth for _, truth in group)) for group in bins.values()]
    number = len(judgements)
    return OrmReport(
        rollouts=number,
        accuracy=sum(s == bool(t) for s, t in zip(said, labels, strict=True)) / number,
        precision=hits / sum(said) if any(said) else None,
        recall=hits / sum(map(bool, labels)) if any(labels) else None,
        ece=sum(gaps) / number,
        brier=sum((one.score - truth) ** 2 for one, truth in zip(judgements, labels, strict=True)) / number,
        untrusted=sum(not one.trusted for one in judgements) / number,
    )


@dataclass
class OrmArguments(RoleArguments):
    """``RoleArguments`` with the paper's schedule and epochs (Table 5)."""

    lr_scheduler_type: str = "cosine"
    warmup_steps: float = 0.1
    num_train_epochs: float = 4.0


class OrmTrainer(RoleTrainer[Labelled]):
    """Trains the outcome reward model.

    Logged beside what every trainer logs: ``accuracy``, share of rollouts judged rightly at a threshold of 0.5;
    ``mass``, mean probability of YES and NO together, which should rise to 1.
    """

    name = "orm"
    role = "orm"

    def __init__(self, model: SharedBase, args: OrmArguments, train_dataset: Sequence[Labelled]) -> None:
        """Check the rows and look up the answers' tokens; see ``RoleTrainer``.

        Raises:
            ValueError, RuleError: as there, or as ``yes_no``.
        """
        super().__init__(model, args, train_dataset)
        self.answers = yes_no(model, self.train_dataset[0][0])

    def length(self, row: Labelled) -> int:
        """Return the tokens of the prompt."""
        return len(row[0])

    def fault(self, row: Labelled) -> str | None:
        """Return why a row cannot be trained on: a label must be yes or no, not a rate."""
        if row[1] not in (False, True):
            return f"its label must be true or false, got {row[1]!r}"
        return super().fault(row)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Sequence[Labelled],
        return_outputs: bool = False,
        num_items_in_batch: int | None = None,
    ) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """Return minus the mean log-probability of the right word."""
        logprobs = self.shared.answer_logprobs([prompt for prompt, _ in inputs], self.answers)  # (B, 2) YES, NO
        label = torch.tensor([bool(label) for _, label in inputs], device=logprobs.device)  # (B,)
        loss = -torch.where(label, logprobs[:, 0], logprobs[:, 1]).mean()
        seen = logprobs.detach()
        said = seen[:, 0] > seen[:, 1]
        metrics = {"accuracy": (said == label).float().mean(), "mass": seen.exp().sum(dim=1).mean()}
        return (loss, metrics) if return_outputs else loss


def train(
    shared: SharedBase,
    rows: Sequence[Labelled],
    settings: OrmConfig,
    folder: str | Path,
    *,
    seed: int = 0,
    report_to: str = "none",
) -> Trained:
    """Train the outcome reward model, going on from where an earlier call in the same folder was ended.

    Args:
        shared: the base; its role ``orm`` is changed.
        rows: prompts about rollouts, with what their graders said.
        settings: the group ``orm`` of a configuration.
        folder: for checkpoints, ``metrics.jsonl`` and ``final``, the trained role.
        seed: of the order of the rows.
        report_to: ``none``, ``tensorboard``, ``trackio`` or ``wandb``.

    Raises:
        ValueError, RuleError, FloatingPointError, OSError: as ``RoleTrainer`` and its ``train``.
    """
    args = OrmArguments.from_settings(settings, folder, device=shared.model.device, seed=seed, report_to=report_to)
    return OrmTrainer(shared, args, rows).fit()
