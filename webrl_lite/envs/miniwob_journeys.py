"""Scripted solutions of the pages of MiniWoB++ that have several screens, or more on one than is seen at once.

Continues ``miniwob_oracles``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from webrl_lite.envs.embedded.oracle import Moves, OracleLost, Page, Seen, reply
from webrl_lite.envs.miniwob_oracles import below_goal, exactly, of_role, quoted, submit

MONTHS = "January February March April May June July August September October November December".split()
SCREENS = 40
"""Screens looked through before an oracle gives up."""


def scroll(page: Page, way: str = "Down") -> Moves[tuple[Page, bool]]:
    """Scroll; return the page and whether it moved."""
    before = page.text
    after = yield reply(f"Scroll {way}")
    return after, after.text != before and "Nothing moved" not in after.text


def seen_below(page: Page, name: str, *roles: str, part: bool = False) -> Moves[tuple[Page, Seen]]:
    """Scroll down inside the page until an element shows.

    Args:
        page: as it stands.
        name: of the element, or with ``part`` how its name begins.
        roles: any of these; none for all.
        part: see ``name``.

    Raises:
        OracleLost: it does not show.
    """
    for _ in range(SCREENS):
        for element in page.elements:
            fits = element.name.startswith(name) if part else element.name.strip() == name
            if fits and (not roles or element.role in roles):
                return page, element
        page, moved = yield from scroll(page)
        if not moved:
            break
    raise OracleLost(f"no element {name!r} down to:\n{page.text}")


# Dates and flights --------------------------------------------------------------------------------------------------


def pick_date(page: Page, field: Seen, date: str) -> Moves[Page]:
    """Choose a day, ``MM/DD/YYYY``, in the calendar that opens behind a field."""
    month, day, year = map(int, date.split("/"))
    page = yield reply("Click", field)
    for _ in range(24):
        shown = re.search(rf"^({'|'.join(MONTHS)}) (\d{{4}})$", page.text, re.MULTILINE)
        if shown is None:
            raise OracleLost(f"no calendar on:\n{page.text}")
        away = 12 * (int(shown[2]) - year) + MONTHS.index(shown[1]) + 1 - month
        if away == 0:
            return (yield reply("Click", exactly(page, str(day), "link")))
        page = yield reply("Click", exactly(page, "Prev" if away > 0 else "Next"))
    raise OracleLost(f"the calendar does not come to {date} on:\n{page.text}")


def choose_date(page: Page, goal: str) -> Moves[None]:
    """Choose a date."""
    page = yield from pick_date(page, of_role(page, "input")[0], re.search(r"\d\d/\d\d/\d{4}", goal)[0])
    yield from submit(page)


def book_flight(page: Page, goal: str) -> Moves[None]:
    """Search for a day's flights and book the cheapest or the shortest."""
    *places, date = re.search(r"from: (.+) to: (.+) on (\S+)\.$", goal).groups()
    for number, place in enumerate(places):
        page = yield reply("Type", of_role(page, "input")[number], place)
        page = yield reply("Click", next(e for e in page.elements if e.role == "clickable" and place in e.name))
    page = yield from pick_date(page, of_role(page, "input")[2], date)
    page = yield reply("Click", exactly(page, "Search", "button"))
    flights: dict[str, tuple[int, int]] = {}  # by the button's name: minutes, dollars
    moved = True
    while moved:
        for hours, minutes, price in re.findall(
            r"Duration:\n(?:(\d+)h )?(\d+)m\nBook flight for \$(\d+) \[", page.text
        ):
            flights[f"Book flight for ${price}"] = (60 * int(hours or 0) + int(minutes), int(price))
        page, moved = yield from scroll(page)
    best = min(flights, key=lambda name: flights[name][0 if "shortest" in goal else 1])
    moved = True
    while moved and page.find(best, "button") is None:
        page, moved = yield from scroll(page, "Up")
    yield reply("Click", exactly(page, best, "button"))


# Mail ---------------------------------------------------------------------------------------------------------------

PICTURES = {"delete": 0, "star": 1}
"""Places of the two pictures behind a mail's words; they have no words themselves."""


def mail(page: Page, goal: str) -> Moves[None]:
    """Delete, star, forward or answer one mail. People's wordings differ; the sender is who has written."""
    people = _people(goal)
    page, letter, sender = yield from _letter(page, people)
    text = re.search(r'"(.*)"', goal)
    if text is None and re.search("delet|trash|remov|rid of|eras|discard|junk", goal, re.IGNORECASE):
        yield from _touch(page, letter, PICTURES["delete"])
    elif text is None and re.search("important|star|mark|flag|favorite", goal, re.IGNORECASE):
        yield from _touch(page, letter, PICTURES["star"])
    else:
        page = yield reply("Click", letter)
        page, button = yield from seen_below(page, "Reply" if text else "Forward", "clickable")
        page = yield reply("Click", button)
        receiver = _receiver(goal, [name for name in people if name != sender])
        field = of_role(page, "textarea" if text else "input")[0]
        page = yield reply("Type", field, text[1] if text else receiver)
        yield reply("Click", of_role(page, "clickable")[1])  # the picture that sends


def _people(goal: str) -> list[str]:
    """Return what can be names in an instruction, the likeliest sender first.

    A capital letter inside a sentence makes a name, at its beginning perhaps. Who has sent stands behind ``by`` or
    ``from`` or before ``'s``, ``sent`` or ``wrote``; who stands behind ``to`` receives.
    """
    spoken = re.sub(r'"[^"]*"', "", goal)
    inner, first = [], []
    for match in re.finditer(r"(?<![\w-])[A-Z][a-z]+(?:-[A-Z][a-z]+)?(?!\w)", spoken):
        begins = spoken[: match.start()].rstrip()[-1:] in ("", ".", ",", "!", "?")
        if match[0] != "Email":
            (first if begins else inner).append(match[0])

    def rank(name: str) -> int:
        if re.search(rf"\bto {name}\b", spoken):
            return 2
        sent = re.search(rf"\b(?:by|from) {name}\b|\b{name}(?:['’]s| sent| wrote)\b", spoken)
        return 0 if sent else 1

    return sorted(dict.fromkeys([*inner, *first]), key=rank)


def _receiver(goal: str, people: list[str]) -> str:
    """Return who is to get a mail, among those who did not send it; empty if nobody can be."""
    told = [name for name in people if re.search(rf"\bto {name}\b", goal)]
    return next(iter([*told, *people]), "")


def _letter(page: Page, people: list[str]) -> Moves[tuple[Page, Seen, str]]:
    """Look for a mail of the likeliest sender, then of the next; return it and its sender."""
    for name in people:
        try:
            page, letter = yield from seen_below(page, f"{name} ", "clickable", part=True)
            return page, letter, name
        except OracleLost:
            moved = True
            while moved:
                page, moved = yield from scroll(page, "Up")
    raise OracleLost(f"no mail from any of {people} on:\n{page.text}")


def _touch(page: Page, letter: Seen, place: int) -> Moves[None]:
    """Click a picture of a mail; one at the edge of the screen shows none until it is scrolled to."""
    for way in ("Scroll Down", "Scroll Up", "Scroll Up"):
        pictures = [e for e in page.elements if e.line == letter.line and not e.name]
        if len(pictures) == len(PICTURES):
            yield reply("Click", pictures[place])
            return
        page = yield reply(way)
        letter = next((e for e in page.elements if e.name == letter.name), letter)
    raise OracleLost(f"no pictures behind {letter.name!r} on:\n{page.text}")


# Lists of people and results ----------------------------------------------------------------------------------------


def open_result(page: Page, goal: str) -> Moves[None]:
    """Search, and open a result by its place; a screen has three."""
    place = int(re.search(r"the (\d+)(?:st|nd|rd|th) search result", goal)[1]) - 1
    page = yield reply("Type", of_role(page, "input")[0], quoted(goal)[0])
    page = yield reply("Click", exactly(page, "Search", "button"))
    for _ in range(place // 3):
        page = yield reply("Click", exactly(page, ">", "link"))
    results = [link for link in of_role(page, "link") if " | " not in link.line]
    yield reply("Click", results[place % 3])


def look_up_person(page: Page, goal: str) -> Moves[None]:
    """Leaf through a book of contacts to a person and click one of the lines."""
    name, what = re.search(r"Find (.+) in the contact book and click on their (.+)\.", goal).groups()
    for _ in range(SCREENS):
        if f"= {name}" in page.lines:
            break
        page = yield reply("Click", exactly(page, ">", "link"))
    kind = what.split(" ")[0].capitalize()
    yield reply("Click", next(e for e in page.elements if e.line.startswith(f"{kind}: | ")))


# Posts and dishes ---------------------------------------------------------------------------------------------------

SOCIAL = {"Reply": 0, "Retweet": 1, "Like": 2, "Share": 3}
"""Places of pictures below a post, which have no words."""
MORE = 3
"""Place of the picture that opens a menu of further deeds, where there is no Share."""


@dataclass(frozen=True)
class Entry:
    """One entry of a long list, as far as the screen shows it whole."""

    words: tuple[str, ...]
    """Its lines above the controls."""
    controls: tuple[Seen, ...]

    @property
    def key(self) -> str:
        """What tells it from the others."""
        return "\n".join(self.words)


def entries(page: Page) -> Iterator[Entry]:
    """Yield the entries that end with a line of controls; the first one's beginning may be above the screen."""
    words: list[str] = []
    for line in below_goal(page):
        controls = tuple(element for element in page.elements if element.line == line)
        if len(controls) >= 2:
            yield Entry(tuple(words), controls)
            words = []
        elif not controls:
            words.append(line)


def press_on_posts(page: Page, goal: str) -> Moves[None]:
    """Press a picture below one, some or all posts of a user."""
    user = re.search(r"(@[\w-]+)", goal)[1]
    some = re.search(r"on (\d+) posts?", goal)
    left = int(some[1]) if some else 10_000 if "all posts" in goal else 1
    pressed: set[str] = set()
    while left:
        post = next((p for p in entries(page) if user in p.key.split() and p.key not in pressed), None)
        if post is not None:
            pressed.add(post.key)
            left -= 1
            page = yield from _press(page, post, quoted(goal)[0])
        else:
            page, moved = yield from scroll(page)
            if not moved:
                break
    if "Submit" in goal:
        page, button = yield from seen_below(page, "Submit", "button")
        yield reply("Click", button)


def _press(page: Page, post: Entry, deed: str) -> Moves[Page]:
    picture = post.controls[SOCIAL.get(deed, MORE)]
    page = yield reply("Hover", picture)  # it changes under the mouse, and has no size until the other one is there
    page = yield reply("Click", picture)
    if deed not in SOCIAL:
        page, entry = yield from seen_below(page, deed, part=True)
        page = yield reply("Click", entry)
    return page


def order_food(page: Page, goal: str) -> Moves[None]:
    """Order dishes by their names, or so many of a kind."""
    named = goal.partition("one of each item: ")[2].split(", ")
    kind = re.search(r"Order (\d+) items that are (.+)$", goal)
    left = int(kind[1]) if kind else len(named)
    ordered: set[str] = set()
    while left:
        for dish in entries(page):
            name, tags = _dish(dish)
            if name and name not in ordered and (kind[2] in tags if kind else name in named):
                break
        else:
            page, moved = yield from scroll(page)
            if not moved:
                raise OracleLost(f"no dish for {goal!r} down to:\n{page.text}")
            continue
        ordered.add(name)
        left -= 1
        page = yield reply("Click", dish.controls[1])
    page, button = yield from seen_below(page, "Order", part=True)
    yield reply("Click", button)


def _dish(entry: Entry) -> tuple[str, list[str]]:
    """Return a dish's name and tags; no name if it is above the screen."""
    at = max((i for i, line in enumerate(entry.words) if "(image)" not in line and line[:2] != "= "), default=None)
    if at is None:
        return "", []
    return entry.words[at], [
        part.removesuffix(" (image)") for line in entry.words[at + 1 :] for part in line.split(" | ")
    ]


# Texts to the end, lists, keys --------------------------------------------------------------------------------------


def read_to_end(page: Page, goal: str) -> Moves[None]:
    """Scroll a text to its end, or its top, and send the form."""
    way = "Scroll Up" if "to the top" in goal else "Scroll Down"
    for _ in range(SCREENS):
        page = yield reply(way, of_role(page, "textarea")[0])
        if "Nothing moved" in page.text:
            break
    yield from submit(page)


def choose_in_box(page: Page, goal: str) -> Moves[None]:
    """Choose an entry of a list that opens and scrolls, then click a button."""
    wanted = re.search("Choose (.+) from the dropdown", goal)[1]
    page = yield reply("Click", exactly(page, "▾"))
    for _ in range(SCREENS):
        entry = next((e for e in of_role(page, "clickable") if e.name.strip() == wanted), None)
        if entry is not None:
            page = yield reply("Click", entry)
            yield reply("Click", exactly(page, quoted(goal)[0], "button"))
            return
        inside = [e for e in of_role(page, "clickable") if re.fullmatch(r"\d ?ft( \d+in)?", e.name.strip())]
        page = yield reply("Scroll Down", inside[-1])
    raise OracleLost(f"no entry {wanted!r} on:\n{page.text}")


def delete_file(page: Page, goal: str) -> Moves[None]:
    """List the files of a terminal and delete one of a kind, key by key."""
    page = yield from _keys(page, "ls")
    files = page.text.rpartition("user$ ls ")[2].partition(" user$")[0].split()
    ending = re.search(r"extension (\.\w+)", goal)
    wanted = next(f for f in files if (f.endswith(ending[1]) if ending else "." not in f))
    yield from _keys(page, f"rm {wanted}")


def _keys(page: Page, text: str) -> Moves[Page]:
    for key in text:
        yield reply("Press", argument="Space" if key == " " else key)
    return (yield reply("Press", argument="Enter"))


COLOURS = {
    "red": "FF0000", "lime": "00FF00", "blue": "0000FF", "yellow": "FFFF00", "aqua": "00FFFF", "cyan": "00FFFF",
    "magenta": "FF00FF", "fuchsia": "FF00FF", "black": "000000", "white": "FFFFFF", "gray": "808080", "grey": "808080",
    "silver": "C0C0C0", "maroon": "800000", "olive": "808000", "green": "008000", "teal": "008080", "navy": "000080",
    "purple": "800080", "orange": "FFA500", "gold": "FFD700", "pink": "FFC0CB", "brown": "A52A2A", "violet": "EE82EE",
}  # fmt: skip
"""Colours by their names in CSS."""


def write_colour(page: Page, goal: str) -> Moves[None]:
    """Write a colour as its number into the field of a colour picker."""
    name = re.search(r"Select (\w+) with", goal)[1]
    page = yield reply("Type", of_role(page, "input")[0], COLOURS[name])
    yield from submit(page)
