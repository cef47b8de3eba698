"""Chromium, driven by Playwright in a thread of its own: one browser, one context for each episode.

Reads ``Action``s, gives ``Observation``s and ``Outcome``s; used by ``envs``. Playwright's async API runs on a loop in
a daemon thread, so ``Browser.call`` works alike in a script, under pytest and in a notebook whose loop is running.

Network: each episode has its own ``Gate`` with the task's sites; the browser's own calls go to a gate that allows
nothing; Chromium itself resolves no names. After each step every tab is looked at, and one that strayed is sent back.

Processes: Chromium and its driver form process groups of their own. They end with ``Browser.close``, at the exit of
Python, and, since both read a pipe that Python holds, also when Python is killed. What a killed run left in its
folder is swept by the next run in the same folder.

    python -m webrl_lite.browser find       prints the browser that would be used
    python -m webrl_lite.browser install    gets one if there is none
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import psutil
from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import BrowserContext, Page, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from webrl_lite.actions import Action
from webrl_lite.executor import Executor
from webrl_lite.gate import Gate, origin_of, url_refusal
from webrl_lite.observation import INIT_JS, Header, Observation, Snapshot, count_tokens_default, render, snapshot
from webrl_lite.tabs import WATCH_JS, BrowserError, Limits, Tabs

T = TypeVar("T")
log = logging.getLogger(__name__)

START_SECONDS = 30.0
CLOSE_SECONDS = 5.0
BLOCKED_LINES = 3
# A Unix socket's path has at most 107 characters; Chromium adds about 45 to its temporary folder.
LONGEST_TEMP = 60

# A later --disable-features replaces Playwright's own list, so what matters of that is repeated here.
_FEATURES_OFF = (
    *("HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "MediaRouter", "LensOverlay"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled"),
    *("PreconnectToSearch", "AutofillServerCommunication", "Translate", "SpareRendererForSitePerProcess"),
)
FLAGS = (
    f"--disable-features={','.join(_FEATURES_OFF)}",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--no-pings",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # its older name
)
"""Chromium's flags beside Playwright's own. The last three close the ways past a proxy: audit pings, DNS, UDP."""

_NAMES = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser", "chrome", "msedge", "microsoft-edge")
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
_NONE_FOUND = (
    "No Chromium or Chrome was found. Run `python -m webrl_lite.browser install`, "
    "or set WEBRL_LITE_CHROMIUM to the path of one."
)


# ---------------------------------------------------------------------------------------------- finding a browser


def find_chromium() -> Path:
    """Return the browser to use: ``WEBRL_LITE_CHROMIUM``, Playwright's own, then Chrome or Chromium on the PATH.

    Raises:
        BrowserError: there is none, or the variable names a file that cannot be run.
    """
    named = os.environ.get("WEBRL_LITE_CHROMIUM")
    if named:
        if not (os.path.isfile(named) and os.access(named, os.X_OK)):
            raise BrowserError(
                f"`WEBRL_LITE_CHROMIUM` must name an executable file, got {named!r}. "
                "Correct it, or unset it to use a browser found elsewhere."
            )
        return Path(named)
    for path in (*_playwright_browsers(), *map(shutil.which, _NAMES), *_PLACES):
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return Path(path)
    raise BrowserError(_NONE_FOUND)


def _playwright_browsers() -> list[Path]:
    """Browsers that ``playwright install`` put on this machine, newest first, the full Chromium before the shell."""
    home = Path.home()
    places = {"darwin": home / "Library/Caches", "win32": home / "AppData/Local"}
    cache = places.get(sys.platform) or Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    root = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or cache / "ms-playwright")
    found: list[Path] = []
    for kind, names in (
        ("chromium", ("chrome-*/chrome", "chrome-*/chrome.exe", "chrome-*/*.app/Contents/MacOS/*")),
        (
            "chromium_headless_shell",
            ("chrome-*/headless_shell", "chrome-*/chrome-headless-shell", "chrome-*/*shell.exe"),
        ),
    ):
        folders = sorted(root.glob(f"{kind}-*"), key=lambda p: int(p.name.rpartition("-")[2] or 0), reverse=True)
        found += [path for folder in folders for name in names for path in sorted(folder.glob(name))]
    return found


def install() -> Path:
    """Return a browser, getting one if there is none: Playwright's, or the system's package where that fails.

    Raises:
        BrowserError: neither way worked; the message says what to do by hand.
    """
    with contextlib.suppress(BrowserError):
        return find_chromium()
    if os.environ.get("WEBRL_LITE_CHROMIUM"):
        return find_chromium()  # raises: a wrong setting is not repaired by another browser
    root = [] if getattr(os, "geteuid", lambda: 1)() == 0 else ["sudo"]
    ways = [[[sys.executable, "-m", "playwright", "install", "chromium"]]]
    if shutil.which("apt-get"):
        apt = [*root, "apt-get"]
        ways.append([[*apt, "update"], [*apt, "install", "-y", "--no-install-recommends", "chromium"]])
    elif sys.platform == "darwin" and shutil.which("brew"):
        ways.append([["brew", "install", "--cask", "chromium"]])
    for way in ways:
        for command in way:
            log.info("running %s", " ".join(command))
            try:
                if subprocess.run(command, check=False).returncode != 0:
                    break
            except OSError:
                break
        with contextlib.suppress(BrowserError):
            return find_chromium()
    raise BrowserError(
        "No browser could be installed. Install Chrome or Chromium by hand (e.g. `apt-get install chromium`, "
        "https://www.google.com/chrome) and set WEBRL_LITE_CHROMIUM to its path if it is not on the PATH."
    )


# --------------------------------------------------------------------------------------------- processes and folders


class _Loop(asyncio.ProactorEventLoop if sys.platform == "win32" else asyncio.SelectorEventLoop):
    """A loop whose children get a session of their own, so that a Ctrl-C in the terminal reaches Python alone."""

    def __init__(self, temp: Path):
        super().__init__()
        self.temp = temp

    async def subprocess_exec(self, protocol_factory, *command, **options):  # noqa: ANN001, ANN002, ANN003, ANN201
        """Start a child in its own session, with its temporary files in the run's folder."""
        places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.temp))
        options["env"] = {**(options.get("env") or os.environ), **places}
        options["start_new_session"] = True
        return await super().subprocess_exec(protocol_factory, *command, **options)


def _end_tree(pid: int) -> None:
    """Kill a process of ours and its children."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(family, timeout=CLOSE_SECONDS)


class _Folder:
    """Where one Browser keeps its profile and temporary files, and notes its processes for a later sweep."""

    def __init__(self, run_folder: Path):
        run_folder.mkdir(parents=True, exist_ok=True)
        self.sweep(run_folder)
        self.mark = uuid.uuid4().hex[:12]
        self.path = run_folder.resolve() / f"chromium-{self.mark}"
        self.path.mkdir()
        self.temp = self.path
        if len(str(self.path)) > LONGEST_TEMP and sys.platform != "win32":
            self.temp = self.short_name(self.mark)
            self.temp.symlink_to(self.path)
        self.note([])

    @staticmethod
    def short_name(mark: str) -> Path:
        return Path(tempfile.gettempdir()) / f"webrl-{mark}"

    def note(self, pids: Sequence[int]) -> None:
        """Write down whose the folder is and which Chromium processes belong to it."""
        owner = psutil.Process()
        record = {"owner": owner.pid, "started": owner.create_time(), "pids": list(pids)}
        (self.path / "run.json").write_text(json.dumps(record), encoding="utf-8")

    def remove(self) -> None:
        """Delete the folder; files that a dying Chromium still writes are tried again for a moment."""
        if self.temp != self.path:
            self.temp.unlink(missing_ok=True)
        for _ in range(20):
            shutil.rmtree(self.path, ignore_errors=True)
            if not self.path.exists():
                return
            time.sleep(0.05)

    @classmethod
    def sweep(cls, run_folder: Path) -> None:
        """End and delete what Browsers of this folder left whose Python is gone."""
        for path in run_folder.glob("chromium-*"):
            mark = path.name.partition("-")[2]
            try:
                record = json.loads((path / "run.json").read_text(encoding="utf-8"))
                owner = psutil.Process(record["owner"])
                if abs(owner.create_time() - record["started"]) < 1:
                    continue
            except psutil.NoSuchProcess:
                pass
            except (OSError, ValueError, KeyError):
                continue  # being made at this moment, or not ours
            for pid in record["pids"]:
                with contextlib.suppress(psutil.Error):
                    if any(mark in argument for argument in psutil.Process(pid).cmdline()):
                        _end_tree(pid)
            shutil.rmtree(path, ignore_errors=True)
            cls.short_name(mark).unlink(missing_ok=True)


@dataclass(eq=False)
class _Chromium:
    """One running browser process."""

    browser: PlaywrightBrowser
    pid: int
    opened: int = 0
    sessions: set[Session] = field(default_factory=set)
    retired: bool = False
    """Takes no new episodes; closed when its last one ends."""


# ------------------------------------------------------------------------------------------------------- the browser


class Browser:
    """A pool of contexts on one Chromium, with its thread. A context manager; ``close`` may be called twice.

    Attributes:
        gate: the proxy for Chromium's own calls. It allows nothing; ``gate.blocked`` lists what was tried.
    """

    def __init__(self, *, folder: Path | str | None = None, recycle_after: int = 200):
        """Describe a browser; ``start`` runs it.

        Args:
            folder: the run's folder, made if absent; all files of Chromium stay in it. None: a temporary one.
            recycle_after: episodes after which Chromium is replaced, since its memory grows. The old process is
                closed when its last episode ends.
        """
        self.gate = Gate()
        self._recycle_after = recycle_after
        self._given_folder = None if folder is None else Path(folder)
        self._own_folder: tempfile.TemporaryDirectory[str] | None = None
        self._folder: _Folder | None = None
        self._loop: _Loop | None = None
        self._thread: threading.Thread | None = None
        self._playwright: Playwright | None = None
        self._current: _Chromium | None = None
        self._all: set[_Chromium] = set()
        self._launching = asyncio.Lock()
        self._pid = os.getpid()

    def __enter__(self) -> Browser:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> Browser:
        """Start the thread and Chromium; nothing happens if they run.

        Raises:
            BrowserError: there is no browser, or it does not start.
        """
        if self._thread is not None:
            return self
        executable = find_chromium()
        if self._given_folder is None:
            self._own_folder = tempfile.TemporaryDirectory(prefix="webrl_lite_", ignore_cleanup_errors=True)
        self._folder = _Folder(self._given_folder or Path(self._own_folder.name))
        self._loop = _Loop(self._folder.temp)
        self._thread = threading.Thread(target=self._loop.run_forever, name="webrl_lite browser", daemon=True)
        self._thread.start()
        atexit.register(self.close)
        try:
            self.call(self._begin(executable), START_SECONDS)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End all episodes and processes and delete the temporary files."""
        if self._thread is None or self._pid != os.getpid():
            return
        atexit.unregister(self.close)
        with contextlib.suppress(BrowserError):
            self.call(self._end(), 3 * CLOSE_SECONDS)
        for chromium in self._all:
            _end_tree(chromium.pid)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        self._loop.close()
        self._folder.remove()
        if self._own_folder is not None:
            self._own_folder.cleanup()
        self._thread = self._loop = self._playwright = self._current = self._own_folder = None
        self._all.clear()

    def call(self, coroutine: Coroutine[object, object, T], timeout: float | None = None) -> T:
        """Run a coroutine on the browser's thread and wait for its result.

        Args:
            coroutine: for example ``session.act(action)``.
            timeout: seconds; None waits, since every method of a Session has its own limit.

        Raises:
            BrowserError: the time is over, or the browser is not running.
        """
        if self._thread is None or self._pid != os.getpid():
            coroutine.close()
            raise BrowserError("`Browser.start` must be called before, in this process.")
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("`Browser.call` must not be used on the browser's own thread; await the coroutine.")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout)
        except TimeoutError:
            if future.done():
                raise
            future.cancel()
            raise BrowserError(f"The browser did not answer within {timeout:g} s.") from None
        except BaseException:
            future.cancel()  # Ctrl-C: what runs in the thread is given up as well
            raise

    @property
    def pids(self) -> list[int]:
        """Process ids of the running Chromium processes (one; two while one is being replaced)."""
        return [chromium.pid for chromium in self._all]

    async def open(
        self,
        allowed: Sequence[str] | Mapping[str, str],
        *,
        cookies: Sequence[Mapping[str, str | float | bool]] = (),
        viewport: tuple[int, int] = (1280, 720),
        locale: str = "en-US",
        timezone: str = "UTC",
        geolocation: Mapping[str, float] | None = None,
        storage: Mapping[str, object] | Path | None = None,
        limits: Limits | None = None,
    ) -> Session:
        """Open a clean context for one episode. Chromium is started again if it was killed or has served long.

        Args:
            allowed: origins of the task's sites, such as ``http://127.0.0.1:5000``; a mapping gives each a short
                name, which the agent sees, and may write, in place of host and port.
            cookies: Playwright cookies: ``name``, ``value``, and ``url`` or ``domain`` and ``path``.
            viewport: width and height in CSS pixels.
            locale: language of the browser, which also sets how date fields read.
            timezone: IANA name.
            geolocation: ``latitude`` and ``longitude`` that pages may ask for; None: asking is refused.
            storage: a Playwright storage state (cookies and localStorage), or a file of one.
            limits: time limits and number of tabs.

        Raises:
            BrowserError: the browser does not start or does not answer.
        """
        sites = dict(allowed) if isinstance(allowed, Mapping) else {urlsplit(url).netloc: url for url in allowed}
        options = {
            "viewport": {"width": viewport[0], "height": viewport[1]},
            "locale": locale,
            "timezone_id": timezone,
            "service_workers": "block",
            "accept_downloads": False,
            "geolocation": geolocation,
            "permissions": ["geolocation"] if geolocation else [],
        }
        try:
            async with asyncio.timeout(START_SECONDS):
                try:
                    return await self._open(sites, options, limits or Limits(), cookies, storage)
                except PlaywrightError:
                    # A dead driver shows itself only now; everything is started anew, once.
                    self._current.retired = True
                    return await self._open(sites, options, limits or Limits(), cookies, storage)
        except (PlaywrightError, TimeoutError) as error:
            reason = str(error).partition("\n")[0] or f"no answer within {START_SECONDS:g} s"
            raise BrowserError(f"No context could be opened: {reason}") from error

    async def _open(
        self,
        sites: Mapping[str, str],
        options: dict[str, object],
        limits: Limits,
        cookies: Sequence[Mapping[str, str | float | bool]],
        storage: Mapping[str, object] | Path | None,
    ) -> Session:
        chromium = await self._running()
        gate = Gate(sites.values())
        await gate.start()
        options = {**options, "proxy": {"server": gate.url, "bypass": "<-loopback>"}}
        session = Session(self, chromium, gate, sites, options, limits)
        chromium.sessions.add(session)
        chromium.opened += 1
        try:
            await session._begin(cookies, storage)
        except BaseException:
            await session.close()
            raise
        return session

    async def _begin(self, executable: Path) -> None:
        self._executable = executable
        await self.gate.start()
        await self._running()

    async def _running(self) -> _Chromium:
        """The process for the next episode."""
        async with self._launching:
            old = self._current
            if old is not None and old.opened >= self._recycle_after:
                old.retired = True
            if old is None or old.retired or not old.browser.is_connected():
                self._current = await self._launch()
                if old is not None:
                    old.retired = True
                    await self._close_if_idle(old)
            return self._current

    async def _launch(self) -> _Chromium:
        flags = [*FLAGS, f"--webrl-lite-run={self._folder.mark}"]
        if getattr(os, "geteuid", lambda: 1)() == 0:
            log.info("running as root, so Chromium runs without its sandbox")
            flags.append("--no-sandbox")
        for attempt in (1, 2):
            try:
                if self._playwright is None:
                    self._playwright = await async_playwright().start()
                browser = await self._playwright.chromium.launch(
                    executable_path=self._executable,
                    headless=True,
                    args=flags,
                    proxy={"server": self.gate.url, "bypass": "<-loopback>"},
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    timeout=START_SECONDS / 2 * 1000,
                )
                break
            except PlaywrightError as error:
                if attempt == 2:
                    text = error.message.splitlines()[0]
                    raise BrowserError(f"{self._executable} did not start: {text}") from error
                await self._end_playwright()  # the driver may be what failed
        cdp = await browser.new_browser_cdp_session()
        processes = (await cdp.send("SystemInfo.getProcessInfo"))["processInfo"]
        await cdp.detach()
        chromium = _Chromium(browser, next(p["id"] for p in processes if p["type"] == "browser"))
        self._all.add(chromium)
        self._folder.note(self.pids)
        return chromium

    async def _release(self, session: Session) -> None:
        chromium = session._chromium
        chromium.sessions.discard(session)
        await self._close_if_idle(chromium)

    async def _close_if_idle(self, chromium: _Chromium) -> None:
        if chromium.retired and not chromium.sessions and chromium in self._all:
            self._all.discard(chromium)
            with contextlib.suppress(PlaywrightError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await chromium.browser.close()
            _end_tree(chromium.pid)  # no worker thread: none can be started while Python exits
            self._folder.note(self.pids)

    async def _end(self) -> None:
        for chromium in list(self._all):
            chromium.retired = True
            for session in list(chromium.sessions):
                await session.close()
            await self._close_if_idle(chromium)
        await self._end_playwright()
        await self.gate.close()

    async def _end_playwright(self) -> None:
        playwright, self._playwright = self._playwright, None
        if playwright is not None:
            with contextlib.suppress(PlaywrightError, TimeoutError, OSError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await playwright.stop()


# ------------------------------------------------------------------------------------------------------- one episode


@dataclass(frozen=True)
class Outcome:
    """What came of one action."""

    error: str
    """One line for the agent: what could not be done, dialogs, downloads, blocked addresses. Empty if all is well."""
    seconds: dict[str, float]
    """Time for ``act`` (the deed) and ``settle`` (until the page was quiet, with the audit of the tabs)."""


@dataclass(frozen=True)
class Final:
    """What the episode left, frozen for grading."""

    url: str
    """Address of the active tab."""
    urls: tuple[str, ...]
    """Addresses of all tabs, in their order."""
    text: str
    """Visible text of the active tab's page."""
    html: str
    """Source of the active tab's page, as it stood in the browser."""


class Session:
    """One episode in the browser: a context, its tabs and its gate. Made by ``Browser.open``; await all methods
    on the browser's thread (``Browser.call``).

    After a BrowserError the session is broken: every further call but ``close`` raises the same.

    Attributes:
        tabs: the open tabs; ``tabs.active`` is the Playwright page that the agent sees.
        gate: the episode's proxy.
        observation: the last observation, whose ids the next action may name.
    """

    def __init__(
        self,
        browser: Browser,
        chromium: _Chromium,
        gate: Gate,
        sites: Mapping[str, str],
        options: dict[str, object],
        limits: Limits,
    ):
        self.gate = gate
        self.limits = limits
        self.observation: Observation | None = None
        self._browser = browser
        self._chromium = chromium
        self._options = options
        self._names = {origin_of(url): name for name, url in sites.items()}
        self._sites = sites
        self._context: BrowserContext | None = None
        self._snapshot: Snapshot | None = None
        self._fault = ""
        self._closed = False
        self._error = ""
        self._settled = True
        self._good: dict[Page, str] = {}  # tab -> last address that was in order
        self._home = ""  # last address in order of any tab
        self._shown: tuple[Page, int] | None = None  # tab and document of the last observation
        self._told: set[str] = set()  # blocked origins that the agent has been told of
        self._load_blocked = False  # since the last action
        self._seen_blocked = self._seen_unreachable = 0

    async def _begin(
        self, cookies: Sequence[Mapping[str, str | float | bool]], storage: Mapping[str, object] | Path | None
    ) -> None:
        self._context = await self._new_context(storage)
        if cookies:
            await self._context.add_cookies([dict(cookie) for cookie in cookies])
        self.tabs = Tabs(self._context, self.limits, self._refusal)
        self._executor = Executor(self.tabs, self.limits, self._refusal, self._sites)
        await self._context.new_page()

    async def _new_context(self, storage: Mapping[str, object] | Path | None = None) -> BrowserContext:
        context = await self._chromium.browser.new_context(**self._options, storage_state=storage)
        await context.add_init_script(WATCH_JS)
        await context.add_init_script(INIT_JS)
        return context

    @property
    def url(self) -> str:
        """Address of the active tab."""
        return self.tabs.active.url

    @property
    def urls(self) -> tuple[str, ...]:
        """Addresses of all tabs."""
        return tuple(page.url for page in self.tabs.pages)

    async def cookies(self) -> list[dict[str, str | float | bool]]:
        """Return the episode's cookies, as ``Browser.open`` takes them."""
        async with self._guard(self.limits.observe):
            return [dict(cookie) for cookie in await self._context.cookies()]

    async def visit(self, urls: Sequence[str]) -> None:
        """Open the start pages, one tab each; the first becomes the active one.

        Raises:
            ValueError: an address is not on the episode's sites.
            BrowserError: a page does not load, or answers with a server error (status 500 and above).
        """
        for url in urls:
            if self._refusal(url):
                raise ValueError(f"`urls` must be on the sites {list(self._sites.values())}, got {url!r}.")
        for number, url in enumerate(urls):
            async with self._guard(self.limits.step):
                page = self.tabs.active if number == 0 else await self._context.new_page()
                since = time.time() * 1000
                response = await page.goto(url, wait_until="commit", timeout=self.limits.navigation * 1000)
                self._check_sites()
                if response is not None and response.status >= 500:
                    raise BrowserError(f"{url} answered with status {response.status}.")
                self._settled = await self.tabs.settle(since)
                await self._audit()
        if len(urls) > 1:
            async with self._guard(self.limits.step):
                await self.tabs.focus(self.tabs.pages[0])
        self._error = " ".join(self.tabs.take_lines())

    async def act(self, action: Action) -> Outcome:
        """Do one action and wait for the page to settle.

        Args:
            action: any action but ``Exit``, which is the environment's to end the episode.

        Raises:
            BrowserError: the browser, the page or a site failed; within ``Limits.step`` seconds.
        """
        async with self._guard(self.limits.step):
            begun = time.perf_counter()
            since = time.time() * 1000
            self.tabs.take_lines()
            self.tabs.new_pages.clear()
            self._load_blocked = False
            line = await self._executor.run(action)
            acted = time.perf_counter()
            self._settled = await self.tabs.settle(since)
            lines = await self._audit()
            lines = [line, *self.tabs.take_lines(), *lines]
            self._error = " ".join(dict.fromkeys(text for text in lines if text))
            return Outcome(self._error, {"act": acted - begun, "settle": time.perf_counter() - acted})

    async def observe(
        self,
        *,
        mode: str = "lite",
        budget: int | None = None,
        count_tokens: Callable[[str], int] = count_tokens_default,
        special_tokens: Sequence[str] = (),
        error: str | None = None,
    ) -> Observation:
        """Read the active tab; the ids of the result are those that the next action may name.

        Args:
            mode: ``lite`` or ``webrl``.
            budget: tokens of the text; None: as long as the page is.
            count_tokens: length of a text in tokens.
            special_tokens: chat markers that page text must not forge.
            error: line about the last reply; None: what the last action gave.
        """
        async with self._guard(self.limits.observe):
            page = self.tabs.active
            if self._shown is not None and page in self.tabs.new_pages:
                self._settled = await self.tabs.settle(time.time() * 1000)  # a pop-up that came late
            late = [*await self._audit(), *self.tabs.take_lines()]
            page = self.tabs.active
            if self._shown != (page, self.tabs.loads[page]):
                self._shown = (page, self.tabs.loads[page])
                self._executor.turned.clear()
            errors = " ".join([self._error if error is None else error, *late]).strip()
            header = Header(self._address(page.url), self.tabs.index, len(self.tabs.pages), errors, self._settled)
            read = await snapshot(page)
            if self._snapshot is not None:
                await self._snapshot.dispose()
            self._snapshot = read
            turned = self._executor.turned
            while True:
                skip = turned[-1] if turned else 0
                view = render(
                    read,
                    mode=mode,
                    budget=budget,
                    count_tokens=count_tokens,
                    skip=skip,
                    header=header,
                    special_tokens=special_tokens,
                )
                if view.shown or not turned:
                    break
                turned.pop()  # the page became shorter than what was skipped
            self.observation = self._executor.observation = view
            return view

    async def read(
        self,
        url: str,
        locator: str = "",
        prep: Sequence[str] = (),
        *,
        html: bool = False,
        until: Callable[[str], bool] | None = None,
        cookies: Sequence[Mapping[str, str | float | bool]] | None = None,
    ) -> str:
        """Read a page for a grader, in a context of its own: no tab of the agent is touched.

        Args:
            url: address on the episode's sites.
            locator: JavaScript expression, for example ``document.querySelector('h1').innerText``; "" is the whole
                page. From trusted task files only: it is executed.
            prep: JavaScript statements that are run before; as trusted.
            html: with an empty locator, give the page's source in place of its visible text.
            until: read again until this holds of the text, at most ``Limits.observe`` seconds, then give the last.
            cookies: the reader's cookies; None: those of the agent.

        Returns:
            The text; "" if the expression fails or gives nothing.

        Raises:
            ValueError: the address is not on the episode's sites.
            BrowserError: the page cannot be loaded.
        """
        if self._refusal(url):
            raise ValueError(f"`url` must be on the sites {list(self._sites.values())}, got {url!r}.")
        context: BrowserContext | None = None
        try:
            async with self._guard(self.limits.step + self.limits.observe):
                jar = await self._context.cookies() if cookies is None else cookies
                context = await self._new_context()
                await context.add_cookies([dict(cookie) for cookie in jar])
                tabs = Tabs(context, self.limits, self._refusal)
                page = await context.new_page()
                since = time.time() * 1000
                await page.goto(url, wait_until="commit", timeout=self.limits.navigation * 1000)
                await tabs.settle(since)
                self._check_sites()
                for statement in prep:
                    await tabs.ask(page.evaluate(f"() => {{ {statement} }}"))
                    await tabs.settle(time.time() * 1000)
                question = f"() => ({locator})" if locator else "() => document.body ? document.body.innerText : ''"
                end = time.monotonic() + self.limits.observe
                while True:
                    whole = html and not locator
                    value = await tabs.ask(page.content() if whole else page.evaluate(question))
                    text = "" if value is None or value is False else str(value)
                    if until is None or until(text) or time.monotonic() > end:
                        return text
                    await tabs.wait_for_change(time.time() * 1000)
        finally:
            if context is not None:
                await self._close_context(context)

    async def final(self) -> Final:
        """Freeze the episode: read what is to be graded, then close the agent's tabs so that nothing goes on."""
        async with self._guard(self.limits.step):
            page = self.tabs.active
            text = await self.tabs.answer(page.evaluate("() => document.body ? document.body.innerText : ''"))
            html = await self.tabs.answer(page.content())
            result = Final(page.url, self.urls, text, html)
            await self.tabs.release()
            return result

    async def close(self) -> None:
        """End the episode, whatever state it is in. May be called twice."""
        if self._closed:
            return
        self._closed = True
        if self._context is not None:
            await self._close_context(self._context)
        await self.gate.close()
        await self._browser._release(self)

    async def _close_context(self, context: BrowserContext) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await context.close()
        except TimeoutError:
            # A process that cannot close a context takes no new episode; those it has may go on.
            self._chromium.retired = True
        except PlaywrightError:
            pass  # the browser is gone, and the context with it

    @contextlib.asynccontextmanager
    async def _guard(self, seconds: float) -> AsyncIterator[None]:
        """Turn whatever fails into one BrowserError within a time limit, and remember it."""
        if self._closed or self._fault:
            raise BrowserError(self._fault or "The session is closed.")
        try:
            async with asyncio.timeout(seconds):
                self.tabs.check()
                yield
        except BrowserError as error:
            self._fault = str(error)
            raise
        except TimeoutError:
            self._fault = f"The browser took longer than {seconds:g} s."
            raise BrowserError(self._fault) from None
        except PlaywrightError as error:
            self._fault = f"The browser failed: {error.message.splitlines()[0]}"
            raise BrowserError(self._fault) from error

    # Sites and strays

    def _refusal(self, url: str) -> str:
        return url_refusal(url, self.gate.allowed)

    def _address(self, url: str) -> str:
        """What the agent is shown of an address: the path, and the site if there are several."""
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        if len(self._names) < 2 or parts.scheme not in ("http", "https"):
            return path if parts.scheme in ("http", "https") else url
        with contextlib.suppress(ValueError):
            return self._names.get(origin_of(url), parts.netloc) + path
        return url

    def _check_sites(self) -> None:
        """Raise BrowserError if a site did not answer the load of a page."""
        gone = self.gate.unreachable_since(self._seen_unreachable)
        self._seen_unreachable = self.gate.unreachable_count
        for attempt in gone:
            if attempt.page or attempt.method == "CONNECT":
                raise BrowserError(f"The site does not answer: {attempt.url[:200]}")

    async def _audit(self) -> list[str]:
        """Send strayed tabs back and return the lines about them and about everything that the gate refused."""
        self.tabs.check()
        self._check_sites()
        blocked, self.tabs.blocked = self.tabs.blocked, []
        failed, self.tabs.failed = self.tabs.failed, []
        # Pages' requests are seen as such and Chromium's own calls go to port 443: the rest are WebSockets.
        tunnels = [a.url for a in self.gate.blocked_since(self._seen_blocked) if a.method == "CONNECT"]
        self._seen_blocked = self.gate.blocked_count
        blocked += [(f"ws://{url}", False) for url in tunnels if not url.endswith(":443")]
        lines = self._blocked_lines(blocked)
        self._load_blocked |= any(load for _, load in blocked)
        for page in list(self.tabs.pages):
            stray = self._refusal(page.url)
            if not stray and not (page.url == "about:blank" and page in self.tabs.new_pages and self._load_blocked):
                if page.url != "about:blank":
                    self.tabs.new_pages.discard(page)
                    self._good[page] = self._home = page.url
                continue
            if page.url.startswith("chrome-error:"):
                load = next(((url, why) for tab, url, why in reversed(failed) if tab == page), None)
                stray = load and (self._refusal(load[0]) or f"{load[0][:200]} could not be shown ({load[1]}).")
            lines.append(stray or "")
            await self._send_back(page)
        return [line for line in dict.fromkeys(lines) if line]

    def _blocked_lines(self, blocked: Sequence[tuple[str, bool]]) -> list[str]:
        """One line for each blocked load of a tab, and one the first time that anything asks for a blocked host."""
        lines: list[str] = []
        for url, load in blocked:
            host = urlsplit(url).netloc
            if load or host not in self._told:
                lines.append(f"Blocked: {' '.join(url.split())[:200]} is not part of this task's sites.")
            self._told.add(host)
        lines = list(dict.fromkeys(lines))
        if len(lines) > BLOCKED_LINES:
            lines[BLOCKED_LINES:] = [f"{len(lines) - BLOCKED_LINES} more addresses were blocked."]
        return lines

    async def _send_back(self, page: Page) -> None:
        """Bring a strayed tab back to where it was; close it if it was nowhere before."""
        good = self._good.get(page)
        if good is None and len(self.tabs.pages) > 1:
            await self.tabs.close(page)
            return
        since = time.time() * 1000
        for back in (page.go_back, lambda **options: page.goto(good or self._home, **options)):
            with contextlib.suppress(PlaywrightError):
                await back(wait_until="commit", timeout=self.limits.navigation * 1000)
            if not self._refusal(page.url) and page.url != "about:blank":
                break
        self._settled = await self.tabs.settle(since)


def main(arguments: Sequence[str]) -> int:
    """Run ``find`` or ``install`` and print the browser's path."""
    if list(arguments) not in (["find"], ["install"]):
        sys.stderr.write("usage: python -m webrl_lite.browser find|install\n")
        return 2
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        path = find_chromium() if arguments[0] == "find" else install()
    except BrowserError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
