"""How scripted oracles see a page and act: through the agent's own observation and the agent's own replies.

An oracle is a generator. It gets the first ``Page`` and the values of its instruction, yields replies (the text an
agent would write) and receives the page that follows; what it returns is the answer of its ``exit``. It chooses by
what stands on the page: it never reads the database, and an element that is not on the screen must be scrolled to.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from webrl_lite.actions import Action, format_reply, supporting_line
from webrl_lite.observation import Observation

Result = TypeVar("Result")
Moves = Generator[str, "Page", Result]
"""A part of a solution: yields replies, receives pages, returns a result."""

MAX_SCROLLS = 12
"""Screens an oracle looks through before it gives up on finding an element."""


class OracleLost(RuntimeError):
    """The page does not show what the oracle looks for: names it and holds the page's text."""


@dataclass(frozen=True)
class Seen:
    """An element as it stands in the observation."""

    id: str
    name: str
    role: str
    """``link``, ``button``, ``input``, ``textarea``, ``select``, ``checkbox``, ``radio``, ..."""
    line: str
    """The line of the observation that it stands on."""


@dataclass(frozen=True)
class Page:
    """One observation, as an oracle reads it."""

    text: str
    elements: tuple[Seen, ...]
    more: bool
    """Whether the page goes on below."""

    @classmethod
    def of(cls, observation: Observation) -> Page:
        """Read an observation of mode ``lite``."""
        lines = observation.text.split("\n")
        seen = []
        for element in observation.elements.values():
            line = next((line for line in lines if f"[{element.id}]" in line), "")
            seen.append(Seen(element.id, element.name, element.role, line))
        scroll = re.search(r"\| \d+-(\d+) of (\d+)$", lines[0])
        below = scroll is not None and int(scroll[1]) < int(scroll[2])
        return cls(observation.text, tuple(seen), below or observation.cut > 0)

    @property
    def lines(self) -> list[str]:
        """The observation's lines."""
        return self.text.split("\n")

    def find(self, name: str, role: str = "", *, near: str = "", part: bool = False) -> Seen | None:
        """Return the first element of a name, or None.

        Args:
            name: the element's name, case and outer space ignored.
            role: its role; empty for any.
            near: text that its line must hold.
            part: whether the name need only be contained in the element's name.
        """
        wanted = name.strip().lower()
        for element in self.elements:
            own = element.name.strip().lower()
            fits = wanted in own if part else wanted == own
            if fits and role in ("", element.role) and near.lower() in element.line.lower():
                return element
        return None

    def line(self, *parts: str) -> str:
        """Return the first line that holds all the parts (case ignored), or an empty string."""
        return next((line for line in self.lines if all(part.lower() in line.lower() for part in parts)), "")


def look_for(page: Page, name: str, role: str = "", *, near: str = "", part: bool = False) -> Moves[tuple[Page, Seen]]:
    """Scroll down until an element is on the screen.

    Returns:
        The page that shows it, and the element.

    Raises:
        OracleLost: it is nowhere on the page.
    """
    for _ in range(MAX_SCROLLS):
        element = page.find(name, role, near=near, part=part)
        if element is not None:
            return page, element
        if not page.more:
            break
        page = yield reply("Scroll Down")
    raise OracleLost(f"no {role or 'element'} {name!r}{f' near {near!r}' if near else ''} on:\n{page.text}")


def read_line(page: Page, *parts: str) -> Moves[tuple[Page, str]]:
    """Scroll down until a line holds all the parts.

    Raises:
        OracleLost: no line does.
    """
    for _ in range(MAX_SCROLLS):
        line = page.line(*parts)
        if line:
            return page, line
        if not page.more:
            break
        page = yield reply("Scroll Down")
    raise OracleLost(f"no line with {parts!r} on:\n{page.text}")


def click(page: Page, name: str, role: str = "", *, near: str = "", part: bool = False) -> Moves[Page]:
    """Click an element, scrolling to it first if need be; returns the page that follows."""
    page, element = yield from look_for(page, name, role, near=near, part=part)
    return (yield reply("Click", element))


def hover(page: Page, name: str, role: str = "", *, near: str = "") -> Moves[Page]:
    """Hover over an element; returns the page that follows."""
    page, element = yield from look_for(page, name, role, near=near)
    return (yield reply("Hover", element))


def type_in(page: Page, name: str, text: str, *, near: str = "", submit: bool = False) -> Moves[Page]:
    """Type a text into a field in place of what it holds; ``submit`` presses Enter (the action Search)."""
    for role in ("input", "textarea"):
        element = page.find(name, role, near=near)
        if element is not None:
            break
    else:
        page, element = yield from look_for(page, name, near=near)
    return (yield reply("Search" if submit else "Type", element, text))


def select(page: Page, name: str, option: str, *, near: str = "") -> Moves[Page]:
    """Choose an option of a native select; returns the page that follows."""
    page, element = yield from look_for(page, name, "select", near=near)
    return (yield reply("Select Dropdown Option", element, option))


def reply(name: str, element: Seen | None = None, argument: str | None = None) -> str:
    """Write one reply in the authors' form: the element first, as the page shows it, then the call.

    With its id, because a small model finds an id by what stands before it on the page.
    """
    note = f"{element.name} [{element.id}] {element.role}".strip() if element else ""
    return format_reply(Action(name, element.id if element else None, argument), element_note=note)


def replies(solution: Moves[str], page: Page, values: Mapping[str, str]) -> Generator[str, Page, None]:
    """Run a solution to its end and add its ``exit``, behind a note of the line that holds the answer."""
    try:
        said = next(solution)
        while True:
            page = yield said
            said = solution.send(page)
    except StopIteration as end:
        answer = end.value
    note = supporting_line(page.text, answer, values.values()) if answer != "done" else ""
    yield format_reply(Action("Exit", argument=answer), notes=(note,))


def solve(oracle: object, page: Page, values: Mapping[str, str]) -> Generator[str, Page, None]:
    """Start an oracle on its first page; prime the generator with ``next``."""
    return replies(oracle(page, values), page, values)
