"""The shop's tables and their invented content: catalogue, customers, orders, reviews.

Written once into the pristine database (see ``world.build``); the pages of ``shopping`` and of
``shopping_admin`` read and write the tables. Money is integer cents, times are ISO text, and nothing is later
than ``site.NOW``.
"""

from __future__ import annotations

import random
import sqlite3
from datetime import date, datetime, timedelta

from webrl_lite.envs.embedded.shopping.goods import Product, fill_catalogue, insert
from webrl_lite.envs.embedded.shopping.people import ACCOUNT, STREETS, Customer, fill_customers
from webrl_lite.envs.embedded.shopping.reviews import fill_reviews, moment

__all__ = ["ACCOUNT", "SCHEMA", "STREETS", "fill"]

SCHEMA = """
CREATE TABLE shop_category (
  id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
  parent_id INTEGER REFERENCES shop_category
);
CREATE TABLE shop_product (
  id INTEGER PRIMARY KEY, sku TEXT NOT NULL UNIQUE, name TEXT NOT NULL, slug TEXT NOT NULL UNIQUE,
  category_id INTEGER NOT NULL REFERENCES shop_category, brand TEXT NOT NULL, price INTEGER NOT NULL,
  special_price INTEGER, stock INTEGER NOT NULL, enabled INTEGER NOT NULL, color TEXT NOT NULL,
  weight_g INTEGER NOT NULL, description TEXT NOT NULL
);
CREATE TABLE shop_product_option (
  id INTEGER PRIMARY KEY, product_id INTEGER NOT NULL REFERENCES shop_product, name TEXT NOT NULL,
  value TEXT NOT NULL
);
CREATE TABLE shop_customer (
  id INTEGER PRIMARY KEY, account_id INTEGER REFERENCES account, first TEXT NOT NULL, last TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE, phone TEXT NOT NULL, group_name TEXT NOT NULL, newsletter INTEGER NOT NULL,
  created_at TEXT NOT NULL
);
CREATE TABLE shop_address (
  id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES shop_customer, name TEXT NOT NULL,
  street TEXT NOT NULL, town TEXT NOT NULL, zip TEXT NOT NULL, phone TEXT NOT NULL,
  is_default INTEGER NOT NULL
);
CREATE TABLE shop_review (
  id INTEGER PRIMARY KEY, product_id INTEGER NOT NULL REFERENCES shop_product,
  customer_id INTEGER REFERENCES shop_customer, nickname TEXT NOT NULL, rating INTEGER NOT NULL,
  title TEXT NOT NULL, body TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE shop_order (
  id INTEGER PRIMARY KEY, number TEXT NOT NULL UNIQUE, customer_id INTEGER NOT NULL REFERENCES shop_customer,
  status TEXT NOT NULL, created_at TEXT NOT NULL, subtotal INTEGER NOT NULL, shipping INTEGER NOT NULL,
  tax INTEGER NOT NULL, total INTEGER NOT NULL, ship_name TEXT NOT NULL, ship_street TEXT NOT NULL,
  ship_town TEXT NOT NULL, ship_zip TEXT NOT NULL, payment TEXT NOT NULL
);
CREATE TABLE shop_order_item (
  id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES shop_order,
  product_id INTEGER NOT NULL REFERENCES shop_product, sku TEXT NOT NULL, name TEXT NOT NULL,
  option_text TEXT NOT NULL, price INTEGER NOT NULL, quantity INTEGER NOT NULL
);
CREATE TABLE shop_order_comment (
  id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES shop_order, body TEXT NOT NULL,
  notified INTEGER NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE shop_shipment (
  id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES shop_order, carrier TEXT NOT NULL,
  tracking TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE shop_invoice (
  id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES shop_order, number TEXT NOT NULL UNIQUE,
  total INTEGER NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE shop_cart_item (
  id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES shop_customer,
  product_id INTEGER NOT NULL REFERENCES shop_product, option_text TEXT NOT NULL, quantity INTEGER NOT NULL
);
CREATE TABLE shop_wishlist (
  id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES shop_customer,
  product_id INTEGER NOT NULL REFERENCES shop_product
);
CREATE TABLE shop_message (
  id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES shop_customer, name TEXT NOT NULL,
  email TEXT NOT NULL, topic TEXT NOT NULL, order_number TEXT NOT NULL, body TEXT NOT NULL,
  created_at TEXT NOT NULL
);
CREATE INDEX shop_review_product ON shop_review (product_id);
CREATE INDEX shop_item_order ON shop_order_item (order_id);
CREATE INDEX shop_order_customer ON shop_order (customer_id);
"""

SHIPPING = {"Flat Rate": 500, "Express": 1200, "Store Pickup": 0}
"""Shipping methods and what they cost, in cents."""
PAYMENTS = ("Check", "Card", "Bank Transfer")
TAX_PERCENT = 8

MAYA_ORDERS = (2, 1, 3, 2, 1, 3, 2, 2, 3, 1, 3, 2, 4, 2, 3, 2, 2, 2)
"""Orders of the usual customer in each month from January 2024 to June 2025."""
MAYA_OLD = ["Complete"] * 17 + ["Canceled"] * 4 + ["Pending", "Pending", "On Hold", "Processing"]
MAYA_NEW = ["Pending"] * 8 + ["Processing"] * 3 + ["On Hold"] * 2 + ["Complete"] * 2
"""Statuses of her orders of 2024 and of 2025."""
OTHER_ORDERS = 155
CARRIERS = ("Swift Post", "Blue Van", "Hill Cargo")
COMMENTS = (
    "The customer asked for gift paper.",
    "The customer asked us to ring the bell twice.",
    "Address checked by phone.",
    "Waiting for the payment.",
    "Packed and ready.",
    "Part of the order is late.",
)
MESSAGES = (
    ("Product", "Is the lamp bright enough to read by?"),
    ("Order", "How long does Express take?"),
    ("Return", "My box came open. What should I do?"),
    ("Other", "Do you sell gift cards?"),
)


def fill(db: sqlite3.Connection, rng: random.Random) -> None:
    """Write all rows of the shop.

    Args:
        db: the database that holds ``SCHEMA`` and the table ``account``.
        rng: source of every choice.
    """
    products = fill_catalogue(db, rng)
    customers = fill_customers(db, rng)
    fill_reviews(db, rng, products, customers)
    _orders(db, rng, products, customers)
    _carts(db, rng, products, customers)


def tax_of(subtotal: int) -> int:
    """Return the tax on a sum of goods, in cents, rounded half up."""
    return (subtotal * TAX_PERCENT + 50) // 100


# Orders -----------------------------------------------------------------------------------------------------


def _orders(db: sqlite3.Connection, rng: random.Random, products: list[Product], customers: list[Customer]) -> None:
    """Write orders in the order of their times, with items, invoices, shipments and comments."""
    rows = [(placed, customers[0], status) for placed, status in _maya_orders(rng)]
    for _ in range(OTHER_ORDERS):
        customer = rng.choice(customers[1:])
        placed = moment(rng, max(customer.since, date(2024, 1, 1)) + timedelta(days=1), date(2025, 6, 14))
        old = placed < "2025-04-15"
        status = rng.choices(
            ("Complete", "Canceled", "Processing", "Pending", "On Hold"),
            (78, 12, 4, 3, 3) if old else (20, 8, 30, 32, 10),
        )[0]
        rows.append((placed, customer, status))
    for place, (placed, customer, status) in enumerate(sorted(rows, key=lambda row: row[0])):
        _order(db, rng, f"{101 + place:09}", placed, customer, status, products)


def _maya_orders(rng: random.Random) -> list[tuple[str, str]]:
    """Return times and statuses of the usual customer's orders."""
    old, new = list(MAYA_OLD), list(MAYA_NEW)
    rng.shuffle(old)
    rng.shuffle(new)
    rows = []
    for number, count in enumerate(MAYA_ORDERS):
        year, month = 2024 + number // 12, number % 12 + 1
        last = 14 if (year, month) == (2025, 6) else 28
        for _ in range(count):
            placed = moment(rng, date(year, month, 1), date(year, month, last))
            rows.append((placed, (old if year == 2024 else new).pop()))
    return rows


def _order(
    db: sqlite3.Connection,
    rng: random.Random,
    number: str,
    placed: str,
    customer: Customer,
    status: str,
    products: list[Product],
) -> None:
    bought = rng.sample(products, rng.choice((1, 2, 2, 3, 3, 4)))
    quantities = [rng.choice((1, 1, 1, 2, 2, 3)) for _ in bought]
    subtotal = sum(product.price * quantity for product, quantity in zip(bought, quantities, strict=True))
    shipping, tax = rng.choice(tuple(SHIPPING.values())), tax_of(subtotal)
    total = subtotal + shipping + tax
    address = rng.choice(customer.addresses)
    order_id = insert(
        db,
        "shop_order",
        number=number,
        customer_id=customer.id,
        status=status,
        created_at=placed,
        subtotal=subtotal,
        shipping=shipping,
        tax=tax,
        total=total,
        ship_name=address.name,
        ship_street=address.street,
        ship_town=address.town.name,
        ship_zip=address.town.zip,
        payment=rng.choice(PAYMENTS),
    )
    for product, quantity in zip(bought, quantities, strict=True):
        insert(
            db,
            "shop_order_item",
            order_id=order_id,
            product_id=product.id,
            sku=product.sku,
            name=product.name,
            option_text=_chosen(rng, product),
            price=product.price,
            quantity=quantity,
        )
    if status in ("Complete", "Processing"):
        billed = _later(rng, placed, 1)
        insert(db, "shop_invoice", order_id=order_id, number=number, total=total, created_at=billed)
    if status == "Complete":
        tracking, sent = f"TR{rng.randrange(10**5, 10**6)}", _later(rng, placed, 4)
        carrier = rng.choice(CARRIERS)
        insert(db, "shop_shipment", order_id=order_id, carrier=carrier, tracking=tracking, created_at=sent)
    if rng.random() < 0.2:
        insert(
            db,
            "shop_order_comment",
            order_id=order_id,
            body=rng.choice(COMMENTS),
            notified=int(rng.random() < 0.5),
            status=status,
            created_at=_later(rng, placed, 1),
        )


def _chosen(rng: random.Random, product: Product) -> str:
    """Return a choice of the product's options, as carts and orders write it."""
    return ", ".join(f"{option}: {rng.choice(values)}" for option, values in product.options)


def _later(rng: random.Random, placed: str, days: int) -> str:
    """Return a time some hours after ``placed``, at most ``days`` days, and not after the sites' own time."""
    later = datetime.fromisoformat(placed) + timedelta(hours=rng.randint(1, 24 * days))
    return min(str(later), "2025-06-15 11:00:00")


def _carts(db: sqlite3.Connection, rng: random.Random, products: list[Product], customers: list[Customer]) -> None:
    """Write carts, wish lists and messages; the usual customer has an empty cart and three wishes."""
    for customer in rng.sample(customers[1:], 10):
        for product in rng.sample(products, rng.choice((1, 2))):
            insert(
                db,
                "shop_cart_item",
                customer_id=customer.id,
                product_id=product.id,
                option_text=_chosen(rng, product),
                quantity=rng.choice((1, 1, 2)),
            )
    wishers = [customers[0], *rng.sample(customers[1:], 12)]
    for customer in wishers:
        for product in rng.sample(products, 3 if customer is customers[0] else rng.choice((1, 2, 3))):
            insert(db, "shop_wishlist", customer_id=customer.id, product_id=product.id)
    for customer, (topic, body) in zip(rng.sample(customers[1:], len(MESSAGES)), MESSAGES, strict=True):
        insert(
            db,
            "shop_message",
            customer_id=customer.id,
            name=customer.name,
            email=db.execute("SELECT email FROM shop_customer WHERE id = ?", (customer.id,)).fetchone()[0],
            topic=topic,
            order_number="",
            body=body,
            created_at=moment(rng, date(2025, 5, 1), date(2025, 6, 14)),
        )
