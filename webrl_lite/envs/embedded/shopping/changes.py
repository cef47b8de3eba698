"""The shop's families of changes: cart, wish list, reviews, account, orders; see ``embedded.families``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from webrl_lite.envs.embedded.families import Family, Instance, state
from webrl_lite.envs.embedded.names import FIRST_NAMES, LAST_NAMES, TOWNS
from webrl_lite.envs.embedded.shopping import oracles
from webrl_lite.envs.embedded.shopping.account import TOPICS
from webrl_lite.envs.embedded.shopping.data import PAYMENTS, SHIPPING, tax_of
from webrl_lite.envs.embedded.shopping.people import ACCOUNT, PASSWORD, STREETS
from webrl_lite.envs.embedded.shopping.questions import SITE, maya_orders, plain_products
from webrl_lite.trajectory import JSON

MAYA = 1
"""Id of the usual customer."""
REVIEWS = (
    (5, "Just right", "We use it every weekend and like it."),
    (4, "Good buy", "It looks better than in the picture."),
    (3, "So so", "It works, but I had hoped for more."),
    (2, "Not for me", "It is too big for my small kitchen."),
    (1, "Came broken", "One part was broken when it came."),
    (5, "Happy with it", "My sister wants one too."),
)
"""Stars, titles and texts of reviews to write."""
MESSAGES = (
    "When will it arrive?",
    "One item is missing from the box.",
    "I would like my money back.",
    "The item does not work.",
    "Please send me the invoice again.",
)


def _insert(table: str, **values: JSON) -> dict[str, JSON]:
    return {"table": table, "op": "insert", "values": values}


def _wish(product_id: int) -> dict[str, JSON]:
    return _insert("shop_wishlist", customer_id=MAYA, product_id=product_id)


def _options(db: sqlite3.Connection, product_id: int) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    sql = "SELECT * FROM shop_product_option WHERE product_id = ? ORDER BY name, id"
    for row in db.execute(sql, (product_id,)):
        found.setdefault(row["name"], []).append(row["value"])
    return found


def _wishable(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return products that are not on the usual customer's wish list."""
    wished = {row["product_id"] for row in db.execute("SELECT * FROM shop_wishlist WHERE customer_id = ?", (MAYA,))}
    return [row for row in plain_products(db) if row["id"] not in wished]


# Cart, wish list, reviews -----------------------------------------------------------------------------------


def add_to_cart(db: sqlite3.Connection) -> Iterator[Instance]:
    """Add some pieces of a product with options."""
    for row in plain_products(db):
        options = _options(db, row["id"])
        if not options or row["stock"] < 5:
            continue
        for turn in range(2):
            chosen = {name: values[(row["id"] + turn) % len(values)] for name, values in options.items()}
            quantity = 2 + (row["id"] + turn) % 3
            values = {
                "product": row["name"],
                "options": " and ".join(f"{name.lower()} {value}" for name, value in chosen.items()),
                "quantity": str(quantity),
            }
            text = ", ".join(f"{name}: {value}" for name, value in chosen.items())
            item = _insert(
                "shop_cart_item", customer_id=MAYA, product_id=row["id"], option_text=text, quantity=quantity
            )
            yield Instance(values, (f"product:{row['name']}",), state(item), 2 + len(chosen))


def wish(db: sqlite3.Connection) -> Iterator[Instance]:
    """Put a product on the wish list; graded by the page that the customer sees."""
    for row in _wishable(db):
        grader = {
            "eval_types": ["program_html"],
            "reference_answers": None,
            "reference_url": "",
            "program_html": [
                {
                    "url": "__SHOPPING__/wishlist/",
                    "locator": "document.querySelector('#wishlist').innerText",
                    "required_contents": {"must_include": [row["name"]]},
                }
            ],
        }
        yield Instance({"product": row["name"]}, (f"product:{row['name']}",), grader, 1)


def newsletter_and_wish(db: sqlite3.Connection) -> Iterator[Instance]:
    """Subscribe to the newsletter and put a product on the wish list."""
    subscribed = {"table": "shop_customer", "op": "update", "key": {"id": MAYA}, "values": {"newsletter": 1}}
    for row in _wishable(db):
        grader = state(subscribed, _wish(row["id"]))
        yield Instance({"product": row["name"]}, (f"product:{row['name']}",), grader, 2)


def sign_in_and_wish(db: sqlite3.Connection) -> Iterator[Instance]:
    """Sign in after the log-in has expired, then put a product on the wish list."""
    for row in _wishable(db):
        values = {"email": ACCOUNT, "password": PASSWORD, "product": row["name"]}
        entities = (f"product:{row['name']}",)
        yield Instance(values, entities, state(_wish(row["id"])), 2, sessions={"shopping": "expired"})


def write_review(db: sqlite3.Connection) -> Iterator[Instance]:
    """Write a review; the nickname may be any."""
    for row in plain_products(db):
        for turn in range(2):
            stars, title, body = REVIEWS[(row["id"] + turn * 3) % len(REVIEWS)]
            values = {
                "product": row["name"],
                "stars": f"{stars} star{'' if stars == 1 else 's'}",
                "title": title,
                "body": body,
            }
            review = _insert(
                "shop_review",
                product_id=row["id"],
                customer_id=MAYA,
                rating=stars,
                title=title,
                body=body,
                status="Pending",
            )
            yield Instance(values, (f"product:{row['name']}",), state(review), 4)


# Account ----------------------------------------------------------------------------------------------------


def _new_street(number: int) -> str:
    return f"{5 + number * 13 % 80} {STREETS[number * 5 % len(STREETS)]}"


def change_address(db: sqlite3.Connection) -> Iterator[Instance]:
    """Change street or phone of an address, or both."""
    rows = db.execute("SELECT * FROM shop_address WHERE customer_id = ? ORDER BY id", (MAYA,)).fetchall()
    for row in rows:
        for number in range(12):
            place = row["id"] * 12 + number
            new = {}
            if number % 3 != 1:
                new["street"] = _new_street(place)
            if number % 3 != 0:
                new["phone"] = f"555-{200 + place:04}"
            values = {
                "name": row["name"],
                "street": row["street"],
                "changes": " and ".join(f"the {name} to {value}" for name, value in new.items()),
                **{f"new_{name}": value for name, value in new.items()},
            }
            change = {"table": "shop_address", "op": "update", "key": {"id": row["id"]}, "values": dict(new)}
            entity = f"address:{row['name']}, {row['street']}"
            yield Instance(values, (entity,), state(change), 1 + len(new))


def add_address(db: sqlite3.Connection) -> Iterator[Instance]:
    """Add an address, all five fields given."""
    for number, town in enumerate(TOWNS):
        fields = {
            "name": f"{FIRST_NAMES[number * 5]} {LAST_NAMES[number * 4 + 1]}",
            "street": _new_street(number),
            "town": town.name,
            "zip": town.zip,
            "phone": f"555-{300 + number:04}",
        }
        grader = state(_insert("shop_address", customer_id=MAYA, is_default=0, **fields))
        yield Instance(dict(fields), (f"recipient:{fields['name']}", f"town:{town.name}"), grader, 5)


# Orders -----------------------------------------------------------------------------------------------------


def _items(db: sqlite3.Connection, order_id: int) -> list[sqlite3.Row]:
    sql = (
        "SELECT i.*, p.stock, p.enabled FROM shop_order_item i JOIN shop_product p ON p.id = i.product_id"
        " WHERE order_id = ? ORDER BY i.id"
    )
    return db.execute(sql, (order_id,)).fetchall()


def reorder(db: sqlite3.Connection) -> Iterator[Instance]:
    """Order again what an order held, as long as everything is still for sale."""
    for order in maya_orders(db):
        items = _items(db, order["id"])
        if all(item["enabled"] and item["stock"] >= item["quantity"] for item in items):
            rows = [
                _insert(
                    "shop_cart_item",
                    customer_id=MAYA,
                    product_id=item["product_id"],
                    option_text=item["option_text"],
                    quantity=item["quantity"],
                )
                for item in items
            ]
            number = order["number"]
            yield Instance({"order": number}, (f"order:{number}",), state(*rows), 1)


def cancel_order(db: sqlite3.Connection) -> Iterator[Instance]:
    """Cancel the one pending order with a product."""
    pending = maya_orders(db, "Pending")
    for order in pending:
        for item in _items(db, order["id"]):
            others = [other for other in pending if other["id"] != order["id"]]
            if any(item["name"] == own["name"] for other in others for own in _items(db, other["id"])):
                continue
            change = {
                "table": "shop_order",
                "op": "update",
                "key": {"id": order["id"]},
                "values": {"status": "Canceled"},
            }
            yield Instance({"product": item["name"]}, (f"product:{item['name']}",), state(change), 2)


def _bought(row: sqlite3.Row, method: str, **more: JSON) -> dict[str, JSON]:
    """Return the grader of buying one piece of a product."""
    subtotal, shipping, tax = row["cost"], SHIPPING[method], tax_of(row["cost"])
    order = _insert(
        "shop_order",
        customer_id=MAYA,
        status="Pending",
        subtotal=subtotal,
        shipping=shipping,
        tax=tax,
        total=subtotal + shipping + tax,
        **more,
    )
    item = _insert("shop_order_item", product_id=row["id"], option_text="", quantity=1)
    return state(order, item)


def buy(db: sqlite3.Connection) -> Iterator[Instance]:
    """Buy one piece: sent to a named address, or to the default address and paid in a named way."""
    rows = db.execute("SELECT * FROM shop_address WHERE customer_id = ? ORDER BY id", (MAYA,)).fetchall()
    default, others = rows[0], rows[1:]
    home = {f"ship_{name}": default[name] for name in ("name", "street", "town", "zip")}
    for row in plain_products(db):
        if _options(db, row["id"]) or not row["stock"]:
            continue
        method = list(SHIPPING)[row["id"] % len(SHIPPING)]
        payment = PAYMENTS[1 + row["id"] % 2]
        how = f"to my default address by {method} and pay by {payment}"
        values = {"product": row["name"], "method": method, "payment": payment, "how": how}
        yield Instance(values, (f"product:{row['name']}",), _bought(row, method, payment=payment, **home), 4)
        address = others[row["id"] // len(SHIPPING) % len(others)]
        how = f"to {address['name']}, {address['street']}, by {method}"
        values = {
            "product": row["name"],
            "method": method,
            "name": address["name"],
            "street": address["street"],
            "how": how,
        }
        target = {f"ship_{name}": address[name] for name in ("name", "street", "town", "zip")}
        entities = (f"product:{row['name']}", f"address:{address['name']}, {address['street']}")
        yield Instance(values, entities, _bought(row, method, **target), 3)


def contact(db: sqlite3.Connection) -> Iterator[Instance]:
    """Write to the shop about an order."""
    for place, order in enumerate(maya_orders(db)):
        topic, body = TOPICS[place % 3], MESSAGES[place % len(MESSAGES)]
        number = order["number"]
        message = _insert("shop_message", customer_id=MAYA, topic=topic, order_number=number, body=body)
        values = {"order": number, "topic": topic, "body": body}
        yield Instance(values, (f"order:{number}",), state(message), 3)


CHANGES = [
    Family(
        "shopping.add_to_cart",
        SITE,
        "change",
        (
            "Put {quantity} pieces of the {product} into my cart, {options}.",
            "Add the {product} to my cart: quantity {quantity}, {options}.",
            "I need the {product} in {options}. Put {quantity} of it into the cart.",
        ),
        add_to_cart,
        oracles.add_to_cart,
    ),
    Family(
        "shopping.wish",
        SITE,
        "change",
        (
            "Add the {product} to my wish list.",
            "Put the {product} on my wish list.",
            "I want to remember the {product}. Add it to the wish list.",
        ),
        wish,
        oracles.wish,
    ),
    Family(
        "shopping.newsletter_and_wish",
        SITE,
        "change",
        (
            "Subscribe me to the newsletter and put the {product} on my wish list.",
            "Sign me up for the newsletter in my account. Then add the {product} to my wish list.",
            "I want to get the newsletter, and I want the {product} on my wish list.",
        ),
        newsletter_and_wish,
        oracles.newsletter_and_wish,
    ),
    Family(
        "shopping.sign_in_and_wish",
        SITE,
        "change",
        (
            "Sign in as {email} with the password {password} and add the {product} to my wish list.",
            "Add the {product} to my wish list. If you must sign in: {email}, password {password}.",
            "My log-in is {email} with the password {password}. Put the {product} on my wish list.",
        ),
        sign_in_and_wish,
        oracles.sign_in_and_wish,
    ),
    Family(
        "shopping.write_review",
        SITE,
        "change",
        (
            'Review the {product} with {stars}, the title "{title}" and the text "{body}"',
            'Write a review of the {product}: {stars}, title "{title}", review "{body}"',
            'Give the {product} {stars}. The title of the review is "{title}", its text is "{body}"',
        ),
        write_review,
        oracles.write_review,
    ),
    Family(
        "shopping.change_address",
        SITE,
        "change",
        (
            "In my address book, change for {name}, {street}: {changes}.",
            "Edit the address {name}, {street}: set {changes}.",
            "My address of {name}, {street}, has changed: set {changes}.",
        ),
        change_address,
        oracles.change_address,
    ),
    Family(
        "shopping.add_address",
        SITE,
        "change",
        (
            "Add to my address book: name {name}, street {street}, town {town}, zip {zip}, phone {phone}.",
            "Save a new address for {name}: {street}, {town}, zip {zip}, phone {phone}.",
            "{name} lives at {street} in {town} (zip {zip}, phone {phone}). Add this to my address book.",
        ),
        add_address,
        oracles.add_address,
        held_out=True,
    ),
    Family(
        "shopping.reorder",
        SITE,
        "change",
        (
            "Put everything from my order {order} into the cart again.",
            "Reorder my order {order}; leave the items in the cart.",
            "I want the same items as in order {order} once more. Put them into my cart.",
        ),
        reorder,
        oracles.reorder,
    ),
    Family(
        "shopping.cancel_order",
        SITE,
        "change",
        (
            "Cancel my pending order with the {product}.",
            "I have a pending order with the {product}. Please cancel it.",
            "Find my order with the {product} that is still pending and cancel it.",
        ),
        cancel_order,
        oracles.cancel_order,
    ),
    Family(
        "shopping.buy",
        SITE,
        "change",
        (
            "Buy one {product}. Send it {how}.",
            "Order one {product}; ship it {how}.",
            "Place an order for one {product}. It should go {how}.",
        ),
        buy,
        oracles.buy,
    ),
    Family(
        "shopping.contact",
        SITE,
        "change",
        (
            'Write to the shop with the topic {topic} about order {order}: "{body}"',
            'Use the contact form for order {order}, topic {topic}, with the message "{body}"',
            'Contact the shop. Topic: {topic}. Order number: {order}. Message: "{body}"',
        ),
        contact,
        oracles.contact,
    ),
]
