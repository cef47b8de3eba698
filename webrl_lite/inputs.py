"""What agents write into fields and press on keyboards, in the forms that a browser takes. Standard library only."""

from __future__ import annotations

import re
from datetime import datetime

from webrl_lite.actions import ActionError

_KEYS = {
    name.lower(): name
    for name in (
        "Enter Escape Tab Backspace Delete Insert Home End PageUp PageDown ArrowUp ArrowDown ArrowLeft ArrowRight "
        "Space Control Shift Alt Meta F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12"
    ).split()
}
_KEY_ALIASES = {
    **{"return": "Enter", "esc": "Escape", "del": "Delete", "ins": "Insert", "ctrl": "Control", "cmd": "Meta"},
    **{"up": "ArrowUp", "down": "ArrowDown", "left": "ArrowLeft", "right": "ArrowRight", "command": "Meta"},
    **{"pgup": "PageUp", "pgdn": "PageDown", "pgdown": "PageDown", "option": "Alt", "spacebar": "Space"},
    **{"bksp": "Backspace", "win": "Meta", "super": "Meta", "plus": "+"},
}

_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y", "%d.%m.%Y", "%Y.%m.%d", "%Y%m%d"),
    *("%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y", "%d-%b-%Y", "%Y %b %d", "%Y %B %d"),
)
_TIMES = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p", "%I %p")
_MONTHS = ("%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y", "%m.%Y", "%b %Y", "%B %Y", "%Y %b", "%Y %B")


def iso_value(kind: str, text: str) -> str | None:
    """Turn a date or time as people write it into the form that an HTML input holds.

    Args:
        kind: ``date``, ``time``, ``month``, ``week`` or ``datetime-local``.
        text: for example ``10/16/2012``, ``16 Oct 2012``, ``October 16th, 2012``, ``2:30 PM``, ``10/2012``,
            ``week 42, 2012``, ``10/16/2012 2:30 pm``. Years have four digits.

    Returns:
        The ISO form, or None if the text cannot be read. "10/11/2012" is the 11th of October (month first),
        "16/10/2012" and "10.11.2012" have the day first.
    """
    text = re.sub(r"(?<=\d)(st|nd|rd|th)\b", "", text.strip(), flags=re.IGNORECASE)
    text = re.sub(r"\bsept\b", "Sep", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<=\d)\s*([ap])\.?\s*m\b\.?", r" \1m", text.lower()).upper()
    text = " ".join(re.sub(r"(?<=[A-Z])\.(?=\s)", "", text.replace(",", " ")).split())
    if kind == "week":
        match = re.fullmatch(r"(\d{4})[- ]?W(?:EEK)? ?(\d{1,2})|W(?:EEK)? ?(\d{1,2})(?: OF)? (\d{4})", text)
        if not match:
            return None
        year, week = int(match[1] or match[4]), int(match[2] or match[3])
        return f"{year}-W{week:02d}" if 1 <= week <= 53 else None
    if kind == "datetime-local":
        match = re.fullmatch(r"(.+?)(?:[T ]| AT )(\d{1,2}(?::\d\d){0,2}(?:\.\d+)?(?: [AP]M)?)", text)
        day = iso_value("date", match[1]) if match else None
        clock = iso_value("time", match[2]) if match else None
        return f"{day}T{clock}" if day and clock else None
    formats = {"date": _DATES, "time": _TIMES, "month": _MONTHS}[kind]
    for form in formats:
        try:
            moment = datetime.strptime(text, form)
        except ValueError:
            continue
        if kind == "time":
            return moment.strftime("%H:%M:%S" if moment.second else "%H:%M")
        return f"{moment.year:04d}-{moment.month:02d}" + (f"-{moment.day:02d}" if kind == "date" else "")
    return None


def key_name(text: str) -> str:
    """Return the browser's name of a key or a combination such as ``ctrl+a``.

    Raises:
        ActionError: there is no such key; the line lists the names.
    """
    wanted = "Space" if text and not text.strip(" ") else text.strip()
    parts = re.split(r"(?<=[^+])\+(?=.)|(?<=\+)\+(?=\+)", wanted) if len(wanted) > 1 else [wanted]
    keys = []
    for part in (p.strip() for p in parts):
        bare = re.sub(r"[\s_-]", "", part).lower()
        key = part if len(part) == 1 else _KEYS.get(bare) or _KEY_ALIASES.get(bare)
        if not key or (len(key) == 1 and not key.isprintable()):
            names = ", ".join(_KEYS.values())
            raise ActionError(f"There is no key `{text[:40]}`. Keys: {names}, single characters, and e.g. Control+a.")
        keys.append(key)
    modifiers = {"Control", "Shift", "Alt", "Meta"}
    if any(key not in modifiers for key in keys[:-1]):
        raise ActionError(f"`{text[:40]}` is not a key combination: only Control, Shift, Alt and Meta come before a +.")
    if len(keys) > 1 and "Shift" not in keys[:-1] and len(keys[-1]) == 1:
        keys[-1] = keys[-1].lower()
    return "+".join(keys)
