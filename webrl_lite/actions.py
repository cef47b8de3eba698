r"""The agent's replies: one grammar, its parser and its writer.

Reads the text that a policy wrote and gives an ``Action`` for the executor (``browser.py``); writes actions
back as text for demonstrations and prompts. A reply is parsed, never executed and never searched for
keywords.

The grammar, with ``{x}`` for any number of times and ``[x]`` for at most once::

    reply    = {line} call {anything}
    line     = blank | "# Element: " text | "# Note: " text | "#" text | code fence | prose
    call     = name "(" [argument {"," argument} [","]] ")"
    name     = "do" | "exit" | "go_backward" | "go_forward" | "go_back"      (any letter case)
    argument = [keyword "="] value
    value    = string | number | "None" | "True" | "False"
    string   = '...' | "..." | '''...''' | triple double quotes

Rules that the lines above do not show:

- Only ``\n`` (with or without ``\r``) ends a line. The first line that *begins* with a call (after white
  space and up to three backticks) holds the action; a call in the middle of a line of prose is prose. The
  call may go on over lines, and ``# comments`` may stand between its arguments.
- One action a reply: the first call. If another call follows, it and all after it is kept in
  ``Reply.ignored``.
- ``do`` takes keywords only: ``action``, ``argument``, ``element``. ``exit`` takes ``message``, also as its
  single positional argument; without one the message is "". Numbers and booleans are read as the text they
  are written as, ``None`` as *not given*. Lists, dicts, names and nested calls are refused, and so is a
  keyword that is unknown or given twice, or one the action does not take (unless it is empty).
- White space around an element id or a tab index is dropped; every other text is kept as it is.
- Strings may hold real line breaks and tabs. The escapes are ``\\ \" \' \n \t \r`` and ``\uXXXX`` (two of
  them for a surrogate pair). A string with a backslash before anything else is read raw as a whole: there a
  backslash stands for itself except before the quote that delimits the string, so ``"C:\Users\mia\notes"``
  is that path. A path made of escapes only (``"C:\new"``) is read as escapes.
- Action names: letter case, spaces, ``_`` and ``-`` do not count. The older spellings ``Go Backward``,
  ``Press Enter`` and ``Switch Tab`` are read as ``Go Back``, ``Press`` with "Enter" and ``Tab Focus``. A
  tab index may be given as ``argument`` or as ``element``.

Source: WebRL's prompts and ``VAB-WebArena-Lite/new/actions.py``. Differs from release: that parser cuts the
text at the last ``do(`` or ``exit(`` wherever it stands, knows neither ``go_backward()`` nor the tab
actions, and dies of a missing keyword.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NoReturn

_ERROR_LIMIT = 400  # characters; the line goes into the next prompt

# What cannot stand as itself on one line of UTF-8: control characters, line separators, halves of surrogates.
# A second half behind a first is left as it is, since two escapes in a row would be read as the whole pair.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udbff]|(?<![\ud800-\udbff])[\udc00-\udfff]")


class ActionError(ValueError):
    """A reply that is refused. ``str()`` is one short line, written for the agent's next observation."""

    def __init__(self, message: str):
        message = _UNPRINTABLE.sub(_escape_character, message)
        super().__init__(message if len(message) <= _ERROR_LIMIT else message[: _ERROR_LIMIT - 1] + "…")


@dataclass(frozen=True)
class Action:
    """One thing to do in the browser, in canonical form as ``parse`` gives it."""

    name: str
    """Canonical name, a key of ``ACTIONS``."""
    element: str | None = None
    """Id of an element of the current observation, as text; None if the action is about no element."""
    argument: str | None = None
    """Text, key, option, address, tab index, or the message of ``Exit``; None if there is none."""


@dataclass(frozen=True)
class Reply:
    """A reply that was understood."""

    action: Action
    """The first call."""
    notes: tuple[str, ...] = ()
    """Texts of the ``# Note:`` lines before the call, in order."""
    element_note: str = ""
    """Text of the last ``# Element:`` line before the call."""
    ignored: str = ""
    """Further calls, as written, that were not run; empty if there was one call only."""


Need = Literal["none", "optional", "needed", "text"]
"""Whether an action takes a value; ``text`` is ``needed`` with the empty text allowed."""


@dataclass(frozen=True)
class ActionSpec:
    """What one action takes and does; the single source of the parser, the prompt and the refusals."""

    example: Action
    """An instance, whose name is the action's canonical name."""
    element: Need
    argument: Need
    description: str
    """One sentence for the prompt."""

    @property
    def takes(self) -> str:
        """The arguments in words, for a refusal."""
        words = []
        for keyword, need in (("argument", self.argument), ("element", self.element)):
            if need != "none":
                words.append(f"`{keyword}`" + (" (optional)" if need == "optional" else ""))
        return " and ".join(words) or "no arguments"


_SPECS = (
    ActionSpec(Action("Click", "12"), "needed", "none", "Click the element with this id."),
    ActionSpec(Action("Hover", "12"), "needed", "none", "Move the mouse over the element, to open its menu."),
    ActionSpec(Action("Type", "5", "kettle"), "needed", "text", 'Replace the text of a field; "" clears it.'),
    ActionSpec(Action("Search", "5", "kettle"), "needed", "text", "Type into a field, then press Enter."),
    ActionSpec(
        Action("Press", None, "Enter"),
        "optional",
        "needed",
        'Press Enter; any other key: do(action="Press", argument="Escape").',
    ),
    ActionSpec(Action("Scroll Up"), "optional", "none", "Scroll the page, or a given element, up."),
    ActionSpec(Action("Scroll Down"), "optional", "none", "Scroll the page, or a given element, down."),
    ActionSpec(Action("Select Dropdown Option", "7", "Month"), "needed", "text", "Choose a list's option."),
    ActionSpec(Action("New Tab"), "none", "optional", "Open a tab, at the address in argument if given."),
    ActionSpec(Action("Tab Focus", None, "1"), "none", "needed", "Go to the tab with this number, from 0."),
    ActionSpec(Action("Close Tab"), "none", "none", "Close the current tab."),
    ActionSpec(Action("Goto", None, "http://shop.localhost/cart"), "none", "needed", "Open an address."),
    ActionSpec(Action("Go Back"), "none", "none", "Go back to the previous page."),
    ActionSpec(Action("Go Forward"), "none", "none", "Go forward to the next page."),
    ActionSpec(Action("Wait"), "none", "none", "Wait a moment for the page."),
    ActionSpec(Action("Exit", None, "42"), "none", "text", 'End the task with the answer, "N/A" if impossible.'),
)

ACTIONS: dict[str, ActionSpec] = {spec.example.name: spec for spec in _SPECS}
"""Every action by its canonical name, in the order of the prompt."""

_CALL_NAMES = {"go_backward": "Go Back", "go_back": "Go Back", "go_forward": "Go Forward"}
_OLD_NAMES = {"gobackward": "Go Back", "switchtab": "Tab Focus"}
_BY_FOLDED_NAME = {name.lower().replace(" ", ""): name for name in ACTIONS} | _OLD_NAMES

# The repeats are possessive (`*+`), so that no reply makes a pattern go back and forth: the parse is linear.
_NAME = r"((?ai:do|exit|go_backward|go_forward|go_back))[^\S\n]*+\("
_CALL_LINE = re.compile(rf"^[^\S\n]*+`{{0,3}}+[^\S\n]*+{_NAME}", re.MULTILINE)
_CALL_ON_SAME_LINE = re.compile(rf"(?:[^\S\n]|[;,`]|<\|[^|>\n]*+\|>)*+{_NAME}")
_COMMENT = re.compile(r"[^\S\n]*+#++[^\S\n]*+(element|note)[^\S\n]*+:(.*+)", re.IGNORECASE | re.DOTALL)
_BLANK = re.compile(r"(?:\s++|#[^\n]*+)*+")
_KEYWORD = re.compile(r"([^\W\d]\w*+)\s*+=(?!=)")
_SCALAR = re.compile(r"(None|True|False|[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)(?=[\s,)#]|\Z)")
_STRING = re.compile(
    r'"""(?P<d3>(?:[^"\\]|\\.|"(?!""))*+)"""'
    r"|'''(?P<s3>(?:[^'\\]|\\.|'(?!''))*+)'''"
    r'|"(?!"")(?P<d1>(?:[^"\\]|\\.)*+)"'
    r"|'(?!'')(?P<s1>(?:[^'\\]|\\.)*+)'",
    re.DOTALL,
)
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rf"""{_PAIR}|\\u[0-9a-fA-F]{{4}}|\\[\\"'ntr]|\\(?s:.)""")
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\'": "'", r"\n": "\n", r"\t": "\t", r"\r": "\r"}
_WRITTEN = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def parse(reply: str) -> Reply:
    """Read one reply.

    Args:
        reply: what the policy wrote, of any length.

    Returns:
        The first action with the notes before it.

    Raises:
        ActionError: the reply holds no call, or one that the grammar refuses. Nothing else is ever raised.
    """
    match = _CALL_LINE.search(reply)
    if match is None:
        raise ActionError(
            "The reply holds no action. Write one call at the start of a line, for example "
            'do(action="Click", element="12") or exit(message="...").'
        )
    notes, element_note = _comments(reply[: match.start()])
    arguments, end = _arguments(reply, match.end())
    name = match[1].lower()
    if name == "do":
        action = _do(arguments)
    elif name == "exit":
        action = _exit(arguments)
    elif arguments:
        raise ActionError(f"`{name}` takes no arguments, got {len(arguments)}. Write {name}().")
    else:
        action = Action(_CALL_NAMES[name])
    further = _CALL_ON_SAME_LINE.match(reply, end) or _CALL_LINE.search(reply, end)
    return Reply(action, notes, element_note, reply[further.start(1) :].strip() if further else "")


def format_action(action: Action) -> str:
    """Write an action as the call that ``parse`` reads back equal, on one line.

    Args:
        action: any text is allowed in ``argument``; white space around ``element`` is not kept.

    Raises:
        ActionError: the action is unknown or lacks what it needs.
    """
    action = _build(action.name, action.element, action.argument)
    if action.name == "Exit":
        return f"exit(message={_quote(action.argument or '')})"
    if action.name == "Go Back":
        return "go_backward()"
    if action.name == "Go Forward":
        return "go_forward()"
    if action == Action("Press", argument="Enter"):
        return 'do(action="Press Enter")'
    parts = [f"action={_quote(action.name)}"]
    if action.argument is not None:
        parts.append(f"argument={_quote(action.argument)}")
    if action.element is not None:
        parts.append(f"element={_quote(action.element)}")
    return f"do({', '.join(parts)})"


def format_reply(action: Action, element_note: str = "", notes: Iterable[str] = ()) -> str:
    """Write a whole reply: the ``# Note:`` lines, the ``# Element:`` line, then the call.

    Args:
        action: the action.
        element_note: words for the element; no line if empty.
        notes: facts to remember. Line breaks inside a note become spaces, empty notes are left out.
    """
    lines = [f"# Note: {note}" for note in map(_one_line, notes) if note]
    if _one_line(element_note):
        lines.append(f"# Element: {_one_line(element_note)}")
    return "\n".join([*lines, format_action(action)])


def supporting_line(page: str, answer: str, hints: Iterable[str] = ()) -> str:
    """Return the line of a page that holds an answer, for the ``# Note:`` line before an ``exit``.

    A model that first repeats the line reads the answer off its own words, and a reader sees where it comes from.

    Args:
        page: text of a page in mode ``lite``.
        answer: the answer; parts of a list are separated by ``", "``.
        hints: words of the question; among several lines with the answer, the one with most of them is taken.

    Returns:
        The line, with the line before it if it is nothing but the answer; empty if no line holds all of it.
    """
    lines = page.split("\n")[1:]  # the first is the address
    parts = answer.split(", ")
    inside = re.compile(rf"(?<!\w)(?<!\d[.,]){re.escape(answer)}(?!\w|[.,]\d)")
    found: list[tuple[int, int, int]] = []
    for number, line in enumerate(lines):
        cells = _cells(line)
        whole = answer in cells or set(parts) <= cells
        if whole or inside.search(re.sub(r" \[\d+\]", "", line)):
            known = sum(hint.lower() in line.lower() for hint in hints if hint)
            found.append((known, whole, -number))
    if not answer or not found or (len(found) > 3 and max(found)[:2] == (0, 0)):
        return ""
    number = -max(found)[2]
    return f"{lines[number - 1]} | {lines[number]}" if lines[number] == answer and number else lines[number]


def _cells(line: str) -> set[str]:
    """Return what stands between the separators of a line, without ids and keys."""
    texts = [re.sub(r" \[\d+\].*$", "", cell) for cell in line.removeprefix("= ").split(" | ")]
    return {*texts, *(text.split(": ", 1)[1] for text in texts if ": " in text)}


def describe() -> str:
    """Return the prompt's action list: for each action an example call and its sentence, one line each."""
    return "\n".join(f"{format_action(spec.example)}  {spec.description}" for spec in _SPECS)


def _comments(before: str) -> tuple[tuple[str, ...], str]:
    """Return the notes and the element note among the lines before the call."""
    notes, element_note = [], ""
    for line in before.split("\n"):
        if not (match := _COMMENT.match(line)) or not (text := match[2].strip()):
            continue
        if match[1].lower() == "note":
            notes.append(text)
        else:
            element_note = text
    return tuple(notes), element_note


def _arguments(text: str, at: int) -> tuple[list[tuple[str, str | None]], int]:
    """Read the arguments from behind the opening parenthesis.

    Returns:
        (keyword, value) pairs, keyword "" for a positional one, value None for ``None``; and the position
        behind the closing parenthesis.
    """
    arguments: list[tuple[str, str | None]] = []
    while True:
        at = _BLANK.match(text, at).end()
        if text.startswith(")", at):
            return arguments, at + 1
        keyword = ""
        if match := _KEYWORD.match(text, at):
            keyword, at = match[1], _BLANK.match(text, match.end()).end()
        if match := _STRING.match(text, at):
            value = _unescape(match[match.lastgroup], match[0][0])
        elif match := _SCALAR.match(text, at):
            value = None if match[1] == "None" else match[1]
        else:
            _refuse_value(text, at)
        arguments.append((keyword, value))
        at = _BLANK.match(text, match.end()).end()
        if text.startswith(",", at):
            at += 1
        elif not text.startswith(")", at):
            if at == len(text):
                raise ActionError('The call is not closed: ")" is missing at its end.')
            raise ActionError(
                f'After a value comes "," or ")", got {_shown(text[at:])}. A quote in a text is written \\".'
            )


def _refuse_value(text: str, at: int) -> NoReturn:
    if at == len(text):
        raise ActionError('The call is not closed: a value and ")" are missing at its end.')
    if text[at] in "\"'":
        raise ActionError(f"The text {_shown(text[at:])} has no closing quote.")
    raise ActionError(f'A value must be a quoted text or a number, got {_shown(text[at:])}. Write it as "...".')


def _do(arguments: list[tuple[str, str | None]]) -> Action:
    """Build the action of a ``do`` call."""
    given: dict[str, str | None] = {}
    for keyword, value in arguments:
        if not keyword:
            raise ActionError(
                "`do` takes keywords only: action=, argument=, element=. "
                'For example do(action="Type", argument="blue kettle", element="5").'
            )
        if keyword in given:
            raise ActionError(f"`{_cut(keyword)}` is given twice. Give it once.")
        given[keyword] = value
    name = given.pop("action", None)
    if not name:
        raise ActionError(f'`do` needs action="...", one of: {", ".join(_do_names())}.')
    element, argument = given.pop("element", None), given.pop("argument", None)
    folded = re.sub("[ _-]", "", name.strip().lower())
    if folded == "pressenter":
        if argument:
            raise ActionError('Press Enter takes no argument. Other keys: do(action="Press", argument="Escape").')
        name, argument = "Press", "Enter"
    elif folded in _BY_FOLDED_NAME:
        name = _BY_FOLDED_NAME[folded]
    if name == "Exit":
        raise ActionError('`Exit` is no action of `do`. To end the task write exit(message="...").')
    if given and name in ACTIONS:
        unknown = _cut(next(iter(given)))
        raise ActionError(f"{name} takes {ACTIONS[name].takes}, got the unknown keyword `{unknown}`.")
    return _build(name, element, argument)


def _exit(arguments: list[tuple[str, str | None]]) -> Action:
    """Build the action of an ``exit`` call."""
    if len(arguments) > 1:
        raise ActionError(f'`exit` takes one `message`, got {len(arguments)} arguments. Write exit(message="...").')
    for keyword, value in arguments:
        if keyword not in ("", "message"):
            raise ActionError(f'`exit` takes `message`, got `{_cut(keyword)}`. Write exit(message="...").')
        return Action("Exit", argument=value or "")
    return Action("Exit", argument="")


def _build(name: str, element: str | None, argument: str | None) -> Action:
    """Return the action in canonical form, or refuse it."""
    if name not in ACTIONS:
        near = difflib.get_close_matches(_cut(name).title(), ACTIONS, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ActionError(f"There is no action {_shown(name)}.{hint} Actions: {', '.join(_do_names())}.")
    spec = ACTIONS[name]
    element = (element or "").strip() or None
    if name == "Tab Focus":
        argument, element = _tab_index(argument, element), None
    for keyword, value, need in (("element", element, spec.element), ("argument", argument, spec.argument)):
        problem = ""
        if need == "none" and value:
            problem = f"no `{keyword}`, got {_shown(value)}"
        elif need == "needed" and not value or need == "text" and value is None:
            problem = f"`{keyword}` is missing"
        if problem:
            raise ActionError(f"{name} takes {spec.takes}: {problem}. For example {format_action(spec.example)}.")
    if spec.argument != "text":
        argument = argument or None
    return Action(name, element, argument)


def _tab_index(argument: str | None, element: str | None) -> str | None:
    """Return the index of a ``Tab Focus``, which models write as ``argument`` or as ``element``."""
    argument = (argument or "").strip() or None
    if argument and element and argument != element:
        raise ActionError(f"Tab Focus takes one tab number, got {_shown(argument)} and {_shown(element)}.")
    index = argument or element
    if index and not re.fullmatch("[0-9]{1,9}", index):
        raise ActionError(f"Tab Focus takes the number of a tab, from 0, got {_shown(index)}.")
    return index


def _do_names() -> list[str]:
    return [name for name in ACTIONS if name != "Exit"]


def _unescape(body: str, quote: str) -> str:
    r"""Return the text of a string literal; one unknown escape (``\U``) makes the whole of it raw."""
    if "\\" not in body:
        return body
    escapes = _ESCAPE.findall(body)
    if all(escape in _ESCAPES or escape.startswith(r"\u") and len(escape) > 2 for escape in escapes):
        return _ESCAPE.sub(lambda match: _character(match[0]), body)
    # pairs first, so that in raw text, too, a backslash that is itself escaped does not escape the quote
    return re.sub(r"\\(?s:.)", lambda match: quote if match[0][1] == quote else match[0], body)


def _character(escape: str) -> str:
    if escape in _ESCAPES:
        return _ESCAPES[escape]
    if len(escape) == 12:  # both halves of a surrogate pair
        high, low = int(escape[2:6], 16), int(escape[8:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    return chr(int(escape[2:], 16))


def _quote(text: str) -> str:
    """Return a string literal on one line that ``_unescape`` reads back equal."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{_UNPRINTABLE.sub(_escape_character, escaped)}"'


def _escape_character(match: re.Match[str]) -> str:
    return _WRITTEN.get(match[0], f"\\u{ord(match[0]):04x}")


def _one_line(text: str) -> str:
    return " ".join(part.strip() for part in re.split("[\r\n]+", text)).strip()


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


def _shown(text: str) -> str:
    return f'"{_cut(text)}"'
