"""The map's tables and their content: towns, roads, streets, places, notes and saved places.

Reads the shared towns (``names``) and the road network (``network``); everything else is drawn from the
generator. Places of one chain share their name and lie in different towns; street names come back from town
to town.
"""

from __future__ import annotations

import math
import random
import sqlite3
from collections.abc import Iterator
from itertools import pairwise

from webrl_lite.envs.embedded.map.network import CROSSINGS, ROADS, piece_length
from webrl_lite.envs.embedded.names import FIRST_NAMES, LAST_NAMES, TOWNS

ACCOUNT = None

SCHEMA = """
CREATE TABLE map_town (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, zip TEXT NOT NULL, population INTEGER NOT NULL
);
CREATE TABLE map_spot (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, x REAL NOT NULL, y REAL NOT NULL,
  town_id INTEGER REFERENCES map_town (id)
);
CREATE TABLE map_road (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, a INTEGER NOT NULL REFERENCES map_spot (id),
  b INTEGER NOT NULL REFERENCES map_spot (id), length_hm INTEGER NOT NULL
);
CREATE TABLE map_street (
  id INTEGER PRIMARY KEY, town_id INTEGER NOT NULL REFERENCES map_town (id), name TEXT NOT NULL,
  east REAL NOT NULL, north REAL NOT NULL, UNIQUE (town_id, name)
);
CREATE TABLE map_place (
  id INTEGER PRIMARY KEY, shape TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
  town_id INTEGER NOT NULL REFERENCES map_town (id), street_id INTEGER NOT NULL REFERENCES map_street (id),
  number INTEGER NOT NULL, access_hm INTEGER NOT NULL, x REAL NOT NULL, y REAL NOT NULL,
  phone TEXT, hours TEXT, wheelchair TEXT NOT NULL,
  founded INTEGER NOT NULL, manager TEXT NOT NULL, UNIQUE (town_id, name)
);
CREATE TABLE map_note (
  id INTEGER PRIMARY KEY, place_id INTEGER NOT NULL REFERENCES map_place (id), author TEXT NOT NULL,
  body TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE map_favorite (
  id INTEGER PRIMARY KEY, place_id INTEGER NOT NULL UNIQUE REFERENCES map_place (id), list TEXT NOT NULL,
  created_at TEXT NOT NULL
);
"""

LISTS = ("Favorites", "To visit", "Work")
"""Lists that a place can be saved in."""

STREET_NAMES = (
    "Mill Street, Church Street, Station Road, Market Street, Park Road, Garden Street, Bridge Street, "
    "Castle Street, Forest Road, River Road, Oak Street, Rose Street, Hill Road, "
    "North Street, South Street, West Street"
).split(", ")
STREETS_A_TOWN = 6
STREET_HM = 20
"""Length of every street from the town's centre, in hundreds of metres."""

WORDS = (
    "Amber Anchor Apple Birch Blue Bright Cedar Clover Copper Crown Daisy Eagle Elm Falcon Fern Golden Green "
    "Heron Honey Ivy Lantern Lemon Linden Maple Meadow Moon Oak Olive Orchard Pearl Pine Plum Robin Rose "
    "Silver Star Stone Summer Swan Tulip Velvet Violet White Willow Winter"
).split()

ENDINGS = {
    "cafe": ("Cafe", "Tea Room"),
    "restaurant": ("Kitchen", "Grill"),
    "pharmacy": ("Pharmacy",),
    "museum": ("Museum",),
    "hotel": ("Hotel", "Inn"),
    "park": ("Park",),
    "library": ("Library",),
    "school": ("School",),
    "fuel": ("Fuel",),
    "bank": ("Bank",),
}
"""Last words of a place's name by type; a train station is named after its town."""

COUNTS = {
    "cafe": (1, 6),
    "restaurant": (1, 5),
    "pharmacy": (1, 3),
    "museum": (0, 2),
    "hotel": (1, 5),
    "park": (1, 3),
    "library": (1, 1),
    "school": (1, 2),
    "fuel": (1, 2),
    "bank": (1, 2),
}
"""Fewest and most places of a type in a town, chains not counted."""

CHAINS = {
    "cafe": "Corner Cafe",
    "restaurant": "Family Kitchen",
    "pharmacy": "City Pharmacy",
    "fuel": "Rapid Fuel",
    "bank": "Union Bank",
}
CHAIN_TOWNS = 6
"""Towns that have a branch of each chain."""

AREAS = {"park", "school", "station"}
"""Types that are drawn as an area, so their address is ``/way/<id>``."""

OPENS = ("06:00", "07:00", "08:00", "09:00", "10:00")
CLOSES = ("16:00", "17:00", "18:00", "19:00", "20:00", "21:00")
SATURDAY_CLOSES = ("12:00", "13:00", "14:00", "15:00", "16:00")

REMARKS = (
    "The door has a step.",
    "The entrance is in the yard.",
    "The sign is hard to see.",
    "There is a bicycle stand now.",
    "The phone number is wrong.",
    "It is closed for repairs.",
    "The parking place is full at noon.",
    "The house number is missing.",
)
NOTES = 60
SAVED = 36


def fill(db: sqlite3.Connection, rng: random.Random) -> None:
    """Write the map's content.

    Args:
        db: the database, which holds the schema; rows are committed by the caller.
        rng: the only source of chance.
    """
    numbers = iter(rng.sample(range(210_000, 990_000), 800))
    _towns(db, rng, numbers)
    _roads(db)
    _places(db, rng, numbers)
    places = [row[0] for row in db.execute("SELECT id FROM map_place ORDER BY id")]
    for place in sorted(rng.sample(places, NOTES)):
        author = f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}"
        db.execute(
            "INSERT INTO map_note (place_id, author, body, status, created_at) VALUES (?, ?, ?, ?, ?)",
            (place, author, rng.choice(REMARKS), rng.choice(("open", "open", "closed")), _stamp(rng)),
        )
    for place in rng.sample(places, SAVED):
        db.execute(
            "INSERT INTO map_favorite (place_id, list, created_at) VALUES (?, ?, ?)",
            (place, rng.choice(LISTS), _stamp(rng)),
        )


def _stamp(rng: random.Random) -> str:
    return f"2025-{rng.randint(1, 5):02}-{rng.randint(1, 28):02} {rng.randint(8, 19):02}:00:00"


def _towns(db: sqlite3.Connection, rng: random.Random, numbers: Iterator[int]) -> None:
    """Write towns and their streets, which lead from the centre outwards."""
    for town in TOWNS:
        town_id = next(numbers)
        population = rng.randint(21, 960) * 100 + rng.randint(1, 99)
        db.execute("INSERT INTO map_town VALUES (?, ?, ?, ?)", (town_id, town.name, town.zip, population))
        db.execute(
            "INSERT INTO map_spot (name, x, y, town_id) VALUES (?, ?, ?, ?)",
            (town.name, town.x, town.y, town_id),
        )
        turn = rng.uniform(0, 60)
        for index, name in enumerate(rng.sample(STREET_NAMES, STREETS_A_TOWN)):
            angle = math.radians(turn + 60 * index + rng.uniform(-12, 12))
            db.execute(
                "INSERT INTO map_street (town_id, name, east, north) VALUES (?, ?, ?, ?)",
                (town_id, name, round(math.cos(angle), 4), round(math.sin(angle), 4)),
            )


def _roads(db: sqlite3.Connection) -> None:
    """Write the crossings and the roads, one row for each piece between two stops."""
    db.executemany(
        "INSERT INTO map_spot (name, x, y) VALUES (?, ?, ?)",
        [(name, x, y) for name, (x, y) in CROSSINGS.items()],
    )
    spots = {row[1]: (row[0], (row[2], row[3])) for row in db.execute("SELECT id, name, x, y FROM map_spot")}
    for road in ROADS:
        for start, end in pairwise(road.stops):
            (a, a_at), (b, b_at) = spots[start], spots[end]
            db.execute(
                "INSERT INTO map_road (name, kind, a, b, length_hm) VALUES (?, ?, ?, ?, ?)",
                (road.name, road.kind, a, b, piece_length(road.kind, a_at, b_at)),
            )


def _places(db: sqlite3.Connection, rng: random.Random, numbers: Iterator[int]) -> None:
    """Write the places: single ones, branches of chains, and a station in each town."""
    towns = [row[0] for row in db.execute("SELECT name FROM map_town ORDER BY name")]
    wanted: list[tuple[str, str, str]] = [(town, "station", f"{town} Station") for town in towns]
    for kind, (fewest, most) in COUNTS.items():
        names = [f"{word} {ending}" for ending in ENDINGS[kind] for word in WORDS]
        rng.shuffle(names)
        for town in towns:
            wanted += [(town, kind, names.pop()) for _ in range(rng.randint(fewest, most))]
    for kind, name in CHAINS.items():
        wanted += [(town, kind, name) for town in sorted(rng.sample(towns, CHAIN_TOWNS))]
    slots = {town: _slots(db, rng, town) for town in towns}
    phones = rng.sample(range(1000, 9999), len(wanted))
    for (town, kind, name), phone in zip(wanted, phones, strict=True):
        town_id, street, along, side, x, y = slots[town].pop()
        db.execute(
            "INSERT INTO map_place VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                next(numbers),
                "way" if kind in AREAS else "node",
                name,
                kind,
                town_id,
                street,
                along * 2 + side,
                along,
                x,
                y,
                None if kind == "park" else f"555-{phone}",
                _hours(rng, kind),
                "yes" if rng.random() < 0.45 else "no",
                rng.randint(1890, 2019),
                f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}",
            ),
        )


def _slots(db: sqlite3.Connection, rng: random.Random, town: str) -> list[tuple[int, int, int, int, float, float]]:
    """List a town's building sites, shuffled: town, street, distance from the centre, side, x, y."""
    x, y, town_id = db.execute("SELECT x, y, town_id FROM map_spot WHERE name = ?", (town,)).fetchone()
    found = []
    streets = db.execute("SELECT id, east, north FROM map_street WHERE town_id = ? ORDER BY id", (town_id,))
    for street, east, north in streets.fetchall():
        for along in range(2, STREET_HM):
            side = rng.randint(0, 1)
            off = 0.04 if side else -0.04
            place_x = round(x + east * along / 10 - north * off, 3)
            place_y = round(y + north * along / 10 + east * off, 3)
            found.append((town_id, street, along, side, place_x, place_y))
    rng.shuffle(found)
    return found


def _hours(rng: random.Random, kind: str) -> str | None:
    """Return opening hours as the map writes them, or None for what is always open."""
    if kind in ("park", "station"):
        return None
    week = f"Mo-Fr {rng.choice(OPENS)}-{rng.choice(CLOSES)}"
    return f"{week}; Sa {rng.choice(OPENS)}-{rng.choice(SATURDAY_CLOSES)}; Su closed"
