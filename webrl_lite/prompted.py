"""Agents that nobody trained here: a served model as a policy, or the weights of a loaded one as they are.

Reads turns (``rollout``); gives replies. A served model behind any OpenAI-compatible address is asked as a chat: a
system message with the action list, the replies so far as the assistant's turns, and the page with the task as the
newest user message. These are the rows of prompted models (GPT-4-Turbo, GPT-4o) in the paper's Table 1; the rows of
bare open models are ``bare_policy``.

What a reader may rely on:

* only the newest message holds a page; the task stands in it, behind the page, in every round;
* a model that answers nothing, refuses, or is cut off before it says anything has *replied*: with an empty text, which
  the environment counts as a reply without an action, as it counts prose;
* a server that cannot be asked is an exception that names it, after all tries of the client, and never a reply;
* requests, tokens and cost are in ``llm.usage`` and the client's log.

Source: paper Section 3.1; VisualAgentBench's ``p_webrl_chat.json`` for the form of a chat.

# differs from release: its chat form leaves the task out of the first round, and lists actions that are not carried
out; our action list is ``actions.describe``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from webrl_lite.config import Config, LoraConfig
from webrl_lite.llm import Llm, LlmError
from webrl_lite.model import SharedBase
from webrl_lite.prompts import ACTOR_SYSTEM, PAST_PAGE
from webrl_lite.rollout import ModelPolicy, Said, Turn

NO_ANSWER = ("empty", "refusal", "cut_off")
"""Failures of a request (``llm.KINDS``) that are the model's own, hence an empty reply."""
NOTHING_SAID = "(no answer)"
"""Stands in the chat for an earlier empty reply, since many servers refuse a message without text."""

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)


class PromptedPolicy:
    """A served model as a ``rollout.Policy``."""

    def __init__(self, llm: Llm, *, temperature: float | None = None, concurrent: int = 16) -> None:
        """Take a model.

        Args:
            llm: the served model.
            temperature: 0 in evaluation; None: the client's.
            concurrent: most requests under way, at least 1.

        Raises:
            ValueError: ``concurrent`` is below 1.
        """
        if concurrent < 1:
            raise ValueError(f"`concurrent` must be at least 1, got {concurrent}. Use e.g. 16.")
        self.llm, self.temperature, self.concurrent = llm, temperature, concurrent
        self.name = f"prompted {llm.config.model}"
        """For the trajectories."""

    def __call__(self, turns: Sequence[Turn]) -> list[Said]:
        """Ask for one reply a turn, all at once.

        Raises:
            LlmError: the server could not be asked; the message names it. No further request of the batch is begun.
        """
        if not turns:
            return []
        with ThreadPoolExecutor(min(self.concurrent, len(turns)), thread_name_prefix="agent") as pool:
            answers = [pool.submit(self._answer, turn) for turn in turns]
            try:
                return [Said(answer.result()) for answer in answers]
            finally:
                for answer in answers:
                    answer.cancel()

    def _answer(self, turn: Turn) -> str:
        try:
            text = self.llm.ask(chat(turn), lambda text: text, purpose="act", temperature=self.temperature)
        except LlmError as error:
            if error.kind in NO_ANSWER:
                return ""
            where = self.llm.config.base_url or "OpenAI's server"
            step = f"step {len(turn.replies)} of task {turn.task.task_id}"
            raise LlmError(error.kind, f"the agent's server {where} failed at {step}: {error}") from error
        return _THOUGHTS.sub("", text)  # a thought may hold a line that looks like the action


def chat(turn: Turn) -> list[dict[str, str]]:
    """Return the messages of a turn, oldest first.

    Earlier rounds have the authors' sign where their page was, as in ``prompts``.
    """
    messages = [{"role": "system", "content": ACTOR_SYSTEM}]
    for reply in turn.replies:
        messages.append({"role": "user", "content": PAST_PAGE})
        messages.append({"role": "assistant", "content": reply if reply.strip() else NOTHING_SAID})
    messages.append({"role": "user", "content": f"{turn.page}\n\nTask: {turn.task.intent}"})
    return messages


def bare_policy(config: Config, *, device: str = "auto", temperature: float | None = None) -> ModelPolicy:
    """Load a model and let it act with its weights as they are.

    A fresh adapter changes nothing, bit for bit, so this is the model itself. With ``model.template`` chat the prompt
    is the system message with the action list, then page, task and replies: any instruction-tuned model. With the
    authors' templates it is a released checkpoint (``released``).

    Args:
        config: model, lengths and sampling.
        device: as in ``SharedBase.load``.
        temperature: 0 is greedy; None: ``rollout.eval_temperature``.

    Raises:
        RuleError, OSError: as ``SharedBase.load``.
        PromptError: the tokenizer does not fit ``model.template``.
    """
    shared = SharedBase.load(config.model, LoraConfig(rank=1, alpha=1), roles=("actor",), device=device)
    chosen = config.rollout.eval_temperature if temperature is None else temperature
    return ModelPolicy(shared, config, temperature=chosen)
