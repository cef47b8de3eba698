"""Finding towns and places of the map: by words, by name for a route, and by what lies near.

Reads this request's database through ``site.query``; writes nothing.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from webrl_lite.envs.embedded.map.routing import Stop
from webrl_lite.envs.embedded.site import query

KINDS = {
    "bank": ("Bank", "Banks"),
    "cafe": ("Cafe", "Cafes"),
    "fuel": ("Fuel station", "Fuel stations"),
    "hotel": ("Hotel", "Hotels"),
    "library": ("Library", "Libraries"),
    "museum": ("Museum", "Museums"),
    "park": ("Park", "Parks"),
    "pharmacy": ("Pharmacy", "Pharmacies"),
    "restaurant": ("Restaurant", "Restaurants"),
    "school": ("School", "Schools"),
    "station": ("Train station", "Train stations"),
}
"""Types of places: key in the address, one, many."""

PLACES = """
SELECT place.*, town.name AS town, town.zip, spot.id AS spot, street.name AS street
FROM map_place AS place JOIN map_town AS town ON town.id = place.town_id
JOIN map_spot AS spot ON spot.town_id = town.id JOIN map_street AS street ON street.id = place.street_id
"""
"""Every place with its town and street; a WHERE or ORDER BY can follow."""

TOWNS = """
SELECT town.*, spot.id AS spot, spot.x, spot.y
FROM map_town AS town JOIN map_spot AS spot ON spot.town_id = town.id
"""
"""Every town with its spot; a WHERE or ORDER BY can follow."""

SMALL_WORDS = {"a", "at", "in", "of", "the"}
"""Words of a search that say nothing."""


@dataclass(frozen=True)
class Hit:
    """A town or a place that a search found."""

    path: str
    """Address of its page."""
    name: str
    about: str
    """Type, street and town as one line."""
    stop: Stop
    x: float
    y: float


def place_stop(place: sqlite3.Row) -> Stop:
    """Return a place, a row of ``PLACES``, as an end of a route."""
    label = f"{place['name']}, {place['town']}"
    return Stop(label, place["name"], place["town"], place["spot"], place["street"], place["access_hm"])


def address(place: sqlite3.Row) -> str:
    """Return street and number of a row of ``PLACES``."""
    return f"{place['number']} {place['street']}"


def place_path(place: sqlite3.Row) -> str:
    """Return the address of a place's page."""
    return f"/{place['shape']}/{place['id']}"


def search(text: str, kind: str = "") -> list[Hit]:
    """Find the towns and places that all words of a text fit.

    A word fits if a word of the name, type, address, zip or town begins with it; a number must be equal. A
    row whose name is the text comes first, then names that begin with it, then the rest; towns before places.

    Args:
        text: what the visitor typed; without any word it finds nothing.
        kind: a key of ``KINDS``, or ``town``; empty for all.
    """
    wanted = [word for word in _words(text) if word not in SMALL_WORDS]
    if not wanted:
        return []
    found = []
    for is_place, hit, haystack in _everything():
        if kind in ("", haystack[0]) and all(_fits(word, haystack) for word in wanted):
            name = _words(hit.name)
            begins = name[: len(wanted)] == wanted
            rank = 0 if name == wanted else 1 if begins else 2
            found.append(((rank, is_place, hit.name, hit.stop.town), hit))
    return [hit for _, hit in sorted(found, key=lambda entry: entry[0])]


def resolve(text: str) -> list[Stop]:
    """Find what a visitor means by one end of a route.

    Args:
        text: a town, a place's name with or without its town, an address, or words as for ``search``.

    Returns:
        One stop if the text is clear, several if it is not, none if nothing fits.
    """
    wanted = _words(text)
    if not wanted:
        return []
    named = [(hit, is_place) for is_place, hit, _ in _everything() if wanted in _full_names(hit)]
    towns = [hit.stop for hit, is_place in named if not is_place]
    if towns:
        return towns
    return [hit.stop for hit, _ in named] or [hit.stop for hit in search(text)]


def near(place: sqlite3.Row, kind: str = "") -> list[tuple[sqlite3.Row, str]]:
    """List the other places of a place's town with their distance in words, nearest first.

    Args:
        place: a row of ``PLACES``.
        kind: a key of ``KINDS``; empty for all.
    """
    rows = query(PLACES + "WHERE place.town_id = ?", place["town_id"])
    return [(row, metres_text(km)) for km, row in by_distance(place, rows, kind)]


def by_distance(place: sqlite3.Row, rows: Iterable[sqlite3.Row], kind: str = "") -> list[tuple[float, sqlite3.Row]]:
    """Return the other places of a type among rows, with their distance as the crow flies, nearest first."""
    here = (place["x"], place["y"])
    found = [
        (math.dist(here, (row["x"], row["y"])), row["id"], row)
        for row in rows
        if row["id"] != place["id"] and kind in ("", row["kind"])
    ]
    return [(km, row) for km, _, row in sorted(found, key=lambda entry: entry[:2])]


def metres_text(km: float) -> str:
    """Write a short distance: tens of metres below a kilometre, else as ``1.4 km``."""
    metres = round(km * 100) * 10
    return f"{metres} m" if metres < 1000 else f"{km:.1f} km"


def coordinates(x: float, y: float) -> tuple[str, str]:
    """Return latitude and longitude of a point given in kilometres, each with four decimals.

    One degree is taken as 110.6 km north and 108.1 km east, at a corner of 12 and 62 degrees.
    """
    return f"{12 + y / 110.6:.4f}", f"{62 + x / 108.1:.4f}"


def _everything() -> Iterable[tuple[bool, Hit, tuple[str, ...]]]:
    """Yield all towns and places: whether it is a place, the row, and its type and words to find it by."""
    for town in query(TOWNS + "ORDER BY town.name"):
        stop = Stop(town["name"], town["name"], town["name"], town["spot"])
        hit = Hit(f"/relation/{town['id']}", town["name"], "Town", stop, town["x"], town["y"])
        yield False, hit, ("town", *_words(f"{town['name']} {town['zip']}"))
    for place in query(PLACES + "ORDER BY place.name, town.name"):
        one, many = KINDS[place["kind"]]
        about = f"{one}, {address(place)}, {place['town']}"
        hit = Hit(place_path(place), place["name"], about, place_stop(place), place["x"], place["y"])
        yield True, hit, (place["kind"], *_words(f"{place['name']} {many} {about} {place['zip']}"))


def _full_names(hit: Hit) -> list[list[str]]:
    """Return the ways to name a row without doubt, and its bare name, as lists of words."""
    street = hit.about.split(", ", 1)[-1]  # an address with its town; a town's own line is "Town"
    return [_words(hit.name), _words(hit.stop.label), _words(street) if hit.stop.street else []]


def _fits(word: str, haystack: tuple[str, ...]) -> bool:
    return any(word == own if word.isdecimal() else own.startswith(word) for own in haystack)


def _words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())
