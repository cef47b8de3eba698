"""The shop's customers and their address books.

Called by ``data.fill``, which writes the rest of the shop's rows.
"""

from __future__ import annotations

import random
import sqlite3
from dataclasses import dataclass
from datetime import date, timedelta

from webrl_lite.envs.embedded.names import FIRST_NAMES, LAST_NAMES, TOWNS, Town
from webrl_lite.envs.embedded.shopping.goods import insert

ACCOUNT = "maya.lindqvist@example.com"
"""User name of the usual customer."""
PASSWORD = "harbor-42"
"""Her password."""

STREETS = (
    "Mill Lane,High Street,Station Road,Orchard Way,Harbor Street,Chapel Hill,Market Street,River Road,"
    "Garden Row,Church Lane,Bridge Street,Park Avenue,Hill View,Forge Lane,Meadow Close,North Road"
).split(",")

MAYA_ADDRESSES = (
    ("Maya Lindqvist", "14 Orchard Way", "Kettleby"),
    ("Maya Lindqvist", "3 Station Road", "Harrowgate"),
    ("Noor Lindqvist", "27 Mill Lane", "Dunmere"),
    ("Silas Brandt", "8 Chapel Hill", "Larkhaven"),
    ("Hana Brandt", "61 Market Street", "Larkhaven"),
    ("Theo Novak", "5 Bridge Street", "Inverlake"),
    ("Rosa Almeida", "40 River Road", "Eastwick"),
)
CUSTOMERS = 64
SAME_NAMES = 2
"""Customers who bear the name of an earlier one."""


@dataclass(frozen=True)
class Address:
    """Where parcels go."""

    name: str
    """The recipient."""
    street: str
    town: Town


@dataclass(frozen=True)
class Customer:
    """What orders and reviews need to know of a customer."""

    id: int
    name: str
    addresses: tuple[Address, ...]
    """The usual one first."""
    since: date


def fill_customers(db: sqlite3.Connection, rng: random.Random) -> list[Customer]:
    """Write customers and addresses.

    Args:
        db: the database that holds the shop's tables and the table ``account``.
        rng: source of every choice.

    Returns:
        All customers, the usual one first and those with another's name last.
    """
    phones = [f"555-{number:04}" for number in rng.sample(range(100, 200), CUSTOMERS + len(MAYA_ADDRESSES))]
    customers = [_maya(db, phones)]
    names = rng.sample(
        [(first, last) for first in FIRST_NAMES for last in LAST_NAMES if last != "Lindqvist"],
        CUSTOMERS - 1 - SAME_NAMES,
    )
    for place, (first, last) in enumerate(names + names[:SAME_NAMES]):
        again = "2" if place >= len(names) else ""
        email = f"{first}.{last}{again}@example.com".lower()
        joined = date(2023, 6, 1) + timedelta(days=rng.randrange(640))
        stamp = f"{joined} {rng.randint(7, 21):02}:{rng.randrange(60):02}:00"
        group = rng.choice(("General",) * 6 + ("Wholesale", "Retailer"))
        newsletter = int(rng.random() < 0.4)
        phone, name = phones.pop(), f"{first} {last}"
        customer_id = insert(
            db,
            "shop_customer",
            first=first,
            last=last,
            email=email,
            phone=phone,
            group_name=group,
            newsletter=newsletter,
            created_at=stamp,
        )
        address = Address(name, f"{rng.randint(1, 90)} {rng.choice(STREETS)}", rng.choice(TOWNS))
        _address(db, customer_id, address, phone, 1)
        customers.append(Customer(customer_id, name, (address,), joined))
    return customers


def _maya(db: sqlite3.Connection, phones: list[str]) -> Customer:
    """Write the usual customer with her account and address book; takes phone numbers from the list."""
    account_id = db.execute(
        "INSERT INTO account (site, username, password, name) VALUES ('shopping', ?, ?, 'Maya Lindqvist')",
        (ACCOUNT, PASSWORD),
    ).lastrowid
    own, since = phones.pop(), date(2023, 11, 2)
    maya = insert(
        db,
        "shop_customer",
        account_id=account_id,
        first="Maya",
        last="Lindqvist",
        email=ACCOUNT,
        phone=own,
        group_name="General",
        newsletter=0,
        created_at=f"{since} 09:20:00",
    )
    towns = {town.name: town for town in TOWNS}
    addresses = tuple(Address(name, street, towns[town]) for name, street, town in MAYA_ADDRESSES)
    for place, address in enumerate(addresses):
        _address(db, maya, address, phones.pop() if place else own, int(place == 0))
    return Customer(maya, "Maya Lindqvist", addresses, since)


def _address(db: sqlite3.Connection, customer_id: int, address: Address, phone: str, default: int) -> None:
    insert(
        db,
        "shop_address",
        customer_id=customer_id,
        name=address.name,
        street=address.street,
        town=address.town.name,
        zip=address.town.zip,
        phone=phone,
        is_default=default,
    )
