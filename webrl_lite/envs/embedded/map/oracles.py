"""Scripted solutions of the map's tasks: what a person would click, choosing by what the page shows.

Each takes the first page and the values of its instruction, yields replies and returns the answer (see
``oracle``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from webrl_lite.envs.embedded.oracle import (
    Moves,
    OracleLost,
    Page,
    click,
    hover,
    look_for,
    reply,
    select,
    type_in,
)

OPTIONS = {"by car": "Car", "by bicycle": "Bicycle", "on foot": "Foot"}
"""The way to travel in an instruction, and the option of the page's select."""

Values = Mapping[str, str]


def open_place(page: Page, values: Values) -> Moves[Page]:
    """Search for a place and open its page; ``town`` tells places of one name apart."""
    page = yield from type_in(page, "Search", values["place"], submit=True)
    return (yield from click(page, values["place"], "link", near=values.get("town", "")))


def open_town(page: Page, town: str) -> Moves[Page]:
    """Open a town's page from the menu in the head of every page."""
    page = yield from hover(page, "Towns")
    return (yield from click(page, town, "link"))


def tag(page: Page, key: str) -> str:
    """Return the value of a row of the tag table."""
    for line in page.lines:
        if line.startswith(f"{key} | "):
            return line.removeprefix(f"{key} | ")
    raise OracleLost(f"no tag {key!r} on:\n{page.text}")


def read(page: Page, pattern: str) -> str:
    """Return the first group of a pattern in the page's text."""
    match = re.search(pattern, page.text)
    if match is None:
        raise OracleLost(f"no {pattern!r} on:\n{page.text}")
    return match[1]


def phone(page: Page, values: Values) -> Moves[str]:
    """Read the phone number."""
    page = yield from open_place(page, values)
    return tag(page, "phone")


def closing_time(page: Page, values: Values) -> Moves[str]:
    """Read when a place closes on Saturdays or from Monday to Friday."""
    page = yield from open_place(page, values)
    days = "Sa" if "Saturday" in values["days"] else "Mo-Fr"
    return read(page, days + r" \d\d:\d\d-(\d\d:\d\d)")


def coordinates(page: Page, values: Values) -> Moves[str]:
    """Read latitude and longitude."""
    page = yield from open_place(page, values)
    return tag(page, "coordinates")


def population(page: Page, values: Values) -> Moves[str]:
    """Go from a place to its town and read the population."""
    page = yield from open_place(page, values)
    town = read(page, r"town \| \d{5} \| (.+?) \[")
    page = yield from click(page, town, "link", near="town |")
    return tag(page, "population")


def opening_year(page: Page, values: Values) -> Moves[str]:
    """Open a place's website, which comes in a new tab, and read the year."""
    page = yield from open_place(page, values)
    page = yield from click(page, "Open the website", "link")
    return read(page, r"doors in (\d{4})")


def ask_route(page: Page, start: str, goal: str, way: str) -> Moves[Page]:
    """Fill in the form for a route and send it."""
    page = yield from click(page, "Directions", "link")
    page = yield from type_in(page, "From", start)
    page = yield from type_in(page, "To", goal)
    if way != "by car":  # the form starts with it
        page = yield from select(page, "Mode", OPTIONS[way])
    return (yield from click(page, "Go", "button"))


def route_time(page: Page) -> str:
    """Read the time of the route on the page."""
    return read(page, r"Time: ((?:\d+ h )?\d+ min)")


def travel_time(page: Page, values: Values) -> Moves[str]:
    """Ask for a route and read its time."""
    page = yield from ask_route(page, values["start"], values["goal"], values["way"])
    return route_time(page)


def travel_distance(page: Page, values: Values) -> Moves[str]:
    """Ask for a route and read its length."""
    page = yield from ask_route(page, values["start"], values["goal"], values["way"])
    return read(page, r"Distance: ([\d.]+ km)")


def branch_time(page: Page, values: Values) -> Moves[str]:
    """Ask for a route from a place whose name is ambiguous, and choose the branch that is meant."""
    page = yield from ask_route(page, values["place"], values["goal"], values["way"])
    page = yield from click(page, f"{values['place']}, {values['town']}", "link")
    return route_time(page)


def open_directions(page: Page, values: Values) -> Moves[str]:
    """Leave the page of a route open."""
    yield from ask_route(page, values["start"], values["goal"], values["way"])
    return "done"


def compare_ways(page: Page, values: Values) -> Moves[str]:
    """Read the times of one route by two ways to travel."""
    page = yield from ask_route(page, values["start"], values["goal"], values["way"])
    first = route_time(page)
    page = yield from select(page, "Mode", OPTIONS[values["other"]])
    page = yield from click(page, "Go", "button")
    return f"{first} {values['way']}, {route_time(page)} {values['other']}"


def show_near(page: Page, values: Values) -> Moves[Page]:
    """Show the places of a type near a place, nearest first."""
    page = yield from open_place(page, values)
    page = yield from click(page, "More nearby", "link")
    page = yield from select(page, "Type", values["kind"].capitalize())
    return (yield from click(page, "Filter", "button"))


def first_near(page: Page) -> str:
    """Return the name of the first place of a list of near places."""
    return read(page, r"(?m)^(.+?) \[\d+\] \| [A-Z][a-z ]+, [\d.]+ k?m$")


def nearest(page: Page, values: Values) -> Moves[str]:
    """Read which place of a type is nearest to a place."""
    page = yield from show_near(page, values)
    return first_near(page)


def note_nearest(page: Page, values: Values) -> Moves[str]:
    """Write a note about the place of a type that is nearest to a place."""
    page = yield from show_near(page, values)
    page = yield from click(page, first_near(page), "link")
    yield from write_note(page, values)
    return "done"


def count(page: Page, values: Values) -> Moves[str]:
    """Search for a type of places in a town and read how many there are."""
    page = yield from type_in(page, "Search", f"{values['kinds']} in {values['town']}", submit=True)
    return read(page, r"(\d+) results? for")


def accessible(page: Page, values: Values) -> Moves[str]:
    """Filter a town's places of a type by wheelchair access and read the only one."""
    page = yield from open_town(page, values["town"])
    page = yield from click(page, values["kinds"].capitalize(), "link")
    page = yield from select(page, "Wheelchair", "No" if "not" in values["access"] else "Yes")
    page = yield from click(page, "Apply", "button")
    return read(page, r"(?m)^(.+?) \[\d+\] \| \d+ [A-Z].+, " + values["town"])


def open_category(page: Page, values: Values) -> Moves[str]:
    """Leave the filtered and sorted list of a town's places of a type open."""
    page = yield from open_town(page, values["town"])
    page = yield from click(page, values["kinds"].capitalize(), "link")
    page = yield from select(page, "Wheelchair", "No" if "not" in values["access"] else "Yes")
    page = yield from select(page, "Sort by", "Oldest first")
    yield from click(page, "Apply", "button")
    return "done"


def neighbours(page: Page, values: Values) -> Moves[str]:
    """Read the towns that border on a town by road."""
    page = yield from open_town(page, values["town"])
    return ", ".join(re.findall(r"(?m)^(.+?) \[\d+\] \| [\d.]+ km$", page.text))


def nothing_found(page: Page, values: Values) -> Moves[str]:
    """Search for a place that does not exist and see that it does not."""
    page = yield from type_in(page, "Search", values["place"], submit=True)
    read(page, "(Nothing was found)")
    return "N/A"


def show_place(page: Page, values: Values) -> Moves[str]:
    """Leave a place's page open."""
    yield from open_place(page, values)
    return "done"


def save_place(page: Page, values: Values) -> Moves[str]:
    """Put a place into a list."""
    page = yield from open_place(page, values)
    page = yield from choose_list(page, "Save in", values["list"])
    yield from click(page, "Save", "button")
    return "done"


def move_saved(page: Page, values: Values) -> Moves[str]:
    """Put a saved place into another list."""
    page = yield from open_place(page, values)
    page = yield from choose_list(page, "Saved in", values["list"])
    yield from click(page, "Move", "button")
    return "done"


def choose_list(page: Page, label: str, name: str) -> Moves[Page]:
    """Choose a list unless the select shows it already."""
    page, element = yield from look_for(page, label, "select")
    if f'"{name}"' in element.line.split(" of ")[0]:
        return page
    return (yield reply("Select Dropdown Option", element, name))


def remove_saved(page: Page, values: Values) -> Moves[str]:
    """Find a place in the list of saved ones, page by page, and remove it."""
    page = yield from click(page, "Saved", "link")
    while True:
        button = page.find(f"Remove {values['place']}", "button")
        if button:
            yield reply("Click", button)
            return "done"
        page = (yield reply("Scroll Down")) if page.more else (yield from click(page, "Next", "link"))


def add_note(page: Page, values: Values) -> Moves[str]:
    """Write a note about a place."""
    page = yield from open_place(page, values)
    yield from write_note(page, values)
    return "done"


def write_note(page: Page, values: Values) -> Moves[Page]:
    """Write a note about the place whose page is open."""
    page = yield from click(page, "Add a note", "link")
    page = yield from type_in(page, "Your name", values["author"])
    page = yield from type_in(page, "Note", values["body"])
    return (yield from click(page, "Add note", "button"))


def resolve_note(page: Page, values: Values) -> Moves[str]:
    """Close the open note about a place."""
    page = yield from open_place(page, values)
    yield from click(page, "Resolve", "button")
    return "done"
