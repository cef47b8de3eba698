"""A small site on 127.0.0.1 for tests of the browser: pages are set by path, requests are written down."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """What a path answers."""

    body: bytes | str = ""
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before the answer."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 200
    daemon_threads = True

    def __init__(self, *arguments: object):
        super().__init__(*arguments)
        self.open: set[socket.socket] = set()

    def process_request(self, request: socket.socket, client_address: object) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away is no error of a test."""


class LocalSite:
    """A server on a free port. ``pages[path]`` is a body, a ``Page``, or a function of (method, path, body)."""

    def __init__(self, host: str = "127.0.0.1"):
        self.pages: dict[str, str | bytes | Page | Callable[[str, str, bytes], str | Page]] = {}
        self.hits: list[str] = []
        """``METHOD /path?query`` of every request, in order."""
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                site.hits.append(f"{self.command} {self.path}")
                page = site.pages.get(self.path, site.pages.get(self.path.partition("?")[0]))
                if callable(page):
                    page = page(self.command, self.path, body)
                if page is None:
                    page = Page("<title>Not found</title><h1>Not found</h1>", 404)
                if not isinstance(page, Page):
                    page = Page(page)
                content = page.body.encode() if isinstance(page.body, str) else page.body
                time.sleep(page.delay)
                self.send_response(page.status)
                if page.status != 204:
                    self.send_header("Content-Type", page.kind)
                    self.send_header("Content-Length", str(len(content)))
                for name, value in page.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_POST = do_HEAD = do_PUT = answer

        self._server = _Server((host, 0), Handler)
        self.port = self._server.server_port
        self.url = f"http://{host}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and cut all connections, as a killed server does."""
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._server.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
