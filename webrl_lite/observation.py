r"""A page becomes text with element ids: mode ``lite`` (ours) and mode ``webrl`` (the authors' format).

Reads a live Playwright page through ``observation.js``, which writes nothing into the page; hands ``Observation`` to
``browser`` and ``prompts``. One ``snapshot`` of the page serves any number of ``render`` calls.

Mode ``lite``, in EBNF (``text`` is page text after ``neutralise``, so it can hold none of the marks used here)::

    observation = header {NL "! " text} [NL above] {NL line} [NL cut]
    header      = "@ " url " | tab " k "/" n " | " top "-" bottom " of " height      (pixels of the page)
    above       = "~ " count " items above on this screen; Scroll Up shows them"
    cut         = "~ cut: " count " more items on this screen; Scroll Down shows them"
    line        = ["= "] part {" | " part}               ("= " marks a heading; a table row is one line)
    part        = text | element
    element     = [name " "] "[" id "]" [" " kind] [value] {" " state} [choices]     (a link has no kind)
    kind        = "button" | "input" | "textarea" | "select" | "checkbox" | "radio" | "tab" | "date" | ...
    value       = {' "' text '"'}                        (current value, or the chosen options)
    state       = "on" | "off" | "mixed" | "open" | "closed" | "menu" ["open" | "closed"] | "disabled" | "readonly"
                | "required" | "selected" | "current" | "pressed" | "multiple"
                | 'hint "' text '"' | 'invalid "' text '"'
    choices     = " of " text {" | " text} [" | ... " count " more"]                 (always the end of its line)

``name`` never holds ``" | "`` or ``[digits]``, so an element's name is what stands between the last ``" | "`` (or the
line's mark) and its ``[id]``. Ids count from 1 over the whole screen, in reading order. Only what meets the viewport is
shown. ``aria-hidden`` content that a user can see is shown; ``inert`` parts and what is behind a modal dialog are not.
A line of page text that begins like one of our own lines is set off by a backslash.

Mode ``webrl`` yields ``<tag id="k" attr="..."> text children </tag>`` in one line, as WebRL's authors simplify pages:
ids 0..n on the innermost clickable elements, eleven attributes, equal attribute values once, 500 characters a text,
boxes that meet the viewport. What their format loses stays lost: names of icon controls, ``alt``, radio state, text
after a child, frames, shadow roots, the page's address, the last error.

# differs from release: ``<``, ``>`` and quotes in attributes are escaped, prompt markers and special tokens of page
# text are broken, secret values are masked, text without a declared charset keeps its code points, custom elements
# whose name starts with ``style`` or ``script`` keep their content, marks of an earlier observation do not linger, and
# a cut keeps whole elements and is marked.

Source: VisualAgentBench ``VAB-WebArena-Lite/new/html_tools``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import unquote

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, JSHandle, Page

INIT_JS = """(() => {
  const heard = new WeakMap();
  const types = /^(click|dblclick|(mouse|pointer)(down|up)|touch(start|end))$/;
  Object.defineProperty(window, Symbol.for("webrl_lite.listeners"), { value: heard });
  const { addEventListener, removeEventListener } = EventTarget.prototype;
  const key = (type, options) => type + (options === true || options?.capture === true);
  EventTarget.prototype.addEventListener = function (type, listener, options) {
    if (this instanceof Element && listener && types.test(type)) {
      if (!heard.has(this)) heard.set(this, new Map());
      const known = heard.get(this), at = key(type, options);
      if (!known.has(at)) known.set(at, new Set());
      known.get(at).add(listener);
    }
    return addEventListener.call(this, type, listener, options);
  };
  EventTarget.prototype.removeEventListener = function (type, listener, options) {
    const known = this instanceof Element && heard.get(this), at = key(type, options);
    if (known && known.get(at)?.delete(listener) && !known.get(at).size) known.delete(at);
    return removeEventListener.call(this, type, listener, options);
  };
})();"""
"""Init script for the browser context: remembers which elements have pointer listeners (``lite`` gives those an id)."""

MASK = "••••"
"""Stands for every secret value: passwords, one-time codes, tokens in URLs."""

TEXT_CAP = 500
"""Characters kept of a text or attribute in mode ``webrl`` (released ``html_parser.py``)."""

NAME_CAP = 200
"""Characters of a name or value in mode ``lite``; the rest of a name follows as plain text."""

ERROR_CAP = 400
"""Characters of one error line."""

OPTION_CAP = 80
"""Characters of one choice in mode ``lite``."""

CHUNK = 300
"""Longest piece of running text in mode ``lite``; a longer text goes on in the next piece, so nothing is lost."""

READ_LIMIT_S = 4.0
"""A page that navigates under the reader is read again for this long."""

FRAME_LIMIT_S = 2.0
"""A child frame that does not answer for this long is left out."""


@dataclass(frozen=True)
class Header:
    """What the caller knows about the session and the page cannot tell.

    Args:
        url: What to show of the address, e.g. path and query. Secret query values are masked here.
        tab: Number of the active tab, from 0, as Tab Focus counts.
        tabs: Count of open tabs.
        errors: Why the last action failed, one or more lines; empty when it did not.
        settled: False when the page was still loading at the time limit.
    """

    url: str = ""
    tab: int = 0
    tabs: int = 1
    errors: str = ""
    settled: bool = True


class _Record(TypedDict, total=False):
    """One interactive element as ``observation.js`` reports it (short keys: thousands may cross the wire)."""

    e: int  # index into the frame's live elements
    t: str  # tag
    k: str  # kind
    n: str  # name
    v: str  # value
    h: str  # hint (placeholder)
    x: str  # why the value is invalid
    s: list[str]  # states
    options: list[str]
    chosen: list[str]
    more: int  # options beyond the listed ones


class _Node(TypedDict, total=False):
    """One kept node of mode ``webrl``."""

    tag: str
    id: int
    e: int
    text: str
    attrs: list[tuple[str, str]]


class _FrameEntry(TypedDict):
    e: int
    clip: dict[str, float]


@dataclass
class _Read:
    """What one frame gave, and the handle that keeps its live elements."""

    handle: JSHandle
    lite: list[str | int | dict[str, int] | _Record]
    webrl: list[_Node | int]
    frames: list[_FrameEntry]
    scroll: tuple[int, int, int]
    begun: bool

    async def element(self, index: int) -> ElementHandle:
        found = (await self.handle.evaluate_handle("(read, i) => read.elements[i]", index)).as_element()
        assert found is not None, "the page reader lists elements only"
        return found


@dataclass(frozen=True)
class Element:
    """One element with an id.

    Args:
        id: What the agent writes, digits.
        role: Kind of control in mode ``lite`` (``link``, ``button``, ``input``, ...); the tag in mode ``webrl``.
        name: Accessible name, as shown.
        tag: Tag name, lower case.
        value: Current value as shown (secret values masked).
        states: Words such as ``on``, ``disabled``, ``open``.
        options: Choices as shown; at most 15.
    """

    id: str
    role: str
    name: str
    tag: str
    value: str = ""
    states: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    _read: _Read | None = field(default=None, repr=False, compare=False)
    _index: int = field(default=0, repr=False, compare=False)

    async def handle(self) -> ElementHandle:
        """Return the live node in its own frame.

        It may have left the document since (``isConnected`` tells). A frame that navigated, or a disposed snapshot,
        lets Playwright's error through.
        """
        if self._read is None:
            raise LookupError(f"`Element.handle` needs an element of a live page, got [{self.id}] without one.")
        return await self._read.element(self._index)


@dataclass
class Snapshot:
    """One read of a page: what is on the screen, for both modes, with the live elements behind it.

    Args:
        items: Mode ``lite``, in reading order: text, mark (0 line break, 1 part break, 2 heading), or element.
        nodes: Mode ``webrl``, the main frame's kept nodes in document order, each closed by a 0.
        scroll: Top, visible height and full height of what scrolls the page, in CSS pixels.
    """

    items: list[str | int | tuple[_Record, _Read | None]]
    nodes: list[_Node | int] = field(default_factory=list)
    scroll: tuple[int, int, int] = (0, 720, 720)
    reads: list[_Read] = field(default_factory=list)

    async def dispose(self) -> None:
        """Let go of the live elements. Safe on a closed or navigated page, and twice."""
        reads, self.reads = self.reads, []
        for read in reads:
            try:
                await read.handle.dispose()
            except Exception:  # noqa: BLE001 - the page is gone and its handles with it; nothing is left to free
                continue


@dataclass(frozen=True)
class Observation:
    """The text for the agent and what its ids stand for.

    Args:
        text: Lines of mode ``lite``, or the one line of mode ``webrl``.
        elements: Element by id, only those shown in ``text``.
        shown: Items in ``text``. An item is one element or one piece of text (``webrl``: one node).
        total: Items on this screen.
        skipped: Items left out at the top, as asked by ``skip``.
        cut: Items left out at the end for want of budget. ``skipped + shown + cut == total``.
        tokens: Size of ``text`` by the given counter.
    """

    text: str
    elements: dict[str, Element]
    shown: int
    total: int
    skipped: int
    cut: int
    tokens: int


# ------------------------------------------------------------------------------------------------- reading the page


@lru_cache(maxsize=1)
def _script() -> str:
    return resources.files("webrl_lite").joinpath("observation.js").read_text(encoding="utf-8")


async def _read_frame(frame: Frame, clip: dict[str, float] | None) -> _Read:
    handle = await frame.evaluate_handle(_script(), clip)
    data = json.loads(await handle.evaluate("read => read.json"))
    return _Read(handle, data["lite"], data["webrl"], data["frames"], tuple(data["scroll"]), data["begun"])


async def _read_child(parent: _Read, entry: _FrameEntry) -> _Read | None:
    owner = await parent.element(entry["e"])
    frame = await owner.content_frame()
    await owner.dispose()
    return await _read_frame(frame, entry["clip"]) if frame else None


async def _add(read: _Read, snap: Snapshot) -> None:
    """Append a frame's items to the snapshot, child frames in place."""
    snap.reads.append(read)
    for item in read.lite:
        if isinstance(item, str | int):
            snap.items.append(item)
        elif "f" not in item:
            snap.items.append((item, read))
        else:
            try:
                child = await asyncio.wait_for(_read_child(read, read.frames[item["f"]]), FRAME_LIMIT_S)
            except Exception:  # noqa: BLE001 - the frame left or moved on while it was read: it is left out
                continue
            if child:
                await _add(child, snap)


async def snapshot(page: Page) -> Snapshot:
    """Read what a page shows now: main frame, child frames in their places, open shadow roots.

    A frame that vanishes during the read is left out; a page that navigates during the read, or that has just replaced
    another and shows nothing yet, is read again.

    Args:
        page: Playwright page (async API). ``INIT_JS`` in its context adds elements with listeners.

    Raises:
        playwright.async_api.Error: The page itself is closed or crashed, or never held still for a read.
    """
    end = time.monotonic() + READ_LIMIT_S
    while True:
        try:
            read = await _read_frame(page.main_frame, None)
            if read.begun or time.monotonic() > end:
                break
            await read.handle.dispose()
        except Exception as error:  # Playwright's class; this module does not import it
            if page.is_closed() or "crash" in str(error).lower() or time.monotonic() > end:
                raise
        await asyncio.sleep(0.02)
    snap = Snapshot([], read.webrl, read.scroll)
    await _add(read, snap)
    return snap


# ---------------------------------------------------------------------------------------- page text that cannot forge

_Z = "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]"
"""A character that nobody sees; allowed between the letters of every marker below."""


def _spelled(words: str) -> str:
    """Pattern for words in any spelling that looks the same: any case, any gaps, invisible characters in between."""
    return rf"(?:\s|{_Z})+".join(f"{_Z}*".join(map(re.escape, word)) for word in words.split())


_BRACKET_WORDS = (
    "inst gmask smask mask cls sep pad unk bos eos sys img tool_calls tool_results available_tools system_prompt"
)
_BRACKETED = "|".join(map(_spelled, _BRACKET_WORDS.split()))
_MARKERS = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), replacement)
    for pattern, replacement in (
        # [77], also [ 77 ] and full-width forms: an element id
        (rf"[\[［【〔⟦]((?:\s|{_Z})*(?:\d(?:\s|{_Z})*)+)[\]］】〕⟧]", r"(\1)"),
        # [INST], [/INST], [gMASK], ...: chat tokens in square brackets
        (rf"[\[［]((?:\s|{_Z})*/?(?:\s|{_Z})*(?:{_BRACKETED})(?:\s|{_Z})*)[\]］]", r"(\1)"),
        # <|eot_id|>, <s>, </s>, <<SYS>>, <start_of_turn>, <0x0A>: tags and chat tokens in angle brackets
        (r"([<＜])(?=[^\s\d=-]|0x)", r"\1 "),
        # Task Instruction: / Round 3 / ** Simplified html ** / # Element: / # Note: (the prompt's own lines)
        (rf"({_spelled('task')})(?:\s|{_Z})+(?={_spelled('instruction')}{_Z}*\s*[:：])", r"\1-"),
        (rf"^(\s*{_spelled('round')})(?:\s|{_Z})+(?=\d+{_Z}*\s*(?:$|[<:：]))", r"\1-"),
        (rf"\*{_Z}*\*((?:\s|{_Z})*{_spelled('simplified html')}(?:\s|{_Z})*)\*{_Z}*\*", r"*\1*"),
        (rf"#(?:\s|{_Z})*(?=(?:{_spelled('element')}|{_spelled('note')}){_Z}*\s*[:：])", "#-"),
    )
)
_SIGNS = (*"[［【〔⟦<＜*#", "task", "round")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


def neutralise(text: str, special_tokens: Sequence[str] = (), *, ids: bool = True) -> str:
    """Break what page text could forge, by the smallest visible change. Applying it twice changes nothing more.

    ``[77]`` becomes ``(77)``; ``[INST]`` and its kind likewise; ``<|eot_id|>``, ``</s>`` or any other tag gets a space
    after ``<``; ``Task Instruction:`` becomes ``Task-Instruction:``, a line ``Round 3`` ``Round-3``, ``** Simplified
    html **`` ``* Simplified html *``, ``# Note:`` ``#-Note:``. Any case, invisible characters in between and full-width
    brackets count as the same. Half surrogates and control characters, which no trace file can hold, are replaced.

    Args:
        text: Page text, already joined across inline elements.
        special_tokens: The tokenizer's special tokens; each that still occurs gets a space after its first character.
        ids: Whether ``[digits]`` is an element's id in the format at hand (mode ``lite``).
    """
    text = _CONTROL.sub("", _SURROGATE.sub("\ufffd", text))
    bare = (text if text.isascii() else re.sub(_Z, "", text)).lower()
    if any(sign in bare for sign in _SIGNS):
        for pattern, replacement in _MARKERS if ids else _MARKERS[1:]:
            text = pattern.sub(replacement, text)
    for token in sorted(special_tokens, key=len, reverse=True):
        if len(token) > 1 and token.strip() and token.lower() in text.lower():
            text = re.sub(
                re.escape(token[0]) + "(?=" + re.escape(token[1:]) + ")", r"\g<0> ", text, flags=re.IGNORECASE
            )
    return text


_SECRET_WORDS = frozenset(
    "token csrf xsrf password passwd pwd session sessionid sid phpsessid jsessionid key apikey secret auth".split()
    + "signature sig otp".split()
)
_QUERY_VALUE = re.compile(r"([?&;#])([^=&;#?\s]{1,80})=([^&;#\s]*)")
_PATH_KEY = re.compile(r"(/(?:key|form_key|token)/)[^/?#\s]{8,}", re.IGNORECASE)
_USER_INFO = re.compile(r"(://)[^/@\s]+@")


def mask_url(text: str) -> str:
    """Mask secret query values, path keys and user names with passwords in every URL of a text.

    A query key is secret when one of its words is, e.g. ``token``, ``csrf``, ``password``, ``sid``, ``form_key``,
    ``accessToken``; ``keyword`` is not.
    """

    def mask(found: re.Match[str]) -> str:
        words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", unquote(found[2]))
        secret = found[3] and any(word.lower() in _SECRET_WORDS for word in words)
        return f"{found[1]}{found[2]}={MASK}" if secret else found[0]

    return _USER_INFO.sub(rf"\1{MASK}@", _PATH_KEY.sub(rf"\1{MASK}", _QUERY_VALUE.sub(mask, text)))


def count_tokens_default(text: str) -> int:
    """Estimate a text's tokens where no tokenizer is given: up to 5 letters, 3 digits or one other sign a token."""
    return len(re.findall(r"[A-Za-z]{1,5}|\d{1,3}|\n|[^\sA-Za-z\d]", text))


# ------------------------------------------------------------------------------------------------------ mode `lite`


@dataclass(frozen=True)
class _Unit:
    """One item of the screen: an element or a piece of text, and the line that it belongs to."""

    line: int
    text: str
    heading: bool
    element: Element | None


class _Cleaner:
    """Page text made fit for one part of a line."""

    def __init__(self, special_tokens: Sequence[str]):
        self.special_tokens = special_tokens

    def text(self, raw: str) -> str:
        return neutralise(" ".join(raw.split()), self.special_tokens).strip()

    def name(self, raw: str) -> str:
        # " | " parts a line, so that a name or an option must not hold it.
        return re.sub(r"(?:^|\s)\|(?=\s|$)", " /", self.text(raw)).strip()

    def quoted(self, raw: str) -> str:
        lines = [" ".join(line.split()) for line in raw.strip().splitlines()]
        text = neutralise("\\n".join(lines), self.special_tokens)
        if len(text) > NAME_CAP:
            text = f"{text[:NAME_CAP]}…(+{len(text) - NAME_CAP} characters)"
        return '"' + text.replace('"', '\\"') + '"'


def _chunks(text: str, size: int) -> list[str]:
    """Split at spaces into pieces of at most `size` characters; a longer word is split where it must be."""
    pieces = []
    while len(text) > size:
        at = text.rfind(" ", size // 2, size + 1)
        at = at if at > 0 else size
        pieces.append(text[:at].rstrip())
        text = text[at:].lstrip()
    return [*pieces, text] if text else pieces


def _lite_element(record: _Record, read: _Read | None, number: int, clean: _Cleaner) -> tuple[str, Element, str]:
    """The part of a line for one element, the element, and what of its name is too long for the part."""
    head, *rest = _chunks(clean.name(record.get("n", "")), NAME_CAP) or [""]
    kind = "" if record["k"] == "link" else record["k"]
    if not head and kind == "clickable":
        kind = record["t"]
    chosen = [clean.name(text) for text in record.get("chosen", [])]
    options = [
        text if len(text) <= OPTION_CAP else text[:OPTION_CAP] + "…"
        for text in map(clean.name, record.get("options", []))
    ]
    value = record.get("v", "")
    states = list(record.get("s", []))
    words = [head, f"[{number}]", kind]
    words += [clean.quoted(text) for text in ([value] if value else []) + chosen]
    words += states
    if record.get("h"):
        words.append(f"hint {clean.quoted(record['h'])}")
    if record.get("x"):
        words.append(f"invalid {clean.quoted(record['x'])}")
    if options:
        more = [f"... {record['more']} more"] if record.get("more") else []
        words.append("of " + " | ".join([*options, *more]))
    element = Element(
        id=str(number),
        role=record["k"],
        name=head,
        tag=record["t"],
        value=" ".join(value.split()) if value else ", ".join(chosen),
        states=tuple(states),
        options=tuple(options),
        _read=read,
        _index=record["e"],
    )
    return " ".join(filter(None, words)), element, " ".join(rest)


def _lite_units(snap: Snapshot, clean: _Cleaner) -> list[_Unit]:
    """Assemble the snapshot's items into numbered units, line by line."""
    units: list[_Unit] = []
    line, heading, number, pending = 0, False, 0, ""

    def flush() -> None:
        nonlocal pending, line, heading
        for number_in_text, piece in enumerate(_chunks(clean.text(pending), CHUNK)):
            if number_in_text:
                line, heading = line + 1, False
            units.append(_Unit(line, clean.text(piece), heading, None))
        pending = ""

    for item in snap.items:
        if isinstance(item, str):
            pending += item
            continue
        flush()
        if item == 0:
            line, heading = line + 1, False
        elif item == 2:
            heading = True
        elif not isinstance(item, int):
            number += 1
            part, element, rest = _lite_element(*item, number, clean)
            units.append(_Unit(line, part, heading, element))
            pending = rest
            if element.options:  # choices are parted like parts, so nothing may follow them on their line
                flush()
                line, heading = line + 1, False
    flush()
    return units


def _line_text(units: Sequence[_Unit]) -> str:
    """One line of the observation. What page text begins with one of our marks is set off by a backslash."""
    text = " | ".join(unit.text for unit in units)
    if units[0].heading:
        return "= " + text
    return "\\" + text if text[0] in "@!~=" else text


def _head(snap: Snapshot, header: Header, clean: _Cleaner) -> list[str]:
    top, view, full = snap.scroll
    where = [
        clean.name(mask_url(header.url)),
        f"tab {header.tab}/{header.tabs}",
        f"{top}-{min(full, top + view)} of {full}",
    ]
    lines = ["@ " + " | ".join(filter(None, where))]
    for line in filter(str.strip, header.errors.splitlines()):
        text = clean.text(mask_url(line))
        lines.append("! " + (text if len(text) <= ERROR_CAP else text[:ERROR_CAP] + "…"))
    if not header.settled:
        lines.append("! The page was still loading when it was read.")
    return lines


def _above(count: int) -> str:
    return f"~ {count} items above on this screen; Scroll Up shows them"


def _cut(count: int) -> str:
    return f"~ cut: {count} more items on this screen; Scroll Down shows them"


def _lines(units: Sequence[_Unit]) -> list[list[_Unit]]:
    groups: list[list[_Unit]] = []
    for unit in units:
        if groups and groups[-1][0].line == unit.line:
            groups[-1].append(unit)
        else:
            groups.append([unit])
    return groups


def _prefix(text: str, budget: int, count: Callable[[str], int]) -> str:
    """The longest beginning of a text that costs at most `budget` tokens."""
    low, high = 0, len(text)
    if count(text) <= budget:
        return text
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= budget else (low, middle - 1)
    return text[:low]


def _fitting(units: Sequence[_Unit], room: int, count: Callable[[str], int]) -> int:
    """How many units fit into `room` tokens: whole lines, or the beginning of a line where not even one line fits."""
    used = fitted = 0
    for group in _lines(units):
        used += count(_line_text(group)) + 1
        if used > room:
            break
        fitted += len(group)
    if fitted or not units:
        return fitted
    used = 1
    for unit in _lines(units)[0]:
        used += count(" | " + unit.text)
        if used > room:
            break
        fitted += 1
    return fitted


def _shortened(unit: _Unit, room: int, count: Callable[[str], int]) -> _Unit | None:
    """The unit with as much of its words as fit into `room` tokens; an element keeps its id and kind."""
    words, end = unit.text, "…"
    if unit.element:
        words = unit.element.name
        end = " ".join(filter(None, ["…", f"[{unit.element.id}]", unit.element.role.replace("link", "")]))
    room -= count(f"= {end}") + 2
    return dataclasses.replace(unit, text=_prefix(words, room, count) + end) if room >= 0 else None


def _render_lite(
    snap: Snapshot, budget: int | None, count: Callable[[str], int], skip: int, header: Header, special: Sequence[str]
) -> Observation:
    clean = _Cleaner(special)
    units = _lite_units(snap, clean)
    head = _head(snap, header, clean)
    skip = max(0, min(skip, len(units) - 1))
    if skip:
        head.append(_above(skip))
    body = units[skip:]

    def text_of(shown: int) -> str:
        tail = [_cut(len(body) - shown)] if shown < len(body) else []
        return "\n".join([*head, *map(_line_text, _lines(body[:shown])), *tail])

    shown = len(body)
    if budget is not None and count(text_of(shown)) > budget:
        room = budget - count("\n".join([*head, _cut(len(body))]))
        shown = _fitting(body, room, count)
        if not shown and body and (short := _shortened(body[0], room, count)):
            body, shown = [short, *body[1:]], 1
    text = text_of(shown)
    while budget is not None and count(text) > budget and shown:
        # Tokens that span a line end may make the whole dearer than its lines were.
        shown -= 1
        text = text_of(shown)
    if budget is not None:
        text = _prefix(text, budget, count)
    elements = {unit.element.id: unit.element for unit in body[:shown] if unit.element}
    return Observation(text, elements, shown, len(units), skip, len(body) - shown, count(text))


# ----------------------------------------------------------------------------------------------------- mode `webrl`


def _webrl_text(raw: str, special: Sequence[str], *, quotes: bool = False) -> str:
    # Python's \s as the authors use it, but for the no-break space, which they see as an entity.
    text = re.sub(r"[^\S\xa0]+", " ", raw).strip()[:TEXT_CAP].replace("<", "&lt;").replace(">", "&gt;")
    return neutralise(text.replace('"', "&quot;") if quotes else text, special, ids=False)


def _webrl_open(node: _Node, special: Sequence[str]) -> str:
    """``<tag id="k" attr="...">`` and the node's first text."""
    seen: set[str] = set()
    parts = [f"<{node['tag']}"]
    if "id" in node:
        parts.append(f'id="{node["id"]}"')
    for name, raw in node["attrs"]:
        value = _webrl_text(raw, special, quotes=True)
        if value and value not in seen:
            parts.append(f'{name}="{value}"')
            seen.add(value)
    text = _webrl_text(node["text"], special)
    return " ".join(parts) + ">" + (f" {text}" if text else "")


def _webrl_string(nodes: Sequence[_Node | int], opened: Sequence[str], skip: int, shown: int) -> str:
    """Nest the nodes `skip` to `skip + shown`; a node that is left out is flattened away."""
    out: list[str] = []
    stack: list[str] = []  # closing tags of the open nodes; "" for one that is left out
    at = 0
    for node in nodes:
        if isinstance(node, int):
            if end := stack.pop():
                out.append(end)
            continue
        printed = skip <= at < skip + shown
        if printed:
            out.append(opened[at])
        stack.append(f"</{node['tag']}>" if printed else "")
        at += 1
    return " ".join([*out, *filter(None, reversed(stack))])


def _render_webrl(
    snap: Snapshot, budget: int | None, count: Callable[[str], int], skip: int, special: Sequence[str]
) -> Observation:
    nodes = [node for node in snap.nodes if not isinstance(node, int)]
    opened = [_webrl_open(node, special) for node in nodes]
    skip = max(0, min(skip, len(nodes) - 1))
    rest = len(nodes) - skip
    above = [_above(skip)] if skip else []

    def text_of(shown: int) -> str:
        tail = [_cut(rest - shown)] if shown < rest else []
        return "\n".join([*above, *([_webrl_string(snap.nodes, opened, skip, shown)] if shown else []), *tail])

    shown = rest
    if budget is not None and count(text_of(shown)) > budget:
        room = budget - count("\n".join([*above, _cut(rest)])) - 2
        shown = 0
        for node, text in zip(nodes[skip:], opened[skip:], strict=True):
            room -= count(f" {text} </{node['tag']}>")
            if room < 0:
                break
            shown += 1
    text = text_of(shown)
    while budget is not None and shown and count(text) > budget:
        shown -= 1
        text = text_of(shown)
    if budget is not None:
        text = _prefix(text, budget, count)
    elements = {
        str(node["id"]): Element(
            id=str(node["id"]),
            role=node["tag"],
            name=_webrl_text(node["text"], special),
            tag=node["tag"],
            _read=snap.reads[0] if snap.reads else None,
            _index=node["e"],
        )
        for node in nodes[skip : skip + shown]
        if "id" in node
    }
    return Observation(text, elements, shown, len(nodes), skip, rest - shown, count(text))


def render(
    snap: Snapshot,
    *,
    mode: str = "lite",
    budget: int | None = None,
    count_tokens: Callable[[str], int] = count_tokens_default,
    skip: int = 0,
    header: Header = Header(),  # noqa: B008 - frozen
    special_tokens: Sequence[str] = (),
) -> Observation:
    """Write a snapshot as text within a budget.

    An observation that was cut is continued by the same call with ``skip = observation.skipped + observation.shown``;
    to go back, keep the earlier ``skip`` values. Ids do not depend on ``skip``.

    Args:
        snap: What ``snapshot`` returned.
        mode: ``lite`` or ``webrl``; the latter shows no header, as the authors do.
        budget: Tokens that the text may cost, at least 0; None for no limit. Below about 40 tokens the text is cut
            where it must be.
        count_tokens: Tokens of a text.
        skip: Items to leave out at the top; out of range, the nearest in range.
        header: First lines of mode ``lite``.
        special_tokens: Special tokens of the model, to be broken in page text.

    Raises:
        ValueError: Unknown mode.
    """
    if mode == "lite":
        return _render_lite(snap, budget, count_tokens, skip, header, special_tokens)
    if mode == "webrl":
        return _render_webrl(snap, budget, count_tokens, skip, special_tokens)
    raise ValueError(
        f"`mode` must be `lite` or `webrl`, got `{mode}`. Use `lite` unless a released checkpoint reads it."
    )
