"""All ways to fill in the admin's questions and the pages to open.

What a start page already shows (the dashboard's last orders, a grid's first page) is left out where it would give the
answer away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from urllib.parse import urlencode

from webrl_lite.envs.embedded.families import Instance, answer, final_page
from webrl_lite.envs.embedded.shopping.data import ACCOUNT as SHOP_ACCOUNT
from webrl_lite.envs.embedded.shopping_admin.data import ACCOUNT, PASSWORD
from webrl_lite.envs.embedded.shopping_admin.forms import typed_date
from webrl_lite.envs.embedded.shopping_admin.oracles import RANKS
from webrl_lite.envs.embedded.shopping_admin.rows import (
    DB,
    FIRST_PAGE,
    SITE,
    balanced,
    customers,
    orders,
    products,
    shows,
)
from webrl_lite.envs.embedded.site import TODAY, money

MONTH_ENDS = ("31", "28", "31", "30", "31", "30", "31", "31", "30", "31", "30", "31")


# Questions ----------------------------------------------------------------------------------------------------------


def order_total(db: DB) -> Iterator[Instance]:
    """Orders that the dashboard does not show."""
    for order in orders(db, f"place > {FIRST_PAGE}"):
        yield Instance({"number": order["number"]}, (f"order:{order['number']}",), answer(money(order["total"])), 1)


def order_customer(db: DB) -> Iterator[Instance]:
    """Orders that the first page of the grid does not show, without the shop's usual customer."""
    for order in orders(db, f"place > {FIRST_PAGE}"):
        if order["email"] != SHOP_ACCOUNT:
            values = {"number": order["number"]}
            found = answer(order["customer"])
            yield Instance(values, (f"order:{order['number']}",), found, 1, start=("/admin/orders",))


def invoice_total(db: DB) -> Iterator[Instance]:
    """All invoices."""
    for invoice in db.execute("SELECT * FROM shop_invoice ORDER BY id"):
        found = answer(money(invoice["total"]))
        yield Instance({"number": invoice["number"]}, (f"invoice:{invoice['number']}",), found, 1)


def tracking_number(db: DB) -> Iterator[Instance]:
    """Orders with one shipment."""
    rows = db.execute(
        "SELECT o.number, max(s.tracking) AS tracking FROM shop_shipment AS s JOIN shop_order AS o ON o.id = s.order_id"
        " GROUP BY o.id HAVING count(*) = 1 ORDER BY o.id"
    )
    for row in rows:
        yield Instance({"number": row["number"]}, (f"order:{row['number']}",), answer(row["tracking"]), 1)


def customer_by_phone(db: DB) -> Iterator[Instance]:
    """Customers of a name of their own who are not among the dashboard's last orders."""
    shown = {order["customer"] for order in orders(db, f"place <= {FIRST_PAGE}")}
    for customer in customers(db):
        if customer["name"] not in shown:
            values = {"phone": customer["phone"]}
            yield Instance(values, (f"customer:{customer['name']}",), answer(customer["name"]), 1)


def customer_orders(db: DB) -> Iterator[Instance]:
    """Customers with at least one order."""
    yield from balanced(
        [
            Instance(
                {"customer": customer["name"], "count": str(customer["orders"])},
                (f"customer:{customer['name']}",),
                answer(str(customer["orders"])),
                1,
                start=("/admin/customers",),
            )
            for customer in customers(db)[FIRST_PAGE:]
            if customer["orders"]
        ],
        "count",
    )


def pending_reviews(db: DB) -> Iterator[Instance]:
    """Kinds of product, such as Kettle, whose name finds just the reviews of this kind."""
    rows = db.execute(
        "SELECT r.nickname, r.title, p.name FROM shop_review AS r JOIN shop_product AS p ON p.id = r.product_id"
        " WHERE r.status = 'Pending'"
    ).fetchall()
    kinds = sorted({row["name"].split()[1] for row in rows})
    for kind in kinds:
        count = sum(kind in row["name"].split() for row in rows)
        found = sum(any(kind.lower() in text.lower() for text in row) for row in rows)
        if count == found:
            values = {"kind": kind}
            yield Instance(values, (f"kind:{kind}",), answer(str(count)), 2, start=("/admin/reviews",))


def stock_by_sku(db: DB) -> Iterator[Instance]:
    """Products that the first page of the grid does not show."""
    for product in products(db)[FIRST_PAGE:]:
        values = {"sku": product["sku"]}
        found = answer(str(product["stock"]))
        yield Instance(values, (f"product:{product['name']}",), found, 1, start=("/admin/products",))


def term_uses(db: DB) -> Iterator[Instance]:
    """Search terms that the dashboard does not show."""
    rows = db.execute("SELECT * FROM admin_search_term ORDER BY uses DESC, id").fetchall()
    for row in rows[FIRST_PAGE:]:
        yield Instance({"term": row["term"]}, (f"term:{row['term']}",), answer(str(row["uses"])), 1)


def signed_out_town(db: DB) -> Iterator[Instance]:
    """Orders, asked for after the log-in has expired, without the shop's usual customer and her one town."""
    for order in orders(db, f"place > {FIRST_PAGE}"):
        if order["email"] != SHOP_ACCOUNT:
            yield Instance(
                {"number": order["number"], "username": ACCOUNT, "password": PASSWORD},
                (f"order:{order['number']}",),
                answer(order["ship_town"]),
                2,
                start=("/admin/orders",),
                sessions={"shopping_admin": "expired"},
            )


def month_ranges(longest: int) -> list[tuple[str, str]]:
    """Return ranges of whole months within one year, first and last day as ISO text."""
    ranges = []
    for year, months in ((2024, 12), (2025, TODAY.month - 1)):
        for first, last in combinations(range(months + 1), 2):
            if last - first <= longest:
                end = "29" if (year, last) == (2024, 2) else MONTH_ENDS[last - 1]
                ranges.append((f"{year}-{first + 1:02}-01", f"{year}-{last:02}-{end}"))
    return ranges


def range_values(start: str, end: str) -> dict[str, str]:
    """Return a range as it is typed, and the period that makes it one interval."""
    return {"start": typed_date(start), "end": typed_date(end), "period": "Year"}


def bestseller(db: DB) -> Iterator[Instance]:
    """Ranges with one best-selling product that the dashboard does not show."""
    ranked = (
        "SELECT i.product_id, i.name, sum(i.quantity) AS quantity FROM shop_order_item AS i"
        " JOIN shop_order AS o ON o.id = i.order_id"
        " WHERE o.status != 'Canceled' AND substr(o.created_at, 1, 10) BETWEEN ? AND ?"
        " GROUP BY i.product_id ORDER BY quantity DESC, i.name"
    )
    month = (f"{TODAY:%Y-%m}-01", TODAY.isoformat())
    shown = {row["name"] for row in db.execute(f"{ranked} LIMIT 5", month)}
    found = []
    for start, end in month_ranges(4):
        rows = db.execute(f"{ranked} LIMIT 2", (start, end)).fetchall()
        if len(rows) < 2:
            continue
        best, second = rows
        if best["quantity"] > second["quantity"] and best["name"] not in shown:
            values = {**range_values(start, end), "best": best["name"]}
            found.append(Instance(values, (f"product:{best['name']}",), answer(best["name"]), 2))
    yield from balanced(found, "best")


def sales_total(db: DB) -> Iterator[Instance]:
    """Ranges with at least one sale."""
    for start, end in month_ranges(5):
        total = db.execute(
            "SELECT sum(total) FROM shop_order"
            " WHERE status != 'Canceled' AND substr(created_at, 1, 10) BETWEEN ? AND ?",
            (start, end),
        ).fetchone()[0]
        if total:
            values = range_values(start, end)
            name = f"range:{values['start']}-{values['end']}"
            yield Instance(values, (name,), answer(money(total)), 2)


def top_customer(db: DB) -> Iterator[Instance]:
    """Ranges and ranks whose customer has a number of orders of his own, without the shop's usual customer."""
    found = []
    for start, end in month_ranges(6):
        rows = db.execute(
            "SELECT c.first || ' ' || c.last AS name, c.email, count(*) AS orders FROM shop_order AS o"
            " JOIN shop_customer AS c ON c.id = o.customer_id"
            " WHERE o.status != 'Canceled' AND substr(o.created_at, 1, 10) BETWEEN ? AND ?"
            " GROUP BY c.id ORDER BY orders DESC, sum(o.total) DESC, c.id",
            (start, end),
        ).fetchall()
        counts = Counter(row["orders"] for row in rows)
        for rank, row in zip(RANKS, rows, strict=False):
            if counts[row["orders"]] == 1 and row["email"] != SHOP_ACCOUNT:
                values = {**range_values(start, end), "rank": rank, "best": row["name"]}
                found.append(Instance(values, (f"customer:{row['name']}",), answer(row["name"]), 3))
    yield from balanced(found, "best")


# Pages to open ------------------------------------------------------------------------------------------------------


def orders_filter(db: DB) -> Iterator[Instance]:
    """Customers and the statuses that some of their orders have."""
    for name, status in sorted({(order["customer"], order["status"]) for order in orders(db)}):
        url = f"{SITE}/admin/orders?{urlencode({'customer': name, 'status': status})}"
        yield Instance({"customer": name, "status": status}, (f"customer:{name}",), final_page(url), 2)


def open_customer(db: DB) -> Iterator[Instance]:
    """Customers that the first page of the grid does not show; graded on the address and on the page."""
    for customer in customers(db)[FIRST_PAGE:]:
        values = {"email": customer["email"]}
        page = final_page(f"{SITE}/admin/customer/{customer['id']}")
        held = shows("last", "email", customer["email"])
        grader = {**page, "eval_types": ["url_match", "program_html"], "program_html": [held]}
        yield Instance(values, (f"customer:{customer['name']}",), grader, 1, start=("/admin/customers",))


def category_sorted(db: DB) -> Iterator[Instance]:
    """Sub-categories, each with every column and direction."""
    directions = {"lowest first": "asc", "highest first": "desc"}
    for (category,) in db.execute("SELECT name FROM shop_category WHERE parent_id IS NOT NULL ORDER BY id"):
        for column in ("Price", "Stock"):
            for words, direction in directions.items():
                query = urlencode({"category": category, "sort": column.lower(), "dir": direction})
                values = {"category": category, "column": column, "direction": words}
                page = final_page(f"{SITE}/admin/products?{query}")
                yield Instance(values, (f"category:{category}",), page, 3)
