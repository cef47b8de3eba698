"""A model behind an OpenAI-compatible server: asked within limits, every request written down, every failure named.

Used by ``curriculum`` (new tasks, feasibility), by judges and by prompted agents. Works with any server that speaks
``/chat/completions``: OpenAI's, vLLM, llama.cpp, ``transformers serve``. Writes one line a request to a JSON Lines
file. No equation of the paper; Section 2.1 asks GPT-4o at temperature 1.

What can go wrong with a request has a name (``KINDS``). Rate limits, time-outs, lost connections, server errors and
answers of no use are asked again, with growing pauses; a wrong key, an unknown model or a spent budget is not, since
it would be the same a second time. One call of ``ask`` ends within ``LlmConfig.longest_s``, whatever the server does:
the time-out is for the whole answer, so a server that sends a byte now and then does not prolong it.

# differs from release: ``gen_task.py:149`` crashes on an answer without text and takes a failed parse for zero tasks.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from webrl_lite.config import LlmConfig

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]
Read = TypeVar("Read")

KEY_VARIABLE = "OPENAI_API_KEY"
RETRIED = (
    *("rate_limit", "timeout", "connection", "server_error"),
    *("no_choices", "empty", "refusal", "cut_off", "malformed"),
)
"""Failures after which a request is sent again."""
FINAL = ("key", "not_found", "quota", "budget")
"""Failures that every further request would meet too."""
KINDS = (*RETRIED, "bad_request", *FINAL)
"""All kinds of failure: ``no_choices``, ``empty`` (null or blank text), ``refusal`` (the answer says so in its own
field, or a content filter ended it), ``cut_off`` (the length limit ended it and nothing of use was complete) and
``malformed`` (no JSON, or text that the caller cannot read) are answers of no use; ``bad_request`` is refused by the
server as it stands."""


class LlmError(RuntimeError):
    """A question without an answer of use; ``kind`` is one of ``KINDS``."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def final(self) -> bool:
        """Whether asking anything else is as useless; so it is if the server is still away after all tries."""
        return self.kind in (*FINAL, "connection")


@dataclass
class Usage:
    """What has been asked so far, tries included."""

    calls: int = 0
    answers: int = 0
    """Requests whose answer was of use."""
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    """Requests without an answer of use, by kind."""

    def line(self) -> str:
        """Return one line for the log."""
        failed = ", ".join(f"{number} {kind}" for kind, number in sorted(self.failures.items()))
        tokens = f"{self.tokens_in} tokens in, {self.tokens_out} out, ${self.dollars:.4f}"
        return f"{self.calls} requests, {self.answers} of use ({failed or 'no failures'}), {tokens}"


@dataclass(frozen=True)
class _Answer:
    """One request's outcome; ``kind`` is empty if there is a text."""

    kind: str
    text: str = ""
    why: str = ""
    finish: str = ""
    tokens: tuple[int, int] = (0, 0)
    wait_s: float = 0.0
    """Pause that the server asked for."""


class Llm:
    """One served model; safe to ask from several threads."""

    def __init__(self, config: LlmConfig, log: Path | None = None, *, api_key: str = "") -> None:
        """Take a model; nothing is sent yet.

        Args:
            config: which model, and the limits.
            log: file to which every request is added; what it holds already counts for budget and cost, so that a
                resumed run does not start counting anew. None: not written.
            api_key: key of the server; empty: the variable OPENAI_API_KEY. A server at ``base_url`` may need none. It
                is no setting, so that it never gets into a file.

        Raises:
            LlmError: no key and no server of one's own, or the package ``openai`` is missing; the message says what
                to do.
        """
        try:
            import openai  # noqa: F401 - optional; asked here so that it is missed before the first phase
        except ImportError as error:
            raise LlmError("key", "the package `openai` is missing. Install it: pip install openai.") from error
        key = api_key or os.environ.get(KEY_VARIABLE, "").strip()
        if not key and config.base_url is None:
            raise LlmError(
                "key",
                f"`{KEY_VARIABLE}` must be set to ask {config.model}. Set it, or give a server of your own with "
                "--llm.base_url, or use the generator without a model.",
            )
        self.config = config
        self.usage = Usage()
        self._key = key or "none"  # the client insists on one
        self._log = log
        self._lock = threading.Lock()
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            if log.is_file():
                self._recount(log)

    def ask(
        self,
        messages: Sequence[Mapping[str, str]],
        read: Callable[[str], Read | None],
        *,
        purpose: str,
        temperature: float | None = None,
    ) -> Read:
        """Ask until there is an answer of use, at most ``retries`` + 1 times.

        Args:
            messages: of the chat.
            read: turns the text into what is wanted; None: the text is of no use, and is asked for again.
            purpose: word for the log, for example ``generate``.
            temperature: of this question; None: the configuration's. Not sent if the configuration leaves it out.

        Returns:
            What ``read`` made of the first answer of use. One that was cut off by the length limit is of use if
            ``read`` finds something whole in it.

        Raises:
            LlmError: none came; the message names the last failure and the number of tries.
        """
        if temperature is None or self.config.temperature is None:
            temperature = self.config.temperature
        tries, texts = 0, []
        while True:
            tries += 1
            number = self._spend()
            start = time.monotonic()
            answer = self._request(messages, temperature)
            result = read(answer.text) if not answer.kind else None
            if not answer.kind and result is None:
                kind = "cut_off" if answer.finish == "length" else "malformed"
                answer = _Answer(kind, answer.text, "the answer has nothing of use", answer.finish, answer.tokens)
            self._record(number, purpose, tries, messages, temperature, answer, time.monotonic() - start)
            if result is not None:
                return result
            texts.append(answer.text)
            if answer.kind not in RETRIED or tries > self.config.retries:
                raise self._error(answer, texts)
            # up to a quarter shorter, so that clients which failed together do not come back together
            pause = max(self.config.pause_s(tries) * (1 - random.random() / 4), answer.wait_s)
            time.sleep(min(pause, self.config.longest_pause_s))

    def _spend(self) -> int:
        with self._lock:
            if self.usage.calls >= self.config.max_calls:
                self.usage.failures["budget"] += 1
                raise LlmError(
                    "budget",
                    f"`llm.max_calls` is spent: {self.usage.calls} requests ({self.usage.line()}). Raise it to go on.",
                )
            self.usage.calls += 1
            return self.usage.calls

    def _error(self, answer: _Answer, texts: Sequence[str]) -> LlmError:
        where = self.config.base_url or "OpenAI's server"
        hints = {
            "timeout": f"No whole answer came within `llm.timeout_s` ({self.config.timeout_s:g} s): raise it, or look "
            "at the server.",
            "connection": f"Is a server running at {where}? See --llm.base_url.",
            "key": f"Set `{KEY_VARIABLE}`.",
            "not_found": f"Is {self.config.model!r} a model of {where}? See --llm.model and --llm.base_url.",
            "quota": "The account has no credit left.",
            "cut_off": f"Raise `llm.max_tokens` ({self.config.max_tokens}).",
            "rate_limit": "Raise `llm.retries` or `llm.backoff_s`.",
        }
        hint = hints.get(answer.kind, "")
        if answer.text and len(texts) > 1 and len(set(texts)) == 1:
            hint += (
                " Every try gave the same text, so the server does not sample: the model's generation_config.json may "
                "need do_sample true."
            )
        times = "1 try" if len(texts) == 1 else f"{len(texts)} tries"
        message = f"no answer of {self.config.model} after {times}: {answer.kind}"
        return LlmError(answer.kind, f"{message} ({answer.why}). {hint.strip()}".strip())

    # The request -------------------------------------------------------------------------------------------------

    def _request(self, messages: Sequence[Mapping[str, str]], temperature: float | None) -> _Answer:
        """Send one request from a thread of its own, since a notebook has an event loop already."""
        answers: list[_Answer] = []
        crashes: list[BaseException] = []

        def send() -> None:
            try:
                answers.append(asyncio.run(self._send(messages, temperature)))
            except BaseException as error:
                crashes.append(error)

        thread = threading.Thread(target=send, name="llm", daemon=True)
        thread.start()
        thread.join()
        if crashes:
            raise crashes[0]
        return answers[0]

    async def _send(self, messages: Sequence[Mapping[str, str]], temperature: float | None) -> _Answer:
        import openai

        settings: dict[str, JSON] = {"model": self.config.model}
        # OpenAI's newer models refuse the old name, other servers do not know the new one
        settings["max_tokens" if self.config.base_url else "max_completion_tokens"] = self.config.max_tokens
        if temperature is not None:
            settings["temperature"] = temperature
        limit = self.config.timeout_s
        try:
            async with asyncio.timeout(limit):
                async with openai.AsyncOpenAI(
                    api_key=self._key, base_url=self.config.base_url, timeout=limit, max_retries=0
                ) as client:
                    raw = await client.chat.completions.with_raw_response.create(
                        messages=[dict(message) for message in messages], **settings
                    )
                    return _read_body(raw.text)
        except (TimeoutError, openai.APITimeoutError):
            return _Answer("timeout", why=f"nothing whole within {limit:g} s")
        except openai.APIConnectionError as error:
            return _Answer("connection", why=self._safe(str(error.__cause__ or error)))
        except openai.APIStatusError as error:
            return self._refused(error.status_code, self._safe(error.response.text), error.response.headers)

    def _refused(self, status: int, body: str, headers: Mapping[str, str]) -> _Answer:
        why = f"HTTP {status}: {' '.join(body.split())[:300]}"
        if status == 429 and "insufficient_quota" in body:
            return _Answer("quota", why=why)
        if status == 429:
            return _Answer("rate_limit", why=why, wait_s=_seconds(headers.get("retry-after", "")))
        if status in (401, 403):
            return _Answer("key", why=why)
        if status == 404:
            return _Answer("not_found", why=why)
        if status == 408:
            return _Answer("timeout", why=why)
        if status >= 500 or status in (409, 425):
            return _Answer("server_error", why=why, wait_s=_seconds(headers.get("retry-after", "")))
        return _Answer("bad_request", why=why)

    def _safe(self, text: str) -> str:
        """Return a server's text without the key, which some repeat in their messages."""
        return text.replace(self._key, "***") if self._key != "none" else text

    # The log -----------------------------------------------------------------------------------------------------

    def _record(
        self,
        number: int,
        purpose: str,
        tries: int,
        messages: Sequence[Mapping[str, str]],
        temperature: float | None,
        answer: _Answer,
        seconds: float,
    ) -> None:
        config = self.config
        tokens_in, tokens_out = answer.tokens
        dollars = (tokens_in * config.dollars_per_million_in + tokens_out * config.dollars_per_million_out) / 1e6
        line: dict[str, JSON] = {
            "call": number,
            "purpose": purpose,
            "try": tries,
            "model": config.model,
            "temperature": temperature,
            "messages": [dict(message) for message in messages],
            "reply": answer.text,
            "finish": answer.finish,
            "failure": answer.kind,
            "why": answer.why,
            "tokens_in": tokens_in,
            "tokens_out": tokens_out,
            "dollars": dollars,
            "seconds": round(seconds, 3),
        }
        with self._lock:
            self._count(answer.kind, tokens_in, tokens_out, dollars)
            if self._log is not None:
                # escaped, so that half a surrogate pair in an answer is written too; one write, so a line is whole
                with open(self._log, "ab") as file:
                    file.write((json.dumps(line) + "\n").encode())

    def _count(self, kind: str, tokens_in: int, tokens_out: int, dollars: float) -> None:
        self.usage.tokens_in += tokens_in
        self.usage.tokens_out += tokens_out
        self.usage.dollars += dollars
        if kind:
            self.usage.failures[kind] += 1
        else:
            self.usage.answers += 1

    def _recount(self, log: Path) -> None:
        """Count what earlier processes of the run asked; a line that a kill broke off counts as nothing."""
        content = log.read_bytes()
        if content and not content.endswith(b"\n"):
            with open(log, "ab") as file:
                file.write(b"\n")
        for line in content.splitlines():
            try:
                record = json.loads(line)
                spent = (record["tokens_in"], record["tokens_out"], record["dollars"])
                self._count(record["failure"], *spent)
            except (ValueError, TypeError, KeyError):
                continue
            self.usage.calls += 1


def _read_body(body: str) -> _Answer:
    """Read a body as ``/chat/completions`` gives it; servers leave fields out, so nothing is taken for granted."""
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        return _Answer("malformed", why=f"the body is no JSON: {' '.join(body.split())[:100]!r}")
    if not isinstance(record, dict):
        return _Answer("malformed", why="the body is no JSON object")
    usage = record.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens = (_whole(usage.get("prompt_tokens")), _whole(usage.get("completion_tokens")))
    choices = record.get("choices")
    if not isinstance(choices, list) or not choices:
        return _Answer("no_choices", why="the answer has no choices", tokens=tokens)
    choice = choices[0] if isinstance(choices[0], dict) else {}
    finish = choice.get("finish_reason")
    finish = finish if isinstance(finish, str) else ""
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    text = message.get("content")
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        return _Answer("refusal", refusal, f"it refuses: {refusal.strip()[:100]}", finish, tokens)
    if finish == "content_filter":
        return _Answer("refusal", why="a content filter ended it", finish=finish, tokens=tokens)
    if not isinstance(text, str) or not text.strip():
        kind = "cut_off" if finish == "length" else "empty"
        what = "null" if text is None else "blank" if isinstance(text, str) else "no text"
        return _Answer(kind, why=f"the content is {what}", finish=finish, tokens=tokens)
    return _Answer("", text, finish=finish, tokens=tokens)


def _whole(value: JSON) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _seconds(value: str) -> float:
    """Return the seconds of a Retry-After header; 0 if there is none or it is a date."""
    try:
        seconds = float(value)
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
