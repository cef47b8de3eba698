"""The shop's families of questions and of pages to open; see ``embedded.families``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from urllib.parse import urlencode

from webrl_lite.envs.embedded.families import Family, Instance, answer, entity_split, final_page
from webrl_lite.envs.embedded.shopping import oracles
from webrl_lite.envs.embedded.shopping.catalog import BANDS, band_label, within
from webrl_lite.envs.embedded.shopping.goods import DEPARTMENTS, LINES, SIZES
from webrl_lite.envs.embedded.shopping.shop import PRODUCTS
from webrl_lite.envs.embedded.site import day, money

SITE = ("shopping",)
MOST_NAMES = 3
"""Longest list of names that a question may ask for."""
SORTINGS = {
    "price, lowest first": {"product_list_order": "price"},
    "price, highest first": {"product_list_order": "price", "product_list_dir": "desc"},
    "name, A to Z": {"product_list_order": "name"},
    "name, Z to A": {"product_list_order": "name", "product_list_dir": "desc"},
}
"""Sortings as a task words them, and their query parameters."""
MONTH_NAMES = "January February March April May June July August September October November December".split()
SCOPES = {"all orders": None, "complete orders": "Complete", "pending orders": "Pending"}


def plain_products(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return the shown products whose name is theirs alone and that are not on the home page."""
    home = "SELECT MAX(id) FROM shop_product WHERE enabled GROUP BY category_id ORDER BY 1 DESC LIMIT 6"
    single = "SELECT name FROM shop_product GROUP BY name HAVING COUNT(*) = 1"
    return db.execute(f"{PRODUCTS} AND id NOT IN ({home}) AND name IN ({single}) ORDER BY id").fetchall()


def twins(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return the products whose name another brand's product bears too."""
    shared = "SELECT name FROM shop_product WHERE enabled GROUP BY name HAVING COUNT(*) > 1"
    return db.execute(f"{PRODUCTS} AND name IN ({shared}) ORDER BY id").fetchall()


def shelves() -> list[tuple[str, str]]:
    """Return department and name of every category."""
    return [(department, shelf.name) for department, own in DEPARTMENTS.items() for shelf in own]


def shelf_products(db: sqlite3.Connection, category: str) -> list[sqlite3.Row]:
    """Return the products that a category shows."""
    own = "SELECT id FROM shop_category WHERE name = ?"
    return db.execute(f"{PRODUCTS} AND category_id = ({own}) ORDER BY id", (category,)).fetchall()


def maya_orders(db: sqlite3.Connection, *statuses: str) -> list[sqlite3.Row]:
    """Return the usual customer's orders, newest first, of some statuses or of all."""
    rows = db.execute("SELECT * FROM shop_order WHERE customer_id = 1 ORDER BY id DESC").fetchall()
    return [row for row in rows if not statuses or row["status"] in statuses]


# Questions --------------------------------------------------------------------------------------------------


def price(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for prices, often of products that share their name."""
    for row in plain_products(db)[::4]:
        if row["special_price"] is None:
            values = {"product": row["name"], "what": row["name"]}
            yield Instance(values, (f"product:{row['name']}",), answer(money(row["cost"])), 1)
    for row in twins(db):
        if row["special_price"] is None:
            what = f"{row['name']} by {row['brand']}"
            values = {"product": row["name"], "brand": row["brand"], "what": what}
            yield Instance(values, (f"product:{row['name']}",), answer(money(row["cost"])), 2)


def not_sold(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for the price of four products (of train) and two (of test) that do not exist."""
    names = {row["name"] for row in db.execute("SELECT name FROM shop_product")}
    left = {"train": 4, "test": 2}
    nouns = [noun for own in DEPARTMENTS.values() for shelf in own for noun in shelf.nouns]
    pairs = ((LINES[(turn + place) % len(LINES)], noun) for turn in range(9) for place, noun in enumerate(nouns))
    for name in (f"{line} {noun}" for line, noun in pairs):
        split = entity_split(f"product:{name}")
        known = name in names or f"{name} Small" in names
        if not known and left[split]:
            left[split] -= 1
            yield Instance({"product": name}, (f"product:{name}",), answer(exact="N/A"), 1)


def _reviews(db: sqlite3.Connection, product_id: int) -> list[sqlite3.Row]:
    sql = "SELECT * FROM shop_review WHERE product_id = ? AND status = 'Approved' ORDER BY id"
    return db.execute(sql, (product_id,)).fetchall()


def rating(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for the average of three reviews and more."""
    for row in plain_products(db):
        stars = [review["rating"] for review in _reviews(db, row["id"])]
        if len(stars) >= 3:
            tenths = (sum(stars) * 20 + len(stars)) // (2 * len(stars))
            average = f"{tenths // 10}.{tenths % 10}"
            yield Instance({"product": row["name"]}, (f"product:{row['name']}",), answer(average), 1)


def weight(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for weights."""
    for row in plain_products(db):
        grader = answer(str(row["weight_g"]))
        yield Instance({"product": row["name"]}, (f"product:{row['name']}",), grader, 1)


def reviewers(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask who gave a number of stars, where some did and some did not."""
    for row in plain_products(db):
        reviews = _reviews(db, row["id"])
        for stars in range(1, 6):
            names = [review["nickname"] for review in reviews if review["rating"] == stars]
            if 0 < len(names) <= MOST_NAMES and len(names) < len(reviews):
                values = {"product": row["name"], "stars": f"{stars} star{'' if stars == 1 else 's'}"}
                yield Instance(values, (f"product:{row['name']}",), answer(*names), 2)


def review_says(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask who complained of something."""
    for row in plain_products(db):
        reviews = _reviews(db, row["id"])
        for claim, words in oracles.CLAIMS.items():
            names = [review["nickname"] for review in reviews if words in review["body"]]
            if len(names) == 1 and len(reviews) > 1:
                values = {"product": row["name"], "claim": claim}
                yield Instance(values, (f"product:{row['name']}",), answer(*names), 2)


def order_total(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for the total of an order."""
    for order in maya_orders(db):
        number = order["number"]
        yield Instance({"order": number}, (f"order:{number}",), answer(money(order["total"])), 1)


def newest_order(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for number and status of the newest order with a product."""
    for row in plain_products(db):
        sql = (
            "SELECT o.* FROM shop_order o JOIN shop_order_item i ON i.order_id = o.id"
            " WHERE o.customer_id = 1 AND i.product_id = ? ORDER BY o.id DESC"
        )
        newest = db.execute(sql, (row["id"],)).fetchone()
        if newest:
            grader = answer(newest["number"], newest["status"])
            yield Instance({"product": row["name"]}, (f"product:{row['name']}",), grader, 3)


def month_spend(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for the sum of a month's orders, of all or of one status."""
    months = {order["created_at"][:7] for order in maya_orders(db)}
    for month in sorted(months):
        name = f"{MONTH_NAMES[int(month[5:]) - 1]} {month[:4]}"
        own = [order for order in maya_orders(db) if order["created_at"][:7] == month]
        for scope, status in SCOPES.items():
            fitting = [order for order in own if status in (None, order["status"])]
            if fitting and (status is None or len(fitting) < len(own)):
                total = money(sum(order["total"] for order in fitting))
                yield Instance({"month": name, "scope": scope}, (f"month:{name}",), answer(total), 2)


def cheapest(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for the cheapest and the most expensive product of a brand in a category."""
    for department, category in shelves():
        rows = shelf_products(db, category)
        for brand in sorted({row["brand"] for row in rows}):
            own = sorted((row for row in rows if row["brand"] == brand), key=lambda row: row["cost"])
            if len(own) < 3:
                continue
            for extreme, row in (("cheapest", own[0]), ("most expensive", own[-1])):
                values = {"department": department, "category": category, "brand": brand, "extreme": extreme}
                entities = (f"category:{category}", f"brand:{brand}")
                yield Instance(values, entities, answer(row["name"]), 3)


def tracking(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for tracking number or date of a shipment."""
    for order in maya_orders(db):
        shipment = db.execute("SELECT * FROM shop_shipment WHERE order_id = ?", (order["id"],)).fetchone()
        if shipment:
            facts = {"tracking number": shipment["tracking"], "shipping date": day(shipment["created_at"])}
            for fact, value in facts.items():
                values = {"order": order["number"], "fact": fact}
                yield Instance(values, (f"order:{order['number']}",), answer(value), 2)


# Pages ------------------------------------------------------------------------------------------------------


def product_page(db: sqlite3.Connection) -> Iterator[Instance]:
    """Open the page of one of two products that are easily taken for each other."""
    sized = [row for row in plain_products(db) if row["name"].endswith((SIZES[0], SIZES[-1]))]
    for row in [*twins(db), *sized]:
        values = {"product": row["name"], "brand": row["brand"]}
        grader = final_page(f"__SHOPPING__/{row['slug']}.html")
        yield Instance(values, (f"product:{row['name']}",), grader, 2)


def filter_page(db: sqlite3.Connection) -> Iterator[Instance]:
    """Show a category within a price band, sorted."""
    for department, category in shelves():
        rows = shelf_products(db, category)
        for band in BANDS:
            if not any(within(row, band) for row in rows):
                continue
            for order, parameters in SORTINGS.items():
                path = f"/{department.lower()}/{category.lower()}.html"
                query = urlencode({"price": band, **parameters})
                values = {
                    "department": department,
                    "category": category,
                    "band": band_label(band),
                    "order": order,
                }
                yield Instance(values, (f"category:{category}",), final_page(f"__SHOPPING__{path}?{query}"), 3)


def sorted_search(db: sqlite3.Connection) -> Iterator[Instance]:
    """Search for a word and sort what is found."""
    for line in LINES:
        for order, parameters in SORTINGS.items():
            query = urlencode({"q": line.lower(), **parameters})
            grader = final_page(f"__SHOPPING__/catalogsearch/result/?{query}")
            yield Instance({"words": line.lower(), "order": order}, (f"line:{line}",), grader, 2)


def advanced_search(db: sqlite3.Connection) -> Iterator[Instance]:
    """Use the advanced search with a word and two prices between which something is found."""
    words = {
        "Product Name": [noun.lower() for own in DEPARTMENTS.values() for shelf in own for noun in shelf.nouns],
        "Description": ["steel", "oak", "glass", "stone", "cotton", "wool"],
    }
    columns = {"Product Name": "name", "Description": "description"}
    for field, choices in words.items():
        for word in choices:
            for low, high in (("10", "60"), ("20", "80"), ("30", "150")):
                found = f"{PRODUCTS} AND cost BETWEEN ? AND ? AND ' ' || {columns[field]} LIKE ?"
                if not db.execute(found, (int(low) * 100, int(high) * 100, f"% {word}%")).fetchone():
                    continue
                query = urlencode({columns[field]: word, "price_from": low, "price_to": high})
                values = {"field": field, "words": word, "low": low, "high": high}
                grader = final_page(f"__SHOPPING__/catalogsearch/advanced/result/?{query}")
                yield Instance(values, (f"word:{word}",), grader, 3)


QUESTIONS = [
    Family(
        "shopping.price",
        SITE,
        "retrieve",
        (
            "What is the price of the {what}?",
            "How much does the {what} cost?",
            "Tell me what I would pay for one {what}, without shipping and tax.",
        ),
        price,
        oracles.price,
        wrong="$1.00",
    ),
    Family(
        "shopping.not_sold",
        SITE,
        "retrieve",
        (
            "What is the price of the {product}?",
            "How much does the {product} cost?",
            "Tell me what I would pay for one {product}, without shipping and tax.",
        ),
        not_sold,
        oracles.not_sold,
        wrong="$1.00",
    ),
    Family(
        "shopping.rating",
        SITE,
        "retrieve",
        (
            "What is the average rating of the {product}?",
            "How many stars out of 5 does the {product} have on average?",
            "Tell me the average stars of the {product}.",
        ),
        rating,
        oracles.rating,
        wrong="0.5",
    ),
    Family(
        "shopping.weight",
        SITE,
        "retrieve",
        (
            "How many grams does the {product} weigh?",
            "What is the weight of the {product} in grams?",
            "Tell me the weight of the {product}.",
        ),
        weight,
        oracles.weight,
        wrong="1 g",
    ),
    Family(
        "shopping.reviewers",
        SITE,
        "retrieve",
        (
            "Who gave the {product} {stars}?",
            "List the reviewers who rated the {product} with {stars}.",
            "Which customers gave {stars} to the {product} in a review?",
        ),
        reviewers,
        oracles.reviewers,
        wrong="Maya Lindqvist",
    ),
    Family(
        "shopping.review_says",
        SITE,
        "retrieve",
        (
            "Which reviewer of the {product} says that {claim}?",
            "Who wrote about the {product} that {claim}?",
            "Find the review of the {product} which says that {claim}. Who wrote it?",
        ),
        review_says,
        oracles.review_says,
        held_out=True,
        wrong="Maya Lindqvist",
    ),
    Family(
        "shopping.order_total",
        SITE,
        "retrieve",
        (
            "What was the total of my order {order}?",
            "How much did I pay for order {order} in all?",
            "Tell me the total of order {order}.",
        ),
        order_total,
        oracles.order_total,
        wrong="$1.00",
    ),
    Family(
        "shopping.newest_order",
        SITE,
        "retrieve",
        (
            "What are the number and the status of my newest order with the {product}?",
            "Give me the order number and the status of my last order with the {product}.",
            "I ordered the {product}. What is the number of the newest such order, and what is its status?",
        ),
        newest_order,
        oracles.newest_order,
        wrong="000000001, Complete",
    ),
    Family(
        "shopping.month_spend",
        SITE,
        "retrieve",
        (
            "What is the sum of the totals of {scope} that I placed in {month}?",
            "How much did I spend in {month}? Count {scope}.",
            "Add up the totals of {scope} of {month} in my account.",
        ),
        month_spend,
        oracles.month_spend,
        wrong="$1.00",
    ),
    Family(
        "shopping.cheapest",
        SITE,
        "retrieve",
        (
            "Which product by {brand} is the {extreme} under {department}, {category}?",
            "Under {department}, {category}: what is the name of the {extreme} product by {brand}?",
            "Find the {extreme} {brand} product of {category} ({department}) and tell me its name.",
        ),
        cheapest,
        oracles.cheapest,
        wrong="Golden Kettle",
    ),
    Family(
        "shopping.tracking",
        SITE,
        "retrieve",
        (
            "What is the {fact} of my order {order}?",
            "Track my order {order} and tell me the {fact}.",
            "Give me the {fact} of order {order}.",
        ),
        tracking,
        oracles.tracking,
        wrong="TR000000",
    ),
    Family(
        "shopping.product_page",
        SITE,
        "navigate",
        (
            "Open the page of the {product} by {brand}.",
            "Show me the {product} that {brand} makes.",
            "Go to the product page of the {brand} {product}.",
        ),
        product_page,
        oracles.product_page,
    ),
    Family(
        "shopping.filter_page",
        SITE,
        "navigate",
        (
            "Show {category} ({department}) with the price filter {band}, sorted by {order}.",
            "Under {department}, {category}, list what costs {band} and sort it by {order}.",
            "Open {category} in {department}, keep only the price band {band}, and sort by {order}.",
        ),
        filter_page,
        oracles.filter_page,
    ),
    Family(
        "shopping.sorted_search",
        SITE,
        "navigate",
        (
            'Search the store for "{words}" and sort the results by {order}.',
            'Show the search results for "{words}", sorted by {order}.',
            'Find all products with "{words}" by the search and list them by {order}.',
        ),
        sorted_search,
        oracles.sorted_search,
        held_out=True,
    ),
    Family(
        "shopping.advanced_search",
        SITE,
        "navigate",
        (
            'Use the advanced search: {field} "{words}", price from {low} to {high}.',
            'By the advanced search, show what has "{words}" as {field} and costs {low} to {high} dollars.',
            'Search by the advanced search: {field} "{words}", Price from {low}, Price to {high}.',
        ),
        advanced_search,
        oracles.advanced_search,
    ),
]
