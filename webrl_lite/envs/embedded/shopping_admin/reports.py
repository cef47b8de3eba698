"""Reports over a range of dates: sales, best-selling products, and customers by their number of orders.

Dates are typed as text; a report's address holds them, so that it can be sent to somebody else. Canceled orders are
left out of every report.
"""

from __future__ import annotations

from itertools import groupby
from sqlite3 import Row

from flask import Blueprint, render_template, request

from webrl_lite.envs.embedded.shopping_admin.forms import Form
from webrl_lite.envs.embedded.site import MONTHS, day, money, paginate, query

pages = Blueprint("reports", __name__)

PERIODS = {"Day": 10, "Month": 7, "Year": 4}
"""Periods by their label: how many characters of an ISO date name one."""
TOP = 5
"""Products or customers that a ranked report shows a period."""
PER_PAGE = 12

PLACED = "o.status != 'Canceled' AND substr(o.created_at, 1, 10) BETWEEN ? AND ?"


def in_words(period: str) -> str:
    """Return ``2025-06-03`` as ``Jun 3, 2025``, ``2025-06`` as ``Jun 2025``, and a year as it is."""
    if len(period) == 7:
        return f"{MONTHS[int(period[5:]) - 1]} {period[:4]}"
    return day(period) if len(period) == 10 else period


def asked() -> tuple[Form, tuple[str, str], int] | tuple[Form, None, int]:
    """Return the report's form, its first and last day (None if not asked yet or wrong), and the period's length."""
    form = Form(request.args)
    if not {"from", "to", "period"} & set(form.values):
        return form, None, 0
    start, end = form.date("from", "From"), form.date("to", "To")
    period = form.choice("period", "Period", tuple(PERIODS))
    if start and end and start > end:
        form.errors.append("To must not be before From.")
    return form, None if form.errors else (start or "", end or ""), PERIODS.get(period, 0)


def render(title: str, heads: tuple[str, ...], form: Form, body: list[list[str]] | None, totals: list[str]) -> str:
    """Return a report's page.

    Args:
        title: the report's name.
        heads: the table's column heads.
        form: the dates and the period as typed.
        body: the rows; None before the report was asked for.
        totals: the last row, over all pages of the report.
    """
    return render_template(
        "report.html",
        title=title,
        heads=heads,
        periods=tuple(PERIODS),
        values=form.values,
        errors=form.errors,
        list=None if body is None else paginate(body, PER_PAGE),
        totals=totals,
    )


@pages.get("/admin/reports/sales")
def sales() -> str:
    """Show the orders and their money, period by period."""
    form, dates, length = asked()
    heads = ("Interval", "Orders", "Shipping", "Tax", "Sales total")
    if dates is None:
        return render("Sales Report", heads, form, None, [])
    rows = query(
        f"SELECT substr(o.created_at, 1, {length}) AS interval, count(*) AS orders, sum(o.shipping) AS shipping,"
        f" sum(o.tax) AS tax, sum(o.total) AS total FROM shop_order AS o WHERE {PLACED}"
        " GROUP BY interval ORDER BY interval",
        *dates,
    )
    body = [[in_words(row["interval"]), str(row["orders"]), *_amounts(row)] for row in rows]
    sums = {name: sum(row[name] for row in rows) for name in ("shipping", "tax", "total")}
    totals = ["Total", str(sum(row["orders"] for row in rows)), *_amounts(sums)]
    return render("Sales Report", heads, form, body, totals)


def _amounts(row: Row | dict[str, int]) -> list[str]:
    return [money(row[name]) for name in ("shipping", "tax", "total")]


@pages.get("/admin/reports/bestsellers")
def bestsellers() -> str:
    """Show the products that sold most, period by period."""
    form, dates, length = asked()
    heads = ("Interval", "Product", "Price", "Quantity")
    if dates is None:
        return render("Bestsellers", heads, form, None, [])
    rows = query(
        f"SELECT substr(o.created_at, 1, {length}) AS interval, i.name, max(i.price) AS price,"
        " sum(i.quantity) AS quantity FROM shop_order_item AS i JOIN shop_order AS o ON o.id = i.order_id"
        f" WHERE {PLACED} GROUP BY interval, i.product_id ORDER BY interval, quantity DESC, i.name",
        *dates,
    )
    shown = _first_of_each(rows)
    body = [[in_words(r["interval"]), r["name"], money(r["price"]), str(r["quantity"])] for r in shown]
    return render("Bestsellers", heads, form, body, ["Total", "", "", str(sum(row["quantity"] for row in shown))])


@pages.get("/admin/reports/customers")
def order_count() -> str:
    """Show the customers with most orders, period by period."""
    form, dates, length = asked()
    heads = ("Interval", "Customer", "Orders", "Average", "Total")
    if dates is None:
        return render("Order Count", heads, form, None, [])
    rows = query(
        f"SELECT substr(o.created_at, 1, {length}) AS interval, c.first || ' ' || c.last AS customer,"
        " count(*) AS orders, sum(o.total) AS total FROM shop_order AS o"
        f" JOIN shop_customer AS c ON c.id = o.customer_id WHERE {PLACED}"
        " GROUP BY interval, c.id ORDER BY interval, orders DESC, total DESC, c.id",
        *dates,
    )
    shown = _first_of_each(rows)
    body = [
        [
            in_words(row["interval"]),
            row["customer"],
            str(row["orders"]),
            money(row["total"] // row["orders"]),
            money(row["total"]),
        ]
        for row in shown
    ]
    totals = ["Total", "", str(sum(r["orders"] for r in shown)), "", money(sum(r["total"] for r in shown))]
    return render("Order Count", heads, form, body, totals)


def _first_of_each(rows: list[Row]) -> list[Row]:
    """Return the first rows of each interval."""
    return [row for _, group in groupby(rows, key=lambda row: row["interval"]) for row in list(group)[:TOP]]
