"""The proxy alone, over raw sockets: what passes, what is refused, and that big and odd messages survive."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from webrl_lite.gate import Attempt, Gate, Origin, origin_of, url_refusal

ALLOWED = frozenset({Origin("127.0.0.1", 5000), Origin("shop.localhost", 80), Origin("::1", 7)})
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def server(handler: Handler) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            await handler(reader, writer)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**20)
    yield listening.sockets[0].getsockname()[1]
    listening.close()


@contextlib.asynccontextmanager
async def gate(*allowed: str) -> AsyncIterator[Gate]:
    proxy = Gate(allowed)
    await proxy.start()
    yield proxy
    await proxy.close()


async def connect(proxy: Gate) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", origin_of(proxy.url).port, limit=2**20)


async def response(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """Status line and body of one response with Content-Length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = [line for line in head.lower().split("\r\n") if line.startswith("content-length:")]
    body = await reader.readexactly(int(length[0].split(":")[1])) if length else b""
    return head.split("\r\n")[0], body


async def fetch(proxy: Gate, message: bytes) -> tuple[str, bytes]:
    reader, writer = await connect(proxy)
    writer.write(message)
    result = await response(reader)
    writer.close()
    return result


def get(url: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {url} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers kept-alive requests with the request line it saw."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        line = head.split(b"\r\n")[0]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(line) + line)
        await writer.drain()


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 20))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:5000",
        "http://127.0.0.1:5000/a?b#c",
        "HTTP://127.0.0.1:5000/",
        "http://shop.localhost/",
        "http://SHOP.localhost:80/",
        "http://[::1]:7/",
        "about:blank",
    ],
)
def test_an_address_of_the_sites_may_be_opened(url: str) -> None:
    assert url_refusal(url, ALLOWED) == ""


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:5001/",
        "http://localhost:5000/",
        "http://127.0.0.2:5000/",
        "https://shop.localhost/",
        "http://shop.localhost.evil.com/",
        "http://evil.com/?http://127.0.0.1:5000",
        "http://127.0.0.1:5000@evil.com/",
        "http://evil.com@127.0.0.1:5000/",
        "http://evil.com\\@127.0.0.1:5000/",
        "http://127.0.0.1:5000\\.evil.com/",
        "http://127.0.0.1.:5000/",
        "http://shop.localhost./",
        "http://2130706433:5000/",
        "http://[::1]:8/",
        "http://[::ffff:127.0.0.1]:5000/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:5000\t.evil.com/",
        "http:///",
        "http://",
        "//127.0.0.1:5000/",
        "ftp://127.0.0.1:5000/",
        "file:///etc/passwd",
        "data:text/html,<h1>x</h1>",
        "chrome://version",
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "java\nscript:alert(1)",
        "view-source:http://127.0.0.1:5000/",
        "blob:http://127.0.0.1:5000/1-2",
        "about:config",
        "about:blank#x",
        " http://127.0.0.1:5000/",
        "",
    ],
)
def test_any_other_address_is_refused_in_one_line(url: str) -> None:
    line = url_refusal(url, ALLOWED)
    assert line.startswith("Blocked: ") and "\n" not in line


def test_origins_are_lower_case_with_the_schemes_port() -> None:
    assert origin_of("HTTPS://Shop.Example/x") == Origin("shop.example", 443)
    assert origin_of("ws://[::1]/") == Origin("::1", 80)
    with pytest.raises(ValueError, match="`url` must be like"):
        origin_of("shop.example")


def test_an_allowed_request_passes_with_its_path_only() -> None:
    async def test() -> None:
        async with server(hello) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            status, body = await fetch(proxy, get(f"http://127.0.0.1:{port}/a%20b?c=d"))
            assert (status, body) == ("HTTP/1.1 200 OK", b"GET /a%20b?c=d HTTP/1.1")
            assert proxy.blocked_count == 0

    run(test)


def test_names_under_localhost_are_this_machine_without_a_name_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("no name may be looked up"))

    async def test() -> None:
        async with server(hello) as port, gate(f"http://shop.w3.localhost:{port}") as proxy:
            assert (await fetch(proxy, get(f"http://shop.w3.localhost:{port}/")))[0] == "HTTP/1.1 200 OK"
            assert (await fetch(proxy, get(f"http://other.w3.localhost:{port}/")))[0] == "HTTP/1.1 403 Forbidden"

    run(test)


def test_a_foreign_request_gets_403_and_is_recorded_and_no_connection_is_made() -> None:
    async def test() -> None:
        seen: list[bytes] = []

        async def foreign(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(b"connected")

        async with server(hello) as port, server(foreign) as other, gate(f"http://127.0.0.1:{port}") as proxy:
            status, body = await fetch(proxy, get(f"http://127.0.0.1:{other}/x"))
            assert status == "HTTP/1.1 403 Forbidden"
            assert (
                body
                == f"webrl_lite gate: Blocked: http://127.0.0.1:{other}/x is not part of this task's sites.\n".encode()
            )
            assert list(proxy.blocked) == [Attempt("GET", f"http://127.0.0.1:{other}/x", False)]
            assert seen == []

    run(test)


def test_a_foreign_page_load_gets_204_so_that_the_page_stays() -> None:
    async def test() -> None:
        async with gate() as proxy:
            status, _ = await fetch(proxy, get("http://example.com/", "Accept: text/html,*/*"))
            assert status == "HTTP/1.1 204 No Content"
            assert list(proxy.blocked) == [Attempt("GET", "http://example.com/", True)] and proxy.blocked_count == 1

    run(test)


@pytest.mark.parametrize("url", ["/x", "https://127.0.0.1:1/", "ftp://127.0.0.1:1/", "http://127.0.0.1:x/", "*"])
def test_a_request_that_is_no_absolute_http_address_is_refused(url: str) -> None:
    async def test() -> None:
        async with gate("http://127.0.0.1:1") as proxy:
            assert (await fetch(proxy, get(url)))[0] == "HTTP/1.1 400 Bad Request"

    run(test)


def test_a_request_whose_length_is_ambiguous_is_refused() -> None:
    async def test() -> None:
        async with server(hello) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            smuggled = get(f"http://127.0.0.1:{port}/", "Content-Length: 3", "Transfer-Encoding: chunked")
            assert (await fetch(proxy, smuggled + b"0\r\n\r\n"))[0] == "HTTP/1.1 400 Bad Request"

    run(test)


def test_the_site_sees_the_host_of_the_address_and_no_proxy_headers() -> None:
    async def test() -> None:
        heads: list[bytes] = []

        async def site(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        async with server(site) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            message = get(f"http://127.0.0.1:{port}/", "Proxy-Connection: keep-alive", "Cookie: a=b")
            await fetch(proxy, message)
            lines = heads[0].decode().split("\r\n")
            assert f"Host: 127.0.0.1:{port}" in lines and "Host: x" not in lines and "Cookie: a=b" in lines
            assert not any(line.lower().startswith("proxy") for line in lines)

    run(test)


def test_one_connection_serves_many_requests_also_after_a_refused_one() -> None:
    async def test() -> None:
        async with server(hello) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            for number in range(3):
                writer.write(get(f"http://127.0.0.1:{port}/{number}"))
                assert await response(reader) == ("HTTP/1.1 200 OK", b"GET /%d HTTP/1.1" % number)
                writer.write(b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi")
                assert (await response(reader))[0] == "HTTP/1.1 403 Forbidden"
            writer.close()

    run(test)


def test_a_site_that_drops_its_kept_connection_is_asked_again() -> None:
    async def test() -> None:
        async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        async with server(once) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            for _ in range(5):
                writer.write(get(f"http://127.0.0.1:{port}/"))
                assert await response(reader) == ("HTTP/1.1 200 OK", b"ok")
            writer.close()

    run(test)


def test_a_chunked_answer_passes_as_it_is_with_its_trailer() -> None:
    async def test() -> None:
        content = b"5;x=y\r\nhello\r\n10000\r\n" + b"z" * 0x10000 + b"\r\n0\r\nX-T: 1\r\n\r\n"

        async def site(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + content)
            await writer.drain()

        async with server(site) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            writer.write(get(f"http://127.0.0.1:{port}/"))
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(len(content)) == content
            writer.close()

    run(test)


def test_an_answer_without_length_ends_with_the_connection() -> None:
    async def test() -> None:
        async def site(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")

        async with server(site) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            writer.write(get(f"http://127.0.0.1:{port}/"))
            everything = await reader.read()
            assert b"Connection: close" in everything and everything.endswith(b"\r\n\r\nall of it")
            writer.close()

    run(test)


def test_head_and_304_have_no_body_whatever_their_length_says() -> None:
    async def test() -> None:
        async def site(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while head := await reader.readuntil(b"\r\n\r\n"):
                status = b"200 OK" if head.startswith(b"HEAD") else b"304 Not Modified"
                writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 99\r\n\r\n")

        async with server(site) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            for method in (b"HEAD", b"GET", b"HEAD"):
                writer.write(method + b" http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n" % port)
                assert b"Content-Length: 99" in await reader.readuntil(b"\r\n\r\n")
            writer.close()

    run(test)


def test_a_big_body_goes_up_and_comes_back_whole_at_bounded_memory() -> None:
    async def test() -> None:
        size = 20 * 2**20

        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            total = 0
            while total < size:
                total += len(await reader.read(2**16))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size // 2**16):
                writer.write(b"q" * 2**16)
                await writer.drain()

        async with server(echo) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            writer.write(b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (port, size))
            for _ in range(size // 2**16):
                writer.write(b"p" * 2**16)
                await writer.drain()
            status, body = await response_in_pieces(reader, size)
            assert (status, body) == ("HTTP/1.1 200 OK", size)
            writer.close()

    run(test)


async def response_in_pieces(reader: asyncio.StreamReader, size: int) -> tuple[str, int]:
    head = await reader.readuntil(b"\r\n\r\n")
    total = 0
    while total < size and (data := await reader.read(2**16)):
        assert set(data) == {ord("q")}
        total += len(data)
    return head.decode().split("\r\n")[0], total


def test_a_site_may_answer_before_it_has_read_the_body() -> None:
    async def test() -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.5)

        async with server(refuse) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            writer.write(b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: 9999999\r\n\r\nsome" % port)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413 Too Large\r\n")
            writer.close()

    run(test)


def test_a_slow_reader_stops_the_sender() -> None:
    """Backpressure: the gate holds a few buffers, not the whole stream."""

    async def test() -> None:
        sent = 0

        async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while sent < 200 * 2**20:
                writer.write(b"x" * 2**16)
                await writer.drain()
                sent += 2**16

        async with server(pour) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            writer.write(get(f"http://127.0.0.1:{port}/"))
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.5)
            assert sent < 50 * 2**20
            writer.close()

    run(test)


def test_connect_tunnels_to_allowed_origins_and_each_side_may_end_first() -> None:
    async def test() -> None:
        async def after_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            everything = await reader.read()  # until the other side ends its half
            writer.write(b"got " + everything)
            await writer.drain()

        async with server(after_end) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            writer.write(b"\x00\x01\xff")
            writer.write_eof()
            assert await reader.read() == b"got \x00\x01\xff"
            writer.close()

    run(test)


@pytest.mark.parametrize("target", ["example.com:443", "127.0.0.1:22", "[::1]:443", "127.0.0.1", "x:y", ":80"])
def test_connect_to_anything_else_is_refused(target: str) -> None:
    async def test() -> None:
        async with gate("http://127.0.0.1:5000") as proxy:
            message = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()
            assert (await fetch(proxy, message))[0] == "HTTP/1.1 403 Forbidden"
            assert list(proxy.blocked) == [Attempt("CONNECT", target, False)]

    run(test)


def test_an_upgrade_becomes_a_tunnel() -> None:
    async def test() -> None:
        async def socket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert b"upgrade: websocket" in head and b"connection: upgrade" in head
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            writer.write(b"frame " + await reader.readexactly(4))

        async with server(socket) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            writer.write(get(f"http://127.0.0.1:{port}/", "Upgrade: websocket", "Connection: Upgrade"))
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
            writer.write(b"ping")
            assert await reader.readexactly(10) == b"frame ping"
            writer.close()

    run(test)


def test_a_dead_site_gives_502_and_is_recorded_as_unreachable_not_as_blocked() -> None:
    async def test() -> None:
        async with server(hello) as port:
            pass
        url = f"http://127.0.0.1:{port}"
        async with gate(url) as proxy:
            assert (await fetch(proxy, get(f"{url}/x", "Accept: text/html")))[0] == "HTTP/1.1 502 Bad Gateway"
            tunnel = b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port
            assert (await fetch(proxy, tunnel))[0] == "HTTP/1.1 502 Bad Gateway"
            assert proxy.unreachable_since(0) == [
                Attempt("GET", f"{url}/x", True),
                Attempt("CONNECT", f"127.0.0.1:{port}", False),
            ]
            assert proxy.blocked_count == 0

    run(test)


def test_a_post_is_never_sent_twice() -> None:
    async def test() -> None:
        posts: list[bytes] = []

        async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if head.startswith(b"POST"):
                    posts.append(head)
                    return
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        async with server(die) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            writer.write(get(f"http://127.0.0.1:{port}/"))
            await response(reader)
            writer.write(b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n" % port)
            assert (await response(reader))[0] == "HTTP/1.1 502 Bad Gateway"
            assert len(posts) == 1
            writer.close()

    run(test)


def test_garbage_ends_its_connection_and_nothing_else() -> None:
    async def test() -> None:
        async with server(hello) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            for garbage in (b"\x16\x03\x01\r\n\r\n", b"GET\r\n\r\n", b"a" * 300_000 + b"\r\n\r\n", b"\r\n\r\n"):
                reader, writer = await connect(proxy)
                with contextlib.suppress(OSError):
                    writer.write(garbage)
                    await reader.read()
                writer.close()
            assert (await fetch(proxy, get(f"http://127.0.0.1:{port}/")))[0] == "HTTP/1.1 200 OK"

    run(test)


def test_a_thousand_quick_requests_pass_and_each_costs_under_two_milliseconds() -> None:
    async def test() -> None:
        async with server(hello) as port, gate(f"http://127.0.0.1:{port}") as proxy:

            async def worker(number: int) -> int:
                reader, writer = await connect(proxy)
                good = 0
                for turn in range(50):
                    writer.write(get(f"http://127.0.0.1:{port}/{number}/{turn}"))
                    good += await response(reader) == ("HTTP/1.1 200 OK", b"GET /%d/%d HTTP/1.1" % (number, turn))
                writer.close()
                return good

            begun = time.process_time()
            assert sum(await asyncio.gather(*map(worker, range(20)))) == 1000
            # Processor time of client, gate and site together, so that a busy machine does not matter.
            assert time.process_time() - begun < 2.0

    run(test)


def test_closing_cuts_open_connections() -> None:
    async def test() -> None:
        asked = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            asked.set()
            await reader.read()

        async with server(silent) as port, gate(f"http://127.0.0.1:{port}") as proxy:
            reader, writer = await connect(proxy)
            writer.write(get(f"http://127.0.0.1:{port}/"))
            await asked.wait()
            await proxy.close()
            assert await reader.read() == b""
            writer.close()

    run(test)
