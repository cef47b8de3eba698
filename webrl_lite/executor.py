"""The executor: one parsed action becomes one deed in the active tab, or one line that says why not.

Reads an ``Action`` and the ``Observation`` it refers to, and acts on the *live* element behind the id; every action
finds its element in the same way, through ``Element.handle``. What the agent got wrong (unknown id, covered button,
no such option) is raised as ``ActionError`` and becomes the error line of the next observation.

Choices that are written down here because several would do:

- Type replaces. A date, time, month or week is understood in usual forms (see ``iso_value``); with slashes the
  month comes first unless it cannot be one, with dots the day comes first.
- Select Dropdown Option takes the option whose label is exactly the argument, else equal but for letter case and
  white space, else whose value attribute is the argument; never a part of a label. In a list of multiple choice,
  several labels may be given with `` | `` between them; the choice is *replaced*.
- Scroll moves by two thirds of what is visible. It first turns the pages of an observation that was cut.
- Nothing is clicked through a cover; the line names the cover.

Source: the actions are those of VAB-WebArena-Lite. Differs from release: that executor clicks coordinates stored at
observation time, picks the first option that contains the argument, and swallows failures.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypedDict, TypeVar
from urllib.parse import urljoin, urlsplit

from playwright.async_api import ElementHandle, Page
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from webrl_lite.actions import Action, ActionError
from webrl_lite.inputs import iso_value, key_name
from webrl_lite.observation import Element, Observation
from webrl_lite.tabs import Limits, Tabs

T = TypeVar("T")

FIND_CONTROL_JS = """
function control(el) {
  if (el.localName === 'option' || el.localName === 'optgroup') return el.closest('select') || el;
  const own = 'input, select, textarea, button';
  if (el.matches(own)) return el;
  if (el.isContentEditable) {
    while (el.parentElement && el.parentElement.isContentEditable) el = el.parentElement;
    return el;
  }
  const label = el.closest('label');
  if (label && label.control) return label.control;
  const fields = 'input:not([type=hidden]), select, textarea, [contenteditable=""], [contenteditable="true"]';
  const root = el.shadowRoot || el;
  const inside = [...root.querySelectorAll(fields)].filter((e) => e.getClientRects().length);
  return inside.length === 1 ? inside[0] : el;
}
"""
"""The form control that an element stands for: itself, its label's, or the only one inside it."""

INSPECT_JS = (
    "(el, aim) => {"
    + FIND_CONTROL_JS
    + """
  if (!el.isConnected) return {stale: true};
  // The middle of an element that lies still and uncovered in the main frame; anything harder is null.
  const point = (e) => {
    const inside = (r) => r.top >= 0 && r.left >= 0 && r.bottom <= innerHeight && r.right <= innerWidth;
    if (window !== window.top || document.getAnimations().some((a) => a.playState === 'running')) return null;
    if (Date.now() - (window.__webrl_watch?.styled ?? 0) < 50) return null;
    if (!inside(e.getBoundingClientRect())) e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
    const r = e.getClientRects()[0];
    if (!r || !inside(r) || r.width < 1 || r.height < 1) return null;
    const x = r.left + r.width / 2, y = r.top + r.height / 2;
    let hit = document.elementFromPoint(x, y);
    for (let in_; hit?.shadowRoot && (in_ = hit.shadowRoot.elementFromPoint(x, y)) && in_ !== hit;) hit = in_;
    for (; hit; hit = hit.assignedSlot || hit.parentElement || hit.getRootNode().host) if (hit === e) return [x, y];
    return null;
  };
  const c = control(el), tag = c.localName, type = tag === 'input' ? c.type : tag;
  const off = (e) => e.matches(':disabled') || !!e.closest('[aria-disabled="true"]');
  return {
    stale: false, point: aim ? point(el) : null, own: c === el, tag: el.localName, type, disabled: off(el) || off(c),
    readonly: !!c.readOnly || c.getAttribute('aria-readonly') === 'true',
    editable: c.isContentEditable, multiple: !!c.multiple,
    value: c.isContentEditable ? c.innerText : String(c.value ?? ''),
    hidden: (type === 'checkbox' || type === 'radio') && !c.getClientRects().length,
    options: tag !== 'select' ? [] : [...c.options].map((o) => ({
      label: (o.label || o.text).replace(/\\s+/g, ' ').trim(), value: o.value, selected: o.selected,
      disabled: o.disabled || !!(o.parentElement.localName === 'optgroup' && o.parentElement.disabled)})),
  };
}"""
)

COMMIT_JS = """
(el, before) => {
  const value = el.isContentEditable ? el.innerText : el.value;
  if (value !== before && !el.isContentEditable) el.dispatchEvent(new Event('change', {bubbles: true}));
  return value;
}
"""

COVER_JS = """
([x, y]) => {
  let e = document.elementFromPoint(x, y);
  if (!e) return '';
  for (let up = e; up && up !== document.body && up !== document.documentElement; up = up.parentElement) {
    if (['fixed', 'absolute', 'sticky'].includes(getComputedStyle(up).position)) { e = up; break; }
  }
  const id = e.id ? ` id="${e.id}"` : e.classList.length ? ` class="${e.className}"` : '';
  const text = (e.getAttribute('aria-label') || e.innerText || '').replace(/\\s+/g, ' ').trim();
  return `<${e.localName}${id}>` + (text ? ` "${text.length > 60 ? text.slice(0, 59) + '…' : text}"` : '');
}
"""

SCROLL_JS = """
([el, sign]) => {
  const root = document.scrollingElement || document.documentElement;
  const hides = (e) => e && ['hidden', 'clip'].includes(getComputedStyle(e).overflowY);
  const frozen = hides(document.documentElement) || (getComputedStyle(document.documentElement).overflowY === 'visible'
    && hides(document.body));
  const page = !frozen && root.scrollHeight > window.innerHeight + 1 ? root : null;
  const scrolls = (e) => e !== root && e !== document.body && e.scrollHeight > e.clientHeight + 1 && e.clientHeight > 0
    && ['auto', 'scroll', 'overlay'].includes(getComputedStyle(e).overflowY);
  const move = (e) => {
    const before = e.scrollTop, height = e === root ? window.innerHeight : e.clientHeight;
    e.scrollBy({top: sign * Math.max(1, Math.round(height * 2 / 3)), behavior: 'instant'});
    return e.scrollTop !== before;
  };
  const all = () => {
    const found = [];
    const walk = (top) => { for (const e of top.querySelectorAll('*')) {
      if (e.shadowRoot) walk(e.shadowRoot);
      if (!scrolls(e)) continue;
      const r = e.getBoundingClientRect();
      const w = Math.min(r.right, innerWidth) - Math.max(r.left, 0);
      const h = Math.min(r.bottom, innerHeight) - Math.max(r.top, 0);
      if (w <= 0 || h <= 0 || !e.checkVisibility({visibilityProperty: true})) continue;
      const hit = document.elementFromPoint(Math.max(r.left, 0) + w / 2, Math.max(r.top, 0) + h / 2);
      found.push({e, area: w * h, shown: !hit || e.contains(hit) || e.getRootNode() !== document});
    } };
    walk(document);
    return found.sort((a, b) => b.shown - a.shown || b.area - a.area);
  };
  if (el) {
    if (el.localName === 'iframe' && el.contentDocument) el = el.contentDocument.scrollingElement;
    for (let e = el; e; e = e.assignedSlot || e.parentElement || (e.getRootNode().host ?? null))
      if ((scrolls(e) || (e !== root && e === e.ownerDocument.scrollingElement)) && move(e)) return 'moved';
  } else {
    const dialogs = [...document.querySelectorAll('dialog[open], [role=dialog], [role=alertdialog], [aria-modal=true]')]
      .filter((e) => e.getClientRects().length && e.checkVisibility({visibilityProperty: true, opacityProperty: true}));
    const boxes = page && !dialogs.length ? [] : all();
    for (const dialog of dialogs.reverse()) {
      const box = boxes.find((b) => dialog.contains(b.e) || b.e.contains(dialog));
      if (box) return move(box.e) ? 'moved' : 'end';
    }
    if (!page) return boxes.length ? (boxes.some((b) => move(b.e)) ? 'moved' : 'end') : 'whole';
  }
  return page ? (move(page) ? 'moved' : 'end') : 'whole';
}
"""
"""Scrolls one thing by two thirds of its height; ``moved``, ``end`` (no further) or ``whole`` (nothing scrolls)."""

_TEXT_TYPES = {"text", "search", "email", "url", "tel", "password", "textarea"}
_ISO_TYPES = {"date", "time", "month", "week", "datetime-local"}
_NO_TEXT = {
    "checkbox": "a checkbox; use Click",
    "radio": "a radio button; use Click",
    "select": "a list; use Select Dropdown Option",
    "file": "a file field; files cannot be uploaded here",
    "submit": "a button; use Click",
    "button": "a button; use Click",
    "reset": "a button; use Click",
    "image": "a button; use Click",
}


class _Option(TypedDict):
    label: str
    value: str
    selected: bool
    disabled: bool


class _State(TypedDict):
    """What ``INSPECT_JS`` tells of an element and the control it stands for; only ``stale`` if it left the page."""

    stale: bool
    point: tuple[float, float] | None
    own: bool  # whether the element is itself the control
    tag: str  # of the element
    type: str  # of the control: an input's type, else its tag
    disabled: bool
    readonly: bool
    editable: bool  # by contenteditable
    multiple: bool
    value: str
    hidden: bool  # a check box or radio button that is not drawn
    options: list[_Option]


class Executor:
    """Carries out actions in the active tab of an episode.

    Attributes:
        observation: what the agent saw last; its ids are the ones that actions name.
        turned: numbers of items that the parts of a cut observation left out at the top, first part (0) not counted.
    """

    def __init__(self, tabs: Tabs, limits: Limits, refusal: Callable[[str], str], sites: Mapping[str, str]):
        """Bind to one episode.

        Args:
            tabs: its tabs.
            limits: its time limits.
            refusal: says why an address may not be opened, "" if it may.
            sites: name -> origin of the task's sites; names are understood in addresses.
        """
        self.tabs = tabs
        self.limits = limits
        self.refusal = refusal
        self.sites = {name.lower(): origin for name, origin in sites.items()}
        self.turned: list[int] = []
        self.observation: Observation | None = None
        self._deeds: dict[str, Callable[[Action], Awaitable[str]]] = {
            "Click": self._click,
            "Hover": self._hover,
            "Type": self._type,
            "Search": self._search,
            "Press": self._press,
            "Scroll Up": self._scroll,
            "Scroll Down": self._scroll,
            "Select Dropdown Option": self._select,
            "New Tab": self._new_tab,
            "Tab Focus": self._tab_focus,
            "Close Tab": self._close_tab,
            "Goto": self._goto,
            "Go Back": self._history,
            "Go Forward": self._history,
            "Wait": self._wait,
        }

    async def run(self, action: Action) -> str:
        """Do one action, without waiting for what follows from it.

        Args:
            action: any action but ``Exit``.

        Returns:
            One line for the agent, empty if all is well.

        Raises:
            BrowserError: the page crashed or does not answer.
        """
        if action.name not in self._deeds:
            raise ValueError(f"`action.name` must be one of {sorted(self._deeds)}, got {action.name!r}.")
        try:
            return await self._deeds[action.name](action)
        except ActionError as refusal:
            return str(refusal)
        except PlaywrightError as error:
            self.tabs.check(error)
            if "closed" in error.message:
                return "The tab closed itself meanwhile."
            return f"{action.name} was interrupted: {_clip(error.message.splitlines()[0], 120)}"

    # Elements

    async def _find(self, action: Action, aim: bool = False) -> tuple[Element, ElementHandle, _State]:
        """Return the observed element, the live node behind it and what is known of it.

        With ``aim`` it is scrolled into view, and ``point`` is where the mouse meets it if nothing is in the way.
        """
        elements = self.observation.elements if self.observation else {}
        if action.element not in elements:
            shown = " ".join(str(action.element).split())[:40]
            raise ActionError(f"There is no element {shown} in this observation.")
        element = elements[action.element]
        try:
            page = self.tabs.active
            handle = await self.tabs.while_here(page, self._bounded(element.handle()))
            state = handle and await self.tabs.while_here(page, self._bounded(handle.evaluate(INSPECT_JS, aim)))
        except PlaywrightError as error:
            self.tabs.check(error)
            state = None
        if not state or state["stale"]:
            raise ActionError(f"{_title(element)} is no longer on the page. Use the ids of the current observation.")
        return element, handle, state

    async def _bounded(self, question: Awaitable[T]) -> T:
        """Await an answer of the page; Playwright errors pass, silence is a BrowserError."""
        return await self.tabs.answer(question)

    async def _control(self, handle: ElementHandle, state: _State) -> ElementHandle:
        """The form control that an element stands for."""
        if state["own"]:
            return handle
        found = await self._bounded(handle.evaluate_handle("(el) => {" + FIND_CONTROL_JS + "return control(el);}"))
        return found.as_element()

    async def _point(self, element: Element, handle: ElementHandle, state: _State, deed: str) -> None:
        """Click or hover an element, and say what is in the way if it cannot be done.

        Playwright's own click waits for two frames and tries other scroll positions; that is left to the elements
        that are not simply there.
        """
        milliseconds = self.limits.click * 1000
        if state["point"]:
            mouse = self.tabs.active.mouse
            await self._bounded((mouse.click if deed == "click" else mouse.move)(*state["point"]))
            return
        try:
            if deed == "click":
                await handle.click(timeout=milliseconds, no_wait_after=True)
            else:
                await handle.hover(timeout=milliseconds, no_wait_after=True)
            return
        except PlaywrightTimeout as error:
            log = error.message
        except PlaywrightError as error:
            self.tabs.check(error)
            if "not attached" in error.message:
                raise ActionError(f"{_title(element)} left the page before the {deed}. Look again.") from None
            log = error.message
        page = self.tabs.active
        await self._bounded(page.evaluate("1"))  # tells an endless script from an obstacle
        if "intercepts pointer events" in log:
            box = await handle.bounding_box()
            cover = (
                await page.evaluate(COVER_JS, [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2])
                if box
                else ""
            )
            raise ActionError(
                f"{_title(element)} is covered by {cover or 'another element'}; close that or scroll first."
            )
        for sign, reason in (
            ("not visible", "is not visible"),
            ("not stable", "keeps moving"),
            ("not enabled", "is disabled"),
            ("outside of the viewport", "cannot be scrolled into view"),
        ):
            if sign in log:
                raise ActionError(f"{_title(element)} {reason}, so the {deed} was not done.")
        raise ActionError(f"{_title(element)} could not be reached within {self.limits.click:g} s.")

    # Deeds

    async def _click(self, action: Action) -> str:
        element, handle, state = await self._find(action, aim=True)
        if state["disabled"]:
            raise ActionError(f"{_title(element)} is disabled.")
        if state["type"] == "select" and state["tag"] in ("select", "option", "optgroup"):
            raise ActionError(f"{_title(element)} is a list; use Select Dropdown Option with {_labels(state)}.")
        if state["own"] and state["type"] in ("file", "color"):
            way = "files cannot be uploaded here" if state["type"] == "file" else "Type a colour such as #ff0000"
            raise ActionError(f"{_title(element)} opens a window of the browser; {way}.")
        if state["own"] and state["hidden"]:
            # The box itself is not drawn; people click its label.
            label = await self._bounded(handle.evaluate_handle("(el) => (el.labels && el.labels[0]) || el"))
            handle = label.as_element()
        await self._point(element, handle, state, "click")
        return ""

    async def _hover(self, action: Action) -> str:
        element, handle, state = await self._find(action, aim=True)
        await self._point(element, handle, state, "hover")
        return ""

    async def _type(self, action: Action) -> str:
        element, handle, state = await self._find(action)
        text, kind = action.argument or "", state["type"]
        if state["disabled"]:
            raise ActionError(f"{_title(element)} is disabled.")
        if kind in _NO_TEXT:
            raise ActionError(f"{_title(element)} is {_NO_TEXT[kind]}.")
        if not state["editable"] and kind not in _TEXT_TYPES | _ISO_TYPES | {"number", "range", "color"}:
            raise ActionError(f"{_title(element)} is not a text field.")
        if state["readonly"]:
            raise ActionError(f"{_title(element)} is read-only.")
        control = await self._control(handle, state)
        wanted = text
        if kind in _ISO_TYPES and text:
            wanted = iso_value(kind, text)
            if wanted is None:
                example = {"date": "10/16/2012", "time": "2:30 PM", "month": "10/2012", "week": "2012-W42"}
                form = example.get(kind, "10/16/2012 2:30 PM")
                raise ActionError(
                    f"{_title(element)} takes a {kind} such as {form}; `{_clip(text)}` was not understood."
                )
        elif kind == "color" and re.fullmatch(r"#?[0-9a-fA-F]{6}", text.strip()):
            wanted = "#" + text.strip().lstrip("#").lower()
        elif kind in ("number", "range"):
            wanted = text.strip()
        elif kind != "textarea" and not state["editable"]:
            wanted = re.sub(r"[\r\n]+", " ", text.strip("\r\n"))  # a line break would submit the form
        held = await self._fill(element, control, state, wanted)
        return _difference(element, state, wanted, held)

    async def _fill(self, element: Element, control: ElementHandle, state: _State, text: str) -> str:
        """Put a text into a control and return what it then holds."""
        head, last = text, ""
        if state["type"] in _TEXT_TYPES and not text.endswith("\n"):
            # The last character comes from the keyboard: suggestion lists and masks listen to keys.
            head, last = text[:-1], text[-1:]
        try:
            await control.fill(head, timeout=self.limits.hang * 1000)
            if last:
                await self._bounded(self.tabs.active.keyboard.type(last))
            if state["type"] in _ISO_TYPES | {"range", "color"}:
                return await self._bounded(control.evaluate("(el) => el.value"))
            return await self._bounded(control.evaluate(COMMIT_JS, state["value"]))
        except PlaywrightTimeout as error:
            await self._bounded(self.tabs.active.evaluate("1"))
            reason = "is not visible" if "not visible" in error.message else "could not be filled in"
            raise ActionError(f"{_title(element)} {reason}.") from None
        except PlaywrightError as error:
            self.tabs.check(error)
            if "Cannot type text" in error.message or "Malformed value" in error.message:
                raise ActionError(
                    f"{_title(element)} takes a {state['type']}; `{_clip(text)}` was not accepted."
                ) from None
            raise ActionError(f"{_title(element)} left the page while it was filled in. Look again.") from None

    async def _search(self, action: Action) -> str:
        line = await self._type(action)
        await self._bounded(self.tabs.active.keyboard.press("Enter"))
        return line

    async def _press(self, action: Action) -> str:
        key = key_name(action.argument or "")
        if action.element is not None:
            element, handle, state = await self._find(action)
            control = await self._control(handle, state)
            await self._bounded(control.focus())
        await self._bounded(self.tabs.active.keyboard.press(key))
        return ""

    async def _scroll(self, action: Action) -> str:
        down = action.name == "Scroll Down"
        handle = None
        if action.element is not None:
            _, handle, _ = await self._find(action)
        elif self._turn_page(down):
            return ""
        sign = 1 if down else -1
        frame = (await handle.owner_frame()) if handle else None
        frame = frame or self.tabs.active.main_frame
        outcome = await self._bounded(frame.evaluate(SCROLL_JS, [handle, sign]))
        if outcome != "moved" and frame != self.tabs.active.main_frame:
            outcome = await self._bounded(self.tabs.active.evaluate(SCROLL_JS, [None, sign]))
        if outcome == "moved":
            self.turned.clear()
            return ""
        if outcome == "whole":
            return "Nothing moved: the whole page is in view."
        return f"Nothing moved: this is already the {'end' if down else 'top'}."

    def _turn_page(self, down: bool) -> bool:
        """Show the next or previous part of an observation that did not fit its budget."""
        view = self.observation
        if view is not None and down and view.cut:
            self.turned.append(view.skipped + view.shown)
        elif self.turned and not down:
            self.turned.pop()
        else:
            return False
        return True

    async def _select(self, action: Action) -> str:
        element, handle, state = await self._find(action)
        if state["type"] != "select":
            kind = f"is a <{state['tag']}> and not a native list"
            raise ActionError(f"{_title(element)} {kind}; Click it to open it, then Click the option.")
        if state["disabled"]:
            raise ActionError(f"{_title(element)} is disabled.")
        wanted = _match_options(element, state, action.argument or "")
        if [i for i, option in enumerate(state["options"]) if option["selected"]] == sorted(wanted):
            return ""
        control = await self._control(handle, state)
        try:
            await control.select_option(index=wanted, timeout=self.limits.click * 1000)
        except PlaywrightTimeout as error:
            await self._bounded(self.tabs.active.evaluate("1"))
            reason = "is not visible" if "not visible" in error.message else "could not be changed"
            raise ActionError(f"{_title(element)} {reason}.") from None
        except PlaywrightError as error:
            self.tabs.check(error)
            raise ActionError(f"{_title(element)} left the page while the option was chosen. Look again.") from None
        return ""

    async def _new_tab(self, action: Action) -> str:
        if len(self.tabs.pages) >= self.limits.tabs:
            raise ActionError(f"{self.limits.tabs} tabs are open, which is the limit. Close one first.")
        url = self._address(action.argument) if action.argument else ""
        page = await self._bounded(self.tabs.context.new_page())
        return await self._load(page, url) if url else ""

    async def _tab_focus(self, action: Action) -> str:
        text, last = (action.argument or "").strip(), len(self.tabs.pages) - 1
        if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) > last:
            raise ActionError(f"There is no tab {_clip(text, 20)}; tabs are numbered from 0 to {last}.")
        await self._bounded(self.tabs.focus(self.tabs.pages[int(text)]))
        return ""

    async def _close_tab(self, action: Action) -> str:
        if len(self.tabs.pages) == 1:
            raise ActionError("The last tab cannot be closed.")
        await self._bounded(self.tabs.close(self.tabs.active))
        await self._bounded(self.tabs.focus(self.tabs.active))
        return ""

    async def _goto(self, action: Action) -> str:
        return await self._load(self.tabs.active, self._address(action.argument or ""))

    def _address(self, text: str) -> str:
        """The absolute address that the agent means.

        Raises:
            ActionError: it is not on the task's sites.
        """
        text = text.strip()
        if not text:
            raise ActionError("Goto needs an address.")
        bare = re.sub(r"^(https?:)?//", "", text, flags=re.IGNORECASE)
        host = re.split(r"[/?#]", bare, maxsplit=1)[0]
        sites = [site for name, site in self.sites.items() if host.lower() in (name, urlsplit(site).netloc)]
        sites = sites or [site for site in self.sites.values() if urlsplit(site).hostname == host.lower()]
        if text.startswith(("/", "?", "#")) and not text.startswith("//"):
            text = urljoin(self.tabs.active.url, text)
        elif len(sites) == 1:
            text = sites[0].rstrip("/") + bare[len(host) :]
        elif not re.match(r"[a-zA-Z][\w+.-]*:", text):
            text = f"http://{bare}"
        line = self.refusal(text)
        if line:
            raise ActionError(line)
        return text

    async def _load(self, page: Page, url: str) -> str:
        try:
            await page.goto(url, wait_until="commit", timeout=self.limits.navigation * 1000)
        except PlaywrightTimeout:
            return ""  # settling reports a load that is still under way
        except PlaywrightError as error:
            self.tabs.check(error)
            reason = re.search(r"net::(ERR_\w+)", error.message)
            # Aborted loads are downloads, blocked redirects or the page's own doing; each leaves its own line.
            if reason and reason[1] != "ERR_ABORTED":
                return f"{url[:200]} could not be loaded ({reason[1]})."
        return ""

    async def _history(self, action: Action) -> str:
        page, back = self.tabs.active, action.name == "Go Back"
        before = page.url
        cdp = await self.tabs.context.new_cdp_session(page)
        history = await self._bounded(cdp.send("Page.getNavigationHistory"))
        await cdp.detach()
        there = history["currentIndex"] + (-1 if back else 1)
        # Every tab begins with an empty page that is nobody's. It is looked for, not tried out: moving there and back
        # changes the process that draws the tab, and the second move can fall into the gap.
        if not 0 <= there < len(history["entries"]) or history["entries"][there]["url"] == "about:blank" != before:
            return f"There is no {'previous' if back else 'next'} page in this tab."
        try:
            move = page.go_back if back else page.go_forward
            await move(wait_until="commit", timeout=self.limits.navigation * 1000)
        except PlaywrightTimeout:
            return ""
        except PlaywrightError as error:
            self.tabs.check(error)
        return ""

    async def _wait(self, action: Action) -> str:
        await self.tabs.wait_for_change(time.time() * 1000)
        return ""


def _title(element: Element) -> str:
    name = _clip(" ".join(element.name.split()), 40)
    return f"Element {element.id} ({element.role}" + (f' "{name}")' if name else ")")


def _clip(text: str, limit: int = 60) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _labels(state: _State) -> str:
    labels = [option["label"] for option in state["options"] if not option["disabled"]]
    return "one of: " + _clip(" | ".join(labels), 300)


def _match_options(element: Element, state: _State, argument: str) -> list[int]:
    """Return the positions of the options that the argument names."""
    options = state["options"]

    def match(text: str) -> int | None:
        exact, loose = " ".join(text.split()), "".join(text.split()).casefold()
        rules = (
            lambda o: o["label"] == exact,
            lambda o: "".join(o["label"].split()).casefold() == loose,
            lambda o: o["value"] == text,
        )
        for rule in rules:
            found = [i for i, option in enumerate(options) if rule(option)]
            if found:
                return next((i for i in found if not options[i]["disabled"]), found[0])
        return None

    whole = match(argument)
    parts = [argument] if whole is not None or not state["multiple"] else argument.split("|")
    positions = []
    for part in parts:
        position = match(part.strip() if len(parts) > 1 else part)
        if position is None:
            raise ActionError(f"{_title(element)} has no option `{_clip(part)}`; it has {_labels(state)}.")
        if options[position]["disabled"]:
            raise ActionError(f"The option `{_clip(part)}` of {_title(element)} is disabled; use {_labels(state)}.")
        positions.append(position)
    return positions


def _difference(element: Element, state: _State, wanted: str, held: str) -> str:
    """Say so if a field holds something else than what was typed; formatting by a mask is no difference."""
    bare = [re.sub(r"[\W_]+", "", text) for text in (wanted, held)]
    if held == wanted or (bare[0] == bare[1] and bare[0]) or " ".join(held.split()) == " ".join(wanted.split()):
        return ""
    if state["type"] in _ISO_TYPES | {"number", "range"} and bare[0] == bare[1]:
        return ""
    if state["type"] == "password":
        return f"{_title(element)} did not take the whole text."
    return f"{_title(element)} now holds `{_clip(held)}` and not `{_clip(wanted)}`."
