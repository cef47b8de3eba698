"""Ways on the map: the road graph, the fastest route between two stops, lengths and times in words.

Reads the map's tables; writes nothing. The fastest route is found by Dijkstra's algorithm with exact integers
(hundreds of metres and tenths of a second), so a route is the same on every machine; of two equally fast
routes the shorter one is taken.

A place lies on a street that leads from its town's centre outwards. The way to a place therefore goes by the
centre, unless both ends lie on the same street.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from webrl_lite.envs.embedded.map.network import SPEEDS

NEIGHBOUR_HM = 350
"""Longest way between two towns that the map calls neighbours, in hundreds of metres."""


@dataclass(frozen=True)
class Edge:
    """A piece of road as seen from one of its ends."""

    road_id: int
    name: str
    kind: str
    to: int
    """The spot at the other end."""
    length_hm: int


@dataclass(frozen=True)
class Graph:
    """All spots and roads."""

    names: Mapping[int, str]
    """Name of each spot."""
    towns: frozenset[int]
    """Spots that are towns."""
    edges: Mapping[int, tuple[Edge, ...]]
    """Pieces of road that leave each spot."""


@dataclass(frozen=True)
class Stop:
    """One end of a route: a town's centre or a place."""

    label: str
    """How the page names it: a town's name, or ``Amber Cafe, Dunmere``."""
    name: str
    town: str
    spot: int
    """The town's spot in the graph."""
    street: str = ""
    """The street that a place lies on; empty for a town."""
    access_hm: int = 0
    """Distance from the town's centre along that street."""


@dataclass(frozen=True)
class Leg:
    """A part of a route on one road."""

    road: str
    to: str
    length_hm: int


@dataclass(frozen=True)
class Route:
    """The fastest way between two stops."""

    length_hm: int
    tenths: int
    """Time in tenths of a second."""
    legs: tuple[Leg, ...]
    roads: tuple[int, ...]
    """Pieces of road that it uses, by ``map_road.id``, in order."""


def load_graph(db: sqlite3.Connection) -> Graph:
    """Read the road graph."""
    spots = db.execute("SELECT id, name, town_id FROM map_spot ORDER BY id").fetchall()
    edges: dict[int, list[Edge]] = {spot: [] for spot, _, _ in spots}
    for road_id, name, kind, a, b, length in db.execute(
        "SELECT id, name, kind, a, b, length_hm FROM map_road ORDER BY id"
    ):
        edges[a].append(Edge(road_id, name, kind, b, length))
        edges[b].append(Edge(road_id, name, kind, a, length))
    return Graph(
        {spot: name for spot, name, _ in spots},
        frozenset(spot for spot, _, town in spots if town is not None),
        {spot: tuple(found) for spot, found in edges.items()},
    )


def tenths(length_hm: int, speed: int) -> int:
    """Return the time for a length at a speed in km/h, in tenths of a second.

    Every speed in ``SPEEDS`` divides 3600, so the result is exact.
    """
    return length_hm * 3600 // speed


def fastest(graph: Graph, start: int, mode: str) -> dict[int, tuple[Edge, ...]]:
    """Find the fastest way from a spot to every other that the mode can reach.

    Args:
        graph: the road graph.
        start: the spot to start from.
        mode: a key of ``SPEEDS``.

    Returns:
        The pieces of road to take, in order, for each spot that can be reached.
    """
    speeds = SPEEDS[mode]
    best: dict[int, tuple[int, int]] = {start: (0, 0)}
    came: dict[int, tuple[int, Edge]] = {}
    queue = [(0, 0, start)]
    while queue:
        time, length, spot = heapq.heappop(queue)
        if (time, length) > best[spot]:
            continue  # a better way was found after this entry was queued
        for edge in graph.edges[spot]:
            if edge.kind not in speeds:
                continue
            cost = (time + tenths(edge.length_hm, speeds[edge.kind]), length + edge.length_hm)
            if edge.to not in best or cost < best[edge.to]:
                best[edge.to] = cost
                came[edge.to] = (spot, edge)
                heapq.heappush(queue, (*cost, edge.to))
    ways: dict[int, tuple[Edge, ...]] = {}
    for target in best:
        way: list[Edge] = []
        spot = target
        while spot != start:
            spot, edge = came[spot]
            way.append(edge)
        ways[target] = tuple(reversed(way))
    return ways


def find_route(graph: Graph, start: Stop, end: Stop, mode: str) -> Route:
    """Return the fastest route between two different stops; every mode reaches every town."""
    speeds = SPEEDS[mode]
    if start.street and start.street == end.street and start.spot == end.spot:
        length = abs(start.access_hm - end.access_hm)
        return Route(length, tenths(length, speeds["street"]), (Leg(start.street, end.name, length),), ())
    legs = [Leg(start.street, start.town, start.access_hm)] if start.access_hm else []
    way = fastest(graph, start.spot, mode)[end.spot]
    time = tenths(start.access_hm + end.access_hm, speeds["street"])
    for edge in way:
        time += tenths(edge.length_hm, speeds[edge.kind])
        leg = Leg(edge.name, graph.names[edge.to], edge.length_hm)
        if legs and legs[-1].road == edge.name:  # one line for a road that goes on
            leg = Leg(edge.name, leg.to, legs.pop().length_hm + edge.length_hm)
        legs.append(leg)
    if end.access_hm:
        legs.append(Leg(end.street, end.name, end.access_hm))
    return Route(sum(leg.length_hm for leg in legs), time, tuple(legs), tuple(edge.road_id for edge in way))


def neighbours(graph: Graph, spot: int) -> list[tuple[int, int]]:
    """List the towns within ``NEIGHBOUR_HM`` that the fastest way by car reaches before any other town.

    Returns:
        Spot and length of the way in hundreds of metres, nearest first.
    """
    found = []
    for target, way in fastest(graph, spot, "car").items():
        between = {edge.to for edge in way[:-1]}
        length = sum(edge.length_hm for edge in way)
        if target != spot and target in graph.towns and length <= NEIGHBOUR_HM and not between & graph.towns:
            found.append((length, target))
    return [(target, length) for length, target in sorted(found)]


def distance_text(length_hm: int) -> str:
    """Write a length: 473 becomes ``47.3 km``."""
    return f"{length_hm // 10}.{length_hm % 10} km"


def time_text(time: int) -> str:
    """Write a time given in tenths of a second: ``1 h 05 min``, or ``41 min`` below an hour.

    Rounded to the nearest minute, half a minute upwards, and never below one minute.
    """
    minutes = max(1, (time + 300) // 600)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02} min" if hours else f"{rest} min"
