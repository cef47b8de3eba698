"""One base, four roles: the policy, its reference, the critic and the outcome judge share one set of frozen weights.

Each role is a LoRA adapter; the critic has a value head beside it. Reads a ``ModelConfig`` and a ``LoraConfig``;
gives log-probabilities of actions (Eq. 6), values of states (Eq. 8), answers of the judge and sampled replies; writes a
folder for each role.

What a reader may rely on:

* ``with shared.role("actor", train=True):`` is the only way to choose an adapter (``role_guard`` says why);
* log-probabilities are float32 and come from one code path in training and scoring, so the log ratio of equal weights
  is 0 and not nearly 0;
* only positions that predict an action's token reach the output layer: memory grows with the action, not the page;
* nothing is ever merged into the base: on 4-bit weights a merge moves the outputs of all roles.

Adapters are float32 on every base. Their updates are too small for bfloat16, whose next number after 1 is 1.008, and a
role of rank 16 on an 8B model costs 160 MB so.

How this differs from the released code: it trains three full models on many cards; it re-tokenises text where this
takes the ids that were sampled; its critic reads the last column, padding or not (``critic.py:56``), and starts
saturated (``critic.py:30``), where this one reads the last real token and starts at 0.5.

``B`` actions or prompts, ``L`` tokens of an action, ``V`` vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from webrl_lite.base_model import add_adapters, load_base, load_tokenizer, pick_device, value_head
from webrl_lite.batching import RuleError, Sample, micro_batches
from webrl_lite.config import LoraConfig, ModelConfig
from webrl_lite.generation import Generated, generate
from webrl_lite.gradient_check import check_gradients
from webrl_lite.passes import Passes
from webrl_lite.role_files import load_role, role_hash, role_tensors, save_role
from webrl_lite.role_guard import RoleGuard
from webrl_lite.trunk import Trunk, TrunkBudget, cut

__all__ = ["ROLES", "Generated", "RuleError", "Sample", "SharedBase", "TrunkBudget", "answer_ids", "micro_batches"]

ROLES = ("actor", "ref", "critic", "orm")
"""The policy, its frozen copy of the previous phase, the value network, the outcome reward model."""


class SharedBase:
    """A base with its roles; made by ``load``."""

    model: PeftModel
    """The base with one adapter a role."""
    tokenizer: PreTrainedTokenizerBase
    value_head: nn.Linear | None
    """The critic's two logits, failure and success, from the last hidden state; None without a critic."""

    def __init__(
        self,
        model: PeftModel,
        tokenizer: PreTrainedTokenizerBase,
        passes: Passes,
        head: nn.Linear | None,
    ) -> None:
        """Assemble the parts; use ``load``.

        Args:
            model: the base with its adapters.
            tokenizer: its tokenizer.
            passes: forward passes of that base.
            head: value head, None without a critic.
        """
        self.model = model
        self.tokenizer = tokenizer
        self.value_head = head
        self._passes = passes
        self._guard = RoleGuard(model, {"critic": head} if head is not None else {})

    @classmethod
    def load(
        cls,
        model: ModelConfig,
        lora: LoraConfig,
        *,
        roles: Sequence[str] = ROLES,
        device: str = "auto",
        seed: int = 0,
        checkpointing: bool | None = None,
        tokens_per_micro_batch: int = 8192,
        trunk: TrunkBudget | None = None,
    ) -> SharedBase:
        """Load a base once and add the roles; the reference starts as a copy of the actor.

        Args:
            model: which base, and how.
            lora: shape of the adapters.
            roles: some of ``ROLES``.
            device: ``auto`` (the GPU if there is one), ``cpu``, ``cuda``, ``cuda:1``.
            seed: of the adapters' and the value head's first weights.
            checkpointing: whether training recomputes each layer instead of keeping it; None: on a GPU.
            tokens_per_micro_batch: most tokens of one pass, padding included.
            trunk: what may be kept of the layers below the adapters; None: ``TrunkBudget()``.

        Raises:
            RuleError: a role or a combination that cannot work, an architecture whose output layer or cut is unknown.
            OSError: there is no such model.
        """
        unknown = [role for role in roles if role not in ROLES]
        if unknown or not roles or len(set(roles)) < len(roles):
            raise RuleError(f"`roles` must be some of {', '.join(ROLES)}, each once, got {', '.join(roles) or 'none'}.")
        place = pick_device(device)
        base = load_base(model, place)
        layers = base.config.num_hidden_layers
        if lora.top_layers is not None and lora.top_layers > layers:
            raise RuleError(f"`lora.top_layers` must be at most {layers}, the model's layers, got {lora.top_layers}.")
        below = layers - lora.top_layers if lora.top_layers is not None else 0
        peft_model = add_adapters(base, lora, {role: seed * len(ROLES) + ROLES.index(role) for role in roles}, below)
        if checkpointing if checkpointing is not None else place.type == "cuda":
            base.activation_checkpointing_enable({"use_reentrant": False})
            base.enable_input_require_grads()  # some versions forget it under PEFT, and then no gradient comes
        passes = Passes(
            base=base,
            trunk=Trunk(base.base_model, below, trunk or TrunkBudget()) if below else None,
            max_length=model.max_length,
            tokens_per_micro_batch=tokens_per_micro_batch,
        )
        head = value_head(base.config.hidden_size, place, seed) if "critic" in roles else None
        shared = cls(peft_model, load_tokenizer(model), passes, head)
        if "actor" in roles and "ref" in roles:
            shared.copy_role("actor", "ref")
        return shared

    @property
    def trunk(self) -> Trunk | None:
        """What lies below the lowest adapter, None if adapters reach the bottom."""
        return self._passes.trunk

    @property
    def max_length(self) -> int:
        """Most tokens of a prompt and its action together (``model.max_length``)."""
        return self._passes.max_length

    # Roles ------------------------------------------------------------------------------------------------------

    def role(self, name: str, *, train: bool = False) -> AbstractContextManager[None]:
        """Use a role within a ``with`` block; what was before is restored at its end, also after an error.

        Inside a training block, passes of other roles without gradients may stand between forward and backward; no
        role can be trained there.

        Args:
            name: the role.
            train: whether its weights get gradients; otherwise nothing inside the block records any.

        Raises:
            RuleError: on entering, if a result of another role still waits for its backward pass, or the block would
                train inside another role's; during backward, if it runs outside its role's training block.
        """
        return self._guard.enter(name, train)

    def trainable_parameters(self, role: str) -> list[nn.Parameter]:
        """Return what a role trains: its adapter's weights, for the critic also the value head's."""
        self._require_role(role)
        return list(self._guard.parameters[role])

    def copy_role(self, source: str, target: str) -> None:
        """Overwrite a role's adapter with another's; the value head stays as it is.

        Raises:
            RuleError: there is no such role.
        """
        self._require_role(source)
        self._require_role(target)
        tensors = role_tensors(self.model, source)
        with torch.no_grad():
            for name, tensor in role_tensors(self.model, target).items():
                tensor.copy_(tensors[name])

    def save_role(self, name: str, folder: str | Path) -> None:
        """Write a role to a folder that ``PeftModel.from_pretrained`` loads; all of it or nothing.

        Raises:
            RuleError: weights that are not finite, layers that training left out, or a file that was not written right.
            OSError: the disk is full; what was in the folder before is still there.
        """
        self._require_role(name)
        save_role(self.model, name, Path(folder), self._head(name))

    def load_role(self, name: str, folder: str | Path) -> None:
        """Read a role from a folder of ``save_role``; parameters keep their identity, so optimizers stay valid.

        Raises:
            RuleError: the folder is incomplete or from another model or other adapter settings; nothing was changed.
        """
        self._require_role(name)
        load_role(self.model, name, Path(folder), self._head(name))

    def role_version(self, name: str) -> str:
        """Return twelve hex digits that change with any of a role's weights; for traces."""
        self._require_role(name)
        head = self._head(name)
        extra = {f"value_head.{key}": tensor for key, tensor in head.state_dict().items()} if head else {}
        return role_hash(role_tensors(self.model, name) | extra)

    def check_gradients(self) -> None:
        """Compare one step's gradients with and without activation checkpointing on two layers; see ``gradient_check``.

        Raises:
            RuleError: they differ or are missing; training here would go wrong without a sign.
        """
        body = self._passes.body
        if "layers" in body._modules:
            first = self.trunk.below if self.trunk is not None else 0
            body = cut(body, first, min(first + 2, body.config.num_hidden_layers), final_norm=True)
        check_gradients(self._guard, body, body.get_input_embeddings())

    # Scores -----------------------------------------------------------------------------------------------------

    def action_logprobs(self, samples: Sequence[Sample], *, reduction: Literal["sum", "tokens"] = "sum") -> Tensor:
        """Return the log-probability of actions under the role in use; with a gradient in a training block.

        In a training block all micro-batches' graphs are alive until backward, so call it with what fits at once
        (``micro_batches``); without gradients any number of samples will do.

        Args:
            samples: B prompts with their actions.
            reduction: ``sum`` gives one number an action, ``tokens`` one a token.

        Returns:
            (B,), or (B, L) with 0 behind shorter actions; float32, in nats, at most 0.

        Raises:
            RuleError: no role is in use, an empty prompt or action, ids outside the vocabulary, too many tokens.
        """
        self._guard.require()
        for index, sample in enumerate(samples):
            if not sample.prompt or not sample.action:
                part = "action" if sample.prompt else "prompt"
                raise RuleError(f"`samples[{index}].{part}` must have at least one token, got none. Drop this step.")
        # the token at column c is predicted at column c - 1
        spans = [(len(s.prompt) - 1, len(s.row) - 1) for s in samples]

        def score(states: Tensor, group: Sequence[int]) -> list[Tensor]:
            ids = torch.tensor([t for i in group for t in samples[i].action], device=self._passes.device)
            logprobs = self._passes.token_logprobs(states, ids)
            return list(logprobs.split([len(samples[i].action) for i in group]))

        scores = self._passes.run([s.row for s in samples], [len(s.prompt) for s in samples], spans, score)
        if not scores:
            return torch.zeros((0,) if reduction == "sum" else (0, 0))
        if reduction == "sum":
            return self._guard.watch(torch.stack([s.sum() for s in scores]))  # each alone: padding changes no bit
        return self._guard.watch(nn.utils.rnn.pad_sequence(scores, batch_first=True))

    def value_logits(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Return the critic's logits of failure and success, from each prompt's last token.

        Args:
            prompts: B rows of token ids.

        Returns:
            (B, 2) float32, for a cross-entropy against the outcome (0 or 1); with a gradient in a training block.

        Raises:
            RuleError: another role than the critic is in use, or as for ``action_logprobs``.
        """
        role = self._guard.require().role
        if role != "critic":
            raise RuleError(f'values need the role critic, got {role}. Write `with shared.role("critic"):` around it.')
        scores = self._passes.at_last_token(prompts, lambda states: self.value_head(states.float()))
        return self._guard.watch(torch.stack(scores)) if scores else torch.zeros(0, 2)

    def values(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Return V(s), the probability of success, of B prompts: (B,) float32 in [0, 1]. Raises as ``value_logits``."""
        return self.value_logits(prompts).softmax(dim=-1)[:, 1]

    def answer_logprobs(self, prompts: Sequence[Sequence[int]], candidates: Sequence[int]) -> Tensor:
        """Return the log-probability of single tokens as the next one after each prompt.

        Args:
            prompts: B rows of token ids that end where the answer begins.
            candidates: C token ids, from ``answer_ids``.

        Returns:
            (B, C) float32, in nats, normalised over the whole vocabulary: ``exp`` and sum over C is the share of
            probability that the candidates have together.

        Raises:
            RuleError: as for ``action_logprobs``.
        """
        self._guard.require()
        picked = torch.tensor(list(candidates), device=self._passes.device)

        def score(states: Tensor) -> Tensor:
            return torch.log_softmax(self._passes.logits(states).float(), dim=-1)[:, picked]

        scores = self._passes.at_last_token(prompts, score)
        return self._guard.watch(torch.stack(scores)) if scores else torch.zeros(0, len(candidates))

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        temperature: float,
        top_p: float,
        max_new_tokens: int,
        stop_ids: Collection[int],
        seeds: Sequence[int] | None = None,
    ) -> list[Generated]:
        """Continue prompts under the role in use, all in one batch.

        Args:
            prompts: B rows of token ids.
            temperature: 0 takes the likeliest token, 1 samples from the policy.
            top_p: in (0, 1]; only the likeliest tokens that together have this probability are sampled.
            max_new_tokens: most tokens of a reply.
            stop_ids: tokens that end a reply; the one that does is part of it.
            seeds: one a prompt; the same prompt and seed give the same reply whatever else is in the batch. None:
                torch's global random numbers.

        Returns:
            B replies; their log-probabilities are those of ``action_logprobs``, whatever the temperature.

        Raises:
            RuleError: a setting out of range, or as for ``action_logprobs``.
        """
        self._guard.require()
        if not (temperature >= 0 and 0 < top_p <= 1 and max_new_tokens >= 1):
            raise RuleError(
                "`temperature` must be at least 0, `top_p` in (0, 1], `max_new_tokens` at least 1, got "
                f"{temperature}, {top_p}, {max_new_tokens}."
            )
        if not prompts:
            return []
        rows = [tuple(prompt) for prompt in prompts]
        self._passes.check_rows(rows)
        with torch.inference_mode():
            return generate(
                self._passes.base,
                rows,
                temperature=temperature,
                top_p=top_p,
                max_new_tokens=max_new_tokens,
                stop_ids=frozenset(stop_ids),
                seeds=seeds,
            )

    def _head(self, role: str) -> nn.Module | None:
        return self.value_head if role == "critic" else None

    def _require_role(self, name: str) -> None:
        if name not in self._guard.parameters:
            raise RuleError(f"`role` must be one of {', '.join(self._guard.parameters)}, got {name!r}.")


def answer_ids(tokenizer: PreTrainedTokenizerBase, prompt: str, answers: Sequence[str]) -> tuple[int, ...]:
    """Return the one token of each answer, as it is written right behind a prompt.

    Whether an answer begins with a space, and whether it is one token at all, is up to tokenizer and template; so the
    answer is encoded in its place and not alone.

    Args:
        tokenizer: the model's.
        prompt: any prompt as text, template included, up to where the answer begins.
        answers: e.g. ``("YES", "NO")``.

    Raises:
        RuleError: an answer has several tokens, melts into the prompt's last token, is unknown to the vocabulary, or
            equals another.
    """
    before = tokenizer.encode(prompt, add_special_tokens=False)
    found: list[int] = []
    for answer in answers:
        ids = tokenizer.encode(prompt + answer, add_special_tokens=False)
        added = ids[len(before) :]
        if ids[: len(before)] != before or len(added) != 1 or added[0] == tokenizer.unk_token_id:
            raise RuleError(
                f"`answers` must each be one token behind the prompt, {answer!r} is "
                f"{tokenizer.convert_ids_to_tokens(added)}. Choose words that this tokenizer has whole."
            )
        found.append(added[0])
    if len(set(found)) < len(found):
        raise RuleError(f"`answers` must have different tokens, got {found} for {list(answers)}.")
    return tuple(found)
