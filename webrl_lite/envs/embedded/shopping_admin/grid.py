"""The admin's grids: a table with filters, keyword search, sorting, paging and mass actions, all in the URL.

A grid is a description (``Grid``); ``show`` turns it and the request's query into a page. The address of a filtered
grid holds only what was filled in: a form's empty fields are dropped by a redirect.
"""

from __future__ import annotations

from dataclasses import dataclass

from flask import redirect, render_template, request
from werkzeug.wrappers import Response

from webrl_lite.envs.embedded.shopping_admin.forms import Form
from webrl_lite.envs.embedded.site import paginate, query, with_query

PAGE_SIZES = (10, 20, 50)


@dataclass(frozen=True)
class Column:
    """One column of a grid."""

    key: str
    """Column of the grid's source, and its name in the URL's ``sort``."""
    label: str
    kind: str = "text"
    """``text``, ``number``, ``money`` (cents) or ``day`` (ISO date or time)."""


@dataclass(frozen=True)
class Filter:
    """One filter: a field, or a pair of fields ``<key>_from`` and ``<key>_to``."""

    key: str
    """Column of the grid's source."""
    label: str
    kind: str = "text"
    """``text`` (contains), ``choice`` (equals), ``date``, ``money`` or ``number`` (from and to)."""
    options: tuple[str, ...] = ()
    """What a ``choice`` offers."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of its fields in the URL."""
        return (f"{self.key}_from", f"{self.key}_to") if self.kind in ("date", "money", "number") else (self.key,)


@dataclass(frozen=True)
class Grid:
    """What a grid shows."""

    title: str
    source: str
    """SELECT that gives the rows, ``id`` and every column named below."""
    columns: tuple[Column, ...]
    """The first one is the link to the row's own page."""
    filters: tuple[Filter, ...]
    search: tuple[str, ...]
    """Columns that the keyword search looks in."""
    order: str
    """ORDER BY of an unsorted grid."""
    link: str = ""
    """Address of a row's page, with ``{}`` for its id; empty if it has none."""
    mass: str = ""
    """Address that a mass action is sent to; empty if there is none."""
    actions: tuple[str, ...] = ()
    """Labels of the mass actions; the form field ``step`` holds one."""
    add: tuple[str, str] | None = None
    """Address and label of the button that makes a new row."""


def show(grid: Grid) -> Response | str:
    """Return a grid's page for this request's query."""
    given = request.args.to_dict()
    kept = {name: value.strip() for name, value in given.items() if value.strip()}
    if kept != given:  # a filter form sends its empty fields too
        return redirect(with_query(**{name: kept.get(name) for name in given}))
    form = Form(kept)
    conditions, values, active = _conditions(grid, form)
    where = " AND ".join(conditions) or "1"
    rows = query(f"SELECT * FROM ({grid.source}) WHERE {where} ORDER BY {_order(grid, kept)}", *values)
    size = int(kept["limit"]) if kept.get("limit") in map(str, PAGE_SIZES) else PAGE_SIZES[0]
    return render_template(
        "grid.html",
        grid=grid,
        list=paginate(rows, size),
        size=size,
        sizes=PAGE_SIZES,
        values=kept,
        active=active,
        errors=form.errors,
    )


def _conditions(grid: Grid, form: Form) -> tuple[list[str], list[object], list[str]]:
    """Return the WHERE parts, their values, and the active filters in words."""
    conditions: list[str] = []
    values: list[object] = []
    active: list[str] = []
    if "q" in form.values:
        conditions.append("(" + " OR ".join(f"instr(lower({column}), lower(?))" for column in grid.search) + ")")
        values += [form.values["q"]] * len(grid.search)
        active.append(f"Keyword: {form.values['q']}")
    for rule in grid.filters:
        for name in rule.fields:
            if name not in form.values:
                continue
            end = name.removeprefix(rule.key).strip("_")
            label = f"{rule.label} {end}".strip()
            if rule.kind == "text":
                conditions.append(f"instr(lower({rule.key}), lower(?))")
                values.append(form.values[name])
            elif rule.kind == "choice":
                conditions.append(f"{rule.key} = ?")
                values.append(form.choice(name, label, rule.options))
            else:
                column = f"substr({rule.key}, 1, 10)" if rule.kind == "date" else rule.key
                conditions.append(f"{column} {'>=' if end == 'from' else '<='} ?")
                values.append(_bound(form, rule.kind, name, label))
            active.append(f"{label}: {form.values[name]}")
    return conditions, values, active


def _bound(form: Form, kind: str, name: str, label: str) -> object:
    if kind == "date":
        return form.date(name, label)
    return form.cents(name, label) if kind == "money" else form.whole(name, label, 0, 9_999_999)


def _order(grid: Grid, values: dict[str, str]) -> str:
    """Return the ORDER BY; a name that is not a column is ignored."""
    if values.get("sort") not in {column.key for column in grid.columns}:
        return grid.order
    return f"{values['sort']} COLLATE NOCASE {'DESC' if values.get('dir') == 'desc' else 'ASC'}, id"
