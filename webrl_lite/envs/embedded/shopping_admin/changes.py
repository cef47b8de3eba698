"""All ways to fill in the changes that the admin's tasks ask for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from webrl_lite.envs.embedded.families import Instance, final_page, state
from webrl_lite.envs.embedded.names import TOWNS
from webrl_lite.envs.embedded.shopping.data import CARRIERS, STREETS
from webrl_lite.envs.embedded.shopping_admin.customers import GROUPS
from webrl_lite.envs.embedded.shopping_admin.forms import typed_date
from webrl_lite.envs.embedded.shopping_admin.rows import (
    DB,
    FIRST_PAGE,
    SITE,
    Row,
    customers,
    insert,
    orders,
    products,
    shows,
    update,
)
from webrl_lite.envs.embedded.site import NOW, money

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
            page = shows(f"{SITE}/admin/product/{product['id']}", "price", f"{price / 100:.2f}")
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
            page = shows(f"{SITE}/admin/page/{row['id']}", "title", new_title)
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
    """New price rules, of names that no rule has yet."""
    taken = {row["name"] for row in db.execute("SELECT name FROM admin_price_rule")}
    assert not taken & set(RULE_NAMES), "a new rule must have a new name"
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
