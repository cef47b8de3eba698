"""The tabs of one episode: which one is active, what opened or closed by itself, and when a page has settled.

Watches a Playwright context that it is given; ``executor.py`` acts on the active tab, ``browser.py`` shows it to the
agent. Whatever happens without being asked for (a dialog, a download, a pop-up) is answered at once and kept as a
line for the agent.

A page has *settled* when no load, request, mutation or short timer is under way. Nothing sleeps for a fixed time:
a page at rest settles some 40 ms after the action, a busy one when it becomes quiet or after ``Limits.settle``.

Nor is it guessed whether an action has begun a load or a new tab. A page that is being left answers no question, so
the question whether it is quiet ends at the news of the load. What a page begins reaches Chromium's browser process
before the page's answer does, and one more question, to that process, is answered after it has told of all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urldefrag

from playwright.async_api import BrowserContext, CDPSession, Dialog, Download, Page, Request, WebSocket
from playwright.async_api import Error as PlaywrightError

from webrl_lite.chromium import BrowserError

T = TypeVar("T")

ANNOUNCED_SECONDS = 5.0  # for a new tab that exists in the browser to reach us; it does, unless it closes at once
SHOWN_DIALOGS = 3
SHOWN_TEXT = 200  # characters of a dialog that are quoted
# These stay open by design and say nothing about whether the page is ready.
_ENDLESS = {"eventsource", "websocket", "ping", "media"}


@dataclass(frozen=True)
class Limits:
    """Time limits of an episode, in seconds, and the number of tabs. A step ends within ``step`` whatever happens."""

    click: float = 1.5
    """For an element to become visible, uncovered and still."""
    settle: float = 4.0
    """For a page to become quiet after an action."""
    restless: float = 1.0
    """The same, for a document that has already used up ``settle`` once."""
    navigation: float = 8.0
    """For a site to answer the load of a page."""
    hang: float = 5.0
    """For a page to answer at all before it counts as hung."""
    step: float = 20.0
    """For a whole action, settling included."""
    observe: float = 10.0
    """For a read-out of the page."""
    tabs: int = 5
    """Tabs open at once; further pop-ups are closed."""


WATCH_JS = """
(() => {
  if (window.__webrl_watch) return;
  const later = window.setTimeout.bind(window), cancel = window.clearTimeout.bind(window);
  const w = {changed: 0, styled: 0, timers: new Map(), runs: new Map(), restless: false, later};
  Object.defineProperty(window, '__webrl_watch', {value: w});
  // Timers say what no other signal does: that content will come in a second. Chains and polls are not waited for:
  // a timer set from within a timer is ignored, and so is code that has set more than three of them.
  let nested = false;
  window.setTimeout = function (code, ms = 0, ...args) {
    if (typeof code !== 'function' || nested || ms > 2500) return later(code, ms, ...args);
    const source = String(code), runs = (w.runs.get(source) || 0) + 1;
    w.runs.set(source, runs);
    if (runs > 3) return later(code, ms, ...args);
    const id = later(function () {
      w.timers.delete(id);
      nested = true;
      try { return code.apply(this, args); } finally { nested = false; }
    }, ms);
    w.timers.set(id, {ms, due: Date.now() + Number(ms)});
    return id;
  };
  window.clearTimeout = function (id) { w.timers.delete(id); return cancel(id); };
  new MutationObserver((records) => {
    const now = Date.now();
    for (const r of records) {
      if (r.type === 'attributes' && (r.attributeName === 'style' || r.attributeName === 'class')) w.styled = now;
      else w.changed = now;
    }
  }).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
})();
"""
"""Installed in every frame before the page's own scripts; ``QUIET_JS`` reads what it notes."""

QUIET_JS = """
([since, quietSince, cap, restlessCap]) => new Promise((done) => {
  const w = window.__webrl_watch || {changed: 0, styled: 0, timers: new Map(), runs: new Map(),
                                     later: window.setTimeout.bind(window)};
  const start = Date.now(), fresh = performance.timeOrigin >= since;
  const limit = w.restless ? Math.min(cap, restlessCap) : cap;
  let looked = 0, unfinished = false;
  const skeleton = () => {
    const body = document.body;
    if (!body || !/^https?:/.test(location.protocol)) return false;
    // jQuery UI calls a number field with arrows a spinner.
    const spinner = '[class*="spinner" i]:not(.ui-spinner, .ui-spinner *)';
    const marks = `[aria-busy="true"], [class*="skeleton" i], ${spinner}, .loading, .loader`;
    const seen = {opacityProperty: true, visibilityProperty: true};
    const drawn = (e) => e.getClientRects().length && e.checkVisibility(seen);
    if ([...body.querySelectorAll(marks)].some(drawn)) return true;
    const text = body.innerText.trim();
    if (!text) return document.scripts.length > 0
        && !body.querySelector('img, svg, canvas, video, iframe, input, button, select, textarea, embed');
    return text.length < 5000 && /^\\s*(loading|please wait)\\b.{0,20}$/im.test(text);
  };
  const waiting = (now) => {
    if (document.readyState !== 'complete') return true;
    const touched = w.changed >= since || fresh;
    if (now - Math.max(w.changed, quietSince) < (touched ? 50 : 40)) return true;
    if (now - start < 1000) {
      if (now - w.styled < 40) return true;
      const running = (a) => a.playState === 'running' && a.effect?.getComputedTiming().endTime <= 1000;
      if (document.getAnimations().some(running)) return true;
    }
    for (const timer of w.timers.values()) if (timer.ms <= (fresh ? 2500 : 1000) && timer.due > now - 100) return true;
    if (touched && now - looked >= 50) { looked = now; unfinished = skeleton(); }
    return touched && unfinished;
  };
  const look = () => {
    const now = Date.now(), settled = !waiting(now);
    if (!settled && now - start < limit) return w.later(look, 10);
    if (settled) w.runs.clear();
    else w.restless = true;
    done(settled);
  };
  // What the action set going (a load, a new frame's work) shows after one frame; a hidden tab may draw none.
  const first = w.later(look, 50);
  requestAnimationFrame(() => w.later(() => { clearTimeout(first); look(); }, 0));
})
"""
"""Resolves to whether the document is quiet, when it is or the cap is reached. Times are milliseconds since 1970."""


class Tabs:
    """The pages of one context, in the order they were opened.

    Attributes:
        pages: open tabs; their positions are the agent's tab numbers.
        lines: what happened by itself since ``take_lines``, one line each.
        crashed: whether a page crashed.
        new_pages: tabs opened since the last action that show no address yet; ``browser.py`` keeps this.
        blocked: requests for addresses outside the task's sites that pages have begun, as (address, whether it was
            the load of a tab). The gate refuses them; this is what the agent is told. At most 100.
        failed: loads of tabs that came to nothing, as (page, address, reason). At most 100.
        loads: number of documents that the tabs have shown, to tell whether a page was left.
    """

    def __init__(self, context: BrowserContext, limits: Limits, refusal: Callable[[str], str], chromium: CDPSession):
        """Watch a context.

        Args:
            context: a context without pages.
            limits: time limits.
            refusal: says why an address may not be opened, "" if it may.
            chromium: a protocol session with the browser itself; several contexts may share it.
        """
        self.context = context
        self.chromium = chromium
        self.refusal = refusal
        self.blocked: list[tuple[str, bool]] = []
        self.limits = limits
        self.pages: list[Page] = []
        self.lines: list[str] = []
        self.crashed = False
        self.new_pages: set[Page] = set()
        self.failed: list[tuple[Page, str, str]] = []
        self.loads: Counter[Page] = Counter()
        self._recent: list[Page] = []  # most recently active last
        self._pending: dict[Request, float] = {}  # request -> time it began
        self._loads: dict[Page, Request] = {}  # page -> load of a document that has not answered yet
        self._unplaced: list[Request] = []  # first loads of pop-ups, which are reported before their pages
        self._context_id = ""  # Chromium's name of the context
        self._unreported = 0  # tabs that Chromium has and that are not expected to be reported
        self._quiet_since = 0.0  # ms since 1970, end of the last request
        self._dialogs: Counter[str] = Counter()
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching = {
            "page": self._on_page,
            "dialog": self._on_dialog,
            "request": self._on_request,
            "requestfinished": self._on_request_end,
            "requestfailed": self._on_request_failed,
        }
        for name, handler in self._watching.items():
            context.on(name, handler)

    @property
    def active(self) -> Page:
        """The tab that the agent sees."""
        if not self._recent:
            raise BrowserError("The episode has no open tab left.")
        return self._recent[-1]

    @property
    def index(self) -> int:
        """Number of the active tab, from 0."""
        return self.pages.index(self.active)

    @property
    def moving(self) -> bool:
        """Whether something has begun by itself that may change what the agent sees: a load or a new tab."""
        return self.loading or bool(self.blocked or self.new_pages)

    @property
    def loading(self) -> bool:
        """Whether a load of a tab has begun and not answered yet."""
        return bool(self._unplaced or self._loads)

    async def focus(self, page: Page) -> None:
        """Make a tab the active one."""
        self._recent.remove(page)
        self._recent.append(page)
        await page.bring_to_front()

    async def release(self) -> None:
        """Close all tabs and stop watching, so that nothing the agent began goes on."""
        for name, handler in self._watching.items():
            self.context.remove_listener(name, handler)
        for page in list(self.context.pages):
            await self.close(page)

    async def close(self, page: Page) -> None:
        """Close a tab without asking the page."""
        with contextlib.suppress(PlaywrightError):
            await page.close()
        self._on_close(page)

    def take_lines(self) -> list[str]:
        """Return what happened since the last call, dialogs summed up, and forget it."""
        lines, self.lines = self.lines, []
        shown = list(self._dialogs.items())[:SHOWN_DIALOGS]
        lines += [text if number == 1 else f"{text} ({number} times)" for text, number in shown]
        if len(self._dialogs) > SHOWN_DIALOGS:
            lines.append(f"{len(self._dialogs) - SHOWN_DIALOGS} more dialogs were accepted.")
        self._dialogs.clear()
        return lines

    # What happens by itself

    def _on_page(self, page: Page) -> None:
        page.on("close", self._on_close)
        page.on("crash", self._on_crash)
        page.on("download", self._on_download)
        page.on("websocket", self._on_websocket)
        page.on("framenavigated", lambda frame: self._on_navigated(page) if frame == page.main_frame else None)
        self.pages.append(page)
        self.new_pages.add(page)
        for load in list(self._unplaced):
            if _page_of(load) == page:
                self._unplaced.remove(load)
                if page.url == "about:blank":  # else it has answered already
                    self._loads[page] = load
        if len(self.pages) > self.limits.tabs:
            self.lines.append(f"A new tab was closed at once: {self.limits.tabs} tabs are open, which is the limit.")
            self._recent.insert(0, page)
            self._spawn(page)
        else:
            self._recent.append(page)
        self._news.set()

    def _spawn(self, page: Page) -> None:
        task = asyncio.ensure_future(self.close(page))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_close(self, page: Page) -> None:
        for holder in (self.pages, self._recent):
            if page in holder:
                holder.remove(page)
        self.new_pages.discard(page)
        self._loads.pop(page, None)
        self._news.set()

    def _on_crash(self, page: Page) -> None:
        self.crashed = True
        self._news.set()

    async def _on_dialog(self, dialog: Dialog) -> None:
        text = " ".join(dialog.message.split())
        text = text if len(text) <= SHOWN_TEXT else text[: SHOWN_TEXT - 1] + "…"
        said = f' said "{text}" and' if text else ""
        with contextlib.suppress(PlaywrightError):
            if dialog.type == "prompt":
                await dialog.accept(dialog.default_value)
            else:
                await dialog.accept()
        line = f"A{'n' if dialog.type == 'alert' else ''} {dialog.type} dialog{said} was accepted."
        if line in self._dialogs or len(self._dialogs) < 100:
            self._dialogs[line] += 1

    def _on_download(self, download: Download) -> None:
        self.lines.append(f"A download was refused: {' '.join(download.suggested_filename.split())[:100]}.")
        self._news.set()

    def _on_request(self, request: Request) -> None:
        load = request.is_navigation_request()
        if request.resource_type not in _ENDLESS:
            self._pending[request] = time.monotonic()
        if load:
            page = _page_of(request)
            load = page is None or request.frame.parent_frame is None
            if page is None:
                self._unplaced.append(request)
            elif load:
                self._loads[page] = request
        if request.url.startswith("http") and self.refusal(request.url) and len(self.blocked) < 100:
            self.blocked.append((request.url, load))
        self._news.set()

    def _on_websocket(self, socket: WebSocket) -> None:
        if self.refusal("http" + socket.url.removeprefix("ws")) and len(self.blocked) < 100:
            self.blocked.append((socket.url, False))

    def _on_request_end(self, request: Request) -> None:
        if self._pending.pop(request, None) is not None:
            self._quiet_since = time.time() * 1000
        for page, load in list(self._loads.items()):
            if load == request:
                del self._loads[page]
        if request in self._unplaced:
            self._unplaced.remove(request)
        self._news.set()

    def _on_request_failed(self, request: Request) -> None:
        self.failed += [
            (page, load.url, request.failure or "") for page, load in self._loads.items() if load == request
        ]
        del self.failed[:-100]
        if request in self._unplaced and request.failure == "net::ERR_ABORTED":
            self._unreported += 1  # a pop-up of which nothing came but an empty tab is never reported
        self._on_request_end(request)

    def _on_navigated(self, page: Page) -> None:
        load = self._loads.get(page)
        if load is not None and urldefrag(load.url).url == urldefrag(page.url).url:  # else a move within the page
            del self._loads[page]
        self.loads[page] += 1
        self._news.set()

    # Settling

    async def settle(self, since: float) -> bool:
        """Wait until the active tab has settled.

        Args:
            since: when the action began, in milliseconds since 1970.

        Returns:
            Whether it settled; False at the limit, with the page as it is then.

        Raises:
            BrowserError: the page crashed or does not answer.
        """
        answered = False
        documents = self.loads.total()
        self._quiet_since = max(self._quiet_since, since)
        end = time.monotonic() + self.limits.settle
        last = end + self.limits.navigation  # for pages that send each other on without end
        while True:
            if self._unplaced:
                if not await self._wait(lambda: not self._unplaced, self.limits.navigation):
                    self._give_up_pop_ups()
                    return False
                end = min(time.monotonic() + self.limits.settle, last)
            page = self.active
            if page in self._loads and time.monotonic() < last:
                if not await self._wait(lambda page=page: page not in self._loads, self.limits.navigation):
                    await self._stop(page)
                    return False
                end = min(time.monotonic() + self.limits.settle, last)
                continue
            left = end - time.monotonic()
            if left <= 0:
                break
            settled = await self._quiet(page, since, left)
            answered |= settled is not None
            if settled is None or page.is_closed() or page is not self.active:
                await self._wait(lambda: False, 0.01)
                continue
            await self.catch_up()
            if self._unplaced or page in self._loads or page is not self.active:
                continue
            if not settled:
                return False
            if not self._young():
                return True
            await self._wait(lambda: not self._young(), end - time.monotonic())
        await self.catch_up()
        if not answered and documents == self.loads.total() and not self.loading:
            raise BrowserError("The page gave no answer, though nothing was loading.")
        return False

    async def _quiet(self, page: Page, since: float, left: float) -> bool | None:
        """Ask the page once whether it is quiet; None if it changed, or began to be left, under the question."""
        arguments = [since, self._quiet_since, left * 1000, self.limits.restless * 1000]
        question = self.ask(page.evaluate(QUIET_JS, arguments), left + self.limits.hang)
        return await self.while_here(page, question, pop_ups=True)

    async def while_here(self, page: Page, question: Awaitable[T], *, pop_ups: bool = False) -> T | None:
        """Await what a page is asked, or give it up with None when the page begins to be left.

        Chromium holds back what it is asked of a page for as long as the page's next load has not answered.

        Args:
            page: the page.
            question: what it is asked.
            pop_ups: whether to give up for the load of a new tab as well.
        """
        asked = asyncio.ensure_future(question)

        def end(task: asyncio.Future[T]) -> None:
            if not task.cancelled():
                task.exception()  # seen, even if nobody asks for the result any more
            self._news.set()

        asked.add_done_callback(end)
        try:
            await asyncio.sleep(0)  # what is given up is at least begun, as Python wants it
            await self._wait(
                lambda: asked.done() or page in self._loads or (pop_ups and bool(self._unplaced)), self.limits.step
            )
            return asked.result() if asked.done() else None
        finally:
            asked.cancel()

    async def catch_up(self) -> None:
        """Return when all loads and new tabs that pages have begun before this call are known.

        Chromium tells of a load when it begins, so before its answer here; of a new tab it tells after some
        preparation, so its own list of tabs is compared.
        """
        end = time.monotonic() + ANNOUNCED_SECONDS
        while not self._unplaced:
            tabs = await self.ask(self._count_tabs())
            if tabs is None:
                return
            unreported = tabs - len(self.pages)
            if unreported <= self._unreported or time.monotonic() > end:
                self._unreported = max(0, unreported)
                return
            await self._wait(lambda: False, 0.02)

    async def _count_tabs(self) -> int:
        """Number of tabs of this context that Chromium has."""
        if not self._context_id:
            cdp = await self.context.new_cdp_session(self.active)
            self._context_id = (await cdp.send("Target.getTargetInfo"))["targetInfo"]["browserContextId"]
            await cdp.detach()
        targets = (await self.chromium.send("Target.getTargets"))["targetInfos"]
        tabs = [t for t in targets if t["type"] == "page" and not t.get("subtype")]
        return sum(t.get("browserContextId") == self._context_id for t in tabs)

    async def wait_for_change(self, since: float) -> None:
        """Wait for the active page to change by itself, at most ``Limits.restless``."""
        changed = "(since) => !window.__webrl_watch || window.__webrl_watch.changed > since"
        milliseconds = self.limits.restless * 1000
        with contextlib.suppress(PlaywrightError):
            waiting = self.active.wait_for_function(changed, arg=since, timeout=milliseconds)
            await self.answer(waiting, self.limits.restless + self.limits.hang)
        self.check()

    async def answer(self, question: Awaitable[T], seconds: float | None = None) -> T:
        """Await what a page is asked. Playwright's errors pass through.

        Args:
            question: an evaluation, or anything else that a live page answers at once.
            seconds: time limit; ``Limits.hang`` if None.

        Raises:
            BrowserError: there was no answer within the limit.
        """
        try:
            async with asyncio.timeout(self.limits.hang if seconds is None else seconds):
                return await question
        except TimeoutError:
            raise BrowserError("The page does not answer; a script may be running without end.") from None

    async def ask(self, question: Awaitable[T], seconds: float | None = None) -> T | None:
        """Like ``answer``, but None if the page was left or closed before it could answer.

        Raises:
            BrowserError: also if the page crashed or the browser is gone.
        """
        try:
            return await self.answer(question, seconds)
        except PlaywrightError as error:
            self.check(error)
            return None

    def check(self, error: PlaywrightError | None = None) -> None:
        """Raise BrowserError if a page crashed or the browser is gone.

        Args:
            error: what a call gave, to be looked at as well.
        """
        message = error.message if error else ""
        if self.crashed or "crashed" in message:
            raise BrowserError("A page crashed.")
        if not self.context.browser.is_connected() or "Connection closed" in message:
            raise BrowserError("The browser was closed or crashed.")

    def _young(self) -> bool:
        """Whether a request is under way that has not yet used up the time given to a page."""
        oldest = time.monotonic() - self.limits.settle
        self._pending = {request: began for request, began in self._pending.items() if began > oldest}
        return bool(self._pending)

    async def _wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until ``done()`` after some event; False when the time is over."""
        end = time.monotonic() + seconds
        while not done():
            self.check()
            self._news.clear()
            left = end - time.monotonic()
            if left <= 0:
                return False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._news.wait()
        return True

    def _give_up_pop_ups(self) -> None:
        """Go on without the pop-ups whose loads do not answer: they are no pages yet that could be stopped."""
        for load in self._unplaced:
            self.lines.append(
                f"{load.url[:200]} did not answer within {self.limits.navigation:g} s; its tab opens when it does."
            )
        self._unreported += len(self._unplaced)
        self._unplaced.clear()

    async def _stop(self, page: Page) -> None:
        load = self._loads.pop(page, None)
        if load is not None:
            self.lines.append(
                f"{load.url[:200]} did not answer within {self.limits.navigation:g} s; loading was stopped."
            )
        await self.ask(self._stop_loading(page))

    async def _stop_loading(self, page: Page) -> None:
        # Unlike window.stop(), this ends a load that has not answered yet.
        cdp = await self.context.new_cdp_session(page)
        await cdp.send("Page.stopLoading")
        await cdp.detach()


def _page_of(request: Request) -> Page | None:
    """The page of a load; None if it is a pop-up's first one, whose page has not been reported yet."""
    try:
        return request.frame.page
    except PlaywrightError:
        return None
