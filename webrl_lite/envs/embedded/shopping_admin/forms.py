"""What was typed into the admin's forms: read, checked, and kept for showing again.

Dates are typed as ``MM/DD/YYYY`` and stored as ISO text; money is typed in dollars and stored in cents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date

DATE = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})", re.ASCII)
MONEY = re.compile(r"\$?(\d{1,7})(?:\.(\d{1,2}))?", re.ASCII)


def parse_date(text: str) -> str | None:
    """Return ``06/03/2025`` as ``2025-06-03``, or None if it is not a date of this form."""
    match = DATE.fullmatch(text)
    if match is None:
        return None
    month, number, year = (int(part) for part in match.groups())
    try:
        return date(year, month, number).isoformat()
    except ValueError:
        return None


def parse_cents(text: str) -> int | None:
    """Return ``12.5``, ``12.50`` or ``$12.50`` as 1250, or None if it is not an amount."""
    match = MONEY.fullmatch(text.replace(",", ""))
    return int(match[1]) * 100 + int((match[2] or "0").ljust(2, "0")) if match else None


def typed_date(stamp: str) -> str:
    """Return ``2025-06-03`` as ``06/03/2025``, the form in which dates are typed."""
    year, month, number = stamp[:10].split("-")
    return f"{month}/{number}/{year}"


def typed_money(cents: int | None) -> str:
    """Return 1250 as ``12.50``, the form in which prices are typed; None as an empty text."""
    return "" if cents is None else f"{cents / 100:.2f}"


class Form:
    """One form's fields: the values as typed, and the rules that they break."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """Take the fields, without their outer space.

        Args:
            values: the sent fields by name.
        """
        self.values = {name: value.strip() for name, value in values.items()}
        self.errors: list[str] = []

    def text(self, name: str, label: str) -> str:
        """Return a text that must not be empty."""
        value = self.values.get(name, "")
        if not value:
            self.errors.append(f"{label} is a required field.")
        return value

    def match(self, name: str, label: str, pattern: str, rule: str) -> str:
        """Return a text of a form that a regular expression gives; ``rule`` says it in words."""
        value = self.text(name, label)
        if value and not re.fullmatch(pattern, value, re.ASCII):
            self.errors.append(f"{label} must be {rule}.")
        return value

    def whole(self, name: str, label: str, low: int, high: int) -> int:
        """Return a whole number between two bounds."""
        value = self.text(name, label)
        number = int(value) if re.fullmatch(r"\d{1,7}", value, re.ASCII) else None
        if value and (number is None or not low <= number <= high):
            self.errors.append(f"{label} must be a whole number from {low} to {high}.")
        return number or 0

    def cents(self, name: str, label: str, *, optional: bool = False) -> int | None:
        """Return an amount in cents; None where an optional one is empty."""
        if optional and not self.values.get(name):
            return None
        value = self.text(name, label)
        amount = parse_cents(value)
        if value and amount is None:
            self.errors.append(f"{label} must be a number, for example 12.50.")
        return amount

    def date(self, name: str, label: str, *, optional: bool = False) -> str | None:
        """Return a date as ISO text; None where an optional one is empty."""
        if optional and not self.values.get(name):
            return None
        value = self.text(name, label)
        day = parse_date(value)
        if value and day is None:
            self.errors.append(f"{label} must be a date as MM/DD/YYYY.")
        return day

    def choice(self, name: str, label: str, options: Sequence[str]) -> str:
        """Return one of the options."""
        value = self.values.get(name, "")
        if value not in options:
            self.errors.append(f"{label} must be one of {', '.join(options)}.")
        return value
