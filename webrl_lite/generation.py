"""Many prompts at once, token by token: the loop that writes the agent's replies.

Read by ``model``. Prompts are padded on the left, so that all rows go on at the same column; the tokenizer is not
asked and not changed. Rows that are done leave the batch. Each prompt has its own stream of random numbers, so what is
sampled for it does not depend on its neighbours.

Differs from the released code: it has no generator of its own (a server does it), and re-tokenises the text later;
here the ids that were sampled are the ones that are trained on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel

from webrl_lite.batching import RuleError, pad, token_logprobs


@dataclass(frozen=True)
class Generated:
    """A reply as it was sampled."""

    token_ids: tuple[int, ...]
    """Its tokens; the stop token is the last one if there was one."""
    logprobs: tuple[float, ...]
    """Log-probability of each under the policy itself, in nats: temperature 1, all tokens. At another temperature the
    tokens were drawn from another distribution, but this is what ``action_logprobs`` gives, so a difference between
    the two shows numerical drift and nothing else."""
    stopped: bool
    """Whether it ended with a stop token; false: it ran into the length limit."""


def generate(
    model: PreTrainedModel,
    prompts: Sequence[tuple[int, ...]],
    *,
    temperature: float,
    top_p: float,
    max_new_tokens: int,
    stop_ids: Collection[int],
    seeds: Sequence[int] | None,
) -> list[Generated]:
    """Continue prompts; the arguments are those of ``SharedBase.generate``."""
    device = model.get_input_embeddings().weight.device
    draws = _draws(seeds, len(prompts), max_new_tokens)  # (B, max_new_tokens) in [0, 1)
    batch = pad(prompts, device, side="left")
    mask = batch.attention_mask
    ids, positions, cache = batch.input_ids, batch.position_ids, None
    running = list(range(len(prompts)))
    tokens: list[list[int]] = [[] for _ in prompts]
    logprobs: list[list[float]] = [[] for _ in prompts]
    for step in range(max_new_tokens):
        output = model(
            input_ids=ids, attention_mask=mask, position_ids=positions, cache=cache, use_cache=True, logits_to_keep=1
        )
        logits = output.logits[:, -1].float()  # (R, V), R rows still running
        chosen = _pick(logits, temperature, top_p, draws[running, step].to(device))  # (R,)
        for row, token, logprob in zip(running, chosen.tolist(), token_logprobs(logits, chosen).tolist(), strict=True):
            tokens[row].append(token)
            logprobs[row].append(logprob)
        going = [i for i, row in enumerate(running) if tokens[row][-1] not in stop_ids]
        if not going:
            break
        cache, positions, ids = output.cache, positions[:, -1:] + 1, chosen[:, None]
        if len(going) < len(running):
            keep = torch.tensor(going, device=device)
            cache.reorder_cache(keep)
            mask, positions, ids = mask[keep], positions[keep], ids[keep]
            running = [running[i] for i in going]
        mask = torch.cat([mask, mask.new_ones(len(running), 1)], dim=1)
    return [Generated(tuple(t), tuple(p), t[-1] in stop_ids) for t, p in zip(tokens, logprobs, strict=True)]


def _draws(seeds: Sequence[int] | None, rows: int, steps: int) -> Tensor:
    """Return uniform numbers, one stream a row; in float64, where 0.99999999 is not yet 1."""
    if seeds is None:
        return torch.rand(rows, steps, dtype=torch.float64)
    if len(seeds) != rows:
        raise RuleError(f"`seeds` must be one number a prompt, got {len(seeds)} for {rows} prompts.")
    return torch.stack(
        [torch.rand(steps, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    )


def _pick(logits: Tensor, temperature: float, top_p: float, draws: Tensor) -> Tensor:
    """Return one token a row: the likeliest at temperature 0, else drawn.

    Args:
        logits: (R, V) float32.
        temperature: at least 0.
        top_p: only the likeliest tokens that together have this probability can be drawn.
        draws: (R,) uniform in [0, 1); a token is where the summed probability first exceeds it.
    """
    if temperature == 0:
        return logits.argmax(dim=-1)
    ordered, order = torch.softmax(logits.double() / temperature, dim=-1).sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered
    kept = torch.where(before < top_p, ordered, 0.0)  # (R, V); the first is always kept
    summed = kept.cumsum(dim=-1)
    place = torch.searchsorted(summed, (draws * summed[:, -1])[:, None], right=True)
    last = (kept > 0).sum(dim=-1, keepdim=True) - 1  # rounding must not step behind the last token kept
    return order.gather(-1, torch.minimum(place, last)).squeeze(-1)
