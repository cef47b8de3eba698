"""Rows of token ids become padded batches, and many rows become micro-batches of a bounded size.

Read by ``model``, ``trunk`` and ``generation``. Nothing here knows of adapters or roles. Padding is marked by position
and never by token id, so a tokenizer whose padding token is its end-of-turn token changes nothing.

No equation of the paper; the released code pads to the right and then reads the last column, which is padding for all
rows but the longest (``critic.py:56``). Here every reader asks the batch where a row's real tokens are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


class RuleError(RuntimeError):
    """A call that would compute something wrong: says the rule, what was asked, and the way out."""


@dataclass(frozen=True)
class Sample:
    """One step: what the agent read and what it wrote, as token ids exactly as they were sampled."""

    prompt: tuple[int, ...]
    """Ids of everything before the action, the header of the agent's turn included."""
    action: tuple[int, ...]
    """Ids of the action; the end-of-turn token is the last one if the agent produced it."""

    @property
    def row(self) -> tuple[int, ...]:
        """Prompt and action in one."""
        return self.prompt + self.action


@dataclass(frozen=True)
class Batch:
    """Padded rows, B by S."""

    input_ids: Tensor
    """(B, S) token ids; at padding any valid id."""
    attention_mask: Tensor
    """(B, S) 1 at real tokens, 0 at padding."""
    position_ids: Tensor
    """(B, S) 0, 1, 2, ... over each row's real tokens, whatever the padding side; 0 at left padding."""
    starts: tuple[int, ...]
    """Column of each row's first real token."""

    def columns(self, row: int, first: int, last: int) -> range:
        """Return the columns of tokens ``first`` to ``last`` (exclusive) of a row, counted without padding."""
        return range(self.starts[row] + first, self.starts[row] + last)


def pad(
    rows: Sequence[Sequence[int]], device: torch.device, side: Literal["left", "right"] = "right", pad_id: int = 0
) -> Batch:
    """Return the rows as one padded batch.

    Args:
        rows: B rows of token ids, none empty.
        device: where the tensors go.
        side: where padding stands: right for scoring, left for generating.
        pad_id: a valid token id for the padding; it is masked, so which one does not matter.

    Raises:
        RuleError: no rows, or an empty one.
    """
    if not rows or not all(rows):
        raise RuleError(f"`rows` must be at least one row of at least one token, got lengths {[*map(len, rows)]}.")
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), pad_id, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    starts = tuple(width - len(row) if side == "left" else 0 for row in rows)
    for i, (row, start) in enumerate(zip(rows, starts, strict=True)):
        ids[i, start : start + len(row)] = torch.tensor(row, dtype=torch.long)
        mask[i, start : start + len(row)] = 1
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    return Batch(ids.to(device), mask.to(device), positions.to(device), starts)


def micro_batches(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Return indices of rows grouped so that a group, padded to its longest row, holds at most ``tokens`` tokens.

    Rows of similar length go together, so little is spent on padding; the longest group comes first, so a run that
    does not fit in memory fails at once and not after an hour. A row longer than ``tokens`` is a group of its own.

    Args:
        lengths: tokens of each row, at least 1.
        tokens: most tokens of a group, padding included, at least 1.
    """
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if groups and (len(groups[-1]) + 1) * lengths[groups[-1][0]] <= tokens:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def token_logprobs(logits: Tensor, ids: Tensor) -> Tensor:
    """Return the log-probability of one token a row, computed in float32 whatever the logits' type.

    Over a large vocabulary a log-softmax in bfloat16 is off by whole tenths of a nat, hence the cast before it.

    Args:
        logits: (N, V) of any floating type.
        ids: (N,) token ids.

    Returns:
        (N,) float32, in nats, at most 0.
    """
    return torch.log_softmax(logits.float(), dim=-1).gather(-1, ids[:, None]).squeeze(-1)
