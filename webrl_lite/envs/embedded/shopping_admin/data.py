"""The admin's own tables: search terms, pages of text, price rules, and the account of the staff.

Everything else that the admin shows and changes are the shop's tables (``shopping.data``), which are filled first.
"""

from __future__ import annotations

import random
import sqlite3

SCHEMA = """
CREATE TABLE admin_search_term (
  id INTEGER PRIMARY KEY, term TEXT NOT NULL UNIQUE, results INTEGER NOT NULL, uses INTEGER NOT NULL UNIQUE
);
CREATE TABLE admin_page (
  id INTEGER PRIMARY KEY, title TEXT NOT NULL, url_key TEXT NOT NULL UNIQUE, status TEXT NOT NULL,
  content TEXT NOT NULL
);
CREATE TABLE admin_price_rule (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL, percent INTEGER NOT NULL,
  from_date TEXT NOT NULL, to_date TEXT NOT NULL, coupon TEXT NOT NULL
);
"""

ACCOUNT = "admin"
"""User name of the staff's one account."""
PASSWORD = "admin-1234"
"""Its password."""

TERMS = 60
COLORS = "black blue green red white grey".split()

TEXTS = (
    ("Home Page", "Welcome to Corner Market. Good things for kitchen, home and garden."),
    ("About Us", "We are a small shop with a large storeroom."),
    ("Shipping Rates", "Flat rate orders take four days, express orders take two."),
    ("Returns", "Send a product back within thirty days, in its box."),
    ("Privacy Notice", "We keep your address to send your orders, and for nothing else."),
    ("Store Hours", "The counter is open from nine to five, Monday to Saturday."),
    ("Gift Cards", "A gift card can be used for every product in the shop."),
    ("Size Guide", "Small is for one person, Medium for two, Large for four."),
    ("Care Advice", "Wipe with a damp cloth and keep dry."),
    ("Repairs", "Bring a broken lamp or chair and we look at it."),
    ("Work With Us", "We look for two people for the packing room."),
    ("Contact Form", "Write to us and we answer within one day."),
    ("Terms Of Sale", "An order is a contract once we confirm it."),
    ("Loyalty Club", "Members get five percent off in their birth month."),
)
"""Titles and contents of the shop's pages of text."""
DISABLED_TEXTS = ("Work With Us", "Loyalty Club")

RULES = (
    ("Spring Sale", "Inactive", 15, "2025-03-01", "2025-04-15", "SPRING15"),
    ("Garden Week", "Active", 20, "2025-06-02", "2025-06-20", "GARDEN20"),
    ("New Customer", "Active", 10, "2024-01-01", "2025-12-31", "HELLO10"),
    ("Kitchen Days", "Inactive", 25, "2025-02-10", "2025-02-24", "KITCHEN25"),
    ("Winter Sale", "Inactive", 30, "2024-12-27", "2025-01-31", "WINTER30"),
    ("Retailer Bonus", "Active", 12, "2025-01-01", "2025-12-31", "TRADE12"),
    ("Camping Month", "Active", 18, "2025-06-01", "2025-06-30", "CAMP18"),
    ("Friends Evening", "Inactive", 35, "2024-11-08", "2024-11-08", "FRIENDS35"),
    ("Lamp Season", "Inactive", 16, "2024-10-01", "2024-11-30", "LIGHT16"),
    ("Birthday Treat", "Active", 5, "2024-06-01", "2026-05-31", "BIRTHDAY5"),
)
"""Name, status, percent, first and last day, and coupon of each price rule."""


def fill(db: sqlite3.Connection, rng: random.Random) -> None:
    """Write the account and the admin's rows.

    Args:
        db: the database, with the shop's tables filled.
        rng: source of every choice.
    """
    db.execute(
        "INSERT INTO account (site, username, password, name) VALUES ('shopping_admin', ?, ?, 'Store Admin')",
        (ACCOUNT, PASSWORD),
    )
    names = [row[0].lower() for row in db.execute("SELECT name FROM shop_product WHERE enabled ORDER BY id")]
    words = sorted({word for name in names for word in name.split()})
    nouns = sorted({name.removesuffix(" small").removesuffix(" large").split()[-1] for name in names})
    terms = words + [f"{color} {noun}" for color in COLORS for noun in nouns]
    uses = rng.sample(range(3, 400), TERMS)
    for term, count in zip(rng.sample(terms, TERMS), uses, strict=True):
        results = sum(all(word in name for word in term.split()) for name in names)
        db.execute("INSERT INTO admin_search_term (term, results, uses) VALUES (?, ?, ?)", (term, results, count))
    for title, content in TEXTS:
        url_key = title.lower().replace(" ", "-")
        status = "Disabled" if title in DISABLED_TEXTS else "Enabled"
        db.execute(
            "INSERT INTO admin_page (title, url_key, status, content) VALUES (?, ?, ?, ?)",
            (title, url_key, status, content),
        )
    db.executemany(
        "INSERT INTO admin_price_rule (name, status, percent, from_date, to_date, coupon) VALUES (?, ?, ?, ?, ?, ?)",
        RULES,
    )
