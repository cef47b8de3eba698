"""Rows go through the base, and only what is asked for comes out: the one way from token ids to scores.

Used by ``model``, which says under which role. Micro-batches are bounded in tokens and sorted by length, results come
back in the order of the rows; the base's output layer sees only the positions that are scored.

Differs from the released code, which makes logits of every position of the page (16,384 by 128,256 in float32 are
8.4 GB) and reads values at the last column, padding or not (``critic.py:56``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from webrl_lite.batching import Batch, RuleError, micro_batches, pad, token_logprobs
from webrl_lite.trunk import Trunk

HEAD_ROWS = 512
"""Positions that go through the output layer at once: 0.25 GB of float32 logits for a vocabulary of 128,000."""


@dataclass
class Passes:
    """Forward passes of one base; which adapter is active is not its business."""

    base: PreTrainedModel
    trunk: Trunk | None
    """What lies below the lowest adapter, None if adapters reach the bottom."""
    max_length: int
    """Most tokens of a row."""
    tokens_per_micro_batch: int
    """Most tokens of one pass, padding included."""
    body: PreTrainedModel = field(init=False)
    """The base without its output layer."""
    device: torch.device = field(init=False)

    def __post_init__(self) -> None:
        self.body = self.base.base_model
        self.device = self.base.get_input_embeddings().weight.device
        self._check_output_layer()

    def at_last_token(self, prompts: Sequence[Sequence[int]], score: Callable[[Tensor], Tensor]) -> list[Tensor]:
        """Return ``score`` of each prompt's last hidden state."""
        rows = [tuple(prompt) for prompt in prompts]
        spans = [(len(row) - 1, len(row)) for row in rows]
        return self.run(rows, [len(row) for row in rows], spans, lambda states, group: list(score(states)))

    def run(
        self,
        rows: Sequence[tuple[int, ...]],
        prompts: Sequence[int],
        spans: Sequence[tuple[int, int]],
        score: Callable[[Tensor, Sequence[int]], list[Tensor]],
    ) -> list[Tensor]:
        """Run rows in micro-batches and return one score a row, in the rows' order.

        Args:
            rows: B rows of token ids.
            prompts: tokens of each that are its prompt.
            spans: of each row, the tokens (first, last exclusive) whose hidden states are scored.
            score: takes the hidden states (N, width) of the spans of some rows, one after the other, and the rows'
                indices; returns a tensor for each.
        """
        self.check_rows(rows)
        scores: dict[int, Tensor] = {}
        record = torch.is_grad_enabled()
        for group in micro_batches([*map(len, rows)], self.tokens_per_micro_batch):
            with nullcontext() if record else torch.inference_mode():
                states, batch = self.hidden([rows[i] for i in group], [prompts[i] for i in group])
                columns = [batch.columns(place, *spans[i]) for place, i in enumerate(group)]
                places = torch.tensor([p for p, span in enumerate(columns) for _ in span], device=self.device)
                flat = torch.tensor([c for span in columns for c in span], device=self.device)
                scores.update(zip(group, score(states[places, flat], group), strict=True))
        return [scores[i] for i in range(len(rows))]

    def hidden(self, rows: Sequence[tuple[int, ...]], prompts: Sequence[int]) -> tuple[Tensor, Batch]:
        """Return the last hidden states (B, S, width) of rows, and where in them a row's tokens are."""
        batch = pad(rows, self.device)
        if self.trunk is not None:
            states = self.trunk.states(rows, prompts, batch)
            if torch.is_grad_enabled():
                states.requires_grad_()  # checkpointing with re-entrance needs an input with a gradient
            return self.trunk.top(states, batch), batch
        output = self.body(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids,
            use_cache=False,
        )
        return output.last_hidden_state, batch

    def token_logprobs(self, states: Tensor, ids: Tensor) -> Tensor:
        """Return log-probabilities (N,) of tokens from the hidden states (N, width) before them, a part at a time."""

        def part(some: Tensor, their: Tensor) -> Tensor:
            return token_logprobs(self.logits(some), their)

        parts = list(zip(states.split(HEAD_ROWS), ids.split(HEAD_ROWS), strict=True))
        if len(parts) > 1 and torch.is_grad_enabled():  # or the logits of all parts would be kept for backward
            return torch.cat([checkpoint(part, *pair, use_reentrant=False) for pair in parts])
        return torch.cat([part(*pair) for pair in parts])

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits (N, V) of hidden states, scaled as some architectures do behind the output layer."""
        logits = self.base.get_output_embeddings()(states)
        config = self.base.config
        if cap := getattr(config, "final_logit_softcapping", None):  # Gemma 2
            logits = torch.tanh(logits / cap) * cap
        if scale := getattr(config, "logit_scale", None):  # Cohere
            logits = logits * scale
        if scale := getattr(config, "logits_scaling", None):  # Granite
            logits = logits / scale
        return logits

    def _check_output_layer(self) -> None:
        """Compare our way from hidden states to logits with the model's own, on one short row."""
        batch = pad([(1, 2, 3, 4)], self.device)
        inputs = {"input_ids": batch.input_ids, "position_ids": batch.position_ids, "use_cache": False}
        with torch.no_grad():
            own = self.base(**inputs).logits.float()
            ours = self.logits(self.body(**inputs).last_hidden_state).float()
        if not torch.allclose(own, ours, rtol=1e-3, atol=1e-3):
            raise RuleError(
                f"`model.name` is a {type(self.base).__name__}, which does something to its logits that is not known "
                "here, so log-probabilities would be wrong. Use another architecture."
            )

    def check_rows(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Raise ``RuleError`` for a row that is empty, too long, or has ids outside the vocabulary."""
        vocabulary = self.base.get_input_embeddings().num_embeddings
        for index, row in enumerate(rows):
            if not row:
                raise RuleError(f"row {index} must have at least one token, got none.")
            if len(row) > self.max_length:
                raise RuleError(
                    f"row {index} must have at most `model.max_length` = {self.max_length} tokens, got {len(row)}. "
                    "Shorten the page or raise the limit."
                )
            if not 0 <= min(row) <= max(row) < vocabulary:
                raise RuleError(
                    f"row {index} must have token ids from 0 to {vocabulary - 1}, got {min(row)} to {max(row)}. "
                    "Was it made with another tokenizer?"
                )
