"""Finding, starting and ending Chromium; episodes and their network gate; faults and recovery."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from local_site import LocalSite, Page

from webrl_lite import chromium as module
from webrl_lite.actions import Action
from webrl_lite.browser import Browser, BrowserError, Session, find_chromium, install
from webrl_lite.tabs import Limits

QUICK = Limits(settle=2.0, restless=0.3, navigation=3.0)
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    with Browser(folder=folder) as running:
        yield running


@pytest.fixture(scope="module")
def foreign() -> Iterator[LocalSite]:
    """Another port of this machine, which no request may reach."""
    other = LocalSite()
    other.pages["/"] = "<h1>Foreign</h1>"
    yield other
    other.close()


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    running = LocalSite()
    yield running
    running.close()


@pytest.fixture(scope="module")
def shared() -> list[Session]:
    """The session that most tests use one after the other, since a context costs half a second of processor time."""
    return []


@pytest.fixture
def session(browser: Browser, site: LocalSite, shared: list[Session], foreign: LocalSite) -> Iterator[Session]:
    site.pages.clear()
    site.pages["/"] = "<h1>Home</h1><input aria-label=Draft>"
    foreign.hits.clear()
    if not shared or shared[0]._fault:
        shared[:] = [browser.call(browser.open([site.url], limits=QUICK))]
    shared[0]._told.clear()
    yield shared[0]
    for page in shared[0].tabs.pages[1:]:
        browser.call(shared[0].tabs.close(page))


def act(browser: Browser, session: Session, name: str, element: str | None = None, argument: str | None = None) -> str:
    """Observe, act on the element of this name, return the line for the agent."""
    view = browser.call(session.observe())
    found = [e.id for e in view.elements.values() if e.name == element]
    assert element is None or found, view.text
    return browser.call(session.act(Action(name, found[0] if found else None, argument))).error


def visit(browser: Browser, session: Session, *urls: str) -> None:
    browser.call(session.visit(urls))


# Finding and installing


def test_the_variable_comes_first_and_must_name_a_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "my-chrome"
    program.write_text("#!/bin/sh\n")
    monkeypatch.setenv("WEBRL_LITE_CHROMIUM", str(program))
    with pytest.raises(BrowserError, match=r"`WEBRL_LITE_CHROMIUM` must name an executable file, got '.*my-chrome'"):
        find_chromium()
    program.chmod(0o755)
    assert find_chromium() == program
    monkeypatch.setenv("WEBRL_LITE_CHROMIUM", str(tmp_path))
    with pytest.raises(BrowserError, match="WEBRL_LITE_CHROMIUM"):
        find_chromium()


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_playwrights_own_browser_comes_before_the_path_and_the_newest_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WEBRL_LITE_CHROMIUM", raising=False)
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "own"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(module, "_PLACES", ())
    with pytest.raises(BrowserError, match="python -m webrl_lite.browser install"):
        find_chromium()
    on_path = program(tmp_path / "bin/chromium")
    assert find_chromium() == on_path
    shell = program(tmp_path / "own/chromium_headless_shell-1300/chrome-headless-shell-linux64/chrome-headless-shell")
    assert find_chromium() == on_path or find_chromium() == shell
    old = program(tmp_path / "own/chromium-999/chrome-linux/chrome")
    assert find_chromium() == old
    new = program(tmp_path / "own/chromium-1200/chrome-linux64/chrome")
    assert find_chromium() == new


def test_install_does_nothing_where_a_browser_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = program(tmp_path / "chrome")
    monkeypatch.setenv("WEBRL_LITE_CHROMIUM", str(found))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("nothing may be run"))
    assert install() == found


def test_install_falls_back_to_the_systems_package_and_then_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran: list[list[str]] = []
    works = False

    def run(command: list[str], check: bool) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        if works and "chromium" in command and "apt-get" in command:
            program(tmp_path / "bin/chromium")
        return subprocess.CompletedProcess(command, 0 if "apt-get" in command else 1)

    monkeypatch.delenv("WEBRL_LITE_CHROMIUM", raising=False)
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "own"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(module, "_PLACES", ())
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program(tmp_path / "bin/apt-get")
    with pytest.raises(BrowserError, match="Install Chrome or Chromium by hand"):
        install()
    assert ran[0][1:] == ["-m", "playwright", "install", "chromium"]
    assert ran[1] == ["sudo", "apt-get", "update"] and ran[2][:3] == ["sudo", "apt-get", "install"]
    works = True
    assert install() == tmp_path / "bin/chromium"


def test_the_command_line_finds_and_explains() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "webrl_lite.browser", "find"], cwd=ROOT, capture_output=True, text=True
    )
    assert found.returncode == 0 and Path(found.stdout.strip()).is_file()
    wrong = subprocess.run([sys.executable, "-m", "webrl_lite.browser"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2 and "find|install" in wrong.stderr


# The network gate: each way out of ENVIRONMENT 9.2


ADD = "document.head.innerHTML += "
NEW = "document.body.append(Object.assign(document.createElement"
WAYS = {
    "link": "<a href={far}>Go</a>",
    "link in a new tab": "<a href={far} target=_blank>Go</a>",
    "location": "<button onclick=\"location = '{far}'\">Go</button>",
    "location.replace": "<button onclick=\"location.replace('{far}')\">Go</button>",
    "fetch": "<button onclick=\"fetch('{far}', {{mode: 'no-cors'}})\">Go</button>",
    "beacon": "<button onclick=\"navigator.sendBeacon('{far}', 'x')\">Go</button>",
    "xhr": "<button onclick=\"const x = new XMLHttpRequest(); x.open('POST', '{far}'); x.send('x')\">Go</button>",
    "popup": "<button onclick=\"window.open('{far}')\">Go</button>",
    "popup without opener": "<button onclick=\"window.open('{far}', '', 'noopener')\">Go</button>",
    "popup sent on": "<button onclick=\"window.open('about:blank').location = '{far}'\">Go</button>",
    "redirect": "<a href=/redirect>Go</a>",
    "redirect in a new tab": "<a href=/redirect target=_blank>Go</a>",
    "redirect of a form": "<form method=post action=/redirect><button>Go</button></form>",
    "websocket": "<button onclick=\"new WebSocket('{far}'.replace('http', 'ws'))\">Go</button>",
    "event source": "<button onclick=\"new EventSource('{far}')\">Go</button>",
    "form": "<form method=post action={far}><input name=secret value=1><button>Go</button></form>",
    "form in a new tab": "<form action={far} target=_blank><button>Go</button></form>",
    "frame": f"<button onclick=\"{NEW}('iframe'), {{{{src: '{{far}}'}}}}))\">Go</button>",
    "image": "<button onclick=\"new Image().src = '{far}'\">Go</button>",
    "script": f"<button onclick=\"{NEW}('script'), {{{{src: '{{far}}'}}}}))\">Go</button>",
    "stylesheet": f"<button onclick=\"{ADD}'<link rel=stylesheet href={{far}}>'\">Go</button>",
    "prefetch": f"<button onclick=\"{ADD}'<link rel=prefetch href={{far}}>'\">Go</button>",
    "preload": f"<button onclick=\"{ADD}'<link rel=preload as=image href={{far}}>'\">Go</button>",
    "preconnect": f"<button onclick=\"{ADD}'<link rel=preconnect href={{far}}>'\">Go</button>",
    "meta refresh": f"<button onclick=\"{ADD}'<meta http-equiv=refresh content=0;url={{far}}>'\">Go</button>",
    "ping": "<a href='#' ping={far}>Go</a>",
    "other name": "<a href={far_name}>Go</a>",
    "userinfo": "<a href={far_user}>Go</a>",
    "https": "<a href={far_https}>Go</a>",
    "https in a new tab": "<a href={far_https} target=_blank>Go</a>",
    "other loopback": "<a href={far_loop}>Go</a>",
    "IPv6": "<a href={far_six}>Go</a>",
}  # fmt: skip
SILENT = {"ping", "beacon", "stylesheet", "prefetch", "preload", "preconnect"}  # the page itself is not told either


@pytest.mark.parametrize("way", WAYS)
def test_no_way_out_of_a_page_reaches_a_foreign_server(
    browser: Browser, session: Session, site: LocalSite, foreign: LocalSite, way: str
) -> None:
    port = foreign.port
    addresses = {
        "far": f"{foreign.url}/",
        "far_name": f"http://localhost:{port}/",
        "far_user": f"http://127.0.0.1:{site.port}@127.0.0.1:{port}/",
        "far_https": f"https://127.0.0.1:{port}/",
        "far_loop": f"http://127.0.0.2:{port}/",
        "far_six": f"http://[::1]:{port}/",
    }
    site.pages["/redirect"] = Page("", 302, headers={"Location": addresses["far"]})
    site.pages["/way"] = f"<h1>Start</h1><input aria-label=Draft>{WAYS[way].format(**addresses)}"
    visit(browser, session, site.url + "/", site.url + "/way")
    browser.call(session.tabs.focus(session.tabs.pages[1]))
    act(browser, session, "Type", "Draft", "kept")
    line = act(browser, session, "Click", "Go")
    text = browser.call(session.observe()).text
    said = line + text
    end = time.monotonic() + 10
    while way == "websocket" and "Blocked" not in said and time.monotonic() < end:  # settling waits for no socket
        said += browser.call(session.observe()).text
    assert foreign.hits == []
    assert way in SILENT or "is not part of this task's sites." in said
    assert "\n" not in line and line.count("Blocked: ") <= 2
    assert "Start" in text and len(session.tabs.pages) == 2
    assert session.url.removesuffix("#") == site.url + "/way"
    if "https" not in way:
        assert '"kept"' in text
    assert act(browser, session, "Type", "Draft", "goes on") == ""


@pytest.mark.parametrize(
    "address",
    [
        "{far}/",
        "http://localhost:{port}/",
        "http://127.0.0.1:{port}/",
        "http://0x7f000001:{own}/",
        "http://127.0.0.1.:{own}/",
        "http://user:pass@127.0.0.1:{own}/",
        "http://127.0.0.1:{own}@127.0.0.1:{port}/",
        "https://no-such-name.example/",
        "no-such-name.example",
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "data:text/html,<h1>Data</h1>",
        "chrome://version",
        "javascript:document.title=1",
        "view-source:{own_url}/",
        "blob:{own_url}/1",
        "about:config",
        "about:srcdoc",
        "ws://127.0.0.1:{own}/",
    ],
)
@pytest.mark.parametrize("name", ["Goto", "New Tab"])
def test_goto_opens_no_foreign_address_and_no_other_scheme(
    browser: Browser, session: Session, site: LocalSite, foreign: LocalSite, name: str, address: str
) -> None:
    if session.url != site.url + "/":
        visit(browser, session, site.url + "/")
    address = address.format(far=foreign.url, port=foreign.port, own=site.port, own_url=site.url)
    line = browser.call(session.act(Action(name, None, address))).error
    assert line.startswith("Blocked: ")
    assert foreign.hits == [] and session.urls == (site.url + "/",)


def test_upper_case_and_other_spellings_of_an_allowed_address_are_fine(browser: Browser, site: LocalSite) -> None:
    site.pages["/"] = "<h1>Home</h1>"
    session = browser.call(browser.open([f"http://Shop.localhost:{site.port}"], limits=QUICK))
    visit(browser, session, f"http://shop.localhost:{site.port}/")
    assert browser.call(session.act(Action("Goto", None, f"HTTP://SHOP.LOCALHOST:{site.port}/"))).error == ""
    assert "Home" in browser.call(session.observe()).text
    line = browser.call(session.act(Action("Goto", None, f"{site.url}/"))).error
    assert line == f"Blocked: {site.url}/ is not part of this task's sites."
    browser.call(session.close())


def test_a_stray_that_comes_after_the_step_is_sent_back_at_the_next_look(
    browser: Browser, session: Session, site: LocalSite, foreign: LocalSite
) -> None:
    code = "const w = new Worker(window.URL.createObjectURL(new Blob(['setTimeout(() => postMessage(1), 600)'])));"
    far = f"https://127.0.0.1:{foreign.port}/"
    site.pages["/late"] = f"<h1>Start</h1><button onclick=\"{code} w.onmessage = () => location = '{far}'\">Go</button>"
    visit(browser, session, site.url + "/late")
    act(browser, session, "Click", "Go")
    text = ""
    end = time.monotonic() + 10
    while "Blocked" not in text and time.monotonic() < end:
        time.sleep(0.3)
        text = browser.call(session.observe()).text
    assert "Start" in text and f"Blocked: {far} is not part of this task's sites." in text
    assert session.url == site.url + "/late" and foreign.hits == []


def test_a_foreign_host_in_the_page_is_told_once_and_loads_each_time(
    browser: Browser, session: Session, site: LocalSite, foreign: LocalSite
) -> None:
    site.pages["/ads"] = (
        f"<h1>Ads</h1><img src={foreign.url}/ad.png><a href={foreign.url}/x>Go</a><a href=/ads>Again</a>"
    )
    visit(browser, session, site.url + "/ads")
    assert act(browser, session, "Click", "Again") == ""
    for _ in range(2):
        assert act(browser, session, "Click", "Go") == f"Blocked: {foreign.url}/x is not part of this task's sites."
    assert foreign.hits == []


def test_rtc_sends_no_packet_past_the_gate(browser: Browser, session: Session, site: LocalSite) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun:
        stun.bind(("127.0.0.1", 0))
        stun.settimeout(1.0)
        site.pages["/rtc"] = f"""<h1>Start</h1><script>
          const c = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{stun.getsockname()[1]}'}}]}});
          c.createDataChannel('x'); c.createOffer().then((o) => c.setLocalDescription(o));</script>"""
        visit(browser, session, site.url + "/rtc")
        with pytest.raises(TimeoutError):
            stun.recvfrom(100)


def test_service_workers_and_permissions_are_off(browser: Browser, session: Session, site: LocalSite) -> None:
    visit(browser, session, site.url + "/")
    answer = browser.call(
        session.tabs.active.evaluate(
            """async () => {
              await Promise.race([navigator.serviceWorker?.register('/sw.js').catch(() => 0),
                                  new Promise((done) => setTimeout(done, 500))]);
              return [(await navigator.serviceWorker?.getRegistrations() ?? []).length,
                (await navigator.permissions.query({name: 'geolocation'})).state,
                (await navigator.permissions.query({name: 'notifications'})).state]; }"""
        )
    )
    assert answer[0] == 0 and "granted" not in answer


def test_the_browsers_own_calls_are_refused(browser: Browser, session: Session, site: LocalSite) -> None:
    """Whatever Chromium calls by itself goes through gates, and these have passed on the site's address only."""
    assert browser.gate.allowed == frozenset()
    assert all(f"127.0.0.1:{site.port}" not in attempt.url for attempt in browser.gate.blocked)
    for pid in browser.pids:
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            for connection in process.net_connections(kind="inet"):
                assert not connection.raddr or connection.raddr.ip == "127.0.0.1"


OWN_CALLS = [
    b"CONNECT content-autofill.googleapis.com:443 HTTP/1.1\r\n\r\n",
    b"CONNECT mtalk.google.com:5228 HTTP/1.1\r\n\r\n",
    b"GET http://clients2.google.com/time HTTP/1.1\r\nAccept: text/html\r\n\r\n",
    b"POST http://update.googleapis.com/service HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
]


@pytest.mark.parametrize("call", OWN_CALLS)
def test_what_the_browser_itself_asks_for_is_counted_and_never_told(
    browser: Browser, session: Session, site: LocalSite, call: bytes
) -> None:
    """The call comes through the episode's own gate, where Chromium sends what it does for a context."""
    visit(browser, session, site.url + "/")
    count = session.gate.blocked_count
    with socket.create_connection(("127.0.0.1", int(session.gate.url.rpartition(":")[2]))) as chromium:
        chromium.sendall(call)
        assert chromium.recv(100).startswith((b"HTTP/1.1 403", b"HTTP/1.1 204"))
    assert session.gate.blocked_count == count + 1
    assert act(browser, session, "Type", "Draft", "x") == ""
    assert "\n! " not in browser.call(session.observe()).text


@pytest.mark.parametrize("scheme", ["ws", "wss"])
@pytest.mark.parametrize("place", ["page", "worker", "frame"])
def test_a_socket_of_the_page_is_told_wherever_it_is_opened(
    browser: Browser, session: Session, site: LocalSite, foreign: LocalSite, place: str, scheme: str
) -> None:
    url = f"{scheme}://127.0.0.1:{foreign.port}/live"
    code = f"new WebSocket('{url}')"
    site.pages["/frame"] = f"<script>{code}</script>"
    site.pages["/socket.js"] = Page(code, kind="text/javascript")
    way = {"page": code, "worker": "new Worker('/socket.js')", "frame": f"{NEW}('iframe'), {{src: '/frame'}}))"}[place]
    site.pages["/sockets"] = f'<h1>Start</h1><button onclick="{way}">Go</button>'
    visit(browser, session, site.url + "/sockets")
    text = act(browser, session, "Click", "Go")
    end = time.monotonic() + 10
    while "Blocked" not in text and time.monotonic() < end:
        text += browser.call(session.observe()).text
    assert f"Blocked: {url} is not part of this task's sites." in text
    assert foreign.hits == []


# An episode


def test_several_start_pages_become_tabs_and_the_first_is_active(browser: Browser, site: LocalSite) -> None:
    site.pages.update({"/": "<h1>Home</h1>", "/two": "<h1>Two</h1>"})
    session = browser.call(browser.open([site.url], limits=QUICK))
    visit(browser, session, site.url + "/", site.url + "/two")
    assert session.urls == (site.url + "/", site.url + "/two") and session.tabs.index == 0
    assert "Home" in browser.call(session.observe()).text
    browser.call(session.close())


def test_a_start_page_off_the_sites_is_our_mistake(browser: Browser, session: Session, foreign: LocalSite) -> None:
    with pytest.raises(ValueError, match="`urls` must be on the sites"):
        visit(browser, session, foreign.url + "/")


def test_short_names_stand_for_hosts_in_the_header_and_in_goto(browser: Browser, site: LocalSite) -> None:
    site.pages.update({"/": "<h1>Home</h1>", "/orders?page=2": "<h1>Orders</h1>"})
    sites = {"shop": f"http://shop.w3.localhost:{site.port}", "forum": f"http://forum.w3.localhost:{site.port}"}
    session = browser.call(browser.open(sites, limits=QUICK))
    visit(browser, session, sites["shop"] + "/")
    assert browser.call(session.observe()).text.startswith("@ shop/ |")
    for address in ("forum/orders?page=2", "http://forum/orders?page=2", "Forum.w3.localhost/orders?page=2"):
        assert browser.call(session.act(Action("Goto", None, address))).error == ""
        assert session.url == sites["forum"] + "/orders?page=2"
        assert "@ forum/orders?page=2 |" in browser.call(session.observe()).text
    browser.call(session.close())


def test_episodes_share_nothing_and_cookies_go_in_and_out(browser: Browser, site: LocalSite) -> None:
    """EXE-17, the browser's part."""
    site.pages["/"] = "<h1>Home</h1>"
    entry = {"name": "session", "value": "mia", "url": site.url}
    first = browser.call(browser.open([site.url], cookies=[entry], limits=QUICK))
    visit(browser, first, site.url + "/")
    browser.call(first.tabs.active.evaluate("document.cookie = 'cart=1'; localStorage.x = 1"))
    assert {c["name"] for c in browser.call(first.cookies())} == {"session", "cart"}
    second = browser.call(browser.open([site.url], cookies=[entry], limits=QUICK))
    visit(browser, second, site.url + "/")
    state = browser.call(second.tabs.active.evaluate("[document.cookie, localStorage.length]"))
    assert state == ["session=mia", 0]
    for session in (first, second):
        browser.call(session.close())


def test_locale_time_zone_and_place_are_as_asked(browser: Browser, site: LocalSite) -> None:
    site.pages["/"] = "<h1>Home</h1>"
    session = browser.call(
        browser.open(
            [site.url],
            locale="de-DE",
            timezone="Asia/Tokyo",
            viewport=(800, 600),
            geolocation={"latitude": 40.44, "longitude": -79.99},
        )
    )
    visit(browser, session, site.url + "/")
    script = """() => new Promise((done, no) => navigator.geolocation.getCurrentPosition((p) => done([
        navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone, innerWidth, innerHeight,
        p.coords.latitude]), no))"""
    assert browser.call(session.tabs.active.evaluate(script)) == ["de-DE", "Asia/Tokyo", 800, 600, 40.44]
    browser.call(session.close())


def test_final_freezes_the_episode(browser: Browser, site: LocalSite) -> None:
    site.pages.update({"/": "<h1>Home</h1><script>setInterval(() => fetch('/tick'), 50)</script>", "/tick": "ok"})
    session = browser.call(browser.open([site.url], limits=QUICK))
    visit(browser, session, site.url + "/", site.url + "/")
    final = browser.call(session.final())
    assert final.url == site.url + "/" and final.urls == (site.url + "/",) * 2
    assert final.text == "Home" and "<h1>Home</h1>" in final.html
    end = time.monotonic() + 10
    hits = -1
    while hits != len(site.hits):  # a page that goes on asks every 0.05 s
        assert time.monotonic() < end
        hits = len(site.hits)
        time.sleep(0.5)
    browser.call(session.close())


def test_an_episode_that_ends_during_a_load_is_frozen_as_it_is_then(browser: Browser, site: LocalSite) -> None:
    site.pages.update({"/": "<h1>Home</h1>", "/slow": Page("<h1>Late</h1>", delay=8)})
    session = browser.call(browser.open([site.url], limits=QUICK))
    visit(browser, session, site.url + "/")
    browser.call(session.tabs.active.evaluate("void (location = '/slow')"))
    final = browser.call(session.final())
    assert final.url == site.url + "/" and final.text == "Home"
    browser.call(session.close())


def test_a_grader_reads_in_a_page_of_its_own_with_the_agents_cookies(
    browser: Browser, session: Session, site: LocalSite
) -> None:
    site.pages["/order"] = "<title>T</title><h1>Tom &amp; Jerry</h1><script>document.title = document.cookie</script>"
    visit(browser, session, site.url + "/")
    browser.call(session.tabs.active.evaluate("document.cookie = 'who=mia'"))
    read = lambda *a, **k: browser.call(session.read(site.url + "/order", *a, **k))  # noqa: E731
    assert read() == "Tom & Jerry"
    assert "<h1>Tom &amp; Jerry</h1>" in read("document.documentElement.outerHTML")
    assert read("document.querySelector('h1').innerText") == "Tom & Jerry"
    assert read("document.title") == "who=mia" and read("document.title", cookies=[]) == ""
    assert read("document.querySelectorAll('h1').length") == "1"
    assert read("document.querySelector('h2').innerText") == "" and read("syntax error(") == ""
    assert read("document.title", ["document.title = 'prepared'"]) == "prepared"
    assert session.urls == (site.url + "/",)
    with pytest.raises(ValueError, match="`url` must be on the sites"):
        browser.call(session.read("file:///etc/passwd"))


def test_a_grader_waits_for_what_comes_late(browser: Browser, session: Session, site: LocalSite) -> None:
    code = "const w = new Worker(window.URL.createObjectURL(new Blob(['setTimeout(() => postMessage(1), 2000)'])));"
    site.pages["/late"] = (
        f"<h1>…</h1><script>{code} w.onmessage = () => document.querySelector('h1').textContent = 'Came'</script>"
    )
    assert browser.call(session.read(site.url + "/late", until=lambda text: "Came" in text)) == "Came"


def test_a_dead_site_is_a_fault_and_a_bad_path_is_a_page(browser: Browser) -> None:
    site = LocalSite()
    site.pages["/"] = "<h1>Home</h1><a href=/two>Two</a>"
    session = browser.call(browser.open([site.url], limits=QUICK))
    visit(browser, session, site.url + "/")
    assert browser.call(session.act(Action("Goto", None, "/bad"))).error == ""
    assert "Not found" in browser.call(session.observe()).text
    browser.call(session.act(Action("Go Back")))
    browser.call(session.observe())
    site.close()
    with pytest.raises(BrowserError, match="The site does not answer"):
        act(browser, session, "Goto", None, "/two")
    with pytest.raises(BrowserError, match="The site does not answer"):
        browser.call(session.observe())
    browser.call(session.close())
    with pytest.raises(BrowserError, match="The site does not answer"):
        session = browser.call(browser.open([site.url], limits=QUICK))
        visit(browser, session, site.url + "/")
    browser.call(session.close())


def test_a_server_error_at_the_start_is_a_fault(browser: Browser, session: Session, site: LocalSite) -> None:
    other = browser.call(browser.open([site.url], limits=QUICK))
    site.pages["/down"] = Page("<h1>Bad gateway</h1>", 502)
    with pytest.raises(BrowserError, match="answered with status 502"):
        visit(browser, other, site.url + "/down")
    browser.call(other.close())


# Faults


def test_one_hung_episode_of_four_ends_in_time_and_the_others_go_on(browser: Browser, site: LocalSite) -> None:
    """MPR-04."""
    site.pages["/"] = "<h1>Home</h1><button onclick='document.title += 1'>Go</button>"
    site.pages["/hang"] = "<h1>Hang</h1><script>setTimeout(() => { for (;;); }, 100)</script>"
    limits = Limits(settle=2.0, navigation=3.0)
    sessions = [browser.call(browser.open([site.url], limits=limits)) for _ in range(4)]

    async def episode(session: Session, path: str) -> str:
        try:
            await session.visit([site.url + path])
            for _ in range(3):
                view = await session.observe()
                await session.act(Action("Click", next(iter(view.elements))))
            return "done"
        except BrowserError as error:
            return str(error)

    async def all_of_them() -> list[str]:
        paths = ["/", "/hang", "/", "/"]
        return await asyncio.gather(*map(episode, sessions, paths))

    begun = time.perf_counter()
    outcome = browser.call(all_of_them(), 60)
    assert [o == "done" for o in outcome] == [True, False, True, True]
    assert "does not answer" in outcome[1]
    for session in sessions:
        browser.call(session.close())
    assert time.perf_counter() - begun < 40


def test_a_crashed_page_is_a_fault_and_the_next_episode_is_clean(browser: Browser, site: LocalSite) -> None:
    site.pages["/"] = "<h1>Home</h1>"
    session = browser.call(browser.open([site.url], limits=QUICK))
    visit(browser, session, site.url + "/")

    async def crash() -> None:
        cdp = await session._context.new_cdp_session(session.tabs.active)
        asyncio.ensure_future(cdp.send("Page.crash")).add_done_callback(lambda task: task.exception())
        async with asyncio.timeout(20):
            while not session.tabs.crashed:
                await asyncio.sleep(0.01)

    browser.call(crash())
    with pytest.raises(BrowserError, match="crashed"):
        browser.call(session.observe())
    browser.call(session.close())
    session = browser.call(browser.open([site.url], limits=QUICK))
    visit(browser, session, site.url + "/")
    assert "Home" in browser.call(session.observe()).text
    browser.call(session.close())


def test_after_a_killed_chromium_the_next_episode_is_clean(site: LocalSite, tmp_path: Path) -> None:
    site.pages["/"] = "<h1>Home</h1>"
    with Browser(folder=tmp_path) as browser:
        session = browser.call(browser.open([site.url], limits=QUICK))
        visit(browser, session, site.url + "/")
        old = browser.pids[0]
        os.kill(old, signal.SIGKILL)
        begun = time.perf_counter()
        with pytest.raises(BrowserError):
            browser.call(session.act(Action("Goto", None, "/")))
        assert time.perf_counter() - begun < 10
        browser.call(session.close())
        session = browser.call(browser.open([site.url], limits=QUICK))
        visit(browser, session, site.url + "/")
        assert "Home" in browser.call(session.observe()).text
        assert len(browser.pids) == 1 and browser.pids != [old]


def test_after_a_killed_driver_the_next_episode_is_clean(site: LocalSite, tmp_path: Path) -> None:
    site.pages["/"] = "<h1>Home</h1>"
    with Browser(folder=tmp_path) as browser:
        session = browser.call(browser.open([site.url], limits=QUICK))
        visit(browser, session, site.url + "/")
        driver = psutil.Process(browser.pids[0]).parent()
        assert "playwright" in " ".join(driver.cmdline())
        driver.kill()
        with pytest.raises(BrowserError):
            browser.call(session.act(Action("Goto", None, "/")))
        browser.call(session.close())
        session = browser.call(browser.open([site.url], limits=QUICK))
        visit(browser, session, site.url + "/")
        assert "Home" in browser.call(session.observe()).text


def test_chromium_is_replaced_after_some_episodes_while_one_goes_on(site: LocalSite, tmp_path: Path) -> None:
    site.pages["/"] = "<h1>Home</h1>"
    with Browser(folder=tmp_path, recycle_after=2) as browser:
        first = browser.pids[0]
        sessions = [browser.call(browser.open([site.url], limits=QUICK)) for _ in range(3)]
        assert len(browser.pids) == 2
        visit(browser, sessions[0], site.url + "/")  # an episode on the old process goes on
        for session in sessions[:2]:
            browser.call(session.close())
        assert len(browser.pids) == 1 and browser.pids[0] != first and not psutil.pid_exists(first)
        visit(browser, sessions[2], site.url + "/")


# Processes, threads, loops


def test_nothing_is_left_after_close_and_all_files_stay_in_the_folder(tmp_path: Path, site: LocalSite) -> None:
    """MPR-06; the folder's name is longer than a socket's path may be."""
    folder = tmp_path / ("a long name " * 8)
    temp = Path(os.environ.get("TMPDIR", "/tmp"))
    before = set(temp.iterdir())
    with Browser(folder=folder) as browser:
        pids = [
            p.pid for pid in browser.pids for p in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True))
        ]
        threads = [t for t in threading.enumerate() if t.name == "webrl_lite browser"][-1:]
        groups = {os.getpgid(pid) for pid in browser.pids}
        assert os.getpgid(0) not in groups
        site.pages["/"] = "<h1>Home</h1>"
        session = browser.call(browser.open([site.url]))
        visit(browser, session, site.url + "/")
        new = {path.name for path in set(temp.iterdir()) - before}
        assert not any("playwright" in name or "hromium" in name for name in new)
    assert list(folder.iterdir()) == []
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)
    assert not [thread for thread in threads if thread.is_alive()]


def test_close_twice_and_start_again(tmp_path: Path, site: LocalSite) -> None:
    site.pages["/"] = "<h1>Home</h1>"
    browser = Browser(folder=tmp_path)
    for _ in range(2):
        browser.start()
        session = browser.call(browser.open([site.url]))
        visit(browser, session, site.url + "/")
        browser.close()
        browser.close()
    with pytest.raises(BrowserError, match="`Browser.start` must be called"):
        browser.call(session.observe())


def test_it_works_inside_a_running_loop_twice(site: LocalSite, tmp_path: Path) -> None:
    """CLI-04."""
    site.pages["/"] = "<h1>Home</h1>"

    def cell() -> str:
        with Browser(folder=tmp_path) as browser:
            session = browser.call(browser.open([site.url]))
            visit(browser, session, site.url + "/")
            return browser.call(session.observe()).text

    async def notebook() -> list[str]:
        return [cell(), cell()]

    for text in asyncio.run(notebook()):
        assert "Home" in text
    assert list(tmp_path.iterdir()) == []


def test_call_on_the_browsers_own_thread_is_refused(browser: Browser) -> None:
    async def inner() -> None:
        browser.call(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="must not be used on the browser's own thread"):
        browser.call(inner())


def test_call_gives_up_after_its_limit(browser: Browser) -> None:
    with pytest.raises(BrowserError, match="did not answer within 0.2 s"):
        browser.call(asyncio.sleep(30), 0.2)


WORKER = """
import sys, time
from webrl_lite.browser import Browser
from webrl_lite.actions import Action
browser = Browser(folder=sys.argv[2]).start()
session = browser.call(browser.open([sys.argv[1]]))
browser.call(session.visit([sys.argv[1] + "/"]))
print("ready", *browser.pids, flush=True)
{}
"""
ENDINGS = {
    "exception": "raise RuntimeError('in a step')",
    "Ctrl-C": "browser.call(__import__('asyncio').sleep(60))",
    "SIGKILL": "time.sleep(60)",
    "SIGTERM": "time.sleep(60)",
    "exit": "sys.exit(0)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_browser_survives_its_python(site: LocalSite, tmp_path: Path, ending: str) -> None:
    """MPR-01."""
    site.pages["/"] = "<h1>Home</h1>"
    script = WORKER.format(textwrap.dedent(ENDINGS[ending]))
    number = 2 if ending == "SIGKILL" else 1
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", script, site.url, str(tmp_path)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        for _ in range(number)
    ]
    try:
        pids = [[int(pid) for pid in worker.stdout.readline().split()[1:]] for worker in workers]
        assert all(pids)
        signals = {"Ctrl-C": signal.SIGINT, "SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM}
        if ending == "Ctrl-C":
            os.killpg(workers[0].pid, signal.SIGINT)  # a terminal signals the whole group
        elif ending in signals:
            workers[0].send_signal(signals[ending])
        workers[0].wait(20)
        end = time.monotonic() + 10
        while time.monotonic() < end and any(map(psutil.pid_exists, pids[0])):
            time.sleep(0.1)
        assert not any(map(psutil.pid_exists, pids[0]))
        if number == 2:
            assert all(map(psutil.pid_exists, pids[1]))  # the other worker's is left alone
            Browser(folder=tmp_path).start().close()  # the sweep of the next start, too
            assert all(map(psutil.pid_exists, pids[1]))
            assert len(list(tmp_path.glob("chromium-*"))) == 1
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    if ending in ("SIGKILL", "SIGTERM"):
        module.RunFolder.sweep(tmp_path)
    assert list(tmp_path.glob("chromium-*")) == []


def test_after_a_ctrl_c_the_episode_can_go_on(site: LocalSite, tmp_path: Path) -> None:
    """An interrupted notebook cell: the signal goes to the whole group, and only Python takes it."""
    site.pages["/"] = "<h1>Home</h1>"
    rest = """
    import asyncio
    async def cell():
        print("in the cell", flush=True)
        await asyncio.sleep(60)
    try:
        browser.call(cell())
    except KeyboardInterrupt:
        time.sleep(1)
        print("then", "Home" in browser.call(session.observe()).text, flush=True)
    """
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER.format(textwrap.dedent(rest)), site.url, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert worker.stdout.readline().startswith("ready")
        assert worker.stdout.readline() == "in the cell\n"  # a signal before would end the script outside of `try`
        os.killpg(worker.pid, signal.SIGINT)
        assert worker.stdout.readline() == "then True\n"
        assert worker.wait(20) == 0
    finally:
        worker.kill()
        worker.wait()


def test_the_next_start_sweeps_what_a_killed_run_left_in_its_folder_only(tmp_path: Path) -> None:
    """MPR-01."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    ours = subprocess.Popen([*sleeper, "--webrl-lite-run=aaaabbbbcccc"])
    other = subprocess.Popen([*sleeper, "--webrl-lite-run=ddddeeeeffff"])
    try:
        left = tmp_path / "chromium-aaaabbbbcccc"
        left.mkdir()
        record = f'{{"owner": {dead.pid}, "started": 1.0, "pids": [{ours.pid}, {other.pid}]}}'
        (left / "run.json").write_text(record)
        Browser(folder=tmp_path).start().close()
        assert not psutil.pid_exists(ours.pid)
        assert other.poll() is None and not left.exists()
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()


def test_a_browser_that_does_not_start_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEBRL_LITE_CHROMIUM", str(program(tmp_path / "fake")))
    with pytest.raises(BrowserError, match="fake did not start"):
        Browser(folder=tmp_path / "run").start()
    assert list((tmp_path / "run").iterdir()) == []
