"""Typed values in plain text, and addresses: does an answer state what the reference states?

Compares two texts for the ``strict`` evaluator (``evaluators.py``). ``same`` asks whether the whole answer is
the reference, ``includes`` whether a phrase occurs in a text as whole tokens. Both read numbers, money,
percentages, dates, durations and distances by value, so that "$0.00" meets "0" and "1h 45min" meets
"105 minutes"; everything else is compared as text. Nothing is guessed:

- *Text*: letter case, white space, canonical Unicode form, typographic quotes and one pair of outer quotes
  do not count. Everything else does ("Blue Kettle" is not "Blue Kettle™").
- *Whole tokens*: a phrase ends where its word ends. ``- . @`` between word characters join them, so "Green"
  is not in "Green-vines" and "170" is neither in "1700" nor in "170.5", but both stand in "Green, 170.".
- *Numbers*: "1,234.50", "-3", ".5", number words below a million ("twenty-one"). Zeros in front do not
  count: "000000170" is 170.
- *Units*: a reference without a unit is met by the same number with any unit ("21" by "21 inches", "0" by
  "$0.00"); a unit in the reference must be met, except that a bare number meets an amount of money.
- *Dates*: "Oct 21st", "21 October 2023", "October 21, 2023", "2023-10-21", "10/21/2023". A reference
  without a year is met by any year; a year in the reference must be met. "03/04/2023" could be two days, so
  it is no date and only equals itself. A day is never found inside a date, its year is.
- *Durations*: "1h 45min", "1 hour and 45 minutes", "105 min", "1h45m"; a lone "45m" is a distance, and
  "1:45" (a time of day? minutes?) is only text.
- *Distances*: mm, cm, m, km, inches, feet, yards, miles.
- *Addresses* (``same_url``, ``contains_url``): letter case of scheme and host, the default port,
  "localhost" for "127.0.0.1", percent-encoding, order of the query, double and final slashes do not count;
  a fragment counts only if the reference has one.

Source: the typed comparison is ours; the flaws that it repairs were reported for WebArena's rules
(web-arena-x/webarena#211, #134, visualwebarena#41, #71, #84).
"""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import parse_qsl, unquote, urlsplit

_STRAIGHT = str.maketrans("‘’‚‛ʼ′“”„‟«»″\u2212\u2010\u2011", '\'\'\'\'\'\'"""""""---', "\u200b\u200c\u200d\ufeff\xad")


@dataclass(frozen=True)
class Quantity:
    """An amount with its unit."""

    kind: str
    """``number``, ``money``, ``percent``, ``duration`` or ``distance``."""
    amount: Decimal
    """In the kind's base unit: seconds for a duration, metres for a distance."""
    written: Decimal | None
    """The number as it stands in the text; None for a duration of several parts."""
    currency: str = ""


@dataclass(frozen=True)
class Date:
    """A day of the calendar; the year may be left open."""

    month: int
    day: int
    year: int | None = None


Atom = str | Quantity | Date
"""A word, or a value."""

# --- the lexicon -------------------------------------------------------------------------------------------

_LEFT, _RIGHT = r"(?<!\w)(?<!\w[-.@])", r"(?!\w)(?![-.@]\w)"
_NUMBER = r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)"

_MONTHS = "jan(?:uary)? feb(?:ruary)? mar(?:ch)? apr(?:il)? may june? july? aug(?:ust)? sept?(?:ember)?".split()
_MONTHS += "oct(?:ober)? nov(?:ember)? dec(?:ember)?".split()
_MONTH = rf"(?:{'|'.join(_MONTHS)})\b\.?"
_DAY, _YEAR = r"[0-9]{1,2}(?:st|nd|rd|th)?", r"[0-9]{4}"

_SECONDS = {"week": 604800, "day": 86400, "hour": 3600, "hr": 3600, "h": 3600}
_SECONDS |= {"minute": 60, "min": 60, "m": 60, "second": 1, "sec": 1, "s": 1}
_PART = rf"{_NUMBER}\s?(?:(?:week|day|hour|hr|minute|min|second|sec)s?|h)(?![a-z])"
_AND = r"(?:,?\s(?:and\s)?)?"

_METRES = {"mm": "0.001", "millimeter": "0.001", "cm": "0.01", "centimeter": "0.01", "m": "1", "meter": "1"}
_METRES |= {
    "km": "1000",
    "kilometer": "1000",
    "inch": "0.0254",
    "in": "0.0254",
    "ft": "0.3048",
    "foot": "0.3048",
}
_METRES |= {"feet": "0.3048", "yd": "0.9144", "yard": "0.9144", "mi": "1609.344", "mile": "1609.344"}
_DISTANCE = r"(?:(?:milli|centi|kilo)?met(?:er|re)s?|inch(?:es)?|foot|feet|yards?|miles?|mm|cm|km|ft|yd|mi|m)"

_CURRENCIES = {"$": "USD", "usd": "USD", "dollar": "USD", "€": "EUR", "eur": "EUR", "euro": "EUR"}
_CURRENCIES |= {"£": "GBP", "gbp": "GBP", "¥": "JPY", "jpy": "JPY", "yen": "JPY"}
_CURRENCY = r"(?:[$€£¥]|(?:usd|eur|gbp|jpy|dollars?|euros?|yen)(?!\w))"

_SCAN = re.compile(
    rf"""
    (?P<date>{_LEFT}(?:
        {_MONTH}\s{_DAY}(?:,?\s{_YEAR})?
      | {_DAY}\s(?:of\s)?{_MONTH}(?:,?\s{_YEAR})?
      | {_YEAR}[-/][0-9]{{1,2}}[-/][0-9]{{1,2}}
      | [0-9]{{1,2}}[-/.][0-9]{{1,2}}[-/.]{_YEAR}
    ){_RIGHT}(?!/\w))
  | (?P<text>[0-9]+(?:[:/][0-9]+){{2,}}|[0-9]+:[0-9]+)
  | (?P<money>{_LEFT}-?(?:{_CURRENCY}\s?-?{_NUMBER}|{_NUMBER}\s?{_CURRENCY}){_RIGHT})
  | (?P<percent>{_LEFT}-?{_NUMBER}\s?(?:%|percent{_RIGHT}))
  | (?P<duration>{_LEFT}(?:
        {_NUMBER}\s?(?:hours?|hrs?|h){_AND}[0-9]+\s?m(?:{_AND}[0-9]+\s?s)?
      | [0-9]+\s?m{_AND}[0-9]+\s?s
      | {_PART}(?:{_AND}{_PART}){{0,4}}
    ){_RIGHT})
  | (?P<distance>{_LEFT}{_NUMBER}\s?{_DISTANCE}{_RIGHT})
  | (?P<number>{_LEFT}-?{_NUMBER}{_RIGHT})
  | (?P<word>\w+(?:[-.@]\w+)*)
    """,
    re.VERBOSE,
)

_UNITS = "one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {"zero": 0, **{word: n for n, word in enumerate([*_UNITS, *_TEENS], 1)}}
_WORDS |= {word: 10 * n for n, word in enumerate(_TENS, 2)}
_UNIT, _TEN = "|".join(_UNITS), "|".join(_TENS)
_SMALL = rf"(?:(?:{_TEN})(?:[\s-](?:{_UNIT}))?|{'|'.join(_TEENS)}|{_UNIT}|zero)"
_HUNDREDS = rf"(?:(?:{_UNIT})\shundred(?:\s(?:and\s)?{_SMALL})?|{_SMALL})"
_NUMBER_WORDS = re.compile(rf"{_LEFT}{_HUNDREDS}(?:\sthousand(?:\s(?:and\s)?{_HUNDREDS})?)?{_RIGHT}")


# --- public ------------------------------------------------------------------------------------------------


def fold(text: str) -> str:
    """Return the text without what does not count: case, white space, kind of quotes, outer quotes."""
    text = " ".join(unicodedata.normalize("NFC", text).translate(_STRAIGHT).casefold().split())
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1].strip()
    return text


def same(reference: str, answer: str) -> bool:
    """Whether the whole answer is the reference: the same text, or one value that meets one value."""
    reference, answer = fold(reference), fold(answer)
    if reference == answer:
        return True
    expected, got = _whole_value(reference), _whole_value(answer)
    return expected is not None and got is not None and _meets(expected, got)


def includes(phrase: str, text: str) -> bool:
    """Whether a phrase stands in a text as whole tokens; values in the phrase are met by equal values.

    A phrase with a value in it is compared token by token without punctuation, any other as it is written.
    """
    phrase, text = fold(phrase), fold(text)
    wanted = atoms(phrase)
    if all(isinstance(atom, str) for atom in wanted):
        left = _LEFT if re.match(r"\w", phrase) else ""
        right = _RIGHT if re.search(r"\w$", phrase) else ""
        return bool(phrase) and re.search(left + re.escape(phrase) + right, text) is not None
    found = atoms(text)
    return any(
        all(_meets(expected, got) for expected, got in zip(wanted, found[start:], strict=False))
        for start in range(len(found) - len(wanted) + 1)
    )


def number(text: str) -> Decimal | None:
    """Return the number that a whole text states, with or without a unit; None if it is no single number."""
    value = _whole_value(fold(text))
    return value.written if isinstance(value, Quantity) else None


def within(sign: str, bound: Decimal, text: str) -> bool:
    """Whether a text is one number on the right side of a bound; ``sign`` is <, <=, ==, >= or >."""
    value = number(text)
    return (
        value is not None
        and {
            "<": value < bound,
            "<=": value <= bound,
            "==": value == bound,
            ">=": value >= bound,
            ">": value > bound,
        }[sign]
    )


def atoms(text: str) -> list[Atom]:
    """Return the words and values of a text in order, without punctuation."""
    return [atom for atom, _, _ in _spans(_digits(fold(text)))]


def meets_any(reference: Atom, found: list[Atom]) -> bool:
    """Whether one of the words and values found in an answer meets a word or value of the reference."""
    return any(_meets(reference, got) for got in found)


def same_url(reference: str, url: str) -> bool:
    """Whether two addresses are of the same page."""
    expected, got = _address(reference), _address(url)
    return (
        expected is not None
        and got is not None
        and (expected.site, expected.path, expected.query) == (got.site, got.path, got.query)
        and expected.fragment in ("", got.fragment)
    )


def contains_url(reference: str, url: str) -> bool:
    """Whether an address lies at or below a reference, with its query parameters among others."""
    expected, got = _address(reference), _address(url)
    return (
        expected is not None
        and got is not None
        and expected.site == got.site
        and got.path[: len(expected.path)] == expected.path
        and all(got.query.count(pair) >= expected.query.count(pair) for pair in expected.query)
        and expected.fragment in ("", got.fragment)
    )


# --- private -----------------------------------------------------------------------------------------------


def _meets(expected: Atom, got: Atom) -> bool:
    if isinstance(expected, Date):
        return (
            isinstance(got, Date)
            and (got.month, got.day) == (expected.month, expected.day)
            and expected.year in (None, got.year)
        )
    if isinstance(expected, str) or isinstance(got, str):
        return expected == got
    if isinstance(got, Date):  # "2023" is in "October 21, 2023"; its day and month are not numbers of their own
        return expected.kind == "number" and expected.amount == got.year
    if expected.kind == "number" or (expected.kind == "money" and got.kind == "number"):
        return expected.amount == got.written
    return (expected.kind, expected.currency, expected.amount) == (got.kind, got.currency, got.amount)


def _whole_value(text: str) -> Quantity | Date | None:
    """Return the value that makes up the whole of a folded text, but for a final stop."""
    text = _digits(text).strip(" .,;!?") if not text.startswith(".") else text
    spans = _spans(text)
    if len(spans) == 1 and not isinstance(spans[0][0], str) and spans[0][1:] == (0, len(text)):
        return spans[0][0]
    return None


def _spans(text: str) -> list[tuple[Atom, int, int]]:
    """Return (atom, start, end) of a folded text whose number words are digits."""
    spans: list[tuple[Atom, int, int]] = []
    at = 0
    while match := _SCAN.search(text, at):
        at = match.end()
        atom: Atom | None = match[0]
        if match.lastgroup == "date":
            atom = _date(match[0]) or match[0]
        elif match.lastgroup == "duration":
            atom, length = _duration(match[0])
            at = match.start() + length
        elif match.lastgroup in _READERS:
            atom = _READERS[match.lastgroup](match[0])
        spans.append((atom, match.start(), at))
    return spans


def _digits(text: str) -> str:
    """Write number words as digits: "one hundred and five" is "105"."""

    def value(match: re.Match[str]) -> str:
        total = current = 0
        for word in re.split(r"[\s-]", match[0]):
            if word == "hundred":
                current *= 100
            elif word == "thousand":
                total, current = current * 1000, 0
            elif word != "and":
                current += _WORDS[word]
        return str(total + current)

    return _NUMBER_WORDS.sub(value, text)


def _decimal(text: str) -> Decimal:
    amount = Decimal(re.search(_NUMBER, text)[0].replace(",", ""))
    return amount.copy_negate() if "-" in text else amount  # `-amount` would round to 28 digits


def _plain(kind: str) -> Callable[[str], Quantity]:
    return lambda text: Quantity(kind, _decimal(text), _decimal(text))


def _money(text: str) -> Quantity:
    word = re.search(_CURRENCY, text)[0]
    amount = _decimal(text)
    return Quantity("money", amount, amount, _CURRENCIES.get(word) or _CURRENCIES[word.rstrip("s")])


def _distance(text: str) -> Quantity:
    unit = re.search(r"[a-z]+", text)[0].replace("metre", "meter")
    amount = _decimal(text)
    per_unit = _METRES.get(unit) or _METRES.get(unit.removesuffix("s")) or _METRES[unit.removesuffix("es")]
    return Quantity("distance", amount * Decimal(per_unit), amount)


def _duration(text: str) -> tuple[Quantity, int]:
    """Return a duration and the length of its text; it ends where units stop falling (two in "5 s, 10 s")."""
    total, parts, length, last = Decimal(0), 0, 0, 10**9
    for match in re.finditer(rf"({_NUMBER})\s?([a-z]+)", text):
        seconds = _SECONDS.get(match[2]) or _SECONDS[match[2].removesuffix("s")]
        if seconds >= last:
            break
        written, last, parts, length = _decimal(match[1]), seconds, parts + 1, match.end()
        total += written * seconds
    return Quantity("duration", total, written if parts == 1 else None), length


def _date(text: str) -> Date | None:
    """Return the day, or None if the text could be two days or is none."""
    numbers = [int(digits) for digits in re.findall("[0-9]+", text)]
    name = re.search("[a-z]{3,}", re.sub("[0-9](st|nd|rd|th)", "", text))
    if name:
        month = next(n for n, pattern in enumerate(_MONTHS, 1) if re.fullmatch(pattern, name[0]))
        day, year = numbers[0], (numbers[1] if len(numbers) > 1 else None)
    elif numbers[0] > 31:
        year, month, day = numbers
    else:
        first, second, year = numbers
        if first != second and first <= 12 and second <= 12:
            return None
        month, day = (first, second) if first <= 12 else (second, first)
    if 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year or 2000, month)[1]:
        return Date(month, day, year)
    return None


_READERS: dict[str | None, Callable[[str], Quantity]] = {
    "money": _money,
    "distance": _distance,
    "number": _plain("number"),
    "percent": _plain("percent"),
}


@dataclass(frozen=True)
class _Address:
    """What of an address counts."""

    site: tuple[str, str, int | None]
    path: tuple[str, ...]
    query: tuple[tuple[str, str], ...]
    fragment: str


def _address(url: str) -> _Address | None:
    try:
        parts = urlsplit(url.strip())
        scheme, host, port = parts.scheme.lower(), (parts.hostname or "").rstrip("."), parts.port
    except ValueError:  # a port or a bracket that cannot be
        return None
    if host == "localhost":
        host = "127.0.0.1"
    if (scheme, port) in (("http", 80), ("https", 443)):
        port = None
    path: list[str] = []
    for segment in parts.path.split("/"):
        if segment == "..":
            path = path[:-1]
        elif segment not in ("", "."):
            path.append(unquote(segment))
    query = tuple(sorted(parse_qsl(parts.query, keep_blank_values=True)))
    return _Address((scheme, host, port), tuple(path), query, unquote(parts.fragment))
