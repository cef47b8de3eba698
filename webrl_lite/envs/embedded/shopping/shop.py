"""What the shop's pages share: the signed-in customer, products as pages show them, the cart, the stars."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flask import g

from webrl_lite.envs.embedded.shopping.data import SHIPPING, tax_of
from webrl_lite.envs.embedded.site import one, query, user

PRODUCTS = "SELECT *, COALESCE(special_price, price) AS cost FROM shop_product WHERE enabled"
"""Products that the shop shows; ``cost`` is what one costs now."""


@dataclass(frozen=True)
class Stars:
    """The approved reviews of a product in one line."""

    count: int
    average: str
    """One decimal, half up, for example ``3.7``; empty without reviews."""


@dataclass(frozen=True)
class Totals:
    """What an order costs, in cents."""

    subtotal: int
    shipping: int
    tax: int

    @property
    def total(self) -> int:
        """The sum to pay."""
        return self.subtotal + self.shipping + self.tax


def customer() -> sqlite3.Row | None:
    """Return the signed-in customer's row, or None."""
    account = user()
    if account is None:
        return None
    if "customer" not in g:
        g.customer = one("SELECT * FROM shop_customer WHERE account_id = ?", account.id)
    return g.customer


def product_of(product_id: int) -> sqlite3.Row | None:
    """Return a product that the shop shows, or None."""
    return one(f"{PRODUCTS} AND id = ?", product_id)


def options_of(product_id: int) -> dict[str, list[str]]:
    """Return the options that a product asks for, by name in alphabetical order."""
    found: dict[str, list[str]] = {}
    for row in query("SELECT * FROM shop_product_option WHERE product_id = ? ORDER BY name, id", product_id):
        found.setdefault(row["name"], []).append(row["value"])
    return found


def chosen_options(product_id: int, form: Mapping[str, str]) -> tuple[str, list[str]]:
    """Read the options of a product out of a form.

    Returns:
        The choice as carts and orders write it, and the names of options without a valid choice.
    """
    options = options_of(product_id)
    missing = [name for name, values in options.items() if form.get(name, "") not in values]
    text = ", ".join(f"{name}: {form.get(name, '')}" for name in options)
    return text, missing


def stars(product_id: int) -> Stars:
    """Return count and average of a product's approved reviews."""
    row = one(
        "SELECT COUNT(*) AS n, SUM(rating) AS stars FROM shop_review WHERE product_id = ? AND status = 'Approved'",
        product_id,
    )
    count = row["n"]
    if not count:
        return Stars(0, "")
    tenths = (row["stars"] * 20 + count) // (2 * count)
    return Stars(count, f"{tenths // 10}.{tenths % 10}")


def cart_items() -> list[sqlite3.Row]:
    """Return the signed-in customer's cart with the products' names and prices."""
    buyer = customer()
    if buyer is None:
        return []
    return query(
        "SELECT c.id, c.product_id, c.option_text, c.quantity, p.name, p.slug, p.sku, p.stock, p.color,"
        " COALESCE(p.special_price, p.price) AS cost"
        " FROM shop_cart_item c JOIN shop_product p ON p.id = c.product_id"
        " WHERE c.customer_id = ? ORDER BY c.id",
        buyer["id"],
    )


def totals(items: Sequence[sqlite3.Row], method: str) -> Totals:
    """Return what the items cost when sent by a shipping method."""
    subtotal = sum(item["cost"] * item["quantity"] for item in items)
    return Totals(subtotal, SHIPPING[method], tax_of(subtotal))
