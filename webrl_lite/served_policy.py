"""Replies from a server of completions, such as vLLM, in place of the loaded model: the same tokens, made elsewhere.

Reads turns and the actor's folder; gives what ``rollout.ModelPolicy`` gives: the ids that were sampled, their
log-probabilities under the policy at temperature 1, the prompt's hash. Prompts are sent as token ids and replies come
back as token ids, so nothing is ever tokenized twice.

The actor of a phase is loaded by a name that holds the digest of its weights (``actor-1a2b3c4d5e6f``), and the one
before is taken out. Then the served adapter is checked to be the one that was trained: the server lists it with the
folder it came from, and what it writes behind a fixed prompt has the log-probabilities that the loaded model gives to
the same tokens, within ``rollout.tolerance``.

    VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve MODEL --enable-lora --max-lora-rank 32 --port 8000

The server must see the run's folder under the same path. Asked of it: ``/models``, ``/load_lora_adapter``,
``/unload_lora_adapter`` and ``/completions`` with ``return_tokens_as_token_ids`` and ``stop_token_ids``.

A server that does not answer is asked again, with growing pauses; after the last try the run ends with a message that
names it, and goes on with ``--resume`` from the last finished stage. No equation of the paper.

# differs from release: it starts a server of its own for every phase, with merged weights, and keeps only the text.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from webrl_lite.batching import Sample
from webrl_lite.config import Config
from webrl_lite.llm import KEY_VARIABLE
from webrl_lite.model import SharedBase
from webrl_lite.prompts import prompt_hash, reply_text, state_ids, stop_ids
from webrl_lite.rollout import Said, Turn
from webrl_lite.trajectory import JSON

TIMEOUT_S = 600.0
"""For one reply; a busy server lets requests wait."""
TRIES = 5
BACKOFF_S = 1.0
"""Pause before the second try; it doubles each time."""
PROBE_TOKENS = 32
"""Tokens on which server and loaded model are compared."""
PROBE = ("Find the cheapest kettle.", "@ shopping/ | tab 0/1 | 0-720 of 720\nKettle [3]\nTea pot [4] | $12.00\n")
"""Instruction and page of the prompt behind which they are compared."""

_TOKEN = re.compile(r"token_id:(\d+)")


class ServerError(RuntimeError):
    """A server of completions that cannot be used: names its address, what it did and the way out."""


@dataclass(frozen=True)
class Completion:
    """What the server sampled."""

    token_ids: tuple[int, ...]
    """The stop token included."""
    logprobs: tuple[float, ...]
    """One a token, in nats."""


class CompletionServer:
    """A server with adapters that come and go; safe to ask from several threads."""

    def __init__(self, base_url: str) -> None:
        """Take a server; nothing is sent yet. ``OPENAI_API_KEY`` is sent as its key if it is set.

        Args:
            base_url: address, up to and including ``/v1``.
        """
        self.base_url = base_url.rstrip("/")
        self._loaded: list[str] = []

    def models(self) -> dict[str, dict[str, JSON]]:
        """Return what the server serves, adapters included, by name.

        Raises:
            ServerError: it does not answer, or with something else.
        """
        answer = self._ask("/models")
        listed = answer.get("data")
        if not isinstance(listed, list) or not all(isinstance(one, dict) and "id" in one for one in listed):
            raise ServerError(f"{self.base_url}/models gives no list of models. Is it an OpenAI-compatible server?")
        return {str(one["id"]): one for one in listed}

    def load(self, name: str, folder: Path) -> None:
        """Load an adapter unless it is there, and take out those that this object loaded before.

        Args:
            name: of the adapter, unique to its weights.
            folder: in PEFT's form, at a path that the server sees.

        Raises:
            ServerError: the server refuses, or does not list the adapter with this folder afterwards.
        """
        path = str(folder.resolve())
        if name not in self.models():
            self._ask("/load_lora_adapter", {"lora_name": name, "lora_path": path})
            listed = self.models().get(name, {})
            if listed.get("root", path) != path or not listed:
                where = listed.get("root", "nowhere")
                raise ServerError(f"{self.base_url} took {name} from {path} and lists it from {where}.")
        for earlier in [one for one in self._loaded if one != name]:
            self._ask("/unload_lora_adapter", {"lora_name": earlier})
            self._loaded.remove(earlier)
        if name not in self._loaded:
            self._loaded.append(name)

    def complete(
        self,
        model: str,
        prompt: Sequence[int],
        *,
        temperature: float,
        top_p: float,
        max_new_tokens: int,
        stop_ids: Collection[int],
        seed: int | None = None,
    ) -> Completion:
        """Continue one prompt; the arguments are those of ``SharedBase.generate``.

        Raises:
            ServerError: no answer after all tries, or one that cannot be trained on.
        """
        answer = self._ask(
            "/completions",
            {
                "model": model,
                "prompt": list(prompt),
                "temperature": temperature,
                "top_p": top_p,
                "max_tokens": max_new_tokens,
                "stop_token_ids": sorted(stop_ids),
                "seed": seed,
                "logprobs": 1,
                "return_tokens_as_token_ids": True,
                "skip_special_tokens": False,
            },
        )
        return self._completion(answer, stop_ids)

    def _completion(self, answer: dict[str, JSON], stop_ids: Collection[int]) -> Completion:
        try:
            [choice] = answer["choices"]
            written = choice["logprobs"]
            ids = tuple(int(_TOKEN.fullmatch(token)[1]) for token in written["tokens"])
            logprobs = tuple(float(number) for number in written["token_logprobs"])
            finish = choice["finish_reason"]
        except (KeyError, TypeError, ValueError) as error:
            raise ServerError(
                f"{self.base_url} gives no token ids with log-probabilities, got {json.dumps(answer)[:200]}. It must "
                "know `logprobs` and `return_tokens_as_token_ids`, as vLLM does."
            ) from error
        if not ids or len(ids) != len(logprobs) or not all(map(math.isfinite, logprobs)):
            raise ServerError(f"{self.base_url} gives {len(ids)} tokens with log-probabilities {logprobs[:5]}...")
        if finish == "stop" and ids[-1] not in stop_ids:
            raise ServerError(
                f"{self.base_url} leaves out the token that ended a reply, or ended it at another one than "
                f"{sorted(stop_ids)}, got {ids[-1]}. Without it the end of a reply cannot be learned."
            )
        return Completion(ids, logprobs)

    def _ask(self, path: str, body: JSON = None) -> dict[str, JSON]:
        """Send a request until it is answered, at most ``TRIES`` times; an empty or plain answer gives {}."""
        why = ""
        for tries in range(TRIES):
            if tries:
                time.sleep(BACKOFF_S * 2 ** (tries - 1))
            try:
                with urllib.request.urlopen(self._request(path, body), timeout=TIMEOUT_S) as response:
                    text = response.read().decode("utf-8", "replace")
                value = json.loads(text) if text.lstrip().startswith("{") else {}
                return value if isinstance(value, dict) else {}
            except urllib.error.HTTPError as error:
                with error:
                    why = f"HTTP {error.code}: {' '.join(error.read(2000).decode('utf-8', 'replace').split())[:300]}"
                if error.code < 500 and error.code != 429:
                    raise ServerError(f"{self.base_url}{path} refuses: {why}. {_hint(path, error.code)}") from error
            except (OSError, HTTPException, ValueError) as error:
                why = str(getattr(error, "reason", error)) or type(error).__name__
        raise ServerError(
            f"{self.base_url}{path} gives no answer after {TRIES} tries ({why}). Start the server again and go on with "
            "--resume, or leave out `rollout.base_url`."
        )

    def _request(self, path: str, body: JSON) -> urllib.request.Request:
        request = urllib.request.Request(self.base_url + path, method="GET" if body is None else "POST")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        key = os.environ.get(KEY_VARIABLE, "").strip()
        if key:
            request.add_header("Authorization", f"Bearer {key}")
        return request


class ServedPolicy:
    """The actor as a server plays it, as a ``rollout.Policy``."""

    def __init__(
        self,
        server: CompletionServer,
        name: str,
        shared: SharedBase,
        config: Config,
        *,
        temperature: float | None = None,
    ) -> None:
        """Take an adapter that the server has loaded.

        Args:
            server: the server.
            name: of the adapter.
            shared: gives the tokenizer.
            config: gives template, lengths and sampling.
            temperature: 0 is greedy; None: ``rollout.temperature``.
        """
        self.server, self.name, self.tokenizer, self.config = server, name, shared.tokenizer, config
        self.temperature = config.rollout.temperature if temperature is None else temperature
        self.stops = stop_ids(shared.tokenizer, config.model.template)

    def __call__(self, turns: Sequence[Turn]) -> list[Said]:
        """Sample one reply a turn, all at once.

        Raises:
            PromptError: a task that does not fit into ``model.max_length`` even without its page.
            ServerError: the server gives no answer of use.
        """
        with ThreadPoolExecutor(max(1, len(turns)), thread_name_prefix="completion") as pool:
            return list(pool.map(self._say, turns))

    def _say(self, turn: Turn) -> Said:
        ids = state_ids(self.tokenizer, self.config, intent=turn.task.intent, replies=turn.replies, page=turn.page)
        rollout = self.config.rollout
        one = self.server.complete(
            self.name,
            ids,
            temperature=self.temperature,
            top_p=rollout.top_p,
            max_new_tokens=rollout.max_new_tokens,
            stop_ids=self.stops,
            seed=turn.seed,
        )
        text = reply_text(self.tokenizer, self.config.model.template, one.token_ids)
        return Said(text, one.token_ids, one.logprobs, prompt_hash(ids))


def serve_actor(server: CompletionServer, shared: SharedBase, config: Config, folder: Path) -> str:
    """Load the actor into the server, check that it serves these weights, and return the adapter's name.

    Args:
        server: the server.
        shared: the base, whose role ``actor`` holds the same weights.
        config: gives template and lengths of the fixed prompt, and ``rollout.tolerance``.
        folder: of the actor.

    Raises:
        ServerError: the server refuses, or what it serves is another model or adapter.
    """
    name = f"actor-{shared.role_version('actor')}"
    server.load(name, folder)
    intent, page = PROBE
    prompt = state_ids(shared.tokenizer, config, intent=intent, replies=(), page=page)
    stops = stop_ids(shared.tokenizer, config.model.template)
    number = min(PROBE_TOKENS, config.rollout.max_new_tokens)
    one = server.complete(name, prompt, temperature=0.0, top_p=1.0, max_new_tokens=number, stop_ids=stops, seed=0)
    with shared.role("actor"):
        own = shared.action_logprobs([Sample(prompt, one.token_ids)], reduction="tokens")[0].tolist()
    distance = sum(abs(a - b) for a, b in zip(own, one.logprobs, strict=True)) / len(own)
    if distance > config.rollout.tolerance:
        raise ServerError(
            f"{server.base_url} serves other weights under {name} than those of {folder}: its log-probabilities are "
            f"{distance:.3g} nats a token away, `rollout.tolerance` is {config.rollout.tolerance:g}. Does it serve "
            f"{config.model.name}, with adapters? If it only calculates in another precision, raise the tolerance."
        )
    return name


def _hint(path: str, status: int) -> str:
    if path.endswith("_adapter"):
        return (
            "Start vLLM with --enable-lora, a large enough --max-lora-rank and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True, "
            "where it sees the run's folder."
        )
    return f"Is `{KEY_VARIABLE}` its key?" if status in (401, 403) else "See the server's log."
