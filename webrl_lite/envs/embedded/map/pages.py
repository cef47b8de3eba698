"""The map's pages: search, categories, towns, places, directions, notes and saved places.

Reads the map's tables (through ``finder`` and ``routing``) and writes ``map_note`` and ``map_favorite``.
Nobody signs in: notes carry the name that a visitor gives, and the saved places are everybody's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from flask import Response, abort, flash, redirect, render_template, request

from webrl_lite.envs.embedded.map import drawing, finder, routing
from webrl_lite.envs.embedded.map.data import LISTS, STREET_HM
from webrl_lite.envs.embedded.map.network import MODES, SPEEDS
from webrl_lite.envs.embedded.site import NOW, connection, make_site, one, paginate, query, write

app = make_site("map", "Wayfinder", login_path="/login")
app.jinja_env.globals.update(
    KINDS=finder.KINDS,
    MODES=MODES,
    LISTS=LISTS,
    overlay=drawing.overlay,
    address=finder.address,
    place_path=finder.place_path,
)
app.jinja_env.filters.update(km=routing.distance_text, duration=routing.time_text)

PER_PAGE = 10
NEAR = 6
"""Places that a place's page lists as near."""
GUESSES = 8
"""Longest list of places that a route's end may have meant."""
AUTHOR_MAX, NOTE_MIN, NOTE_MAX = 40, 5, 200
"""Limits of a note, in characters."""
WITHOUT_SITE = ("park", "station")
"""Types that have no website."""
SORTS = {"name": "Name", "oldest": "Oldest first"}
WHEELCHAIR = {"yes": "Yes", "no": "No"}

ROADS = """
SELECT road.*, a.x AS ax, a.y AS ay, b.x AS bx, b.y AS by
FROM map_road AS road JOIN map_spot AS a ON a.id = road.a JOIN map_spot AS b ON b.id = road.b ORDER BY road.id
"""


@dataclass(frozen=True)
class Canvas:
    """What the map beside the panel shows."""

    view: drawing.View = drawing.REGION
    markers: tuple[tuple[float, float, str], ...] = ()
    lines: tuple[str, ...] = ()


@app.context_processor
def frame() -> dict[str, object]:
    """Give every page the menu of towns, and the map of the land if it has no ``canvas``."""
    return {"canvas": Canvas(), "all_towns": query("SELECT id, name FROM map_town ORDER BY name")}


def tidy(wanted: Mapping[str, str]) -> Response | None:
    """Return a redirect unless this page's query is ``wanted`` without empty values: one view, one address."""
    kept = {name: value for name, value in wanted.items() if value}
    if request.args.to_dict() == kept:
        return None
    return redirect(request.path + ("?" + urlencode(kept) if kept else ""))


def given(name: str) -> str:
    """Return a query parameter without outer and double spaces."""
    return " ".join(request.args.get(name, "").split())


@app.get("/")
def home() -> str:
    """Show the start page."""
    return render_template("home.html")


@app.get("/about")
def about() -> str:
    """Show the speeds that travel times are reckoned with."""
    return render_template("about.html", speeds=SPEEDS)


@app.get("/search")
def search() -> Response | str:
    """List what a search found, a page at a time, all types or one."""
    text, kind = given("q"), given("type")
    kind = kind if kind in finder.KINDS or kind == "town" else ""
    moved = tidy({"q": text, "type": kind, "p": given("p")})
    if moved:
        return moved
    hits = finder.search(text, kind)
    page = paginate(hits, PER_PAGE)
    markers = tuple((hit.x, hit.y, "found") for hit in page.items)
    return render_template("search.html", q=text, kind=kind, page=page, canvas=Canvas(markers=markers))


@app.get("/categories")
def categories() -> str:
    """List the types of places."""
    return render_template("categories.html")


@app.get("/category/<kind>")
def category(kind: str) -> Response | str:
    """List the places of a type, in a town or everywhere."""
    if kind not in finder.KINDS:
        abort(404)
    town = given("town")
    known = one(finder.TOWNS + "WHERE lower(town.name) = lower(?)", town) if town else None
    wheelchair = given("wheelchair") if given("wheelchair") in WHEELCHAIR else ""
    sort = given("sort") if given("sort") in SORTS else ""
    wanted = {
        "town": known["name"] if known else town,
        "wheelchair": wheelchair,
        "sort": sort,
        "p": given("p"),
    }
    moved = tidy(wanted)
    if moved:
        return moved
    errors = [f"No town is called {town}."] if town and not known else []
    order = "place.founded, place.id" if sort == "oldest" else "place.name, town.name"
    rows = query(
        f"{finder.PLACES} WHERE place.kind = ? AND ? IN ('', town.name) AND ? IN ('', place.wheelchair) "
        f"ORDER BY {order}",
        kind,
        town,
        wheelchair,
    )
    page = paginate(rows, PER_PAGE)
    markers = tuple((row["x"], row["y"], "found") for row in page.items)
    canvas = Canvas(drawing.town_view(known) if known else drawing.REGION, markers)
    choices = {"SORTS": SORTS, "WHEELCHAIR": WHEELCHAIR}
    return render_template(
        "category.html",
        kind=kind,
        town=wanted["town"],
        errors=errors,
        page=page,
        wanted=wanted,
        canvas=canvas,
        **choices,
    )


@app.get("/towns")
def towns() -> str:
    """List the towns."""
    return render_template("towns.html", towns=query(finder.TOWNS + "ORDER BY town.name"))


@app.get("/relation/<int:town_id>")
def town(town_id: int) -> str:
    """Show a town: facts, neighbours by road, and its places by type."""
    row = one(finder.TOWNS + "WHERE town.id = ?", town_id) or abort(404)
    near = [
        (one(finder.TOWNS + "WHERE spot.id = ?", spot), length)
        for spot, length in routing.neighbours(routing.load_graph(connection()), row["spot"])
    ]
    where = finder.coordinates(row["x"], row["y"])
    canvas = Canvas(drawing.town_view(row), ((row["x"], row["y"], "found"),))
    return render_template("town.html", town=row, near=near, where=where, canvas=canvas)


def find_place(shape: str, place_id: int) -> sqlite3.Row:
    """Return a place, a row of ``finder.PLACES``, or answer 404."""
    return one(finder.PLACES + "WHERE place.id = ? AND place.shape = ?", place_id, shape) or abort(404)


def place_canvas(place: sqlite3.Row) -> Canvas:
    """Return the map of a place's town with the place marked."""
    spot = one(finder.TOWNS + "WHERE town.id = ?", place["town_id"])
    return Canvas(drawing.town_view(spot), ((place["x"], place["y"], "found"),))


@app.get("/<any(node, way):shape>/<int:place_id>")
def place(shape: str, place_id: int) -> str:
    """Show a place: its tags, what lies near, its notes."""
    row = find_place(shape, place_id)
    return render_template(
        "place.html",
        place=row,
        label=finder.place_stop(row).label,
        where=finder.coordinates(row["x"], row["y"]),
        has_site=row["kind"] not in WITHOUT_SITE,
        near=finder.near(row)[:NEAR],
        notes=query("SELECT * FROM map_note WHERE place_id = ? ORDER BY id DESC", place_id),
        saved=one("SELECT * FROM map_favorite WHERE place_id = ?", place_id),
        canvas=place_canvas(row),
    )


@app.get("/<any(node, way):shape>/<int:place_id>/nearby")
def nearby(shape: str, place_id: int) -> Response | str:
    """List the other places of the town by distance, all types or one."""
    row = find_place(shape, place_id)
    kind = given("type") if given("type") in finder.KINDS else ""
    moved = tidy({"type": kind, "p": given("p")})
    if moved:
        return moved
    page = paginate(finder.near(row, kind), PER_PAGE)
    return render_template("nearby.html", place=row, kind=kind, page=page, canvas=place_canvas(row))


@app.get("/site/<int:place_id>")
def website(place_id: int) -> str:
    """Show a place's own website."""
    row = one(finder.PLACES + "WHERE place.id = ?", place_id) or abort(404)
    if row["kind"] in WITHOUT_SITE:
        abort(404)
    return render_template("website.html", place=row)


# Directions -------------------------------------------------------------------------------------------------


@app.get("/directions")
def directions() -> Response | str:
    """Show the form for a route and, where both ends are clear, the route."""
    texts = {"from": given("from"), "to": given("to")}
    if "swap" in request.args:
        texts = {"from": texts["to"], "to": texts["from"]}
    found = {end: finder.resolve(text) for end, text in texts.items()}
    for end, stops in found.items():
        if len(stops) == 1:
            texts[end] = stops[0].label
    mode = given("mode") if given("mode") in MODES else "car"
    moved = tidy({**texts, "mode": mode if any(texts.values()) else ""})
    if moved:
        return moved
    errors = [f"No place is called {text}." for end, text in texts.items() if text and not found[end]]
    guesses = {end: [stop.label for stop in stops[:GUESSES]] for end, stops in found.items() if len(stops) > 1}
    route, canvas = None, Canvas()
    if not errors and not guesses and all(texts.values()):
        (start,), (goal,) = found["from"], found["to"]
        if start == goal:
            errors.append("From and To are the same place.")
        else:
            route = routing.find_route(routing.load_graph(connection()), start, goal, mode)
            canvas = route_canvas(start, goal, route)
    return render_template(
        "directions.html", texts=texts, mode=mode, errors=errors, guesses=guesses, route=route, canvas=canvas
    )


def route_canvas(start: routing.Stop, goal: routing.Stop, route: routing.Route) -> Canvas:
    """Return the map with a route: the town's if it stays in one, else the whole land."""
    spots = [one(finder.TOWNS + "WHERE spot.id = ?", stop.spot) for stop in (start, goal)]
    view = drawing.REGION if route.roads else drawing.town_view(spots[0])
    ends = [stop_at(stop, spot) for stop, spot in zip((start, goal), spots, strict=True)]
    centres = [(spot["x"], spot["y"]) for spot in spots]
    by_id = {road["id"]: road for road in query(ROADS)}
    lines = [drawing.road_line(view, by_id[road]) for road in route.roads]
    if len(route.legs) == 1 and not route.roads:
        lines.append(drawing.straight(view, *ends))
    else:
        lines += [drawing.straight(view, end, centre) for end, centre in zip(ends, centres, strict=True)]
    return Canvas(view, ((*ends[0], "start"), (*ends[1], "goal")), tuple(lines))


def stop_at(stop: routing.Stop, spot: sqlite3.Row) -> tuple[float, float]:
    """Return the place of a route's end in kilometres."""
    if not stop.street:
        return spot["x"], spot["y"]
    row = one("SELECT x, y FROM map_place WHERE town_id = ? AND name = ?", spot["id"], stop.name)
    return row["x"], row["y"]


# Saved places -----------------------------------------------------------------------------------------------


@app.get("/saved")
def saved() -> Response | str:
    """List the saved places, all lists or one."""
    name = given("list") if given("list") in LISTS else ""
    moved = tidy({"list": name, "p": given("p")})
    if moved:
        return moved
    rows = query(
        "SELECT row.*, favorite.list FROM map_favorite AS favorite "
        f"JOIN ({finder.PLACES}) AS row ON row.id = favorite.place_id "
        "WHERE ? IN ('', favorite.list) ORDER BY row.name, row.town",
        name,
    )
    page = paginate(rows, PER_PAGE)
    markers = tuple((row["x"], row["y"], "found") for row in page.items)
    return render_template("saved.html", name=name, page=page, canvas=Canvas(markers=markers))


@app.post("/save")
def save() -> Response:
    """Put a place into a list, or move it to another."""
    row = one(finder.PLACES + "WHERE place.id = ?", request.form.get("place", "")) or abort(404)
    name = request.form.get("list", "")
    old = one("SELECT * FROM map_favorite WHERE place_id = ?", row["id"])
    if name not in LISTS:
        flash("Choose a list.", "error")
    else:
        if old is None:
            write("INSERT INTO map_favorite (place_id, list, created_at) VALUES (?, ?, ?)", row["id"], name, NOW)
        elif old["list"] != name:
            write("UPDATE map_favorite SET list = ? WHERE id = ?", name, old["id"])
        flash(f"{row['name']} is now in {name}.", "success")
    return redirect(finder.place_path(row))


@app.post("/saved/<int:place_id>/remove")
def remove(place_id: int) -> Response:
    """Take a place off its list."""
    row = one("SELECT * FROM map_place WHERE id = ?", place_id) or abort(404)
    write("DELETE FROM map_favorite WHERE place_id = ?", place_id)
    flash(f"{row['name']} was removed.", "success")
    return redirect("/saved")


# Notes ------------------------------------------------------------------------------------------------------


@app.get("/notes")
def notes() -> Response | str:
    """List the notes, newest first, open, closed or both."""
    status = given("status") if given("status") in ("open", "closed") else ""
    moved = tidy({"status": status, "p": given("p")})
    if moved:
        return moved
    rows = query(
        "SELECT note.*, place.name, place.shape, town.name AS town FROM map_note AS note "
        "JOIN map_place AS place ON place.id = note.place_id "
        "JOIN map_town AS town ON town.id = place.town_id "
        "WHERE ? IN ('', note.status) ORDER BY note.created_at DESC, note.id DESC",
        status,
    )
    return render_template("notes.html", status=status, page=paginate(rows, PER_PAGE))


@app.route("/<any(node, way):shape>/<int:place_id>/note", methods=["GET", "POST"])
def add_note(shape: str, place_id: int) -> Response | str:
    """Take a note about a place."""
    row = find_place(shape, place_id)
    author = " ".join(request.form.get("author", "").split())
    body = request.form.get("body", "").strip()
    errors = []
    if request.method == "POST":
        if not 0 < len(author) <= AUTHOR_MAX:
            errors.append(f"Give your name, at most {AUTHOR_MAX} letters.")
        if not NOTE_MIN <= len(body) <= NOTE_MAX:
            errors.append(f"The note must have {NOTE_MIN} to {NOTE_MAX} letters.")
        if not errors:
            write(
                "INSERT INTO map_note (place_id, author, body, created_at, status) VALUES (?, ?, ?, ?, ?)",
                *(place_id, author, body, NOW, "open"),
            )
            flash("Your note was added.", "success")
            return redirect(finder.place_path(row))
    return render_template("note.html", place=row, author=author, body=body, errors=errors, canvas=place_canvas(row))


@app.post("/note/<int:note_id>/resolve")
def resolve(note_id: int) -> Response:
    """Close an open note."""
    note = one("SELECT * FROM map_note WHERE id = ?", note_id) or abort(404)
    row = one(finder.PLACES + "WHERE place.id = ?", note["place_id"])
    if note["status"] == "open":
        write("UPDATE map_note SET status = 'closed' WHERE id = ?", note_id)
        flash("The note was resolved.", "success")
    return redirect(finder.place_path(row))


# Tiles ------------------------------------------------------------------------------------------------------


def tile(text: str) -> Response:
    """Return a picture of the map; nothing on it ever changes."""
    return Response(text, mimetype="image/svg+xml", headers={"Cache-Control": "max-age=86400"})


@app.get("/tiles/region.svg")
def region_tile() -> Response:
    """Draw the whole land."""
    return tile(drawing.region_tile(query(ROADS), query(finder.TOWNS + "ORDER BY town.id")))


@app.get("/tiles/town-<int:town_id>.svg")
def town_tile(town_id: int) -> Response:
    """Draw a town."""
    row = one(finder.TOWNS + "WHERE town.id = ?", town_id) or abort(404)
    streets = query("SELECT * FROM map_street WHERE town_id = ? ORDER BY id", town_id)
    places = query("SELECT * FROM map_place WHERE town_id = ? ORDER BY id", town_id)
    return tile(drawing.town_tile(drawing.town_view(row), query(ROADS), streets, places, STREET_HM / 10))
