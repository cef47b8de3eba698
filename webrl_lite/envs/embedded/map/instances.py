"""What the map's tasks ask: each function lists one family's instances, with their graders.

Reads the pristine database; routes are found by the code that the pages show them with, whose figures
``tests/test_site_map.py`` checks by hand. ``tasks`` adds the wordings and the oracles.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from urllib.parse import urlencode

from webrl_lite.envs.embedded.families import Instance, answer, final_page, state
from webrl_lite.envs.embedded.map import finder, routing
from webrl_lite.envs.embedded.map.data import LISTS, REMARKS
from webrl_lite.envs.embedded.map.oracles import OPTIONS
from webrl_lite.envs.embedded.map.pages import WITHOUT_SITE
from webrl_lite.envs.embedded.names import FIRST_NAMES, LAST_NAMES
from webrl_lite.trajectory import JSON

WAYS = tuple(OPTIONS)
MODES = {"by car": "car", "by bicycle": "bicycle", "on foot": "foot"}
MISSING = ("Amber Museum", "Silver Airport", "Golden Castle", "Stone Theater", "Violet Zoo", "Green Stadium")
COUNTED = ("cafe", "hotel", "park", "pharmacy", "restaurant")
"""Types of which a town has few or many, so that no single number is right often."""
CLEAR_KM = 0.05
"""How much farther the second nearest place must be."""


def place_name(place: sqlite3.Row) -> str:
    """Return the entity of a place, a row of ``finder.PLACES``."""
    return f"place:{place['name']}, {place['town']}"


def all_places(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return all places, by number."""
    return db.execute(finder.PLACES + "ORDER BY place.id").fetchall()


def single_places(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return the places whose name occurs once and does not hold a town's, by number."""
    rows = all_places(db)
    names = Counter(row["name"] for row in rows)
    return [row for row in rows if names[row["name"]] == 1 and row["kind"] != "station"]


def branches(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return the places that share their name with others, by number."""
    rows = all_places(db)
    names = Counter(row["name"] for row in rows)
    return [row for row in rows if names[row["name"]] > 1]


def all_towns(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return all towns, by name."""
    return db.execute(finder.TOWNS + "ORDER BY town.name").fetchall()


def by_kind(db: sqlite3.Connection) -> Iterator[tuple[str, str, list[sqlite3.Row]]]:
    """Yield town, type and the places of this type in the town, for every pair that has some."""
    rows = all_places(db)
    for town in all_towns(db):
        for kind in finder.KINDS:
            found = [row for row in rows if row["town_id"] == town["id"] and row["kind"] == kind]
            if found:
                yield town["name"], kind, found


def kinds(kind: str) -> str:
    """Return the plural of a type as an instruction writes it."""
    return finder.KINDS[kind][1].lower()


def author_of(place: sqlite3.Row) -> str:
    """Return the name to sign a note with."""
    return f"{FIRST_NAMES[place['id'] % len(FIRST_NAMES)]} {LAST_NAMES[place['id'] % len(LAST_NAMES)]}"


# Facts of a place -------------------------------------------------------------------------------------------


def phone(db: sqlite3.Connection) -> Iterator[Instance]:
    """The phone number of a place, named with its town since some names occur twice."""
    for place in branches(db) + single_places(db)[::2]:
        if place["phone"]:
            values = {"place": place["name"], "town": place["town"]}
            yield Instance(values, (place_name(place), f"town:{place['town']}"), answer(place["phone"]), 2)


def closing_time(db: sqlite3.Connection) -> Iterator[Instance]:
    """When a place closes, from Monday to Friday or on Saturdays."""
    for index, place in enumerate(single_places(db)):
        if place["hours"]:
            week, saturday, _ = place["hours"].split("; ")
            hours, days = ((week, "from Monday to Friday"), (saturday, "on Saturdays"))[index % 2]
            values = {"place": place["name"], "days": days}
            yield Instance(values, (place_name(place),), answer(hours.split("-")[-1]), 2)


def coordinates(db: sqlite3.Connection) -> Iterator[Instance]:
    """Latitude and longitude of a place."""
    for place in single_places(db):
        where = finder.coordinates(place["x"], place["y"])
        yield Instance({"place": place["name"]}, (place_name(place),), answer(*where), 1)


def population(db: sqlite3.Connection) -> Iterator[Instance]:
    """The population of the town in which a place lies."""
    people = {row["id"]: str(row["population"]) for row in all_towns(db)}
    for place in single_places(db):
        yield Instance({"place": place["name"]}, (place_name(place),), answer(people[place["town_id"]]), 2)


def opening_year(db: sqlite3.Connection) -> Iterator[Instance]:
    """The year that only a place's website tells."""
    for place in single_places(db):
        if place["kind"] not in WITHOUT_SITE:
            yield Instance({"place": place["name"]}, (place_name(place),), answer(str(place["founded"])), 2)


def missing(db: sqlite3.Connection) -> Iterator[Instance]:
    """The phone number of a place that does not exist."""
    names = {row["name"] for row in all_places(db)}
    for name in MISSING:
        if name not in names:
            yield Instance({"place": name}, (f"place:{name}",), answer(exact="N/A"), 1)


def show_place(db: sqlite3.Connection) -> Iterator[Instance]:
    """The page of a place."""
    for place in branches(db) + single_places(db)[1::2]:
        values = {"place": place["name"], "town": place["town"]}
        entities = (place_name(place), f"town:{place['town']}")
        yield Instance(values, entities, final_page(f"__MAP__{finder.place_path(place)}"), 2)


# Routes -----------------------------------------------------------------------------------------------------


def pairs(rows: Sequence[sqlite3.Row], step: int) -> Iterator[tuple[int, sqlite3.Row, sqlite3.Row]]:
    """Yield each place with one in another town, and a number to vary the rest by."""
    for index, start in enumerate(rows):
        goal = rows[(index * step + 11) % len(rows)]
        if start["town_id"] != goal["town_id"]:
            yield index, start, goal


def town_stop(town: sqlite3.Row) -> routing.Stop:
    """Return a town, a row of ``finder.TOWNS``, as an end of a route."""
    return routing.Stop(town["name"], town["name"], town["name"], town["spot"])


def travel_time(db: sqlite3.Connection) -> Iterator[Instance]:
    """How long it takes between two places."""
    graph = routing.load_graph(db)
    for index, start, goal in pairs(single_places(db), 7):
        way = WAYS[index % 3]
        route = routing.find_route(graph, finder.place_stop(start), finder.place_stop(goal), MODES[way])
        values = {"start": start["name"], "goal": goal["name"], "way": way}
        yield Instance(values, (place_name(start), place_name(goal)), answer(routing.time_text(route.tenths)), 3)


def travel_distance(db: sqlite3.Connection) -> Iterator[Instance]:
    """How far it is from a place to a town."""
    graph, towns = routing.load_graph(db), all_towns(db)
    for index, place in enumerate(single_places(db)):
        town, way = towns[index % len(towns)], WAYS[index % 3]
        if town["id"] == place["town_id"]:
            continue
        route = routing.find_route(graph, finder.place_stop(place), town_stop(town), MODES[way])
        values = {"start": place["name"], "goal": town["name"], "way": way}
        entities = (place_name(place), f"town:{town['name']}")
        yield Instance(values, entities, answer(routing.distance_text(route.length_hm)), 3)


def compare_ways(db: sqlite3.Connection) -> Iterator[Instance]:
    """How long it takes between two towns, by two ways to travel."""
    graph, towns = routing.load_graph(db), all_towns(db)
    for index, start in enumerate(towns):
        for goal in towns:
            if goal["id"] == start["id"]:
                continue
            ways = (WAYS[index % 3], WAYS[(index + 1) % 3])
            routes = [routing.find_route(graph, town_stop(start), town_stop(goal), MODES[way]) for way in ways]
            times = [routing.time_text(route.tenths) for route in routes]
            values = {"start": start["name"], "goal": goal["name"], "way": ways[0], "other": ways[1]}
            yield Instance(values, (f"town:{start['name']}", f"town:{goal['name']}"), answer(*times), 4)


def branch_time(db: sqlite3.Connection) -> Iterator[Instance]:
    """How long it takes from a branch of a chain to a town, two ways each."""
    graph, towns = routing.load_graph(db), all_towns(db)
    for index, (place, town) in enumerate(product(branches(db), towns)):
        if town["id"] == place["town_id"]:
            continue
        for way in (WAYS[index % 3], WAYS[(index + 1) % 3]):
            route = routing.find_route(graph, finder.place_stop(place), town_stop(town), MODES[way])
            values = {"place": place["name"], "town": place["town"], "goal": town["name"], "way": way}
            entities = (place_name(place), f"town:{place['town']}", f"town:{town['name']}")
            yield Instance(values, entities, answer(routing.time_text(route.tenths)), 4)


def open_directions(db: sqlite3.Connection) -> Iterator[Instance]:
    """The page of a route between two places."""
    for index, start, goal in pairs(single_places(db), 5):
        way = WAYS[index % 3]
        ends = {
            "from": finder.place_stop(start).label,
            "to": finder.place_stop(goal).label,
            "mode": MODES[way],
        }
        values = {"start": start["name"], "goal": goal["name"], "way": way}
        grader = final_page(f"__MAP__/directions?{urlencode(ends)}")
        yield Instance(values, (place_name(start), place_name(goal)), grader, 3)


# Lists ------------------------------------------------------------------------------------------------------


def near_pairs(db: sqlite3.Connection) -> Iterator[tuple[int, sqlite3.Row, str, sqlite3.Row]]:
    """Yield a number, a place, a type, and the place of this type that is clearly the nearest of several."""
    rows = all_places(db)
    asked = [kind for kind in finder.KINDS if kind != "station"]
    for index, place in enumerate(single_places(db)):
        kind = asked[index % len(asked)]
        found = finder.by_distance(place, (row for row in rows if row["town_id"] == place["town_id"]), kind)
        if len(found) > 1 and found[1][0] - found[0][0] > CLEAR_KM:
            yield index, place, kind, found[0][1]


def nearest(db: sqlite3.Connection) -> Iterator[Instance]:
    """The place of a type that is nearest to a place."""
    for _, place, kind, found in near_pairs(db):
        values = {"place": place["name"], "kind": finder.KINDS[kind][0].lower()}
        yield Instance(values, (place_name(place),), answer(found["name"]), 2)


def count(db: sqlite3.Connection) -> Iterator[Instance]:
    """How many places of a type a town has."""
    for town, kind, found in by_kind(db):
        if kind in COUNTED and len(found) > 1:
            yield Instance({"town": town, "kinds": kinds(kind)}, (f"town:{town}",), answer(str(len(found))), 2)


def accessible(db: sqlite3.Connection) -> Iterator[Instance]:
    """The only place of a type in a town that is, or is not, accessible by wheelchair."""
    for town, kind, found in by_kind(db):
        for wheelchair, access in (
            ("yes", "accessible by wheelchair"),
            ("no", "not accessible by wheelchair"),
        ):
            fitting = [row for row in found if row["wheelchair"] == wheelchair]
            if len(found) > 1 and len(fitting) == 1:
                values = {"town": town, "kinds": kinds(kind), "access": access}
                yield Instance(values, (f"town:{town}",), answer(fitting[0]["name"]), 3)


def open_category(db: sqlite3.Connection) -> Iterator[Instance]:
    """A town's places of a type, filtered and sorted."""
    for town, kind, found in by_kind(db):
        for wheelchair, access in (
            ("yes", "accessible by wheelchair"),
            ("no", "not accessible by wheelchair"),
        ):
            if sum(row["wheelchair"] == wheelchair for row in found) > 1:
                query = urlencode({"town": town, "wheelchair": wheelchair, "sort": "oldest"})
                values = {"town": town, "kinds": kinds(kind), "access": access}
                yield Instance(values, (f"town:{town}",), final_page(f"__MAP__/category/{kind}?{query}"), 4)


def neighbours(db: sqlite3.Connection) -> Iterator[Instance]:
    """The towns that border on a town."""
    graph = routing.load_graph(db)
    for town in all_towns(db):
        names = [graph.names[spot] for spot, _ in routing.neighbours(graph, town["spot"])]
        if len(names) > 1:
            yield Instance({"town": town["name"]}, (f"town:{town['name']}",), answer(*names), 1)


# Changes ----------------------------------------------------------------------------------------------------


def saved_lists(db: sqlite3.Connection) -> dict[int, sqlite3.Row]:
    """Return the saved places' rows by place."""
    return {row["place_id"]: row for row in db.execute("SELECT * FROM map_favorite")}


def save_place(db: sqlite3.Connection) -> Iterator[Instance]:
    """A place to save in a list."""
    saved = saved_lists(db)
    for index, place in enumerate(single_places(db)):
        if place["id"] not in saved:
            name = LISTS[index % len(LISTS)]
            row = {"table": "map_favorite", "op": "insert", "values": {"place_id": place["id"], "list": name}}
            yield Instance({"place": place["name"], "list": name}, (place_name(place),), state(row), 2)


def move_saved(db: sqlite3.Connection) -> Iterator[Instance]:
    """A saved place to put into another list."""
    saved = saved_lists(db)
    for place in single_places(db):
        if place["id"] in saved:
            old = saved[place["id"]]
            name = LISTS[(LISTS.index(old["list"]) + 1) % len(LISTS)]
            row = {
                "table": "map_favorite",
                "op": "update",
                "key": {"id": old["id"]},
                "values": {"list": name},
            }
            yield Instance({"place": place["name"], "list": name}, (place_name(place),), state(row), 2)


def remove_saved(db: sqlite3.Connection) -> Iterator[Instance]:
    """A saved place to remove."""
    saved = saved_lists(db)
    for place in single_places(db):
        if place["id"] in saved:
            row = {"table": "map_favorite", "op": "delete", "key": {"id": saved[place["id"]]["id"]}}
            yield Instance({"place": place["name"]}, (place_name(place),), state(row), 1)


def new_note(place: sqlite3.Row, author: str, body: str) -> dict[str, JSON]:
    """Return the row that a note about a place adds."""
    values = {"place_id": place["id"], "author": author, "body": body, "status": "open"}
    return {"table": "map_note", "op": "insert", "values": values}


def add_note(db: sqlite3.Connection) -> Iterator[Instance]:
    """A note to write about a place."""
    for index, place in enumerate(single_places(db)):
        author, body = author_of(place), REMARKS[index % len(REMARKS)]
        values = {"place": place["name"], "author": author, "body": body}
        yield Instance(values, (place_name(place),), state(new_note(place, author, body)), 3)


def note_nearest(db: sqlite3.Connection) -> Iterator[Instance]:
    """A note to write about the place that is nearest to another; graded by its row and by its page."""
    for index, place, kind, found in near_pairs(db):
        author, body = author_of(place), REMARKS[index % len(REMARKS)]
        values = {
            "place": place["name"],
            "kind": finder.KINDS[kind][0].lower(),
            "author": author,
            "body": body,
        }
        shown = {
            "url": f"__MAP__{finder.place_path(found)}",
            "locator": "document.querySelector('.notes').innerText",
            "required_contents": {"must_include": [body, author]},
        }
        grader = state(new_note(found, author, body))
        grader |= {"eval_types": ["database", "program_html"], "program_html": [shown]}
        yield Instance(values, (place_name(place),), grader, 4)


def resolve_note(db: sqlite3.Connection) -> Iterator[Instance]:
    """A note to close."""
    notes = db.execute("SELECT * FROM map_note WHERE status = 'open' ORDER BY id").fetchall()
    places = {place["id"]: place for place in single_places(db)}
    for note in notes:
        place = places.get(note["place_id"])
        if place is not None and [row["place_id"] for row in notes].count(note["place_id"]) == 1:
            row = {
                "table": "map_note",
                "op": "update",
                "key": {"id": note["id"]},
                "values": {"status": "closed"},
            }
            yield Instance({"place": place["name"]}, (place_name(place),), state(row), 1)
