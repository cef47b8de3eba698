"""All ways to fill the admin's task families in, read from the pristine database.

What a start page already shows (the dashboard's last orders, a grid's first page) is left out where it would give the
answer away.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from urllib.parse import urlencode

from webrl_lite.envs.embedded.families import Instance, answer, final_page, state
from webrl_lite.envs.embedded.names import TOWNS
from webrl_lite.envs.embedded.shopping.data import ACCOUNT as SHOP_ACCOUNT
from webrl_lite.envs.embedded.shopping.data import CARRIERS, STREETS
from webrl_lite.envs.embedded.shopping_admin.data import ACCOUNT, PASSWORD
from webrl_lite.envs.embedded.shopping_admin.customers import GROUPS
from webrl_lite.envs.embedded.shopping_admin.forms import typed_date
from webrl_lite.envs.embedded.shopping_admin.oracles import RANKS
from webrl_lite.envs.embedded.site import NOW, TODAY, money
from webrl_lite.trajectory import JSON

DB = sqlite3.Connection
Row = sqlite3.Row

SITE = "__SHOPPING_ADMIN__"
FIRST_PAGE = 10
"""Rows of a grid that a start page shows."""
PER_ANSWER = 6
"""Most instances of a counting or ranking family that share an answer."""

MONTH_ENDS = ("31", "28", "31", "30", "31", "30", "31", "31", "30", "31", "30", "31")
COMMENT_TEXTS = (
    "The parcel waits at the counter.",
    "We sent a second box.",
    "Please call us about the color.",
    "The gift card is inside the box.",
    "The order leaves on Monday.",
    "One product comes from another storeroom.",
)
NOTICES = ("and notify the customer", "without notifying the customer")
RULE_NAMES = (
    "Autumn Sale,Harvest Week,Picnic Days,Reading Month,Coffee Hour,Market Day,Rain Week,Neighbor Bonus,"
    "Moving Month,Tea Evening,Thank You Week,Holiday Start,Bench Days,Storeroom Sale"
).split(",")


def orders(db: DB, where: str = "1") -> list[Row]:
    """Return orders with their customer's name, the newest first, numbered by ``place`` in the whole grid."""
    return db.execute(
        "SELECT * FROM (SELECT o.*, c.first || ' ' || c.last AS customer, c.email,"
        " row_number() OVER (ORDER BY o.created_at DESC, o.id DESC) AS place"
        f" FROM shop_order AS o JOIN shop_customer AS c ON c.id = o.customer_id) WHERE {where} ORDER BY place"
    ).fetchall()


def products(db: DB) -> list[Row]:
    """Return the enabled products whose name no other product has."""
    return db.execute(
        "SELECT * FROM shop_product AS p WHERE enabled AND (SELECT count(*) FROM shop_product AS other"
        " WHERE other.name = p.name) = 1 ORDER BY id"
    ).fetchall()


def customers(db: DB) -> list[Row]:
    """Return the customers whose name no other customer has, with their number of orders."""
    return db.execute(
        "SELECT * FROM (SELECT c.*, first || ' ' || last AS name, count(*) OVER (PARTITION BY first, last) AS same,"
        " (SELECT count(*) FROM shop_order AS o WHERE o.customer_id = c.id) AS orders FROM shop_customer AS c)"
        " WHERE same = 1 ORDER BY id"
    ).fetchall()


def update(table: str, row_id: int, **values: JSON) -> dict[str, JSON]:
    """Return the expected change of one row."""
    return {"table": table, "op": "update", "key": {"id": row_id}, "values": values}


def insert(table: str, **values: JSON) -> dict[str, JSON]:
    """Return the expected new row."""
    return {"table": table, "op": "insert", "values": values}


def balanced(instances: list[Instance], key: str) -> Iterator[Instance]:
    """Yield instances so that no answer, kept under ``key`` of the values, occurs too often; the key is removed."""
    seen: Counter[str] = Counter()
    for instance in instances:
        found = instance.values.pop(key)
        seen[found] += 1
        if seen[found] <= PER_ANSWER:
            yield instance


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
            "SELECT sum(total) FROM shop_order WHERE status != 'Canceled' AND substr(created_at, 1, 10) BETWEEN ? AND ?",
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
    """Customers that the first page of the grid does not show."""
    for customer in customers(db)[FIRST_PAGE:]:
        values = {"email": customer["email"]}
        page = final_page(f"{SITE}/admin/customer/{customer['id']}")
        yield Instance(values, (f"customer:{customer['name']}",), page, 1, start=("/admin/customers",))


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


# Changes ------------------------------------------------------------------------------------------------------------


def review_status(db: DB) -> Iterator[Instance]:
    """Pending reviews of products with a name of their own."""
    named = {product["id"]: product["name"] for product in products(db)}
    rows = db.execute("SELECT * FROM shop_review WHERE status = 'Pending' ORDER BY id").fetchall()
    for number, row in enumerate(row for row in rows if row["product_id"] in named):
        product, status = named[row["product_id"]], ("Approved", "Not Approved")[number % 2]
        yield Instance(
            {"product": product, "nickname": row["nickname"], "status": status},
            (f"product:{product}", f"customer:{row['nickname']}"),
            state(update("shop_review", row["id"], status=status)),
            3,
        )


def product_disable(db: DB) -> Iterator[Instance]:
    """Enabled products."""
    for product in products(db):
        change = state(update("shop_product", product["id"], enabled=0))
        yield Instance({"product": product["name"]}, (f"product:{product['name']}",), change, 1)


def product_price(db: DB) -> Iterator[Instance]:
    """Products without a special price, each with a new price; graded on the product's page and on the database."""
    for product in products(db):
        if product["special_price"] is None:
            price = product["price"] * 11 // 1000 * 100 + 25
            page: dict[str, JSON] = {
                "url": f"{SITE}/admin/product/{product['id']}",
                "locator": "document.querySelector('[name=price]').value",
                "required_contents": {"exact_match": f"{price / 100:.2f}"},
            }
            change = state(update("shop_product", product["id"], price=price))
            grader = {**change, "eval_types": ["program_html", "database"], "program_html": [page]}
            values = {"product": product["name"], "price": money(price).replace(",", "")}
            yield Instance(values, (f"product:{product['name']}",), grader, 2)


def product_stock(db: DB) -> Iterator[Instance]:
    """Products, each with a new stock."""
    for product in products(db)[FIRST_PAGE:]:
        stock = product["stock"] + 20 + product["id"] % 37
        values = {"product": product["name"], "stock": str(stock)}
        change = state(update("shop_product", product["id"], stock=stock))
        yield Instance(values, (f"product:{product['name']}",), change, 2, start=("/admin/products",))


def order_cancel(db: DB) -> Iterator[Instance]:
    """Pending orders."""
    for order in orders(db, "status = 'Pending'"):
        change = state(update("shop_order", order["id"], status="Canceled"))
        yield Instance({"number": order["number"]}, (f"order:{order['number']}",), change, 1)


def order_comment(db: DB) -> Iterator[Instance]:
    """Orders, with or without a notice to the customer."""
    for number, order in enumerate(orders(db)):
        comment, notice = COMMENT_TEXTS[number % len(COMMENT_TEXTS)], NOTICES[number % 5 // 3]
        new = insert(
            "shop_order_comment", order_id=order["id"], body=comment, notified=1 - NOTICES.index(notice), created_at=NOW
        )
        values = {"number": order["number"], "comment": comment, "notice": notice}
        yield Instance(values, (f"order:{order['number']}",), state(new), 3)


def order_ship(db: DB) -> Iterator[Instance]:
    """Pending and processing orders without a shipment."""
    where = "status IN ('Pending', 'Processing') AND id NOT IN (SELECT order_id FROM shop_shipment)"
    invoiced = {row[0] for row in db.execute("SELECT order_id FROM shop_invoice")}
    for number, order in enumerate(orders(db, where)):
        carrier, tracking = CARRIERS[number % len(CARRIERS)], f"TR{700_121 + 1_373 * number}"
        yield Instance(
            {"number": order["number"], "carrier": carrier, "tracking": tracking},
            (f"order:{order['number']}",),
            state(
                insert("shop_shipment", order_id=order["id"], carrier=carrier, tracking=tracking),
                update("shop_order", order["id"], status="Complete" if order["id"] in invoiced else "Processing"),
            ),
            3,
        )


def order_address(db: DB) -> Iterator[Instance]:
    """Orders that are not complete, each with a new street and another town."""
    for number, order in enumerate(orders(db, "status IN ('Pending', 'Processing', 'On Hold')")):
        street = f"{91 + number} {STREETS[number % len(STREETS)]}"
        others = [town for town in TOWNS if town.name != order["ship_town"]]
        town = others[number % len(others)]
        yield Instance(
            {"number": order["number"], "street": street, "town": town.name, "zip": town.zip},
            (f"order:{order['number']}",),
            state(update("shop_order", order["id"], ship_street=street, ship_town=town.name, ship_zip=town.zip)),
            4,
        )


def page_title(db: DB) -> Iterator[Instance]:
    """Pages of text, each with three new titles; graded on the page itself."""
    for row in db.execute("SELECT * FROM admin_page ORDER BY id"):
        for new_title in (f"Our {row['title']}", f"{row['title']} 2025", f"{row['title']} And Help"):
            page: dict[str, JSON] = {
                "url": f"{SITE}/admin/page/{row['id']}",
                "locator": "document.querySelector('[name=title]').value",
                "required_contents": {"exact_match": new_title},
            }
            grader = {**final_page(""), "eval_types": ["program_html"], "program_html": [page]}
            yield Instance({"title": row["title"], "new_title": new_title}, (f"page:{row['title']}",), grader, 2)


def customer_group(db: DB) -> Iterator[Instance]:
    """Customers, each with another group."""
    for number, customer in enumerate(customers(db)):
        group = [other for other in GROUPS if other != customer["group_name"]][number % 2]
        values = {"customer": customer["name"], "group": group}
        change = state(update("shop_customer", customer["id"], group_name=group))
        yield Instance(values, (f"customer:{customer['name']}",), change, 2)


def rule_create(db: DB) -> Iterator[Instance]:
    """New price rules; the database is not asked, since no rule has such a name."""
    for number, name in enumerate(RULE_NAMES):
        percent, start, end = 11 + 2 * number, f"2025-07-{1 + number:02}", f"2025-08-{28 - number:02}"
        coupon = f"{name.split()[0].upper()}{percent}"
        new = insert(
            "admin_price_rule",
            name=name,
            status="Active",
            percent=percent,
            from_date=start,
            to_date=end,
            coupon=coupon,
        )
        values = {"rule": name, "percent": str(percent), "coupon": coupon}
        values |= {"start": typed_date(start), "end": typed_date(end)}
        yield Instance(values, (f"rule:{name}",), state(new), 5)


def mass_products(db: DB) -> Iterator[Instance]:
    """Pairs of enabled products that begin with the same word and stand on the first page of its search."""
    own = {product["id"]: product for product in products(db)}
    rows = db.execute("SELECT id, name FROM shop_product ORDER BY id").fetchall()
    for word in sorted({row["name"].split()[0] for row in rows}):
        listed = [row["id"] for row in rows if word.lower() in row["name"].lower()][:FIRST_PAGE]
        for first, second in combinations([own[row_id] for row_id in listed if row_id in own], 2):
            yield Instance(
                {"first": first["name"], "second": second["name"]},
                (f"product:{first['name']}", f"product:{second['name']}"),
                state(*(update("shop_product", product["id"], enabled=0) for product in (first, second))),
                2,
            )


def mass_orders(db: DB) -> Iterator[Instance]:
    """Pairs of one customer's orders that can be held and stand on the first page of the search for his name."""
    listed: dict[str, list[Row]] = {}
    for order in orders(db):
        listed.setdefault(order["customer"], []).append(order)
    for customer, own in sorted(listed.items()):
        open_orders = [order for order in own[:FIRST_PAGE] if order["status"] in ("Pending", "Processing")]
        for first, second in list(combinations(open_orders, 2))[:3]:
            yield Instance(
                {"customer": customer, "first": first["number"], "second": second["number"]},
                (f"customer:{customer}", f"order:{first['number']}", f"order:{second['number']}"),
                state(*(update("shop_order", order["id"], status="On Hold") for order in (first, second))),
                3,
            )
