"""The shop's reviews: generated opinions of customers on products.

Called by ``data.fill``, which writes the rest of the shop's rows.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from datetime import date, timedelta

from webrl_lite.envs.embedded.shopping.goods import Product, insert
from webrl_lite.envs.embedded.shopping.people import SAME_NAMES, Customer

PRAISE = (
    ("Very happy", "It does just what I wanted and looks good."),
    ("Great value", "Better than what I paid twice as much for."),
    ("Would buy again", "I bought a second one for my sister."),
    ("Well made", "The finish is clean and nothing is loose."),
    ("Lovely gift", "My father uses it every day."),
    ("Arrived early", "It came two days before the date I was given."),
)
MIXED = (
    ("It is fine", "Does the job, but the color is darker than the picture."),
    ("Good but small", "Nice, only smaller than I thought."),
    ("Not bad", "The instructions are hard to read."),
    ("Mixed feelings", "I like the look, but it is heavy to carry."),
)
BLAME = (
    ("Broke soon", "The handle came off after one week."),
    ("Not as shown", "The one that came has a scratch on the side."),
    ("Disappointed", "It smells of paint and the smell stays."),
    ("Came late", "I waited five weeks for it."),
    ("Part missing", "One screw was missing from the box."),
)
REVIEW_COUNTS = (0, 1, 2, 2, 3, 3, 4, 5, 6, 8)


def fill_reviews(
    db: sqlite3.Connection, rng: random.Random, products: Sequence[Product], customers: Sequence[Customer]
) -> None:
    """Write reviews, each text once a product, by customers whose names differ.

    Args:
        db: the database that holds the shop's tables.
        rng: source of every choice.
        products: what is reviewed; some get no review.
        customers: as ``fill_customers`` returns them; the first one writes none.
    """
    rows = []
    for product in products:
        reviewers = rng.sample(customers[1:-SAME_NAMES], rng.choice(REVIEW_COUNTS))
        texts = {5: list(PRAISE), 3: list(MIXED), 1: list(BLAME)}
        for pool in texts.values():
            rng.shuffle(pool)
        for customer in reviewers:
            rating = rng.choice((1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5))
            pool = texts[5 if rating > 3 else 3 if rating == 3 else 1]
            if not pool:
                continue
            title, body = pool.pop()
            status = rng.choices(("Approved", "Pending", "Not Approved"), (88, 9, 3))[0]
            start = date(2025, 4, 20) if status == "Pending" else date(2024, 1, 10)
            written = moment(rng, start, date(2025, 6, 14))
            row = {
                "product_id": product.id,
                "customer_id": customer.id,
                "nickname": customer.name,
                "rating": rating,
                "title": title,
                "body": body,
                "status": status,
                "created_at": written,
            }
            rows.append(row)
    for row in sorted(rows, key=lambda row: (row["created_at"], row["product_id"])):
        insert(db, "shop_review", **row)


def moment(rng: random.Random, first: date, last: date) -> str:
    """Return a time as ISO text, by day, between two days, the last one included."""
    on = first + timedelta(days=rng.randrange((last - first).days + 1))
    return f"{on} {rng.randint(7, 21):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
