"""The network gate: a forward proxy on 127.0.0.1 that lets a browser reach a list of sites and nothing else.

Reads the requests of one browser context and passes on those for an allowed ``host:port``; everything else is
answered by the gate itself, written down in ``Gate.blocked``, and never resolved or connected to. ``browser.py``
starts one gate for each episode, plus one that allows nothing for the browser's own calls.

Why a proxy: of the six kinds of gate that were measured, only this one stopped redirects, WebSockets and pop-ups
alike. It cannot see ``file:``, ``data:`` and ``chrome:`` addresses; ``url_refusal`` stops those before they are
opened.

- Plain requests come in absolute form (``GET http://host/path``) over kept-alive connections; ``https:`` and
  WebSockets come as ``CONNECT host:port`` and are tunnelled byte for byte.
- A blocked page load is answered with 204, at which a browser stays on the page it shows; every other blocked
  request gets 403 with a short text.
- ``localhost`` and ``*.localhost`` are 127.0.0.1 without asking a name server.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

CHUNK = 64 * 1024
CONNECT_SECONDS = 5.0
HEAD_LIMIT = 256 * 1024
SMALL_BODY = 1024 * 1024
KEPT_RECORDS = 1000

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "upgrade"}
# Browsers read backslashes as slashes and drop tabs and line breaks; other parsers do not. Such addresses are
# refused as a whole, so that no two parsers can disagree about the host.
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")


class Origin(NamedTuple):
    """A host and port, as an allow-list holds them."""

    host: str
    """Lower-case name or address, IPv6 without brackets."""
    port: int


@dataclass(frozen=True)
class Attempt:
    """One request that the gate did not, or could not, pass on."""

    method: str
    """HTTP method; ``CONNECT`` for ``https:`` and WebSockets."""
    url: str
    """Full address; ``host:port`` for ``CONNECT``."""
    page: bool
    """Whether a page was to be loaded (main frame or iframe), as far as the headers tell."""


def origin_of(url: str) -> Origin:
    """Return host and port of an address, with the scheme's default port filled in.

    Raises:
        ValueError: the address has no host, an unknown scheme without a port, or an impossible port.
    """
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    if not parts.hostname or not port:
        raise ValueError(f"`url` must be like http://host:port/path, got {url!r}.")
    return Origin(parts.hostname.lower(), port)


def url_refusal(url: str, allowed: Iterable[Origin]) -> str:
    """Say why an agent may not open an address; empty if it may.

    Args:
        url: absolute address.
        allowed: origins of the task's sites.

    Returns:
        One line for the agent, or "". ``about:blank`` is always fine.
    """
    if url == "about:blank":
        return ""
    shown = " ".join(url.split())[:200]
    if not re.match(r"https?://", url, re.IGNORECASE):
        return f"Blocked: `{shown}` is not an http address of this task's sites."
    try:
        inside = not _UNSAFE.search(url) and "@" not in urlsplit(url).netloc and origin_of(url) in allowed
    except ValueError:
        inside = False
    return "" if inside else f"Blocked: {shown} is not part of this task's sites."


class Gate:
    """A proxy with an allow-list. ``start`` and ``close`` belong to one asyncio loop.

    Attributes:
        allowed: origins that are passed on.
        blocked: the last 1,000 requests that were refused.
        unreachable: the last 1,000 requests for allowed origins that nobody answered.
        blocked_count: number of refused requests so far.
        unreachable_count: likewise for ``unreachable``.
    """

    def __init__(self, allowed: Iterable[str] = ()):
        self.allowed = frozenset(origin_of(url) for url in allowed)
        self.blocked: deque[Attempt] = deque(maxlen=KEPT_RECORDS)
        self.unreachable: deque[Attempt] = deque(maxlen=KEPT_RECORDS)
        self.blocked_count = 0
        self.unreachable_count = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def allow(self, origins: Iterable[str]) -> None:
        """Pass requests for further origins on, such as those that only graders read."""
        self.allowed |= {origin_of(url) for url in origins}

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_LIMIT, backlog=512)

    @property
    def url(self) -> str:
        """Address of the proxy, ``http://127.0.0.1:port``."""
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is None:
            return
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._server = None

    def unreachable_since(self, count: int) -> list[Attempt]:
        """Return the unanswered requests after the first ``count``, oldest first, at most 1,000."""
        number = self.unreachable_count - count
        return list(self.unreachable)[-number:] if number > 0 else []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await _Client(self, reader, writer).run()
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError, asyncio.CancelledError):
            pass  # either side may cut or garble a connection, and closing the gate cuts the rest
        finally:
            self._tasks.discard(task)
            writer.close()

    def _note_blocked(self, attempt: Attempt) -> None:
        self.blocked.append(attempt)
        self.blocked_count += 1

    def _note_unreachable(self, attempt: Attempt) -> None:
        self.unreachable.append(attempt)
        self.unreachable_count += 1


@dataclass
class _Head:
    """First line and headers of a request or a response."""

    first: list[str]
    headers: list[tuple[str, str]]

    def get(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    def encode(self, extra: Iterable[tuple[str, str]] = (), keep: frozenset[str] = frozenset()) -> bytes:
        """Write the head without hop-by-hop headers (but those in ``keep``) and with ``extra`` ones."""
        dropped = _HOP_BY_HOP - keep
        lines = [" ".join(self.first)]
        lines += [f"{key}: {value}" for key, value in self.headers if key.lower() not in dropped]
        lines += [f"{key}: {value}" for key, value in extra]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


class _Peer(NamedTuple):
    """The connection to an allowed site."""

    origin: Origin
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class _Client:
    """One connection from the browser, and the one connection to a site that it holds at a time."""

    def __init__(self, gate: Gate, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.gate = gate
        self.reader = reader
        self.writer = writer
        self.peer: _Peer | None = None
        self.uploaded = True  # whether the current request's body has been read to its end

    async def run(self) -> None:
        """Answer requests until either side closes."""
        try:
            while (head := await _read_head(self.reader)) is not None:
                if len(head.first) != 3:
                    await self._answer("400 Bad Request", "The gate understands HTTP/1.1 only.", keep=False)
                    return
                if head.first[0] == "CONNECT":
                    await self._tunnel(head)
                    return
                if not await self._forward(head):
                    return
        finally:
            self._drop_peer()

    async def _forward(self, head: _Head) -> bool:
        """Pass one request on and its response back; False if the connection cannot be used again."""
        method, url, _ = head.first
        attempt = Attempt(method, url, head.get("accept").startswith("text/html"))
        body = _framing(head)
        try:
            origin = origin_of(url) if url.lower().startswith("http://") else None
        except ValueError:
            origin = None
        if origin is None or body is None:
            return await self._answer("400 Bad Request", "The gate wants an absolute http address.", keep=False)
        if origin not in self.gate.allowed:
            self.gate._note_blocked(attempt)
            # An unread body would make the browser see a broken connection in place of the answer.
            keep = isinstance(body, int) and body <= SMALL_BODY
            if keep:
                await self.reader.readexactly(body)
            status = "204 No Content" if attempt.page else "403 Forbidden"
            return await self._answer(status, f"Blocked: {url} is not part of this task's sites.", keep)

        parts = urlsplit(url)
        path = url[url.index("//") + 2 + len(parts.netloc) :].partition("#")[0]
        head.first = [method, path if path.startswith("/") else f"/{path}", "HTTP/1.1"]
        head.headers = [(key, value) for key, value in head.headers if key.lower() != "host"]
        upgrade = bool(head.get("upgrade"))
        keep = frozenset({"connection", "upgrade"}) if upgrade else frozenset()
        lines = head.encode([("Host", parts.netloc)], keep)
        try:
            response = await self._ask(origin, lines, body, reusable=body == 0 and method in ("GET", "HEAD"))
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            self._drop_peer()
            self.gate._note_unreachable(attempt)
            return await self._answer("502 Bad Gateway", f"{url} does not answer.", keep=False)
        return await self._respond(method, attempt, response)

    async def _ask(self, origin: Origin, lines: bytes, body: int | str, reusable: bool) -> _Head:
        """Send a request to the site and return the head of its response.

        Only requests without side effects go over a kept connection: the site may be closing it at this moment,
        and a GET can be sent again while a POST cannot.
        """
        kept = self.peer is not None and self.peer.origin == origin and reusable
        if not kept or self.peer.reader.at_eof():
            kept = False
            self._drop_peer()
            self.peer = _Peer(origin, *await _connect(origin))
        self.peer.writer.write(lines)
        upload = asyncio.ensure_future(_copy_body(self.reader, self.peer.writer, body)) if body else None
        try:
            # A site may answer before it has read the whole body (for example 413), so both run at once.
            response = await _read_final_head(self.peer.reader)
        except (ConnectionError, EOFError):
            response = None
        finally:
            if upload is not None:
                self.uploaded = upload.done() and not upload.cancelled() and upload.exception() is None
                upload.cancel()
            else:
                self.uploaded = True
        if response is None:
            self._drop_peer()
            if kept:
                return await self._ask(origin, lines, body, reusable)
            raise ConnectionResetError("the site closed the connection without an answer")
        return response

    async def _respond(self, method: str, attempt: Attempt, response: _Head) -> bool:
        """Pass a response back; False if the connection cannot be used again."""
        status = response.first[1]
        if status == "101":
            self.writer.write(response.encode(keep=frozenset({"connection", "upgrade"})))
            await self._pipe()
            return False
        body = 0 if method == "HEAD" or status in ("204", "304") else _framing(response, default="close")
        if body is None:
            self._drop_peer()
            return await self._answer("502 Bad Gateway", "The site's answer has no clear length.", keep=False)
        extra = []
        if attempt.page and response.get("content-type").lower().startswith("application/pdf"):
            # As a download it is refused and the page stays; the viewer would show the agent an empty page.
            response.headers = [(k, v) for k, v in response.headers if k.lower() != "content-disposition"]
            extra.append(("Content-Disposition", "attachment"))
        site_closes = body == "close" or response.first[0] == "HTTP/1.0" or not self.uploaded
        site_closes = site_closes or "close" in response.get("connection").lower()
        keep = body != "close" and self.uploaded
        if not keep:
            extra.append(("Connection", "close"))
        response.first[0] = "HTTP/1.1"
        self.writer.write(response.encode(extra))
        await _copy_body(self.peer.reader, self.writer, body)
        if site_closes:
            self._drop_peer()
        return keep

    async def _tunnel(self, head: _Head) -> None:
        """Connect the browser and an allowed site byte for byte."""
        target = head.first[1]
        attempt = Attempt("CONNECT", target, False)
        try:
            origin = origin_of(f"//{target}")
        except ValueError:
            origin = None
        if origin not in self.gate.allowed:
            self.gate._note_blocked(attempt)
            await self._answer("403 Forbidden", f"Blocked: {target} is not part of this task's sites.", keep=False)
            return
        try:
            self.peer = _Peer(origin, *await _connect(origin))
        except OSError:
            self.gate._note_unreachable(attempt)
            await self._answer("502 Bad Gateway", f"{target} does not answer.", keep=False)
            return
        self.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await self._pipe()

    async def _pipe(self) -> None:
        """Copy both ways; each side may end its half first."""
        await asyncio.gather(
            _copy_until_end(self.reader, self.peer.writer), _copy_until_end(self.peer.reader, self.writer)
        )

    async def _answer(self, status: str, text: str, keep: bool) -> bool:
        """Send an answer of the gate's own; returns ``keep``."""
        content = b"" if status.startswith("204") else f"webrl_lite gate: {text}\n".encode()
        lines = [f"HTTP/1.1 {status}", "Cache-Control: no-store"]
        if content:
            lines += ["Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(content)}"]
        lines += ["Connection: keep-alive" if keep else "Connection: close", "", ""]
        self.writer.write("\r\n".join(lines).encode("latin-1") + content)
        await self.writer.drain()
        return keep

    def _drop_peer(self) -> None:
        if self.peer is not None:
            self.peer.writer.close()
            self.peer = None


async def _connect(origin: Origin) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    local = origin.host == "localhost" or origin.host.endswith(".localhost")
    host = "127.0.0.1" if local else origin.host
    async with asyncio.timeout(CONNECT_SECONDS):
        return await asyncio.open_connection(host, origin.port, limit=HEAD_LIMIT)


async def _read_head(reader: asyncio.StreamReader) -> _Head | None:
    """Read a first line and headers; None at the end of the stream."""
    try:
        block = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise
        return None
    first, *rest = block.decode("latin-1").strip("\r\n").split("\r\n")
    headers = [(key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in rest)]
    return _Head(first.split(" ", 2), headers)


async def _read_final_head(reader: asyncio.StreamReader) -> _Head | None:
    """Read a response's head, skipping interim ones (100, 103)."""
    while True:
        head = await _read_head(reader)
        if head is None or len(head.first) < 2:
            return None
        if not head.first[1].startswith("1") or head.first[1] == "101":
            return head


def _framing(head: _Head, default: int | str = 0) -> int | str | None:
    """Tell how long a body is: a number of bytes, ``chunked``, or ``default``; None if the headers disagree."""
    lengths = {value for key, value in head.headers if key.lower() == "content-length"}
    coding = head.get("transfer-encoding").lower()
    if coding:
        return "chunked" if coding == "chunked" and not lengths else None
    if not lengths:
        return default
    length = lengths.pop()
    return int(length) if not lengths and re.fullmatch(r"[0-9]{1,18}", length) else None


async def _copy_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: int | str) -> None:
    """Copy one message body as it stands, chunk marks included."""
    if body == "close":
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    elif body == "chunked":
        size = None
        while size != 0:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16) if line.strip() else 0
            writer.write(line)
            if size:
                await _copy_exactly(reader, writer, size + 2)
        while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
            writer.write(line)  # trailers
        writer.write(line)
    else:
        await _copy_exactly(reader, writer, int(body))
    await writer.drain()


async def _copy_exactly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int) -> None:
    while size > 0:
        data = await reader.read(min(size, CHUNK))
        if not data:
            raise asyncio.IncompleteReadError(b"", size)
        size -= len(data)
        writer.write(data)
        await writer.drain()


async def _copy_until_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        await _copy_body(reader, writer, "close")
        if writer.can_write_eof():
            writer.write_eof()
