"""Grading by what changed in the database: the eval type ``database`` of our own sites.

Reads the expected changes of a task and the changes that an episode made, and says what does not fit. A
task says::

    "database": {
        "changes": [{"table": "shop_wishlist", "op": "insert", "values": {"sku": "K-12"}},
                    {"table": "shop_orders", "op": "update", "key": {"id": 7},
                     "values": {"status": "canceled"}, "free": ["updated_at"]}],
        "allow": [{"table": "shop_log", "op": "insert"}]}

The rule: every expected change is made by exactly ``count`` (default 1) different changes, and nothing else
changed but what ``allow`` lists.

- ``insert``: the new row has ``values``; columns that are not named may hold anything.
- ``update``: the row that ``key`` names (by key columns or by columns as they were before) has ``values``
  now, and no column changed but those in ``values`` and ``free``. An update that changes nothing does not
  count as a change.
- ``delete``: the removed row had ``values`` and ``key``.
- A value is a plain value, ``{"must_include": [phrases]}`` or ``{"one_of": [values]}``. Numbers and numeric
  texts are compared as numbers if one side is a number (3 is "3"); texts by their text, where white space
  counts as one space and letter case counts; null only equals null.
- What ``allow`` lists is neither required nor forbidden, but it does not excuse a change too many of a kind
  that is expected.

Source: ours; the idea of grading state differences is that of REAL (``agisdk``) and OpenApps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

Scalar = None | bool | int | float | str
Row = Mapping[str, Scalar]
Change = Mapping[str, str | Row | None]
"""``{"table", "op", "key": row, "before": row or None, "after": row or None}``; op is insert, update or delete."""


def misfits(
    expected: Sequence[Mapping[str, object]],
    allowed: Sequence[Mapping[str, str]],
    changes: Sequence[Change],
    includes: Callable[[str, str], bool],
) -> list[str]:
    """Compare the changes of an episode with those that a task asks for.

    Args:
        expected: the task's ``changes``.
        allowed: the task's ``allow``.
        changes: what the episode changed.
        includes: (phrase, text), the comparison behind ``must_include``.

    Returns:
        One line for each change that is missing or too many; empty if the task is solved.
    """
    changes = [change for change in changes if change["op"] != "update" or _changed_columns(change)]
    wanted = [change for change in expected for _ in range(change.get("count", 1))]
    fits = [[n for n, change in enumerate(changes) if _fits(want, change, includes)] for want in wanted]
    owner: dict[int, int] = {}  # change -> index in `wanted`
    lines = []
    for index, want in enumerate(wanted):
        if not _assign(index, fits, owner, set()):
            lines.append(f"missing: {want['op']} in {want['table']} with {want.get('values', {})}")
    for n, change in enumerate(changes):
        if n in owner:
            continue
        excused = {"table": change["table"], "op": change["op"]} in allowed
        if not excused or any(n in candidates for candidates in fits):
            lines.append(f"too many: {change['op']} in {change['table']}, key {change.get('key')}")
    return lines


def _assign(index: int, fits: list[list[int]], owner: dict[int, int], seen: set[int]) -> bool:
    """Give a wanted change one of the changes that fit, moving others over (augmenting path)."""
    for n in fits[index]:
        if n not in seen:
            seen.add(n)
            if n not in owner or _assign(owner[n], fits, owner, seen):
                owner[n] = index
                return True
    return False


def _fits(want: Mapping[str, object], change: Change, includes: Callable[[str, str], bool]) -> bool:
    if (want["table"], want["op"]) != (change["table"], change["op"]):
        return False
    before, after = change.get("before") or {}, change.get("after") or {}
    values = want.get("values", {})
    identity = {**before, **(change.get("key") or {})}
    named = {**identity} if want["op"] == "delete" else after
    if want["op"] == "update" and not _changed_columns(change) <= {*values, *want.get("free", ())}:
        return False
    return _row_fits(want.get("key", {}), identity, includes) and _row_fits(values, named, includes)


def _changed_columns(change: Change) -> set[str]:
    before, after = change.get("before") or {}, change.get("after") or {}
    return {column for column in {*before, *after} if before.get(column) != after.get(column)}


def _row_fits(wanted: Mapping[str, object], row: Row, includes: Callable[[str, str], bool]) -> bool:
    return all(column in row and _value_fits(value, row[column], includes) for column, value in wanted.items())


def _value_fits(wanted: object, got: Scalar, includes: Callable[[str, str], bool]) -> bool:
    if isinstance(wanted, Mapping):
        if "one_of" in wanted:
            return any(_equal(value, got) for value in wanted["one_of"])
        return got is not None and all(includes(phrase, str(got)) for phrase in wanted["must_include"])
    return _equal(wanted, got)


def _equal(wanted: Scalar, got: Scalar) -> bool:
    if wanted is None or got is None:
        return wanted is got
    if isinstance(wanted, str) and isinstance(got, str):
        return " ".join(wanted.split()) == " ".join(got.split())
    try:
        return _decimal(wanted) == _decimal(got)
    except InvalidOperation:
        return False


def _decimal(value: Scalar) -> Decimal:
    return Decimal(value.strip() if isinstance(value, str) else str(int(value) if isinstance(value, bool) else value))
