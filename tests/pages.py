"""One Chromium tab and one local server for the tests of the observation, driven by Playwright directly."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine, Iterator
from typing import TypeVar

import pytest
from local_site import LocalSite, Page
from playwright.async_api import Page as Tab
from playwright.async_api import async_playwright

from webrl_lite.observation import INIT_JS, Element, Observation, Snapshot, render, snapshot

CHROMIUM = os.environ.get("WEBRL_LITE_CHROMIUM", "/usr/bin/chromium")
T = TypeVar("T")


class Reader:
    """Shows HTML in a 1280 x 720 tab and reads it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, site: LocalSite, tab: Tab):
        self.loop, self.site, self.tab = loop, site, tab
        self._cdp = self.run(tab.context.new_cdp_session(tab))
        self.run(self._cdp.send("Performance.enable", {"timeDomain": "threadTicks"}))

    def run(self, work: Coroutine[None, None, T]) -> T:
        return self.loop.run_until_complete(work)

    def show(self, html: str | bytes, kind: str = "text/html; charset=utf-8", **more: str) -> None:
        """Load a page; `more` are other paths of the same site."""
        self.site.pages = {"/": Page(html, kind=kind), **{"/" + name: body for name, body in more.items()}}
        self.run(self.tab.goto(self.site.url + "/"))

    def js(self, expression: str) -> object:
        return self.run(self.tab.evaluate(expression))

    def read(self) -> Snapshot:
        return self.run(snapshot(self.tab))

    def lite(self, html: str | bytes, kind: str = "text/html; charset=utf-8", **more: str) -> Observation:
        self.show(html, kind, **more)
        return render(self.read())

    def lines(self, html: str, **more: str) -> list[str]:
        """The lines below the header."""
        return self.lite(html, **more).text.split("\n")[1:]

    def webrl(self, html: str) -> str:
        self.show(html)
        return render(self.read(), mode="webrl").text

    def processor_seconds(self) -> float:
        """Processor time used so far by the page's main thread and by this process."""
        numbers = self.run(self._cdp.send("Performance.getMetrics"))["metrics"]
        return next(n["value"] for n in numbers if n["name"] == "TaskDuration") + time.process_time()

    def click(self, element: Element) -> None:
        self.run(self._click(element))

    async def _click(self, element: Element) -> None:
        await (await element.handle()).click(timeout=2000)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    loop = asyncio.new_event_loop()
    site = LocalSite()

    async def start() -> tuple:
        driver = await async_playwright().start()
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = await browser.new_context(viewport={"width": 1280, "height": 720})
        await context.add_init_script(INIT_JS)
        return driver, browser, await context.new_page()

    async def stop() -> None:
        await browser.close()
        await driver.stop()

    driver, browser, tab = loop.run_until_complete(start())
    yield Reader(loop, site, tab)
    loop.run_until_complete(stop())
    site.close()
    loop.close()


@pytest.fixture
def own_reader(reader: Reader) -> Iterator[Reader]:
    """A tab of its own, for pages that go on by themselves: they would walk into the next test's load."""
    tab = reader.run(reader.tab.context.new_page())
    yield Reader(reader.loop, reader.site, tab)
    reader.run(tab.close())


def named(observation: Observation, name: str) -> Element:
    """The one element of that name."""
    found = [element for element in observation.elements.values() if element.name == name]
    assert len(found) == 1, (name, observation.text)
    return found[0]
