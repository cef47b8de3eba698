"""Chromium, driven by Playwright in a thread of its own: one browser, one context for each episode.

Reads ``Action``s, gives ``Observation``s and ``Outcome``s; used by ``envs``. Playwright's async API runs on a loop in
a daemon thread, so ``Browser.call`` works alike in a script, under pytest and in a notebook whose loop is running.

Network: each episode has its own ``Gate`` with the task's sites; the browser's own calls go to a gate that allows
nothing; Chromium itself resolves no names.

Processes: Chromium has a process group of its own, and its driver ignores Ctrl-C. Both end with ``Browser.close``, at
the exit of Python, and, since they read a pipe that Python holds, also when Python is killed. What a killed run left
in its folder is swept by the next run in the same folder.

    python -m webrl_lite.browser find       prints the browser that would be used
    python -m webrl_lite.browser install    gets one if there is none
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Playwright, async_playwright

from webrl_lite.chromium import FLAGS, BrowserError, Loop, RunFolder, end_tree, find_chromium, install, is_root
from webrl_lite.gate import Gate
from webrl_lite.session import CLOSE_SECONDS, Final, Outcome, Process, Session
from webrl_lite.tabs import Limits

__all__ = ["Browser", "BrowserError", "Final", "Limits", "Outcome", "Session", "find_chromium", "install"]

T = TypeVar("T")
log = logging.getLogger(__name__)

START_SECONDS = 30.0


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
        self._folder: RunFolder | None = None
        self._loop: Loop | None = None
        self._thread: threading.Thread | None = None
        self._current: Process | None = None
        self._all: set[Process] = set()
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
        self._folder = RunFolder(self._given_folder or Path(self._own_folder.name))
        self._loop = Loop(self._folder.temp)
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
            end_tree(chromium.pid)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        self._loop.close()
        self._folder.remove()
        if self._own_folder is not None:
            self._own_folder.cleanup()
        self._thread = self._loop = self._current = self._own_folder = None
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
        session = Session(chromium, gate, sites, options, limits, self._release)
        chromium.sessions.add(session)
        chromium.opened += 1
        try:
            await session.begin(cookies, storage)
        except BaseException:
            await session.close()
            raise
        return session

    async def _begin(self, executable: Path) -> None:
        self._executable = executable
        await self.gate.start()
        await self._running()

    async def _running(self) -> Process:
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

    async def _launch(self) -> Process:
        flags = [*FLAGS, f"--webrl-lite-run={self._folder.mark}"]
        if is_root():
            log.info("running as root, so Chromium runs without its sandbox")
            flags.append("--no-sandbox")
        for attempt in (1, 2):
            playwright = await async_playwright().start()
            try:
                browser = await playwright.chromium.launch(
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
                await _stop(playwright)
                if attempt == 2:
                    text = error.message.splitlines()[0]
                    raise BrowserError(f"{self._executable} did not start: {text}") from error
        cdp = await browser.new_browser_cdp_session()
        processes = (await cdp.send("SystemInfo.getProcessInfo"))["processInfo"]
        pid = next(p["id"] for p in processes if p["type"] == "browser")
        chromium = Process(playwright, browser, cdp, pid)
        self._all.add(chromium)
        self._folder.note(self.pids)
        return chromium

    async def _release(self, session: Session) -> None:
        chromium = session.process
        chromium.sessions.discard(session)
        await self._close_if_idle(chromium)

    async def _close_if_idle(self, chromium: Process) -> None:
        if chromium.retired and not chromium.sessions and chromium in self._all:
            self._all.discard(chromium)
            with contextlib.suppress(PlaywrightError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await chromium.browser.close()
            await _stop(chromium.playwright)
            end_tree(chromium.pid)  # no worker thread: none can be started while Python exits
            self._folder.note(self.pids)

    async def _end(self) -> None:
        for chromium in list(self._all):
            chromium.retired = True
            for session in list(chromium.sessions):
                await session.close()
            await self._close_if_idle(chromium)
        await self.gate.close()


async def _stop(playwright: Playwright) -> None:
    """End a driver; one that is dead already is fine."""
    with contextlib.suppress(PlaywrightError, TimeoutError, OSError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await playwright.stop()


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
