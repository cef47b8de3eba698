"""A server on this machine that speaks like OpenAI's and plays every fault, for tests of the client and its users."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

from webrl_lite.llm import Llm, LlmConfig

AnyServer = TypeVar("AnyServer", bound=ThreadingHTTPServer)


class Server(ThreadingHTTPServer):
    """Answers request n with the n-th of its replies, the last one again and again."""

    daemon_threads = True

    def __init__(self, *replies: object) -> None:
        self.replies = list(replies)
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.requests.append(json.loads(body))
        server.headers.append({name.lower(): value for name, value in self.headers.items()})
        reply = server.replies[min(len(server.requests), len(server.replies)) - 1]
        if callable(reply):
            return reply(self)
        status, content, headers = reply if isinstance(reply, tuple) else (200, reply, {})
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


def says(text: object, finish: str = "stop", **message: object) -> dict:
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14},
    }


def error(status: int, message: str = "no", headers: dict | None = None, **more: str) -> tuple:
    return status, {"error": {"message": message, **more}}, headers or {}


@contextmanager
def running(server: AnyServer) -> Iterator[AnyServer]:
    """Serve in a thread until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serving(*replies: object) -> Iterator[Server]:
    with running(Server(*replies)) as server:
        yield server


def client(server: Server, log: Path | None = None, *, api_key: str = "", **settings: object) -> Llm:
    quick = {"model": "m", "base_url": server.url, "backoff_s": 0.01, "timeout_s": 5.0, "retries": 2, **settings}
    return Llm(LlmConfig(**quick), log, api_key=api_key)


def patient_client(server: Server, log: Path | None = None, **settings: object) -> Llm:
    """A client that waits long enough on a busy machine; time-outs are tested with their own."""
    return client(server, log, **{"timeout_s": 60.0, **settings})


def respond(handler: Handler, content: object) -> None:
    data = json.dumps(content).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)
