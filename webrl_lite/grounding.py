"""Grounding: instructions about random pages, with the reply that is right; what the tiny base is pre-trained on.

The base shall be able to read a page and to do one thing on it, and shall know nothing of the embedded tasks. So the
pages come from random sites (``grounding_pages``), and the instructions are of a wording of their own. There are three
kinds of documents:

* ``page_document``: one page, several instructions about it (press this, type that there, which row has this, ...);
* ``walk``: a goal that takes several steps, over the pages of a site or on one small page (``grounding_panels``); each
  step is a document with what was done before;
* ``judgement``: a goal, what was done, the last page, and whether that was right (the judge's question).

Every reply first repeats its element as the page shows it, as the demonstrations do: the id is what follows the same
words on the page, and the call repeats that id.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from webrl_lite.actions import Action, format_reply, parse, supporting_line
from webrl_lite.grounding_pages import DONE_MESSAGES, Draw, Element, Row, Section, Site, View
from webrl_lite.grounding_panels import goal as panel_goal


@dataclass(frozen=True)
class Query:
    """One instruction about a page."""

    kind: str
    """What it asks for; exactness is reported by kind."""
    task: str
    reply: str
    replies: tuple[str, ...] = ()
    """What was done before on other pages."""


@dataclass(frozen=True)
class Document:
    """A page with instructions about it."""

    page: str
    queries: tuple[Query, ...]


@dataclass(frozen=True)
class Judgement:
    """A goal, what was done about it, the last page, and whether it was done right."""

    task: str
    replies: tuple[str, ...]
    page: str
    right: bool


def reply(name: str, element: Element | None = None, argument: str | None = None) -> str:
    """Return a reply as the demonstrations have it: the element as the page shows it first, then the call."""
    note = f"{element.name} [{element.id}] {element.role}".strip() if element else ""
    return format_reply(Action(name, element.id if element else None, argument), element_note=note)


def leave(message: str, view: View | None = None, *hints: str) -> str:
    """Return the reply that ends an episode; an answer read off a page repeats its line first."""
    note = supporting_line(view.text(), message, hints) if view else ""
    return format_reply(Action("Exit", argument=message), notes=(note,))


# Instructions about one page ----------------------------------------------------------------------------------------

Maker = Callable[[Draw, View], "Query | None"]


def _unique(view: View, role: str = "") -> list[Element]:
    """Return the elements whose name occurs once on the page; none has no name."""
    names = [e.name for e in view.elements]
    return [e for e in view.elements if e.name and names.count(e.name) == 1 and role in ("", e.role)]


def press(d: Draw, view: View) -> Query | None:
    """Click an element that is named."""
    found = [e for e in _unique(view) if e.role not in ("input", "textarea", "password", "date", "select")]
    if not found:
        return None
    e = d.choice(found)
    kind = d.choice(("", "", f"{e.role} ", "thing called "))
    task = d.choice(
        (
            "Press the {}{}.",
            "Hit the {}{}",
            "Use the {}{} now.",
            "Activate the {}{}.",
            "Push the {}{}",
            "Take the {}{}.",
        )
    )
    return Query("press", task.format(kind, e.name), reply("Click", e))


def point(d: Draw, view: View) -> Query | None:
    """Hover over an element that is named."""
    found = [e for e in _unique(view) if e.role in ("link", "button")]
    if not found:
        return None
    e = d.choice(found)
    task = d.choice(("Point at {}.", "Put the mouse on {}.", "Unfold {}.", "Rest over the entry {}."))
    return Query("point", task.format(e.name), reply("Hover", e))


def write(d: Draw, view: View) -> Query | None:
    """Type a given text into a named field, with or without Enter."""
    found = [e for e in _unique(view) if e.role in ("input", "textarea")]
    if not found:
        return None
    e = d.choice(found)
    text = d.value(d.choice(("title", "person", "number", "serial", "code", "word", "money", "email", "day", "text")))
    quote = d.choice(('"{}"', "{}", "'{}'"))
    if d.chance(0.45):
        task = d.choice(("Fill {1} with {0}.", "Write {0} in {1}.", "The {1} shall read {0}.", "{1} becomes {0}."))
        return Query("type", task.format(quote.format(text), e.name), reply("Type", e, text))
    task = d.choice(("Ask {1} for {0}.", "Hunt for {0} by {1}.", "With {1}, bring up {0}.", "Feed {0} to {1} and go."))
    return Query("search", task.format(quote.format(text), e.name), reply("Search", e, text))


def pick(d: Draw, view: View) -> Query | None:
    """Choose an option of a list."""
    found = [e for e in _unique(view, "select") if e.options]
    if not found:
        return None
    e = d.choice(found)
    option = d.choice(e.options)
    if d.chance(0.3):  # the list must be found by its option
        task = d.choice(("Have {} chosen.", "Pick {}.", "Turn it to {}."))
        if sum(option in other.options for other in view.elements) > 1 or view.find(option):
            return None
        return Query("pick", task.format(option), reply("Select Dropdown Option", e, option))
    task = d.choice(("Turn {1} to {0}.", "Pick {0} under {1}.", "{1}: take {0}.", "Let {1} be {0}."))
    return Query("pick", task.format(option, e.name), reply("Select Dropdown Option", e, option))


def in_row(d: Draw, view: View) -> Query | None:
    """Click something that stands in many rows, in the row that is named."""
    section = view.section
    if section is None or len(view.rows) < 2 or not section.row_action:
        return None
    row = d.choice(view.rows)
    e = _action_of(view, row, section.row_action)
    if e is None:
        return None
    key = d.choice([c for c in row.cells if sum(c in other.cells for other in view.rows) == 1] or [row.cells[0]])
    task = d.choice(("Press {0} beside {1}.", "For {1}, use {0}.", "{0} what has {1}.", "In the line of {1} push {0}."))
    return Query("in row", task.format(section.row_action, key), reply("Click", e))


def _action_of(view: View, row: Row, action: str) -> Element | None:
    """Return the element ``action`` that belongs to a row: the first behind the row's name."""
    seen = False
    for part in view.elements:
        seen = seen or part.name == row.cells[0]
        if seen and part.name == action:
            return part
    return None


def open_row(d: Draw, view: View) -> Query | None:
    """Click the name of the row that has a given value."""
    if view.section is None or not view.rows:
        return None
    row = d.choice(view.rows)
    e = view.find(row.cells[0])
    singles = [c for c in row.cells[1:] if sum(c in other.cells for other in view.rows) == 1]
    if e is None or not singles:
        return None
    task = d.choice(
        ("Enter the entry that has {}.", "Show what belongs to {}.", "Go into the one with {}.", "See more of {}.")
    )
    return Query("open row", task.format(d.choice(singles)), reply("Click", e))


def cell(d: Draw, view: View) -> Query | None:
    """Read a column's value in the row of a name."""
    if view.section is None or not view.rows or len(view.section.columns) < 2:
        return None
    row = d.choice(view.rows)
    column = d.rng.randrange(1, len(row.cells))
    if sum(row.cells[0] in other.cells for other in view.rows) > 1:
        return None
    names = (view.section.columns[column], row.cells[0])
    task = d.choice(
        ("Read {} of {}.", "{} for {}?", "Give the {} that {} has.", "Report {} in the line {}.", "{} of {}, please.")
    )
    return Query("cell", task.format(*names), leave(row.cells[column], view, *names))


def row_name(d: Draw, view: View) -> Query | None:
    """Read the name of the row that has a value."""
    if view.section is None or not view.rows or len(view.section.columns) < 2:
        return None
    row = d.choice(view.rows)
    column = d.rng.randrange(1, len(row.cells))
    if sum(row.cells[column] in other.cells for other in view.rows) > 1:
        return None
    names = (view.section.columns[column], row.cells[column])
    task = d.choice(
        ("Name the line with {} {}.", "Whose {} is {}?", "Read off the entry where {} says {}.", "{} {} belongs to?")
    )
    return Query("row name", task.format(*names), leave(row.cells[0], view, *names))


def rows_of(d: Draw, view: View) -> Query | None:
    """List the names of all rows that have a value, or count them."""
    section = view.section
    if section is None or section.status < 1 or len(view.rows) < 2:
        return None
    value = d.choice(view.rows).cells[section.status]
    names = [row.cells[0] for row in view.rows if row.cells[section.status] == value]
    if d.chance(0.5):
        task = d.choice(("Count the lines with {}.", "Number of {} here?", "Tally up {}."))
        return Query("count", task.format(value), leave(str(len(names))))
    if len(names) > 3:
        return None
    task = d.choice(("Name all lines with {}.", "Enumerate what is {}.", "All {} entries by name."))
    return Query("list", task.format(value), leave(", ".join(names)))


def nth(d: Draw, view: View) -> Query | None:
    """Read the name, or open, the first or last row."""
    if view.section is None or len(view.rows) < 2:
        return None
    last = d.chance(0.4)
    row = view.rows[-1 if last else 0]
    place = d.choice(("bottom", "last", "lowest") if last else ("top", "first", "uppermost"))
    e = view.find(row.cells[0])
    if e is not None and d.chance(0.5):
        return Query("nth", d.choice(("Enter the {} entry.", "Go into the {} line.")).format(place), reply("Click", e))
    return Query(
        "nth",
        d.choice(("Read the {} line's name.", "Which is {}?")).format(place),
        leave(row.cells[0], view, *row.cells),
    )


def fact(d: Draw, view: View) -> Query | None:
    """Read the value beside a key."""
    if not view.facts:
        return None
    key = d.choice(list(view.facts))
    task = d.choice(("Read {}.", "{}?", "Report the {}.", "What stands at {}?", "Copy {} from here."))
    return Query("fact", task.format(key), leave(view.facts[key], view, key))


def missing(d: Draw, view: View) -> Query | None:
    """Ask for something that is not there: scroll on if the page goes on, else say N/A."""
    name = d.choice((d.title, d.person, d.label))()
    if name in view.text():
        return None
    if d.chance(0.5):
        task = d.choice(("Read the line of {}.", "{}?", "Report what {} has.", "Copy {} from here."))
        end = leave("N/A")
    else:
        task, end = d.choice(("Enter the entry {}.", "Press {} down there.", "See more of {}.")), leave("N/A")
    return Query("missing", task.format(name), reply("Scroll Down") if view.more else end)


def scroll(d: Draw, view: View) -> Query | None:
    """Move a page that is longer than the screen."""
    if view.more and (view.top == 0 or d.chance(0.5)):
        return Query(
            "scroll", d.choice(("What is further down?", "Move on downwards.", "Lower, please.")), reply("Scroll Down")
        )
    if view.top > 0:
        return Query(
            "scroll", d.choice(("Back to the upper part.", "What was above?", "Higher, please.")), reply("Scroll Up")
        )
    return None


def state(d: Draw, view: View) -> Query | None:
    """Read what a field holds."""
    found = [e for e in _unique(view) if e.value and e.role in ("input", "textarea", "select")]
    if not found:
        return None
    e = d.choice(found)
    task = d.choice(("Read the field {}.", "What does {} hold?", "Tell the content of {}."))
    return Query("field", task.format(e.name), leave(e.value, view, e.name))


MAKERS: dict[str, tuple[Maker, float]] = {
    "press": (press, 4), "point": (point, 1.5), "write": (write, 4), "pick": (pick, 2), "in_row": (in_row, 2),
    "open_row": (open_row, 2), "cell": (cell, 3), "row_name": (row_name, 2), "rows_of": (rows_of, 1.5), "nth": (nth, 1),
    "fact": (fact, 3), "missing": (missing, 1.2), "state": (state, 1),
    "scroll": (scroll, 1),
}  # fmt: skip
"""Kinds of instructions with their weights."""


def queries(d: Draw, view: View, count: int) -> list[Query]:
    """Return up to ``count`` different instructions about a page."""
    found: dict[str, Query] = {}
    names = list(MAKERS)
    for _ in range(4 * count):
        maker = MAKERS[d.rng.choices(names, [MAKERS[n][1] for n in names])[0]][0]
        query = maker(d, view)
        if query is not None:
            found.setdefault(query.task, query)
        if len(found) == count:
            break
    return list(found.values())


def any_view(site: Site) -> View:
    """Return a random page of a site."""
    d, r = site.d, site.rng
    section = d.choice(site.sections)
    opened = d.choice(site.menus) if site.menus and d.chance(0.25) else ""
    kind = r.choices(("list", "detail", "form", "thread", "home"), (5, 4, 3, 1, 1.5))[0]
    if kind == "list":
        scrolled = d.choice((True, False)) if d.chance(0.25) else None
        view = site.listing(section, opened=opened, scrolled=scrolled)
    elif kind == "detail":
        view = site.detail(section, d.choice(section.rows), opened=opened)
    elif kind == "form":
        view = site.form(section, {})
    elif kind == "thread":
        view = site.thread()
    else:
        view = site.home(opened=opened)
    if d.chance(0.06):
        view.error = d.sentence()
    if d.chance(0.06):
        view.tab, view.tabs = 1, 2
    return view


def page_document(rng: random.Random, count: int = 8, pieces: Sequence[str] = ()) -> Document:
    """Return a random page with up to ``count`` instructions."""
    site = Site(rng, pieces)
    while True:
        view = any_view(site)
        found = queries(site.d, view, count)
        if found:
            return Document(view.text(), tuple(found))


# Goals over several pages -------------------------------------------------------------------------------------------

Walk = Generator[tuple[View, str], None, None]


def to_section(site: Site, section: Section, here: View) -> Walk:
    """Get from any page to a section's list; the menu is unfolded first if it hides there."""
    if section.menu:
        yield here, reply("Hover", here.find(section.menu))
        here = (
            site.home(opened=section.menu) if here.section is None else site.listing(here.section, opened=section.menu)
        )
    yield here, reply("Click", here.find(section.label))


def _search(site: Site, section: Section, row: Row, key: str) -> Generator[tuple[View, str], None, View]:
    """Bring one row on the screen: it is there, or the list's search finds it, or it lies further down."""
    d = site.d
    others = [other for other in section.rows if key not in other.cells]
    if others and d.chance(0.55):
        view = site.listing(section, rows=others[: d.rng.randint(1, len(others))])
        yield view, reply("Search", view.find(site.list_search, "input"), key)
        return site.listing(section, rows=[other for other in section.rows if key in other.cells], query=key)
    if len(section.rows) > 2 and row in section.rows[len(section.rows) // 2 :] and d.chance(0.4):
        yield site.listing(section, scrolled=False, tools=False), reply("Scroll Down")
        return site.listing(section, scrolled=True, tools=False)
    return site.listing(section)


def _where(site: Site, section: Section) -> str:
    """Name a section in an instruction, with the menu that it hides in."""
    return (
        section.label
        if not section.menu
        else site.d.choice(("{1} under {0}", "{0} > {1}")).format(section.menu, section.label)
    )


def look_up(site: Site) -> tuple[str, Walk] | None:
    """Find an entry of a section and read one of its columns, or a fact of its own page."""
    d = site.d
    section = d.choice(site.sections)
    row = d.choice(section.rows)
    own_page = d.chance(0.6)
    key = row.cells[0]
    asked = d.choice(list(row.facts)) if own_page else d.choice(section.columns[1:])
    if not own_page and any(c in row.facts for c in section.columns):
        return None
    answer = row.facts[asked] if own_page else row.cells[section.columns.index(asked)]
    wording = d.choice(
        (
            "From {s}, get the {a} that {k} has.", "{k} in {s}: {a}?", "Dig out {a} for {k} ({s}).",
            "Among {s}, {k} has some {a}. Report it.",
        )
    )  # fmt: skip

    def walk() -> Walk:
        yield from to_section(site, section, site.home())
        view = yield from _search(site, section, row, key)
        if own_page:
            yield view, reply("Click", view.find(key))
            view = site.detail(section, row)
        yield view, leave(answer, view, key, asked)

    return wording.format(s=_where(site, section), a=asked, k=key), walk()


def fill_in(site: Site) -> tuple[str, Walk] | None:
    """Open an entry's form, change some fields, send it and stop."""
    d = site.d
    section = d.choice(site.sections)
    row = d.choice(section.rows)
    way = row.actions and d.choice(row.actions)
    fields = d.rng.sample(section.fields, d.rng.randint(1, min(3, len(section.fields))))
    wanted: dict[str, str] = {}
    for e in fields:
        if e.role == "select":
            wanted[e.name] = d.choice(e.options)
        elif e.role in ("checkbox", "radio"):
            wanted[e.name] = "on" if e.state == "off" else "off"
        else:
            wanted[e.name] = d.value(d.choice(("title", "person", "number", "money", "word", "day", "text", "code")))
    parts = [
        d.choice(("{} {}", "{} to {}", '{} "{}"')).format(name, value)
        if next(e for e in fields if e.name == name).role not in ("checkbox", "radio")
        else f"{name} {value}"
        for name, value in wanted.items()
    ]
    wording = d.choice(("At {k} in {s} put {p}.", "{s}, {k}: {p}.", "Let {k} of {s} have {p}.", "Give {k} ({s}) {p}."))

    def walk() -> Walk:
        yield from to_section(site, section, site.home())
        view = yield from _search(site, section, row, row.cells[0])
        yield view, reply("Click", view.find(row.cells[0]))
        if way:
            view = site.detail(section, row)
            yield view, reply("Click", view.find(way))
        filled: dict[str, str] = {}
        for name, value in wanted.items():
            view = site.form(section, filled, title=way or row.cells[0])
            e = view.find(name)
            if e.role == "select":
                if e.value == value:
                    continue
                yield view, reply("Select Dropdown Option", e, value)
            elif e.role in ("checkbox", "radio"):
                yield view, reply("Click", e)
            else:
                yield view, reply("Type", e, value)
            filled[name] = value
        view = site.form(section, filled, title=way or row.cells[0])
        yield view, reply("Click", view.find(section.save, "button"))
        message = d.choice(DONE_MESSAGES)
        if d.chance(0.7):
            yield site.detail(section, row, message=message), leave("done")
        else:
            yield site.listing(section), leave("done")

    return wording.format(s=_where(site, section), k=row.cells[0], p=" and ".join(parts)), walk()


def act_on(site: Site) -> tuple[str, Walk] | None:
    """Open an entry and press something on its page, then stop."""
    d = site.d
    section = d.choice(site.sections)
    row = d.choice(section.rows)
    if not row.actions:
        return None
    action = d.choice(row.actions)
    wording = d.choice(
        ("{a} with {k} of {s}.", "In {s}: {a} {k}.", "{k} ({s}) needs {a}.", "Make {a} happen to {k}, {s}.")
    )

    def walk() -> Walk:
        yield from to_section(site, section, site.home())
        view = yield from _search(site, section, row, row.cells[0])
        yield view, reply("Click", view.find(row.cells[0]))
        view = site.detail(section, row)
        yield view, reply("Click", view.find(action))
        yield site.detail(section, row, message=d.choice(DONE_MESSAGES)), leave("done")

    return wording.format(a=action, k=row.cells[0], s=_where(site, section)), walk()


def arrange(site: Site) -> tuple[str, Walk] | None:
    """Get to a list, sort it, and stop or read who is first."""
    d = site.d
    section = d.choice(site.sections)
    columns = section.columns[1:4]
    if not columns or len(section.rows) < 2:
        return None
    column = d.choice(columns)
    read = d.chance(0.5)
    wording = d.choice(
        ("{s} by {c}: who leads?", "Which of {s} comes first by {c}?")
        if read
        else ("Have {s} in the order of {c}.", "Lay out {s} along {c}.")
    )
    order = d.rng.sample(section.rows, len(section.rows))

    def walk() -> Walk:
        yield from to_section(site, section, site.home())
        view = site.listing(section, sort=section.columns[0])
        yield view, reply("Select Dropdown Option", view.find(site.sort_label, "select"), column)
        view, first = site.listing(section, rows=order, sort=column), order[0]
        yield view, leave(first.cells[0], view, *first.cells) if read else leave("done")

    return wording.format(s=_where(site, section), c=column), walk()


def plan(site: Site) -> tuple[str, Walk] | None:
    """Press several things in the order that is given; only what was done tells which is next."""
    d = site.d
    labels = [d.label() for _ in range(d.rng.randint(2, 4))]
    if len(set(labels)) < len(labels):
        return None
    joined = d.choice((", then ", " and after that ", " > ")).join(labels)
    wording = d.choice(("One after the other: {}.", "Press {}.", "In this order: {}.")).format(joined)

    def page(names: Sequence[str]) -> View:
        body: list[list[str | Element]] = [[f"= {d.label()}"]]
        for name in d.rng.sample(names, len(names)):
            body.append([Element(name, d.choice(("link", "button")))])
            if d.chance(0.4):
                body.append([d.sentence()])
        return site.view(body, d.word())

    def walk() -> Walk:
        for name in labels:
            view = page([*labels, *(d.label() for _ in range(d.rng.randint(0, 3)))])
            yield view, reply("Click", view.find(name))
        yield page(labels), leave("done")

    return wording, walk()


def on_one_page(site: Site) -> tuple[str, Walk]:
    """Do one or two things on a small page; the episode ends with the last of them or with a page that says so."""
    d = site.d
    drawn = panel_goal(site)
    ends = d.chance(0.5)

    def walk() -> Walk:
        for view, (name, element, argument) in drawn.steps:
            yield view, reply(name, element, argument)
        if ends:
            yield site.view([[d.choice(DONE_MESSAGES)]], d.word()), leave("done")

    return drawn.task, walk()


GOALS = ((look_up, 4.0), (fill_in, 3.0), (act_on, 2.0), (arrange, 1.0), (plan, 1.0), (on_one_page, 22.0))
"""Kinds of goals with their weights."""


def walk(rng: random.Random, pieces: Sequence[str] = ()) -> tuple[str, list[tuple[View, str]], Site]:
    """Return a random goal with its pages and replies, and the site it is about."""
    while True:
        site = Site(rng, pieces)
        goal = rng.choices([g for g, _ in GOALS], [w for _, w in GOALS])[0](site)
        if goal is None:
            continue
        wording, steps = goal
        labels = [s.label for s in site.sections] + site.menus + site.extra + site.footer
        if len(set(labels)) < len(labels):
            continue
        return wording, list(steps), site


def walk_documents(rng: random.Random, count: int = 3, pieces: Sequence[str] = ()) -> list[Document]:
    """Return one document for each step of a goal, each with up to ``count`` more instructions about its page."""
    task, steps, site = walk(rng, pieces)
    documents: list[Document] = []
    done: list[str] = []
    for view, answer in steps:
        query = Query("walk", task, answer, tuple(done))
        more = queries(site.d, view, count if view.section else 1)  # other pages have few things to ask for
        documents.append(Document(view.text(), (query, *more)))
        done.append(answer)
    return documents


def judgement(rng: random.Random, pieces: Sequence[str] = ()) -> Judgement:
    """Return a goal that was carried out rightly, or wrongly in one of several ways."""
    task, steps, site = walk(rng, pieces)
    d = site.d
    replies = [answer for _, answer in steps]
    page = steps[-1][0].text()
    if d.chance(0.5):
        return Judgement(task, tuple(replies), page, True)
    way = d.rng.randrange(4)
    if way == 0 and len(steps) > 2:  # stopped too early
        cut = d.rng.randint(1, len(steps) - 2)
        return Judgement(task, (*replies[:cut], leave("done")), steps[cut][0].text(), False)
    if way == 1 and '"done"' not in replies[-1]:  # another answer
        seen = steps[-1][0]
        pool = [c for row in seen.rows for c in row.cells] + list(seen.facts.values()) or [d.title()]
        answer = d.choice(pool)
        wrong = leave(answer, seen)
        if parse(wrong).action != parse(replies[-1]).action:
            return Judgement(task, (*replies[:-1], wrong), page, False)
    names = [row.cells[0] for section in site.sections for row in section.rows]
    meant = [name for name in names if name in task]
    if meant and d.chance(0.7):  # the same with another entry
        return Judgement(
            task.replace(meant[0], d.choice([n for n in names if n != meant[0]] or [d.title()])),
            tuple(replies),
            page,
            False,
        )
    other, _, _ = walk(rng, pieces)  # something else was asked for
    return Judgement(other, tuple(replies), page, False)
