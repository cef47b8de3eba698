"""Random sites as text: pages that look like web pages in mode ``lite`` and say nothing that means anything.

What the tiny base reads while it is pre-trained. Every site is drawn anew: its sections, columns, rows, labels,
keys, values, menus, fields and the order in which they stand. Nothing of the embedded sites is here, neither their
labels nor their entities; what is the same is how a page is written down (``observation``).

Reads a list of English words; gives ``View``, a page whose elements have ids. No browser and no model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from string import ascii_lowercase

SYLLABLES = (
    "ba be bo da de do fa fi ga go ha hi ja jo ka ke ki ko la le li lo lu ma me mi mo na ne ni no pa pe pi po ra re ri "
    "ro ru sa se si so ta te ti to va ve vi wa we wi za zo bran stor fen hal ket lin mar nor pel quin rus sel tor ul "
    "vor wen yar zel cro dru gle shi tha"
).split()
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
LONG_MONTHS = (
    "January February March April May June July August September October November December".split()  # fmt: skip
)
SEARCH_LABELS = ("Search", "Find", "Look up", "Query", "Filter by text", "Search here", "Go to", "Name or number")
DONE_MESSAGES = (
    "Saved.", "Your changes were saved.", "Done.", "The entry was added.", "Updated.", "It was sent.", "Created.",
    "The item was removed.", "Success.",
)  # fmt: skip


@cache
def words() -> tuple[str, ...]:
    """Return the English words that labels and texts are made of, the commonest first."""
    text = (resources.files("webrl_lite") / "grounding_words.txt").read_text(encoding="utf-8")
    return tuple(text.split())


@dataclass(eq=False)
class Element:
    """Something on a page that can be acted on."""

    name: str
    role: str = "link"
    value: str = ""
    state: str = ""
    options: tuple[str, ...] = ()
    id: str = ""
    heading: bool = False

    def text(self) -> str:
        """Return the element as mode ``lite`` writes it; one without a name begins with its id."""
        name = f"{'= ' if self.heading else ''}{self.name}{' ' if self.name else ''}"
        kind = "" if self.role == "link" else f" {self.role}"
        value = f' "{self.value}"' if self.value else ""
        state = f" {self.state}" if self.state else ""
        choices = f" of {' | '.join(self.options)}" if self.options else ""
        return f"{name}[{self.id}]{kind}{value}{state}{choices}"


Line = list["str | Element"]


def elements_in(lines: Sequence[Line]) -> list[Element]:
    """Return everything that has an id, in reading order."""
    return [part for line in lines for part in line if isinstance(part, Element)]


@dataclass
class Row:
    """One entry of a section."""

    cells: list[str]
    """One a column; the first is the entry's name."""
    facts: dict[str, str]
    """What its own page says further."""
    actions: tuple[str, ...] = ()


@dataclass
class Section:
    """A kind of entries, with a list page and a page for each entry."""

    label: str
    menu: str
    """Label of the menu that it hides in; empty if it stands in the open."""
    columns: list[str]
    kinds: list[str]
    rows: list[Row]
    fields: list[Element]
    """Of the form that changes or adds an entry."""
    save: str
    row_action: str
    status: int
    """Column whose values repeat, or -1."""


@dataclass
class View:
    """A page on the screen."""

    lines: list[Line]
    url: str
    top: int = 0
    bottom: int = 720
    height: int = 720
    tab: int = 0
    tabs: int = 1
    error: str = ""
    rows: list[Row] = field(default_factory=list)
    """Rows that can be seen."""
    section: Section | None = None
    row: Row | None = None
    facts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, element in enumerate(self.elements, start=1):
            element.id = str(number)

    @property
    def elements(self) -> list[Element]:
        """Everything that has an id, in reading order."""
        return elements_in(self.lines)

    @property
    def more(self) -> bool:
        """Whether the page goes on below."""
        return self.bottom < self.height

    def find(self, name: str, role: str = "") -> Element | None:
        """Return the first element of a name and role."""
        return next((e for e in self.elements if e.name == name and role in ("", e.role)), None)

    def text(self) -> str:
        """Return the page as the agent reads it."""
        head = f"@ {self.url} | tab {self.tab}/{self.tabs} | {self.top}-{self.bottom} of {self.height}"
        error = [f"! {self.error}"] if self.error else []
        body = [" | ".join(p.text() if isinstance(p, Element) else p for p in line) for line in self.lines]
        return "\n".join([head, *error, *body])


class Draw:
    """Random words, names and values."""

    def __init__(self, rng: random.Random, pieces: Sequence[str] = ()) -> None:
        """Draw from a generator of random numbers.

        Args:
            rng: the generator.
            pieces: texts of a tokenizer's tokens, of which names are made. Many tokens stand only inside of words
                ("riend"), so that English words and syllables hardly show them, and a model can't copy what it was
                never shown.
        """
        self.rng = rng
        self.pieces = pieces
        self.choice = rng.choice

    def chance(self, share: float) -> bool:
        """Return true with a probability."""
        return self.rng.random() < share

    def word(self) -> str:
        """Return an English word, common ones more often, or now and then a made-up one."""
        if self.chance(0.35):
            return self.made_up().lower()
        known = words()
        return known[int(len(known) * self.rng.random() ** 1.3)]

    def made_up(self) -> str:
        """Return a name that hardly any dictionary has: syllables, pieces that the tokenizer knows, or any letters."""
        way = self.rng.random()
        if way < 0.55 and self.pieces:
            start = self.rng.choice(ascii_lowercase) if self.chance(0.6) else ""
            return (start + "".join(self.rng.choices(self.pieces, k=self.rng.choice((1, 1, 2))))).capitalize()
        if way < 0.85:
            return "".join(self.rng.choices(SYLLABLES, k=self.rng.randint(2, 3))).capitalize()
        return "".join(self.rng.choices(ascii_lowercase, k=self.rng.randint(3, 7))).capitalize()

    def label(self) -> str:
        """Return a short label: one to three words."""
        count = self.rng.choices((1, 2, 3), (5, 4, 1))[0]
        chosen = [self.word() for _ in range(count)]
        return " ".join(w.capitalize() for w in chosen) if self.chance(0.6) else " ".join(chosen).capitalize()

    def title(self) -> str:
        """Return the name of a thing: two or three words, each with a capital."""
        parts = [self.made_up() if self.chance(0.5) else self.word().capitalize() for _ in range(2)]
        return " ".join(parts + ([self.word().capitalize()] if self.chance(0.25) else []))

    def person(self) -> str:
        """Return a first and a last name."""
        return f"{self.made_up()} {self.made_up()}"

    def sentence(self) -> str:
        """Return some words with a full stop."""
        return " ".join(self.word() for _ in range(self.rng.randint(3, 9))).capitalize() + "."

    def value(self, kind: str) -> str:
        """Return a value of a kind, one of ``KINDS``."""
        return KINDS[kind](self)

    def date(self, form: int | None = None) -> str:
        """Return a day in one of three forms."""
        r = self.rng
        month, day, year = r.randrange(12), r.randint(1, 28), r.randint(2015, 2026)
        form = r.randrange(3) if form is None else form
        return (f"{MONTHS[month]} {day}, {year}", f"{month + 1:02}/{day:02}/{year}", f"{year}-{month + 1:02}-{day:02}")[
            form
        ]


KINDS: dict[str, Callable[[Draw], str]] = {
    "title": Draw.title,
    "person": Draw.person,
    "number": lambda d: str(d.rng.randint(0, 10 ** d.rng.randint(1, 4))),
    "small": lambda d: str(d.rng.randint(0, 12)),
    "money": lambda d: f"${d.rng.randint(1, 10 ** d.rng.randint(1, 3)):,}.{d.rng.randrange(100):02}",
    "date": lambda d: d.date(0),
    "day": lambda d: d.date(1),
    "email": lambda d: f"{d.made_up().lower()}.{d.made_up().lower()}@{d.made_up().lower()}.com",
    "handle": lambda d: f"{d.word()}_{d.word()}",
    "file": lambda d: f"{d.word()}.{d.choice(('txt', 'cfg', 'csv', 'png', 'json', 'html'))}",
    "setting": lambda d: f"{d.word()} = {d.rng.randint(0, 10 ** d.rng.randint(1, 4))}",
    "phone": lambda d: f"555-{d.rng.randint(0, 9999):04}",
    "code": lambda d: f"{d.made_up()[:3].upper()}-{d.rng.randint(100, 999)}",
    "serial": lambda d: f"{d.rng.randint(1, 999999):09}",
    "reference": lambda d: f"{d.choice('#!')}{d.rng.randint(1, 400)}",
    "tracking": lambda d: f"{d.made_up()[:2].upper()}{d.rng.randint(100000, 999999)}",
    "percent": lambda d: f"{d.rng.randint(0, 100)}%",
    "rating": lambda d: f"{d.rng.randint(1, 5)}.{d.rng.randint(0, 9)}",
    "minutes": lambda d: f"{d.rng.randint(1, 59)} min",
    "distance": lambda d: f"{d.rng.randint(0, 30)}.{d.rng.randint(0, 9)} km",
    "ago": lambda d: f"{d.rng.randint(2, 30)} {d.choice(('days', 'hours', 'months'))} ago",
    "address": lambda d: f"{d.rng.randint(1, 99)} {d.made_up()} {d.choice(('Street', 'Lane', 'Road', 'Way', 'Hill'))}",
    "town": lambda d: d.made_up(),
    "word": lambda d: d.word().capitalize(),
    "yes": lambda d: d.choice(("Yes", "No")),
    "text": Draw.sentence,
}
"""Kinds of values."""
NAME_KINDS = ("title", "title", "title", "person", "serial", "reference", "code", "word", "handle", "file")
CELL_KINDS = tuple(kind for kind in KINDS if kind not in ("text", "yes"))


class Site:
    """A random site; its methods give views of it."""

    def __init__(self, rng: random.Random, pieces: Sequence[str] = ()) -> None:
        """Draw a site."""
        self.d = d = Draw(rng, pieces)
        self.rng = rng
        self.key = d.word()
        self.name = d.title()
        menus = [d.label() for _ in range(rng.choices((0, 1, 2, 3), (4, 2, 2, 1))[0])]
        self.sections = [
            self._section(d.choice(menus) if menus and d.chance(0.7) else "") for _ in range(rng.randint(2, 4))
        ]
        self.extra = [d.label() for _ in range(rng.randint(0, 4))]
        self.menu_role = d.choice(("button", "link"))
        self.menus = menus
        self.vertical = d.chance(0.4)
        self.brand = d.chance(0.7)
        self.search = d.choice(SEARCH_LABELS) + (f" {d.word()}" if d.chance(0.5) else "") if d.chance(0.7) else ""
        self.search_button = d.choice(("Search", "Go", "Find", d.label()))
        self.list_search = d.choice(SEARCH_LABELS) + (f" {d.word()}" if d.chance(0.6) else "")
        self.list_button = d.choice(("Search", "Apply", "Go", d.label()))
        self.footer = [d.label() for _ in range(rng.choices((0, 2, 3), (4, 3, 3))[0])]
        self.order = [*self.sections, *self.extra, *menus]
        rng.shuffle(self.order)
        self.sort_label = d.choice(("Sort", "Order", "Arrange", "Sorted")) + d.choice(("", " by", " list"))
        self.next = d.choice(("Next", "More", "Next page", "Older", "Forward"))

    def _section(self, menu: str) -> Section:
        d, r = self.d, self.rng
        width = r.randint(2, 5)
        kinds = [d.choice(NAME_KINDS), *r.sample(CELL_KINDS, width - 1)]
        columns: list[str] = []
        while len(columns) < width:
            name = d.label()
            if name not in columns:
                columns.append(name)
        status = r.randrange(1, width) if width > 1 and d.chance(0.6) else -1
        states = [d.word().capitalize() for _ in range(r.randint(2, 4))]
        keys = [d.label() for _ in range(r.randint(1, 5))]
        fact_kinds = r.choices(CELL_KINDS + ("text", "yes"), k=len(keys))
        actions = tuple(d.label() for _ in range(r.randint(0, 3)))
        rows, names = [], set()
        for _ in range(r.randint(1, 9)):
            cells = [d.choice(states) if i == status else d.value(kind) for i, kind in enumerate(kinds)]
            if cells[0] in names:
                continue
            names.add(cells[0])
            rows.append(Row(cells, {k: d.value(kind) for k, kind in zip(keys, fact_kinds, strict=True)}, actions))
        fields = self._fields()
        action = d.choice(("Edit", "Change", "Open", "Remove", d.label())) if d.chance(0.3) else ""
        save = d.choice(("Save", "Send", "Submit", "Apply", "Add", "Create", "Confirm")) + (
            f" {d.word()}" if d.chance(0.6) else ""
        )
        return Section(d.label(), menu, columns, kinds, rows, fields, save, action, status)

    def _fields(self) -> list[Element]:
        d, r = self.d, self.rng
        fields: list[Element] = []
        for _ in range(r.randint(1, 6)):
            name = d.label()
            if any(e.name == name for e in fields):
                continue
            role = r.choices(("input", "textarea", "select", "checkbox", "radio"), (6, 2, 3, 1, 1))[0]
            if role == "select":
                options = tuple(dict.fromkeys(d.label() for _ in range(r.randint(2, 5))))
                fields.append(Element(name, "select", d.choice(options), options=options))
            elif role in ("checkbox", "radio"):
                fields.append(Element(name, role, state=d.choice(("on", "off"))))
            else:
                value = d.value(d.choice(CELL_KINDS)) if d.chance(0.3) else ""
                state = f'hint "{d.label()}"' if not value and d.chance(0.15) else ""
                fields.append(Element(name, role, value, state))
        return fields

    # Parts of a page ------------------------------------------------------------------------------------------------

    def head(self, opened: str = "", typed: str = "") -> list[Line]:
        """Return what stands on top of every page; ``opened`` names the menu that is unfolded."""
        lines: list[Line] = []
        first: Line = [Element(self.name)] if self.brand else []
        if self.search:
            first += [Element(self.search, "input", typed), Element(self.search_button, "button")]
        entries: list[Line] = []
        current: Line = []
        for item in self.order:
            if isinstance(item, Section):
                if item.menu:
                    continue
                current.append(Element(item.label))
            elif item in self.menus:
                current.append(Element(item, self.menu_role))
                if item == opened:
                    entries.append(current)
                    entries += [[Element(s.label)] for s in self.sections if s.menu == item]
                    current = []
            else:
                current.append(Element(item))
        entries.append(current)
        if self.vertical:
            entries = [[part] for line in entries for part in line]
        lines += [line for line in entries if line]
        return [*lines, first] if first and self.vertical else [first, *lines] if first else lines

    def view(self, body: list[Line], path: str, *, opened: str = "", typed: str = "", **more: object) -> View:
        """Return a page with the head and the foot of the site."""
        foot: list[Line] = [[Element(label) for label in self.footer]] if self.footer else []
        if more.get("height", 720) > more.get("bottom", 720):
            foot = []
        return View(self.head(opened, typed) + body + foot, f"{self.key}/{path}", **more)

    def home(self, *, opened: str = "") -> View:
        """Return the first page: some short lists, no details."""
        d, r = self.d, self.rng
        body: list[Line] = [[f"= {d.label()}"]] if d.chance(0.7) else []
        if d.chance(0.5):
            body.append([d.sentence()])
        for _ in range(r.randint(0, 3)):
            body.append([f"= {d.label()}"])
            if d.chance(0.4):
                section = d.choice(self.sections)
                for row in section.rows[: r.randint(1, 5)]:
                    body.append([Element(row.cells[0]), *row.cells[1:3]])
            else:
                kind, linked = d.choice(CELL_KINDS), d.chance(0.5)
                for _ in range(r.randint(1, 5)):
                    name = d.title()
                    body.append([Element(name) if linked else name, d.value(kind)])
        return self.view(body, "", opened=opened)

    def listing(
        self,
        section: Section,
        *,
        rows: Sequence[Row] | None = None,
        query: str = "",
        sort: str = "",
        opened: str = "",
        scrolled: bool | None = None,
        tools: bool = True,
    ) -> View:
        """Return a section's list.

        Args:
            section: which one.
            rows: the rows that are left; None for all.
            query: what was searched for.
            sort: the column that it is sorted by.
            opened: the menu that is unfolded.
            scrolled: True shows the lower half, False the upper half, None the whole.
            tools: whether the list has a search of its own.
        """
        d, r = self.d, self.rng
        shown = list(section.rows if rows is None else rows)
        body: list[Line] = [[f"= {section.label}"]]
        count = d.choice((f"{len(shown)} records found", f"1–{len(shown)} of {len(shown)}", f"{len(shown)} entries"))
        bar: Line = [Element(self.list_search, "input", query), Element(self.list_button, "button")] if tools else []
        if d.chance(0.3):
            bar.append(Element(d.label()))
        bar += [count] if d.chance(0.7) else []
        body += [bar] if bar else []
        if query:
            body.append(
                [
                    f"{d.choice(('Active', 'Results for', 'Filter'))}: {query}",
                    Element(d.choice(("Clear", "Clear all", "Reset"))),
                ]
            )
        if sort or d.chance(0.35):
            options = tuple(section.columns[:4])
            body.append([Element(self.sort_label, "select", sort or options[0], options=options)])
        if section.status > 0 and d.chance(0.3) and not query:
            for state in dict.fromkeys(row.cells[section.status] for row in section.rows):
                number = sum(row.cells[section.status] == state for row in section.rows)
                body.append([Element(state), f"({number})"])
        linked_heads = d.chance(0.3)
        if d.chance(0.8):
            body.append([Element(c) if linked_heads else c for c in section.columns])
        more: dict[str, object] = {}
        if scrolled is not None and len(shown) > 1:
            half = max(1, len(shown) // 2)
            shown = shown[half:] if scrolled else shown[:half]
            extra = r.randint(30, 500)
            more = {"height": 720 + extra, "top": extra if scrolled else 0, "bottom": 720 + (extra if scrolled else 0)}
        for row in shown:
            line: Line = [Element(row.cells[0]), *row.cells[1:]]
            if section.row_action:
                line.append(Element(section.row_action))
            body.append(line)
        if not shown:
            body.append([d.choice(("No results.", "Nothing was found.", "There are no entries.", "0 matches."))])
        elif d.chance(0.3) and not more.get("height"):
            body.append([f"Page 1 of {r.randint(2, 9)}", Element(self.next)])
        path = f"{slug(section.label)}{'?q=' + query.replace(' ', '+') if query else ''}"
        return self.view(body, path, opened=opened, rows=shown, section=section, **more)

    def detail(self, section: Section, row: Row, *, message: str = "", opened: str = "") -> View:
        """Return a row's own page."""
        d = self.d
        body: list[Line] = []
        if d.chance(0.4):
            body.append([Element(section.label), f"/ {row.cells[0]}"])
        body.append([f"= {row.cells[0]}"])
        if message:
            body.insert(d.rng.randrange(len(body) + 1), [message])
        facts = dict(zip(section.columns[1:], row.cells[1:], strict=True)) | row.facts
        keys = list(facts)
        if d.chance(0.5):
            d.rng.shuffle(keys)
        form = d.rng.randrange(3)
        buttons: list[Element] = [Element(a, d.choice(("button", "link"))) for a in row.actions]
        for key in keys:
            if form == 0:
                body.append([key, facts[key]])
            elif form == 1:
                body.append([f"{key}: {facts[key]}"])
            else:
                body += [[key], [facts[key]]]
        if buttons:
            body.append(list(buttons))
        return self.view(
            body, f"{slug(section.label)}/{slug(row.cells[0])}", opened=opened, section=section, row=row, facts=facts
        )

    def form(self, section: Section, filled: dict[str, str], *, message: str = "", title: str = "") -> View:
        """Return the form of a section with some fields filled in."""
        d = self.d
        body: list[Line] = [[f"= {title or section.save}"]]
        if message:
            body.append([message])
        together = d.chance(0.2)
        elements: Line = []
        for field_ in section.fields:
            copy = Element(field_.name, field_.role, field_.value, field_.state, options=field_.options)
            if field_.name in filled:
                if field_.role in ("checkbox", "radio"):
                    copy.state = filled[field_.name]
                else:
                    copy.value, copy.state = filled[field_.name], ""
            elements.append(copy)
        body += [elements] if together else [[e] for e in elements]
        body.append([Element(section.save, "button"), *([Element("Cancel")] if d.chance(0.3) else [])])
        return self.view(body, f"{slug(section.label)}/{d.choice(('edit', 'new', 'change'))}", section=section)

    def thread(self) -> View:
        """Return a page of remarks: the same links under each, so only the neighbourhood tells them apart."""
        d, r = self.d, self.rng
        section = d.choice(self.sections)
        reply, vote = d.choice(("Reply", "Answer", d.label())), d.choice(("Up", "Like", d.label()))
        body: list[Line] = [[f"= {d.sentence()}"]]
        rows = []
        for _ in range(r.randint(1, 5)):
            author, when, points = d.made_up().lower(), d.value("ago"), d.value("small")
            text = d.sentence()
            body += [[Element(author), when, f"{points} points"], [text], [Element(vote, "button"), Element(reply)]]
            rows.append(Row([author, when, f"{points} points", text], {}))
        columns = ["author", "age", "points", "remark"]
        made = Section(section.label, "", columns, ["word"] * 4, rows, [], "Post", reply, -1)
        return self.view(body, f"f/{slug(section.label)}/{r.randint(1, 900)}", rows=rows, section=made)


def slug(text: str) -> str:
    """Return a text as it stands in an address."""
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
