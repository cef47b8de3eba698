"""The roads between the towns of the map: crossings, named roads, and who may use them how fast.

Plain data, the same for every seed: ``data.fill`` writes it into the database, ``routing`` finds the way on
it. A road is a chain of towns and crossings; each of its pieces is as long as the straight line times the
winding of its class, in whole hundreds of metres, so that distances are exact and add up to what a page
shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

CROSSINGS: dict[str, tuple[float, float]] = {
    "Lime Corner": (93, 81),
    "Fern Cross": (67, 92),
    "Sand Point": (18, 76),
    "Mill Bridge": (39, 9),
    "Pine Gate": (94, 31),
    "Clay Cross": (68, 10),
    "Reed Corner": (11, 11),
    "Stone Bridge": (60, 36),
    "Oak Cross": (38, 33),
    "Birch Corner": (82, 88),
    "Hill Gate": (53, 89),
    "Elm Cross": (38, 57),
    "Lake Gate": (11, 48),
    "Iron Bridge": (76, 56),
    "Fox Corner": (91, 65),
    "Moor Cross": (60, 74),
    "Ash Gate": (49, 55),
    "Rose Corner": (62, 61),
    "Fen Bridge": (25, 8),
    "Crow Cross": (43, 78),
    "Salt Gate": (52, 8),
    "Plum Cross": (81, 37),
    "Hay Corner": (25, 63),
    "Willow Bridge": (20, 35),
    "Dove Cross": (36, 47),
    "Barn Gate": (50, 31),
    "Marsh Bridge": (80, 12),
    "Heath Cross": (38, 19),
    "Otter Gate": (20, 25),
    "Wool Corner": (29, 41),
    "Gull Point": (31, 82),
}
"""Where roads meet outside the towns: kilometres east and north of the map's south-west corner."""


@dataclass(frozen=True)
class Road:
    """A named road through towns and crossings."""

    name: str
    kind: str
    """``motorway``, ``main``, ``minor`` or ``path``."""
    stops: tuple[str, ...]


def _road(name: str, kind: str, stops: str) -> Road:
    return Road(name, kind, tuple(stops.split(", ")))


ROADS = (
    _road("M1", "motorway", "Alderbrook, Hay Corner, Elm Cross, Ash Gate, Rose Corner, Dunmere"),
    _road("M2", "motorway", "Northam, Crow Cross, Carrow Hill, Ash Gate, Gildersea, Barn Gate, Kettleby"),
    _road("M3", "motorway", "Eastwick, Plum Cross, Larkhaven, Marsh Bridge, Moss Landing"),
    _road("Route 1", "main", "Alderbrook, Sand Point, Brindle Bay, Gull Point, Northam, Hill Gate, Fern Cross"),
    _road(
        "Route 1",
        "main",
        "Fern Cross, Birch Corner, Lime Corner, Fox Corner, Eastwick, Pine Gate, Moss Landing",
    ),
    _road("Route 2", "main", "Inverlake, Lake Gate, Alderbrook"),
    _road(
        "Route 3",
        "main",
        "Harrowgate, Dove Cross, Gildersea, Stone Bridge, Fallow Ford, Iron Bridge, Dunmere",
    ),
    _road("Route 4", "main", "Inverlake, Otter Gate, Juniper Falls, Heath Cross, Kettleby, Larkhaven"),
    _road("Route 5", "main", "Inverlake, Willow Bridge, Harrowgate, Hay Corner, Brindle Bay"),
    _road(
        "Route 6",
        "main",
        "Inverlake, Reed Corner, Fen Bridge, Mill Bridge, Salt Gate, Clay Cross, Marsh Bridge",
    ),
    _road("Route 7", "main", "Brindle Bay, Crow Cross, Moor Cross, Dunmere, Fox Corner"),
    _road("Route 8", "main", "Carrow Hill, Rose Corner, Iron Bridge, Eastwick"),
    _road("Route 9", "main", "Stone Bridge, Larkhaven, Clay Cross"),
    _road("Cider Lane", "minor", "Brindle Bay, Elm Cross, Dove Cross, Oak Cross, Heath Cross, Mill Bridge"),
    _road("Abbey Lane", "minor", "Harrowgate, Lake Gate, Willow Bridge"),
    _road("Otter Lane", "minor", "Otter Gate, Willow Bridge, Wool Corner, Dove Cross"),
    _road("Reed Lane", "minor", "Reed Corner, Otter Gate"),
    _road("Heath Lane", "minor", "Fen Bridge, Heath Cross, Barn Gate"),
    _road("Barn Lane", "minor", "Barn Gate, Stone Bridge, Plum Cross"),
    _road("Falls Lane", "minor", "Juniper Falls, Oak Cross"),
    _road("Ferry Lane", "minor", "Mill Bridge, Kettleby, Clay Cross"),
    _road("Plum Lane", "minor", "Fallow Ford, Plum Cross, Pine Gate"),
    _road("Fox Lane", "minor", "Iron Bridge, Fox Corner"),
    _road("Lime Lane", "minor", "Dunmere, Lime Corner"),
    _road("Fern Lane", "minor", "Dunmere, Fern Cross, Moor Cross"),
    _road("Hill Lane", "minor", "Crow Cross, Hill Gate, Moor Cross, Carrow Hill"),
    _road("Heron Path", "path", "Sand Point, Hay Corner"),
    _road("Gull Path", "path", "Gull Point, Crow Cross"),
    _road("Wool Path", "path", "Harrowgate, Wool Corner, Oak Cross"),
    _road("Orchard Path", "path", "Gildersea, Oak Cross, Barn Gate"),
    _road("River Path", "path", "Juniper Falls, Fen Bridge"),
    _road("Salt Path", "path", "Kettleby, Salt Gate"),
    _road("Ash Path", "path", "Ash Gate, Fallow Ford"),
    _road("Rose Path", "path", "Fallow Ford, Rose Corner, Moor Cross"),
    _road("Iron Path", "path", "Iron Bridge, Plum Cross"),
    _road("Birch Path", "path", "Dunmere, Birch Corner"),
)

WINDING = {"motorway": 1.02, "main": 1.08, "minor": 1.15, "path": 1.05}
"""Length of a road over the length of the straight line, by class."""

MODES = {"car": "Car", "bicycle": "Bicycle", "foot": "Foot"}
"""Ways to travel, and what the page calls them."""

SPEEDS = {
    "car": {"motorway": 100, "main": 80, "minor": 50, "street": 30},
    "bicycle": {"main": 18, "minor": 15, "path": 20, "street": 15},
    "foot": {"main": 5, "minor": 5, "path": 5, "street": 5},
}
"""Kilometres an hour by mode and class; a missing class is closed to the mode. ``street``: in a town."""


def piece_length(kind: str, start: tuple[float, float], end: tuple[float, float]) -> int:
    """Return the length of a road between two of its stops, in hundreds of metres."""
    return round(math.dist(start, end) * WINDING[kind] * 10)
