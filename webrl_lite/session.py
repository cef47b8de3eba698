"""One episode in the browser: visit, act, observe, freeze, and read for a grader.

Reads ``Action``s, gives ``Observation``s and ``Outcome``s; made by ``browser.py``. After each step every tab is looked
at: one that strayed from the task's sites is sent back, and the reason becomes the agent's error line. Whatever fails
(a crash, a page that does not answer, a site that is gone) becomes one ``BrowserError`` within a time limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import BrowserContext, CDPSession, Page, Playwright
from playwright.async_api import Error as PlaywrightError

from webrl_lite.actions import Action
from webrl_lite.chromium import BrowserError
from webrl_lite.executor import Executor
from webrl_lite.gate import Gate, origin_of, url_refusal
from webrl_lite.observation import INIT_JS, Header, Observation, Snapshot, count_tokens_default, render, snapshot
from webrl_lite.tabs import WATCH_JS, Limits, Tabs

CLOSE_SECONDS = 5.0
BLOCKED_LINES = 3
PICTURE_QUALITY = 70
"""Of 100; small text stays readable, and a picture of a window has about 100 KB."""


class PageError(LookupError):
    """A page that a grader asked for and that the site does not have: status and its text."""


@dataclass(eq=False)
class Process:
    """One running Chromium with the driver that steers it."""

    playwright: Playwright
    """A driver of its own, since the driver's memory grows with its episodes too."""
    browser: PlaywrightBrowser
    cdp: CDPSession
    """A protocol session with the browser itself, not with a page."""
    pid: int
    opened: int = 0
    sessions: set[Session] = field(default_factory=set)
    retired: bool = False
    """Takes no new episodes; closed when its last one ends."""


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
    """One episode in the browser: a context, its tabs and its gate.

    Made by ``Browser.open``; its methods are awaited on the browser's thread, for example through ``Browser.call``.
    After a BrowserError the session is broken: every further call but ``close`` raises the same.

    Attributes:
        process: the Chromium it runs in.
        tabs: the open tabs; ``tabs.active`` is the Playwright page that the agent sees.
        gate: the episode's proxy.
        observation: the last observation, whose ids the next action may name.
    """

    def __init__(
        self,
        process: Process,
        gate: Gate,
        sites: Mapping[str, str],
        options: Mapping[str, object],
        limits: Limits,
        release: Callable[[Session], Awaitable[None]],
    ):
        """Describe an episode; ``begin`` opens it.

        Args:
            process: the Chromium it runs in.
            gate: its proxy, started.
            sites: name -> origin of the task's sites.
            options: what Playwright's ``new_context`` takes.
            limits: time limits and number of tabs.
            release: awaited at the end, to say that the process is free of this episode.
        """
        self.gate = gate
        self.limits = limits
        self.observation: Observation | None = None
        self.process = process
        self._release = release
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
        self._seen_unreachable = 0

    async def begin(
        self, cookies: Sequence[Mapping[str, str | float | bool]], storage: Mapping[str, object] | Path | None
    ) -> None:
        """Open the context with one empty tab."""
        self._context = await self._new_context(storage)
        if cookies:
            await self._context.add_cookies([dict(cookie) for cookie in cookies])
        self.tabs = Tabs(self._context, self.limits, self._refusal, self.process.cdp)
        self._executor = Executor(self.tabs, self.limits, self._refusal, self._sites)
        await self._context.new_page()

    async def _new_context(self, storage: Mapping[str, object] | Path | None = None) -> BrowserContext:
        context = await self.process.browser.new_context(**self._options, storage_state=storage)
        await context.add_init_script(WATCH_JS)
        await context.add_init_script(INIT_JS)
        return context

    @property
    def active(self) -> int:
        """Number of the active tab, from 0."""
        return self.tabs.index

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
            ValueError: an address is not on the episode's sites, or there are more than `Limits.tabs`.
            BrowserError: a page does not load, or answers with a server error (status 500 and above).
        """
        if len(urls) > self.limits.tabs:
            raise ValueError(f"`urls` must be at most `Limits.tabs` = {self.limits.tabs} addresses, got {len(urls)}.")
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
            late: list[str] = []
            for attempt in (1, 2, 3):  # what comes after the step may replace the page while it is read
                await self.tabs.catch_up()
                if self._shown is not None and self.tabs.moving:
                    self._settled = await self.tabs.settle(time.time() * 1000)
                late += [*await self._audit(), *self.tabs.take_lines()]
                page = self.tabs.active
                document = (page, self.tabs.loads[page])
                read = await (snapshot(page) if attempt == 3 else self.tabs.while_here(page, snapshot(page)))
                if attempt == 3 or (read and document == (self.tabs.active, self.tabs.loads[page])):
                    break
                if read:
                    await read.dispose()
            if self._shown != document:
                self._shown = document
                self._executor.turned.clear()
            errors = " ".join([self._error if error is None else error, *dict.fromkeys(late)]).strip()
            header = Header(self._address(page.url), self.tabs.index, len(self.tabs.pages), errors, self._settled)
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
        until: Callable[[str], bool] | None = None,
        cookies: Sequence[Mapping[str, str | float | bool]] | None = None,
    ) -> str:
        """Read a page for a grader, in a context of its own: no tab of the agent is touched.

        Args:
            url: address on the episode's sites.
            locator: JavaScript expression, for example ``document.querySelector('h1').innerText``; "" is the whole
                page. From trusted task files only: it is executed.
            prep: JavaScript statements that are run before; as trusted.
            until: read again until this holds of the text, at most ``Limits.settle`` seconds, then give the last.
            cookies: the reader's cookies; None: those of the agent.

        Returns:
            The text; "" if the expression fails or gives nothing.

        Raises:
            ValueError: the address is not on the episode's sites.
            PageError: the site answered that there is no such page, or another status of 400 and above.
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
                tabs = Tabs(context, self.limits, self._refusal, self.process.cdp)
                page = await context.new_page()
                since = time.time() * 1000
                response = await page.goto(url, wait_until="commit", timeout=self.limits.navigation * 1000)
                await tabs.settle(since)
                self._check_sites()
                if response is not None and response.status >= 400:
                    raise PageError(f"{response.status} {response.status_text}".strip())
                return await self._text(tabs, page, locator, prep, until)
        finally:
            if context is not None:
                await self._close_context(context)

    async def read_here(
        self, locator: str = "", prep: Sequence[str] = (), *, until: Callable[[str], bool] | None = None
    ) -> str:
        """Read the active tab for a grader, as the agent left it; arguments and result are those of ``read``.

        Raises:
            BrowserError: the page does not answer.
        """
        async with self._guard(self.limits.observe):
            await self.tabs.catch_up()
            return await self._text(self.tabs, self.tabs.active, locator, prep, until)

    async def _text(
        self, tabs: Tabs, page: Page, locator: str, prep: Sequence[str], until: Callable[[str], bool] | None
    ) -> str:
        for statement in prep:
            await tabs.ask(page.evaluate(f"() => {{ {statement} }}"))
            await tabs.settle(time.time() * 1000)
        question = f"() => ({locator})" if locator else "() => document.body ? document.body.innerText : ''"
        end = time.monotonic() + self.limits.settle
        while True:
            value = await tabs.ask(page.evaluate(question))
            text = "" if value is None or value is False else str(value)
            if until is None or until(text) or time.monotonic() > end:
                return text
            await tabs.wait_for_change(time.time() * 1000)

    async def screenshot(self) -> bytes | None:
        """Return a JPEG picture of what the active tab shows, as large as its window; None if it is being left."""
        async with self._guard(self.limits.step):
            page = self.tabs.active
            return await self.tabs.ask(page.screenshot(type="jpeg", quality=PICTURE_QUALITY, animations="disabled"))

    async def final(self) -> Final:
        """Freeze the episode: read what is to be graded, then close the agent's tabs so that nothing goes on."""
        async with self._guard(self.limits.step):
            text = html = None
            while text is None or html is None:
                await self.tabs.catch_up()
                if self.tabs.loading:
                    await self.tabs.settle(time.time() * 1000)
                page = self.tabs.active
                question = page.evaluate("() => document.body ? document.body.innerText : ''")
                text = await self.tabs.while_here(page, self.tabs.ask(question))
                html = await self.tabs.while_here(page, self.tabs.ask(page.content()))
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
        await self._release(self)

    async def _close_context(self, context: BrowserContext) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await context.close()
        except TimeoutError:
            # A process that cannot close a context takes no new episode; those it has may go on.
            self.process.retired = True
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
        """Send strayed tabs back and return the lines about them and about what pages asked for and the gate refused.

        What Chromium asks for by itself the gate refuses as well, but no page has asked for it, so no line tells.
        """
        self.tabs.check()
        self._check_sites()
        blocked, self.tabs.blocked = self.tabs.blocked, []
        failed, self.tabs.failed = self.tabs.failed, []
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
