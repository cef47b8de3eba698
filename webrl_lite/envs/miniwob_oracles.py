"""Scripted solutions of MiniWoB++'s pages: what proves that a page can be played as text, and demonstrations for SFT.

An oracle reads the instruction and the agent's own observation and yields the agent's own replies, as the embedded
sites' oracles do (``embedded.oracle``); it never looks into the page. The page ends the episode, so none calls
``exit``. One row of ``ORACLES`` a page; pages that differ in looks only share an oracle. Mail, flights and other pages
of several screens are in ``miniwob_journeys``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from webrl_lite.envs.embedded.oracle import Moves, OracleLost, Page, Seen, click, look_for, reply

Oracle = Callable[[Page, str], Moves[None]]
"""Plays a page: gets its first look and the instruction."""


# What stands in an instruction and on a page ------------------------------------------------------------------------


def quoted(goal: str) -> list[str]:
    """Return the texts in double quotes, in order."""
    return re.findall(r'"([^"]*)"', goal)


def between(goal: str, before: str, after: str) -> str:
    """Return what stands between two texts of an instruction.

    Raises:
        OracleLost: it does not have that form.
    """
    match = re.search(f"{re.escape(before)}(.*?){re.escape(after)}", goal)
    if match is None:
        raise OracleLost(f"no {before!r} ... {after!r} in the instruction {goal!r}")
    return match[1].strip()


def of_role(page: Page, *roles: str) -> list[Seen]:
    """Return the elements of some roles, in reading order."""
    return [element for element in page.elements if element.role in roles]


def exactly(page: Page, name: str, *roles: str) -> Seen:
    """Return the first element of a name, letter case included.

    Raises:
        OracleLost: there is none.
    """
    for element in page.elements:
        if element.name.strip() == name and (not roles or element.role in roles):
            return element
    raise OracleLost(f"no element {name!r} on:\n{page.text}")


def below_goal(page: Page) -> list[str]:
    """Return the lines of a page without its address and the instruction at its top."""
    return page.lines[2:]


def submit(page: Page, name: str = "Submit") -> Moves[Page]:
    """Click the button that sends a form."""
    return (yield from click(page, name, "button"))


# One click ----------------------------------------------------------------------------------------------------------


def click_quoted(page: Page, goal: str) -> Moves[None]:
    """Click what the instruction names in quotes."""
    yield reply("Click", exactly(page, quoted(goal)[0]))


def click_quoted_button(page: Page, goal: str) -> Moves[None]:
    """Click the button that the instruction names in quotes."""
    yield reply("Click", exactly(page, quoted(goal)[0], "button"))


def click_only_button(page: Page, goal: str) -> Moves[None]:
    """Click the one button of a page."""
    yield reply("Click", of_role(page, "button")[0])


def click_one(page: Page, goal: str) -> Moves[None]:
    """Click button ONE."""
    yield reply("Click", exactly(page, "ONE", "button"))


def click_one_then_two(page: Page, goal: str) -> Moves[None]:
    """Click button ONE, then TWO."""
    page = yield reply("Click", exactly(page, "ONE", "button"))
    yield reply("Click", exactly(page, "TWO", "button"))


def close_dialog(page: Page, goal: str) -> Moves[None]:
    """Close a dialog: its cross is called Close."""
    name = quoted(goal)[0]
    yield reply("Click", exactly(page, "Close" if name == "x" else name, "button"))


def click_tab(page: Page, goal: str) -> Moves[None]:
    """Choose a tab by its name."""
    yield reply("Click", exactly(page, between(goal, "Click on ", ".").strip(), "link"))


def click_widget(page: Page, goal: str) -> Moves[None]:
    """Click a control of a kind."""
    role = {"text": "input"}.get(quoted(goal)[0], quoted(goal)[0])
    yield reply("Click", of_role(page, role)[0])


def click_numbers(page: Page, goal: str) -> Moves[None]:
    """Click numbers in ascending order, as they stand; after the first their words are hidden, but not their order."""
    for _ in range(len(page.elements)):
        page = yield reply("Click", page.elements[0])


# Ticks and lists ----------------------------------------------------------------------------------------------------


def tick_named(page: Page, goal: str) -> Moves[None]:
    """Tick the boxes that the instruction names, or none."""
    names = between(goal, "Select ", " and click Submit.")
    for name in [] if names == "nothing" else names.split(", "):
        page, box = yield from look_for(page, name, "checkbox")
        page = yield reply("Click", box)
    yield from submit(page)


def choose_radio(page: Page, goal: str) -> Moves[None]:
    """Choose one of several."""
    page = yield reply("Click", exactly(page, between(goal, "Select ", " and click Submit."), "radio"))
    yield from submit(page)


def choose_option(page: Page, goal: str) -> Moves[None]:
    """Choose an entry of a list."""
    wanted = between(goal, "Select ", " from the list")
    page = yield reply("Select Dropdown Option", of_role(page, "select")[0], wanted)
    yield from submit(page)


def choose_options(page: Page, goal: str) -> Moves[None]:
    """Choose several entries of a list at once."""
    wanted = between(goal, "Select ", " from the scroll list").split(", ")
    page = yield reply("Select Dropdown Option", of_role(page, "select")[0], " | ".join(wanted))
    yield from submit(page)


# Things that open ---------------------------------------------------------------------------------------------------


def open_section(page: Page, goal: str) -> Moves[None]:
    """Open the one section and send its form."""
    page = yield reply("Click", of_role(page, "tab")[0])
    yield from submit(page)


def search_sections(page: Page, goal: str) -> Moves[None]:
    """Open sections or tabs one after the other until one shows the word."""
    word = quoted(goal)[0]
    for number in range(len(of_role(page, "tab"))):
        found = [element for element in page.elements if element.name == word and element.role == "clickable"]
        if found:
            yield reply("Click", found[0])
            return
        tab = of_role(page, "tab")[number]
        if "open" not in re.findall(rf"\[{tab.id}\] tab ([a-z ]*)", tab.line)[0]:
            page = yield reply("Click", tab)
    yield reply("Click", exactly(page, word, "clickable"))


def open_menu_item(page: Page, goal: str) -> Moves[None]:
    """Hover through a menu and click its last entry."""
    *way, last = goal.removeprefix("Select ").split(">")
    for name in way:
        page = yield reply("Hover", exactly(page, name, "menuitem"))
    yield reply("Click", exactly(page, last, "menuitem"))


def open_tree(page: Page, goal: str) -> Moves[None]:
    """Open the folders of a tree one after the other until the name shows."""
    wanted = quoted(goal)[0]
    opened: set[str] = set()
    while page.find(wanted) is None:
        for line in below_goal(page):
            folder = re.match(r"\[(\d+)\] div \| (\S+) \[", line)
            if folder and folder[2] not in opened:
                break
        else:
            raise OracleLost(f"no {wanted!r} in any folder of:\n{page.text}")
        opened.add(folder[2])
        page = yield reply("Click", next(element for element in page.elements if element.id == folder[1]))
    yield reply("Click", exactly(page, wanted))


# Texts --------------------------------------------------------------------------------------------------------------


def fill(page: Page, *texts: str) -> Moves[Page]:
    """Type texts into the fields of a page, in order."""
    for number, text in enumerate(texts):
        page = yield reply("Type", of_role(page, "input", "password", "date", "time")[number], text)
    return page


def enter(page: Page, goal: str) -> Moves[None]:
    """Type the quoted text into every field."""
    fields = len(of_role(page, "input", "password"))
    yield from submit((yield from fill(page, *quoted(goal)[:1] * fields)))


def enter_changed(page: Page, goal: str) -> Moves[None]:
    """Type the quoted text in another letter case."""
    word = quoted(goal)[0]
    yield from submit((yield from fill(page, word.upper() if "upper case" in goal else word.lower())))


def enter_shown(page: Page, goal: str) -> Moves[None]:
    """Type the letters that the page shows."""
    yield from submit((yield from fill(page, "".join(below_goal(page)[0].split(" | ")))))


def enter_date(page: Page, goal: str) -> Moves[None]:
    """Type a date."""
    yield from submit((yield from fill(page, re.search(r"\d\d/\d\d/\d{4}", goal)[0])))


def enter_time(page: Page, goal: str) -> Moves[None]:
    """Type a time of day."""
    yield from submit((yield from fill(page, re.search(r"\d+:\d\d [AP]M", goal)[0])))


def log_in(page: Page, goal: str) -> Moves[None]:
    """Type name and password; a notice that comes up in between, and would leave the page, is cancelled."""
    for number, text in enumerate(quoted(goal)):
        page = yield reply("Type", of_role(page, "input", "password")[number], text)
        notice = page.find("Cancel", "button")
        if notice is not None:
            page = yield reply("Click", notice)
            page = yield reply("Type", of_role(page, "input", "password")[number], text)
    yield reply("Click", of_role(page, "button")[0])


def copy_text(page: Page, goal: str) -> Moves[None]:
    """Copy what a text area holds into the field by keyboard, since its text is shown without its outer spaces."""
    number = re.search(r"(\d)(?:st|nd|rd) text area", goal)
    page = yield reply("Click", of_role(page, "textarea")[int(number[1]) - 1 if number else 0])
    page = yield reply("Press", argument="Control+A")
    page = yield reply("Press", argument="Control+C")
    page = yield reply("Click", of_role(page, "input")[0])
    page = yield reply("Press", argument="Control+V")
    yield from submit(page)


def find_word(page: Page, goal: str) -> Moves[None]:
    """Type a word of a paragraph, given by its place, without marks."""
    words = below_goal(page)[0].split()
    word = words[int(re.search(r"the (\d+)", goal)[1]) - 1]
    yield from submit((yield from fill(page, word.strip(".,"))))


def click_field(page: Page, goal: str) -> Moves[None]:
    """Click into a field, given by its place."""
    number = re.search(r"(\d)(?:st|nd|rd|th)", goal)
    yield reply("Click", of_role(page, "input")[int(number[1]) - 1 if number else 0])


def search_movies(page: Page, goal: str) -> Moves[None]:
    """Fill in a form whose fields stand in any order under several names."""
    wanted = re.search(r"Search for (\S+) movies directed by (\S+) from year (\d+)", goal)
    for label, text in zip(("genre", "director", "year|date"), wanted.groups(), strict=True):
        page = yield reply("Type", _labelled(page, label), text)
    yield reply("Click", next(e for e in reversed(page.elements) if e.role in ("button", "clickable", "link")))


def _labelled(page: Page, label: str) -> Seen:
    """Return the field named by words on its line, else above it, or below it if the form begins with a field."""
    lines = below_goal(page)
    beside = 1 if lines[0].startswith("[") else -1
    for element in of_role(page, "input"):
        number = lines.index(element.line)
        own = element.line.partition("[")[0]
        if re.search(label, own or lines[number + beside], re.IGNORECASE):
            return element
    raise OracleLost(f"no field for {label!r} on:\n{page.text}")


def read_table(page: Page, goal: str) -> Moves[None]:
    """Type the value that a table has for a name."""
    name = between(goal, "the value of ", " into")
    yield from submit((yield from fill(page, _table(page)[name])))


def read_table_twice(page: Page, goal: str) -> Moves[None]:
    """Type the values that a table has for the names of the fields."""
    table = _table(page)
    names = [line.rstrip(":") for line in below_goal(page) if line.endswith(":")]
    yield from submit((yield from fill(page, *(table[name] for name in names))))


def _table(page: Page) -> dict[str, str]:
    return dict(line.split(" | ", 1) for line in below_goal(page) if " | " in line and "[" not in line)


def complete(page: Page, goal: str) -> Moves[None]:
    """Type the beginning, then the suggestion with the right end.

    The suggestions stand in one line without marks between them, so what could be one is typed until it is the only.
    """
    start, *end = quoted(goal)
    end = end[0] if end else ""
    field = of_role(page, "input")[0]
    page = yield reply("Type", field, start)
    listed = [element.name for element in page.elements if element.role not in ("input", "button")]
    words = " ".join(listed).split()
    spans = (" ".join(words[i : i + n]) for n in range(1, 6) for i in range(len(words) - n + 1))
    for text in dict.fromkeys(spans):
        if text.startswith(start) and text.endswith(end):
            page = yield reply("Type", of_role(page, "input")[0], text)
            if text in [element.name for element in page.elements if element.role not in ("input", "button")]:
                yield from submit((yield reply("Click", page.find(text))))
                return
    raise OracleLost(f"no suggestion from {start!r} to {end!r} on:\n{page.text}")


# Numbers ------------------------------------------------------------------------------------------------------------


def solve_sum(page: Page, goal: str) -> Moves[None]:
    """Type the result of two numbers."""
    left, sign, right = re.search(r"(-?\d+) ([+x-]) (-?\d+) =", page.text).groups()
    a, b = int(left), int(right)
    yield from submit((yield from fill(page, str({"+": a + b, "-": a - b, "x": a * b}[sign]))))


def solve_for_x(page: Page, goal: str) -> Moves[None]:
    """Type the x of an equation with one sign."""
    left, sign, right, result = re.search(r"(x|-?\d+) ([+-]) (x|-?\d+) = (-?\d+)", page.text).groups()
    total = int(result)
    if left == "x":
        x = total - int(right) if sign == "+" else total + int(right)
    else:
        x = total - int(left) if sign == "+" else int(left) - total
    yield from submit((yield from fill(page, str(x))))


def guess_number(page: Page, goal: str) -> Moves[None]:
    """Halve the range with each guess."""
    low, high = 0, 9
    while True:
        guess = (low + high) // 2
        page = yield from submit((yield from fill(page, str(guess))))
        low, high = (guess + 1, high) if "higher" in page.text.split("\n", 2)[2] else (low, guess - 1)


def generate_number(page: Page, goal: str) -> Moves[None]:
    """Ask for numbers until one fits."""
    wanted = re.search(r"(even|odd|greater than|less than)(?: (-?\d+))?", goal)
    bound = int(wanted[2] or 0)
    fits = {
        "even": lambda n: n % 2 == 0,
        "odd": lambda n: n % 2 == 1,
        "greater than": lambda n: n > bound,
        "less than": lambda n: n < bound,
    }[wanted[1]]
    number = None
    while number is None or not fits(number):
        page = yield reply("Click", exactly(page, "Generate", "button"))
        number = int(below_goal(page)[0])
    yield from submit(page)


def mark_numbers(page: Page, goal: str) -> Moves[None]:
    """Mark each number as odd or even."""
    numbers = [int(line) for line in below_goal(page) if re.fullmatch(r"-?\d+", line)]
    for row, number in enumerate(numbers):
        page = yield reply("Click", of_role(page, "button")[2 * row + (number % 2 == 0)])
    yield from submit(page)


def pick_greatest(page: Page, goal: str) -> Moves[None]:
    """Pick the card with the greatest number."""
    cards = of_role(page, "clickable")
    page = yield reply("Click", cards[_least([-int(card.name) for card in cards])])
    yield from submit(page)


def buy_ticket(page: Page, goal: str) -> Moves[None]:
    """Buy the ticket that costs or takes least, or most."""
    buttons = of_role(page, "button")
    lasts = [60 * int(hours) + int(minutes) for hours, minutes in re.findall(r"(\d+)h (\d+)m", page.text)]
    numbers = lasts if "duration" in goal else [int(button.name.rpartition("$")[2]) for button in buttons]
    most = "longest" in goal or "most" in goal
    yield reply("Click", buttons[_least([-number if most else number for number in numbers])])


def _least(numbers: Sequence[int]) -> int:
    return min(range(len(numbers)), key=lambda i: numbers[i])


# Sliders, by keyboard -----------------------------------------------------------------------------------------------


def slide(page: Page, number: int, wanted: int) -> Moves[Page]:
    """Bring a slider to a value: a click puts the keyboard on it; a Page key is several steps, an arrow is one."""
    page = yield reply("Click", [element for element in page.elements if element.role == "clickable"][number])
    several = 4
    for _ in range(24):
        now = _slider_values(page)[number]
        if now == wanted:
            return page
        far = abs(wanted - now) >= several
        up, down = ("PageUp", "PageDown") if far else ("ArrowRight", "ArrowLeft")
        page = yield reply("Press", argument=up if now < wanted else down)
        if far:
            several = max(2, abs(_slider_values(page)[number] - now))
    raise OracleLost(f"the slider does not come to {wanted} on:\n{page.text}")


def _slider_values(page: Page) -> list[int]:
    return [int(number) for number in re.findall(r"(?:^|\| )(-?\d+)$", "\n".join(below_goal(page)), re.MULTILINE)]


def slide_one(page: Page, goal: str) -> Moves[None]:
    """Set one slider."""
    page = yield from slide(page, 0, int(re.search(r"Select (-?\d+) with", goal)[1]))
    yield from submit(page)


def slide_three(page: Page, goal: str) -> Moves[None]:
    """Set three sliders."""
    for number, wanted in enumerate(between(goal, "[", "]").split(",")):
        page = yield from slide(page, number, int(wanted))
    yield from submit(page)


def slide_and_tick(page: Page, goal: str) -> Moves[None]:
    """Set a slider, tick a box."""
    page = yield from slide(page, 0, int(re.search(r"Select (-?\d+) with", goal)[1]))
    place = int(re.search(r"the (\d)(?:st|nd|rd) checkbox", goal)[1])
    page = yield reply("Click", of_role(page, "checkbox")[place - 1])
    yield from submit(page)


def radio_and_text(page: Page, goal: str) -> Moves[None]:
    """Choose a radio button and type a number, both given by their places."""
    places = [int(place) for place in re.findall(r"(\d)(?:st|nd|rd)", goal)]
    page = yield reply("Click", of_role(page, "radio")[places[0] - 1])
    page = yield reply("Type", of_role(page, "input")[places[1] - 1], quoted(goal)[0])
    yield from submit(page)


def spin(page: Page, goal: str) -> Moves[None]:
    """Turn a spinner up or down by its arrows."""
    wanted = int(re.search(r"Select (-?\d+) with", goal)[1])
    for _ in range(abs(wanted)):
        page = yield reply("Click", of_role(page, "button")[0 if wanted > 0 else 1])
    yield from submit(page)
