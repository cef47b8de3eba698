"""What the admin's task families are made of: rows of the pristine database, and the rules that grade them."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator

from webrl_lite.envs.embedded.families import Instance
from webrl_lite.trajectory import JSON

DB = sqlite3.Connection
Row = sqlite3.Row

SITE = "__SHOPPING_ADMIN__"
FIRST_PAGE = 10
"""Rows of a grid that a start page shows."""
PER_ANSWER = 6
"""Most instances of a counting or ranking family that share an answer."""


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


def shows(url: str, field: str, text: str) -> dict[str, JSON]:
    """Return the rule that a field of a page holds a text; ``last`` is the page that the episode ends on."""
    locator = f"document.querySelector('[name={field}]').value"
    return {"url": url, "locator": locator, "required_contents": {"exact_match": text}}


def balanced(instances: list[Instance], key: str) -> Iterator[Instance]:
    """Yield instances so that no answer, kept under ``key`` of the values, occurs too often; the key is removed."""
    seen: Counter[str] = Counter()
    for instance in instances:
        found = instance.values.pop(key)
        seen[found] += 1
        if seen[found] <= PER_ANSWER:
            yield instance
