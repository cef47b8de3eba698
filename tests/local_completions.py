"""A server on this machine that speaks like vLLM's completions, with adapters that come and go, over a tiny model."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from local_llm import running

from webrl_lite.model import SharedBase


class Completions(ThreadingHTTPServer):
    """Serves a base's role ``actor`` under the name of whichever adapter was loaded into it."""

    daemon_threads = True

    def __init__(self, shared: SharedBase) -> None:
        self.shared = shared
        self.adapters: dict[str, str] = {}
        """Name to folder."""
        self.serves: dict[str, str] = {}
        """Name to another folder, which is served in its place: a server that mixes adapters up."""
        self.requests: list[tuple[str, dict]] = []
        self.faults: list[tuple[int, dict]] = []
        """Answers given first, in their order."""
        self.change = lambda answer: answer
        """Changes an answer of ``/completions``."""
        self.dies_after: int | None = None
        """Completions after which every connection is cut."""
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def asked(self, path: str) -> list[dict]:
        return [body for where, body in self.requests if where == path]

    def complete(self, body: dict) -> dict:
        folder = self.serves.get(body["model"], self.adapters[body["model"]])
        with self.lock:
            self.shared.load_role("actor", Path(folder))
            with self.shared.role("actor"):
                [one] = self.shared.generate(
                    [tuple(body["prompt"])],
                    temperature=body["temperature"],
                    top_p=body["top_p"],
                    max_new_tokens=body["max_tokens"],
                    stop_ids=body["stop_token_ids"],
                    seeds=[body["seed"]],
                )
        text = self.shared.tokenizer.decode(one.token_ids[:-1] if one.stopped else one.token_ids)
        written = {
            "tokens": [f"token_id:{token}" for token in one.token_ids],
            "token_logprobs": list(one.logprobs),
            "top_logprobs": None,
        }
        finish = "stop" if one.stopped else "length"
        return {"choices": [{"index": 0, "text": text, "logprobs": written, "finish_reason": finish}]}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        names = [{"id": "base", "root": "base"}]
        names += [{"id": name, "root": folder, "parent": "base"} for name, folder in server.adapters.items()]
        self.answer(200, {"object": "list", "data": names})

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.removeprefix("/v1")
        server.requests.append((path, body))
        if server.dies_after is not None and len(server.asked("/completions")) > server.dies_after:
            return self.connection.close()
        if server.faults:
            return self.answer(*server.faults.pop(0))
        if path == "/load_lora_adapter":
            server.adapters[body["lora_name"]] = body["lora_path"]
            return self.answer(200, "Success: LoRA adapter added successfully.")
        if path == "/unload_lora_adapter":
            del server.adapters[body["lora_name"]]
            return self.answer(200, "Success: LoRA adapter removed successfully.")
        if body["model"] not in server.adapters:
            return self.answer(404, {"message": f"The model `{body['model']}` does not exist."})
        return self.answer(200, server.change(server.complete(body)))

    def answer(self, status: int, content: dict | str) -> None:
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def completing(shared: SharedBase) -> Iterator[Completions]:
    with running(Completions(shared)) as server:
        yield server
