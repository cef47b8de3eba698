"""The map as pictures: tiles with roads and names, and a layer with route and markers over a tile.

Reads the map's tables and the outlines below. A tile is an SVG file of its own that a page shows as a
background, so its names are no text of the page; the layer is inline, hidden from assistive technology, and
holds no text.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

WIDTH, HEIGHT = 1250, 1000
"""Size of every tile in its own units."""

Point = tuple[float, float]

SEAS = (
    (
        (-40, 140),
        (-40, 80),
        (0, 78),
        (10, 74),
        (17, 79),
        (24, 77),
        (28, 73),
        (30, 77),
        (29, 90),
        (33, 100),
        (33, 140),
    ),
    ((140, 30), (104, 30), (97, 22), (95, 14), (92, 10), (84, 7), (78, -2), (78, -40), (140, -40)),
)
LAKES = ((5.5, 27, 3.4, 4.6), (20, 45, 1.2, 2), (67, 52, 2.2, 1.3), (57, 83, 2, 1.4))
"""Centre and half axes of each lake in kilometres."""
WOODS = (
    (16, 18, 8, 6),
    (44, 71, 6, 6),
    (84, 79, 9, 6),
    (61, 27, 8, 6),
    (29, 34, 6, 5),
    (87, 42, 5, 8),
    (57, 67, 5, 5),
    (6, 55, 6, 7),
    (67, 80, 6, 4),
    (98, 60, 6, 9),
    (45, 0, 16, 6),
    (-6, 42, 7, 9),
)
RIVER = (
    (5, 30),
    (14, 28),
    (22, 31),
    (33, 30),
    (41, 37),
    (52, 39),
    (61, 41),
    (66, 51),
    (74, 61),
    (84, 66),
    (100, 72),
    (140, 76),
)

ROAD_STYLE = {
    "path": ("#ffffff", 2.6, "#4b8f3c", 1.6),
    "minor": ("#b5afa5", 4.6, "#ffffff", 3.0),
    "main": ("#c9973f", 5.6, "#fbdc9a", 3.8),
    "motorway": ("#b8435f", 7.2, "#ec9aa8", 4.8),
}
"""Casing colour and width, inner colour and width, by class; drawn in this order."""
BEND = {"path": 0.1, "minor": 0.1, "main": 0.06, "motorway": 0.03}
"""How far a road bends off the straight line, as a share of its length."""

COLOURS = {
    "bank": "#4a5d7a",
    "cafe": "#a86a1f",
    "fuel": "#5b5b5b",
    "hotel": "#0b7fa8",
    "library": "#7a5230",
    "museum": "#734a91",
    "park": "#3e8e41",
    "pharmacy": "#1c8f5a",
    "restaurant": "#c4622d",
    "school": "#8a7a1d",
    "station": "#8461c4",
}


@dataclass(frozen=True)
class View:
    """The part of the land that a tile shows."""

    tile: str
    """Address of the tile."""
    x: float
    y: float
    """Centre in kilometres."""
    scale: float
    """Units of the tile a kilometre."""

    def at(self, x: float, y: float) -> Point:
        """Return where a point given in kilometres lies on the tile."""
        return round(WIDTH / 2 + (x - self.x) * self.scale, 1), round(HEIGHT / 2 - (y - self.y) * self.scale, 1)


REGION = View("/tiles/region.svg", 50, 50, 10)


def town_view(spot: sqlite3.Row) -> View:
    """Return the view of a town's centre; ``spot`` has ``id`` (the town's), ``x`` and ``y``."""
    return View(f"/tiles/town-{spot['id']}.svg", spot["x"], spot["y"], 190)


def overlay(view: View, markers: Iterable[tuple[float, float, str]] = (), lines: Sequence[str] = ()) -> Markup:
    """Draw the layer over a tile.

    Args:
        view: what the tile shows.
        markers: x, y in kilometres and the CSS class of each marker.
        lines: path data of the route, as ``road_line`` and ``straight`` give them.
    """
    parts = [f'<path class="route-edge" d="{line}"/>' for line in lines]
    parts += [f'<path class="route" d="{line}"/>' for line in lines]
    for x, y, style in markers:
        px, py = view.at(x, y)
        parts.append(f'<path class="pin {style}" d="M{px},{py}l-13,-26a15,15 0 1 1 26,0z"/>')
        parts.append(f'<circle class="eye" cx="{px}" cy="{py - 33}" r="5"/>')
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="xMidYMid slice"'
    return Markup(f'<svg class="layer" {box} aria-hidden="true" focusable="false">{"".join(parts)}</svg>')


def straight(view: View, start: Point, end: Point) -> str:
    """Return the path data of a straight line between two points given in kilometres."""
    (x1, y1), (x2, y2) = view.at(*start), view.at(*end)
    return f"M{x1},{y1}L{x2},{y2}"


def road_line(view: View, road: sqlite3.Row) -> str:
    """Return the path data of a piece of road: ``id``, ``kind``, ``ax``, ``ay``, ``bx`` and ``by``."""
    (x1, y1), (x2, y2) = view.at(road["ax"], road["ay"]), view.at(road["bx"], road["by"])
    bend = BEND[road["kind"]] * (1 if road["id"] % 2 else -1)
    middle = f"{(x1 + x2) / 2 - (y2 - y1) * bend:.1f},{(y1 + y2) / 2 + (x2 - x1) * bend:.1f}"
    return f"M{x1},{y1}Q{middle} {x2},{y2}"


def region_tile(roads: Sequence[sqlite3.Row], towns: Sequence[sqlite3.Row]) -> str:
    """Draw the whole land: rows of roads and of towns (``name``, ``population``, ``x``, ``y``)."""
    parts = _ground(REGION)
    for town in towns:
        x, y = REGION.at(town["x"], town["y"])
        size = 12 + math.sqrt(town["population"]) / 14
        parts.append(f'<polygon fill="#dcd8d3" points="{_blob(x, y, size, size, len(town["name"]))}"/>')
    parts += _roads(REGION, roads, 1.0)
    parts += _shields(roads)
    for town in towns:
        x, y = REGION.at(town["x"], town["y"])
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="#fff" stroke="#444" stroke-width="2"/>')
        parts.append(_label(x, y - 12, town["name"], 21))
    return _svg(parts)


def town_tile(
    view: View,
    roads: Sequence[sqlite3.Row],
    streets: Sequence[sqlite3.Row],
    places: Sequence[sqlite3.Row],
    reach: float,
) -> str:
    """Draw a town.

    Args:
        view: the town's view.
        roads: rows of all roads.
        streets: rows of its streets: ``name``, ``east`` and ``north``, the direction from the centre.
        places: rows of its places: ``name``, ``kind``, ``x`` and ``y``.
        reach: length of the streets in kilometres.
    """
    x, y = view.at(view.x, view.y)
    size = reach * view.scale
    parts = _ground(view)
    parts.append(f'<polygon fill="#e3dfda" points="{_blob(x, y, size * 1.12, size * 1.12, len(places))}"/>')
    parts += [_houses(view, street, reach) for street in streets]
    rings = "".join(
        f'<polygon points="{" ".join(f"{px},{py}" for px, py in _ring(view, streets, share * reach))}"/>'
        for share in (0.3, 0.6, 0.9)
    )
    parts.append(f'<g fill="none" stroke="#c9c4bb" stroke-width="11">{rings}</g>')
    parts.append(f'<g fill="none" stroke="#fff" stroke-width="8">{rings}</g>')
    parts += _roads(view, roads, 3.2)
    spokes = "".join(
        straight(view, (view.x, view.y), (view.x + s["east"] * reach, view.y + s["north"] * reach)) for s in streets
    )
    for colour, width in (("#b5afa5", 18), ("#fff", 14)):
        line = f'stroke="{colour}" stroke-width="{width}" stroke-linecap="round"'
        parts.append(f'<path fill="none" {line} d="{spokes}"/>')
    parts += [_street_name(view, street, reach) for street in streets]
    for park in (place for place in places if place["kind"] == "park"):
        px, py = view.at(park["x"], park["y"])
        parts.append(f'<polygon fill="#bfe3b4" points="{_blob(px, py, 46, 34, park["id"])}"/>')
    taken: list[tuple[float, float, float]] = []
    for place in places:
        px, py = view.at(place["x"], place["y"])
        colour = COLOURS[place["kind"]]
        parts.append(f'<rect x="{px - 7}" y="{py - 7}" width="14" height="14" rx="3" fill="{colour}" stroke="#fff"/>')
        half = len(place["name"]) * 4.3
        if all(
            abs(py - other_y) > 19 or abs(px - other_x) > half + other_half for other_x, other_y, other_half in taken
        ):
            taken.append((px, py, half))
            parts.append(_label(px, py + 22, place["name"], 15, colour))
    return _svg(parts)


def _svg(parts: Iterable[str]) -> str:
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    font = 'font-family="DejaVu Sans, sans-serif"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>{"".join(parts)}</svg>'


def _ground(view: View) -> list[str]:
    """Draw land, woods, waters and the river."""

    def ellipse(x: float, y: float, half_x: float, half_y: float) -> str:
        px, py = view.at(x, y)
        return _blob(px, py, half_x * view.scale, half_y * view.scale, int(x * 7 + y))

    def coast(points: Iterable[Point], *, closed: bool) -> str:
        return _smooth([view.at(*point) for point in points], closed=closed)

    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#f3f0e9"/>']
    parts += [f'<polygon fill="#cfe3bf" points="{ellipse(*wood)}"/>' for wood in WOODS]
    river = f'stroke-width="{view.scale * 0.3:.1f}" stroke-linejoin="round" d="{coast(RIVER, closed=False)}"'
    parts.append(f'<path fill="none" stroke="#a9cfe0" {river}/>')
    shore = 'fill="#a9cfe0" stroke="#8bb9cf" stroke-width="2"'
    parts += [f'<path {shore} d="{coast(sea, closed=True)}"/>' for sea in SEAS]
    parts += [f'<polygon {shore} points="{ellipse(*lake)}"/>' for lake in LAKES]
    return parts


def _roads(view: View, roads: Sequence[sqlite3.Row], widen: float) -> list[str]:
    parts = []
    for kind, (edge, edge_width, colour, width) in ROAD_STYLE.items():
        lines = "".join(road_line(view, road) for road in roads if road["kind"] == kind)
        dash = ' stroke-dasharray="7 4"' if kind == "path" else ' stroke-linecap="round"'
        for stroke, thick in ((edge, edge_width), (colour, width)):
            parts.append(f'<path fill="none" stroke="{stroke}" stroke-width="{thick * widen:.1f}"{dash} d="{lines}"/>')
    return parts


def _shields(roads: Sequence[sqlite3.Row]) -> list[str]:
    """Draw the number of each motorway and main road in the middle of its third piece."""
    colours = {"motorway": "#b8435f", "main": "#a9781f"}
    seen: dict[str, int] = {}
    parts = []
    for road in roads:
        seen[road["name"]] = seen.get(road["name"], 0) + 1
        if road["kind"] in colours and seen[road["name"]] == 3:
            x, y = REGION.at((road["ax"] + road["bx"]) / 2, (road["ay"] + road["by"]) / 2)
            number = road["name"].removeprefix("Route ")
            box = f'x="{x - 15}" y="{y - 10}" width="30" height="20" rx="4"'
            parts.append(f'<rect {box} fill="{colours[road["kind"]]}" stroke="#fff" stroke-width="2"/>')
            parts.append(f'<text x="{x}" y="{y + 5}" font-size="14" text-anchor="middle" fill="#fff">{number}</text>')
    return parts


def _smooth(points: Sequence[Point], *, closed: bool) -> str:
    """Return the path data of a curve that touches the middle of each line between two points."""
    ends = [((x1 + x2) / 2, (y1 + y2) / 2) for (x1, y1), (x2, y2) in pairwise(points)]
    curves = [
        f"Q{x:.0f},{y:.0f} {end_x:.1f},{end_y:.1f}"
        for (x, y), (end_x, end_y) in zip(points[1:], ends[1:], strict=False)
    ]
    first = points[0] if not closed else ends[0]
    rest = "".join(curves) if closed else f"L{ends[0][0]:.1f},{ends[0][1]:.1f}{''.join(curves)}"
    return f"M{first[0]:.1f},{first[1]:.1f}{rest}{'Z' if closed else ''}"


def _blob(x: float, y: float, half_x: float, half_y: float, turn: int) -> str:
    """Return the corners of a rounded, slightly uneven shape."""
    points = []
    for step in range(40):
        angle = step * math.pi / 20
        uneven = 1 + 0.1 * math.sin(3 * angle + turn) + 0.06 * math.sin(5 * angle + 2 * turn)
        points.append(f"{x + half_x * uneven * math.cos(angle):.1f},{y + half_y * uneven * math.sin(angle):.1f}")
    return " ".join(points)


def _ring(view: View, streets: Sequence[sqlite3.Row], radius: float) -> list[Point]:
    """Return the corners of a side street that crosses all streets at one distance from the centre."""
    turned = sorted(streets, key=lambda street: math.atan2(street["north"], street["east"]))
    return [view.at(view.x + street["east"] * radius, view.y + street["north"] * radius) for street in turned]


def _houses(view: View, street: sqlite3.Row, reach: float) -> str:
    """Draw rows of houses on both sides of a street."""
    x, y = view.at(view.x, view.y)
    angle = -math.degrees(math.atan2(street["north"], street["east"]))
    houses = []
    for step in range(4, int(reach * 20)):
        for side in (-34, 14):
            if (step * 7 + side + len(street["name"])) % 5:  # a gap now and then
                houses.append(f"M{step * view.scale / 20:.0f},{side}h{view.scale / 29:.1f}v20h-{view.scale / 29:.1f}z")
    return f'<path fill="#d2c6bb" transform="translate({x} {y}) rotate({angle:.1f})" d="{"".join(houses)}"/>'


def _street_name(view: View, street: sqlite3.Row, reach: float) -> str:
    """Write a street's name along it, never upside down."""
    middle = reach * 0.74
    x, y = view.at(view.x + street["east"] * middle, view.y + street["north"] * middle)
    angle = -math.degrees(math.atan2(street["north"], street["east"]))
    if abs(angle) > 90:
        angle -= math.copysign(180, angle)
    text = f'<text y="4.5" font-size="13" fill="#555" text-anchor="middle">{escape(street["name"])}</text>'
    return f'<g transform="translate({x} {y}) rotate({angle:.1f})">{text}</g>'


def _label(x: float, y: float, text: str, size: int, colour: str = "#222") -> str:
    halo = 'stroke="#fff" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
    at = f'x="{x}" y="{y:.1f}" font-size="{size}" text-anchor="middle"'
    return f'<text {at} fill="{colour}" {halo}>{escape(text)}</text>'
