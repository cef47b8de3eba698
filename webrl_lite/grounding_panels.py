"""Small pages where names do not help: what the tiny base reads beside the sites of ``grounding_pages``.

Pages of a handful of elements, many without a name: a field with its label before it or none at all, marks behind an
entry, words of a sentence that can be pressed, folded tabs, menus, cards with an arrow to the next. A goal asks for one
or two things on such a page and mostly for a button at the end; after each action the page shows what it changed.

Every kind of thing is a ``Part``: lines, a phrase of the goal, and the moves that carry it out. Reads random words
(``Draw``); gives views and moves, which ``grounding`` turns into documents.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

from webrl_lite.grounding_pages import Draw, Element, Line, Site, View, elements_in

Move = tuple[str, "Element | None", "str | None"]
"""An action's name, its element, its argument."""
ORDINALS = (("first", "1st"), ("second", "2nd"), ("third", "3rd"), ("fourth", "4th"), ("fifth", "5th"))
FIELD_WORDS = ("box", "blank", "line", "slot", "input")
ENDINGS = ("OK", "Send", "Done", "Finish", "Ready", "Continue", "Go", "Apply")
BLOCKS = (
    (0x00A1, 0x024F), (0x0370, 0x04FF), (0x05D0, 0x05EA), (0x0E01, 0x0E2E), (0x2010, 0x2027), (0x2190, 0x21FF),
    (0x2600, 0x26FF), (0x3041, 0x30FE), (0x4E00, 0x9FFF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1F64F),
)  # fmt: skip
"""Other scripts and signs: their bytes are tokens of their own, which nothing else shows."""
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
SIGNS = "!#$%&*+-/:;<=>?@^_`{}~()"


@dataclass
class Part:
    """Something on a page and what a goal wants of it."""

    lines: list[Line]
    phrase: str
    moves: list[Move]
    roles: frozenset[str]
    """Kinds of elements that the phrase would be unclear about if another part had them too."""
    hidden: dict[Element, list[Line]] = field(default_factory=dict)
    """Lines that come up behind an element's line when it is pressed, in place of those of other elements."""
    next_lines: dict[Element, list[Line]] = field(default_factory=dict)
    """Lines that take the place of all others when an element is pressed."""

    @property
    def elements(self) -> list[Element]:
        """Everything that has an id, hidden things left out."""
        return elements_in(self.lines)


# Texts --------------------------------------------------------------------------------------------------------------


def text_to_copy(d: Draw) -> str:
    """Return a text as forms ask for: of any letters and digits, a day, a time, a word, a number."""
    r = d.rng
    way = r.randrange(10)
    if way < 3:
        return "".join(r.choices(LETTERS + SIGNS * d.chance(0.1), k=r.randint(1, 7)))
    if way == 3:
        return d.date(r.randrange(1, 3))
    if way == 4:
        return f"{r.randint(1, 12)}:{r.randrange(60):02}{d.choice(('', ' AM', ' PM'))}"
    if way == 5:
        first, last = d.choice(BLOCKS)
        return (
            "".join(c for c in (chr(r.randint(first, last)) for _ in range(r.randint(2, 5))) if c.isprintable()) or "é"
        )
    return d.value(d.choice(("word", "person", "small", "number", "code", "town", "phone", "money", "title", "email")))


def quoted(d: Draw, text: str) -> str:
    """Put a text in quotes, or not."""
    return d.choice(('"{}"', "{}", "'{}'")).format(text) if '"' not in text else text


def label_of(d: Draw) -> str:
    """Return an element's name: words, or any letters and digits."""
    return d.label() if d.chance(0.5) else text_to_copy(d)


def different(make: Callable[[], str], count: int) -> list[str]:
    """Return texts that differ by more than capitals."""
    found: dict[str, str] = {}
    while len(found) < count:
        text = make()
        found.setdefault(text.casefold(), text)
    return list(found.values())


def joined(d: Draw, names: list[str]) -> str:
    """Write names as a list."""
    comma = d.choice((", ", " and "))
    return (
        comma.join(names) if comma == " and " else " and ".join([", ".join(names[:-1]), names[-1]][len(names) == 1 :])
    )


# Parts --------------------------------------------------------------------------------------------------------------


def labelled_fields(d: Draw) -> Part:
    """Fields whose label stands before them, above them, in them, or is their name."""
    names = different(d.label, d.rng.randint(1, 4))
    form = d.rng.randrange(4)
    lines: list[Line] = []
    fields: list[Element] = []
    for name in names:
        role = d.rng.choices(("input", "password", "textarea", "date"), (6, 2, 1, 1))[0]
        if form == 0:
            element = Element(name, role)
            lines.append([element])
        else:
            element = Element("", role, state=f'hint "{name}"' if form == 3 else "")
            colon = d.choice(("", ":"))
            lines += {1: [[name + colon, element]], 2: [[name + colon], [element]], 3: [[element]]}[form]
        fields.append(element)
    wanted = d.rng.sample(range(len(names)), d.rng.randint(1, min(2, len(names))))
    phrases, moves = [], []
    for i in wanted:
        text = d.date(d.rng.randrange(1, 3)) if fields[i].role == "date" else text_to_copy(d)
        phrases.append(
            d.choice(("put {0} into {1}", "give {1} the text {0}", "let {1} hold {0}", "for {1} write {0}")).format(
                quoted(d, text), quoted(d, names[i])
            )
        )
        moves.append(("Type", fields[i], text))
    return Part(lines, d.choice((" and ", ", ")).join(phrases), moves, frozenset(("field", "by name")))


def one_field(d: Draw) -> Part:
    """A field without any name; what it shall hold is given, changed, or read off the page."""
    element = Element(
        "", d.rng.choices(("input", "textarea", "password"), (6, 1, 1))[0], d.word() if d.chance(0.1) else ""
    )
    place = d.choice(FIELD_WORDS)
    before: list[Line] = []
    way = d.rng.choices(("given", "cased", "fact", "word", "pieces", "sum"), (5, 2, 4, 2, 1, 1))[0]
    if way == "given":
        text = text_to_copy(d)
        what = d.choice(("put {} into", "write {} in", "have {} in", "{} goes into")).format(quoted(d, text))
    elif way == "cased":
        start = d.made_up() if d.chance(0.7) else d.word()
        start = d.choice((str.lower, str.upper, str.capitalize))(start)
        up = d.chance(0.5)
        text = start.upper() if up else start.lower()
        style = d.choice(("capitals", "big letters") if up else ("small letters", "little letters"))
        what = d.choice(("put {0} in {1} into", "spell {0} with {1} in")).format(quoted(d, start), style)
    elif way == "fact":
        facts = {key: text_to_copy(d) for key in different(d.label, d.rng.randint(1, 5))}
        key = d.choice(list(facts))
        text = facts[key]
        colon = d.choice((":", "", ""))
        before = [[f"{k}: {v}"] if colon else [k, v] for k, v in facts.items()]
        what = d.choice(("copy {} into", "carry {} over to", "bring what {} says to")).format(quoted(d, key))
    elif way == "word":
        sentence = [d.word() for _ in range(d.rng.randint(3, 9))]
        number = d.rng.randrange(min(5, len(sentence)))
        text = sentence[number]
        before = [[" ".join(sentence)]]
        what = d.choice(("copy word number {1} into", "the {0} word above goes into")).format(
            d.choice(ORDINALS[number]), number + 1
        )
    elif way == "pieces":
        text = "".join(d.rng.choices(LETTERS, k=d.rng.randint(2, 6)))
        before = [list(text)]
        what = d.choice(("bring the signs above together in", "the letters of the page go without gaps into"))
    else:
        a, b = d.rng.randint(0, 10), d.rng.randint(0, 10)
        minus = d.chance(0.4)
        text = str(a) if minus else str(a + b)
        line = f"{a + b} - {b} =" if minus else f"{a} + {b} ="
        return Part(
            [[line, element]], d.choice(("work it out in the {}", "put the outcome into the {}")).format(place),
            [("Type", element, text)], frozenset(("field",)),
        )  # fmt: skip
    lines = [[element], *before] if d.chance(0.3) and way != "word" else [*before, [element]]
    return Part(lines, f"{what} the {place}", [("Type", element, text)], frozenset(("field",)))


def fields_in_a_row(d: Draw) -> Part:
    """Fields that only their order tells apart."""
    fields = [Element("", "input") for _ in range(d.rng.randint(2, 5))]
    number = d.rng.randrange(len(fields))
    place = f"{d.choice(ORDINALS[number])} {d.choice(FIELD_WORDS)}"
    lines: list[Line] = [list(fields)] if d.chance(0.5) else [[e] for e in fields]
    if d.chance(0.3):
        phrase = d.choice(("go to the {}", "set the cursor in the {}")).format(place)
        return Part(lines, phrase, [("Click", fields[number], None)], frozenset(("field",)))
    text = text_to_copy(d)
    phrase = d.choice(("put {0} into the {1}", "the {1} gets {0}", "write {0} in the {1}")).format(
        quoted(d, text), place
    )
    return Part(lines, phrase, [("Type", fields[number], text)], frozenset(("field",)))


def boxes(d: Draw) -> Part:
    """Boxes to tick, some of them, or none."""
    names = different(lambda: label_of(d), d.rng.randint(2, 6))
    elements = [Element(name, "checkbox", state="on" if d.chance(0.1) else "off") for name in names]
    wanted = d.rng.sample(range(len(names)), d.rng.randint(0 if d.chance(0.3) else 1, min(3, len(names))))
    chosen = (
        joined(d, [names[i] for i in wanted]) if wanted else d.choice(("no box", "none of them", "not a single one"))
    )
    phrase = d.choice(("mark {}", "set {}", "have {} ticked", "switch on {}")).format(chosen)
    moves: list[Move] = [("Click", elements[i], None) for i in wanted if elements[i].state == "off"]
    return Part([[e] for e in elements], phrase, moves, frozenset(("checkbox", "by name")))


def rings(d: Draw) -> Part:
    """Radio buttons, told apart by name or by order."""
    count = d.rng.randint(2, 5)
    if d.chance(0.3):
        name = d.choice(("", "radio", d.word()))
        elements = [Element(name, "radio", state="off") for _ in range(count)]
        number = d.rng.randrange(count)
        phrase = d.choice(("choose the {} ring", "set the {} round one", "take the {} radio")).format(
            d.choice(ORDINALS[number])
        )
        lines: list[Line] = [list(elements)]
    else:
        elements = [Element(name, "radio", state="off") for name in different(lambda: label_of(d), count)]
        number = d.rng.randrange(count)
        phrase = d.choice(("choose {}", "take {}", "go for {}")).format(quoted(d, elements[number].name))
        lines = [[e] for e in elements]
    return Part(lines, phrase, [("Click", elements[number], None)], frozenset(("radio", "by name")))


def dropdown(d: Draw) -> Part:
    """A list to choose from, named or not."""
    options = tuple(different(lambda: label_of(d), d.rng.randint(3, 11)))
    element = Element(d.label() if d.chance(0.3) else "", "select", options=options)
    if d.chance(0.4):
        element.state = "multiple"
    else:
        element.value = options[0]
    option = d.choice(options[1:])
    phrase = d.choice(("choose {} in the list", "have the list show {}", "let the list be {}")).format(
        quoted(d, option)
    )
    return Part([[element]], phrase, [("Select Dropdown Option", element, option)], frozenset(("select",)))


def numbers(d: Draw) -> Part:
    """Numbers to compare."""
    values = d.rng.sample(range(1, d.choice((15, 100))), d.rng.randint(2, 5))
    role = d.choice(("clickable", "button", "link"))
    elements = [Element(str(value), role) for value in values]
    big = d.chance(0.5)
    best = elements[values.index(max(values) if big else min(values))]
    word = d.choice(("biggest", "highest") if big else ("smallest", "lowest"))
    phrase = d.choice(("press the {} number", "take the {} of the numbers")).format(word)
    return Part([list(elements)], phrase, [("Click", best, None)], frozenset(("number",)))


def offers(d: Draw) -> Part:
    """Lines with a value and a button each, to compare."""
    key, action = d.label(), d.label()
    values = d.rng.sample(range(1, 30), d.rng.randint(2, 4))
    unit = d.choice((" min", " km", "h 5m", "%", ""))
    elements = [Element(f"{action} {n}" if d.chance(0.5) else action, "button") for n in range(1, len(values) + 1)]
    big = d.chance(0.5)
    best = elements[values.index(max(values) if big else min(values))]
    lines: list[Line] = []
    for value, element in zip(values, elements, strict=True):
        lines += [[f"{key}:"], [f"{value}{unit}"], [element]] if d.chance(0.5) else [[f"{key}: {value}{unit}", element]]
    word = d.choice(("most", "largest") if big else ("least", "smallest"))
    phrase = d.choice(("{0} where {1} is {2}", "{0} with the {2} {1}")).format(action, key, word)
    return Part(lines, phrase, [("Click", best, None)], frozenset(("number",)))


def pressable_words(d: Draw) -> Part:
    """Words of a text, some of which can be pressed."""
    words = different(d.word, d.rng.randint(4, 12))
    words = [w.capitalize() if d.chance(0.3) else w for w in words]
    words = [w + d.choice((".", ",")) if d.chance(0.2) else w for w in words]
    role = d.choice(("clickable", "link"))
    pressable = sorted(d.rng.sample(range(len(words)), d.rng.randint(2, min(5, len(words)))))
    elements = {i: Element(words[i], role) for i in pressable}
    line: Line = []
    for i, word in enumerate(words):
        if i in elements:
            line.append(elements[i])
        elif line and isinstance(line[-1], str):
            line[-1] += f" {word}"
        else:
            line.append(word)
    wanted = d.choice(list(elements.values()))
    phrase = d.choice(("press the word {}", "follow {} in the text", "use {}")).format(
        quoted(d, wanted.name.rstrip(".,"))
    )
    return Part([line], phrase, [("Click", wanted, None)], frozenset(("text",)))


def some_of_a_kind(d: Draw) -> Part:
    """Elements of several kinds, one of which is asked for by its kind alone."""
    kinds = {
        "button": ("button",), "radio": ("round button", "radio"), "checkbox": ("tick box", "checkbox"),
        "input": ("text box", "input"), "textarea": ("large text box", "textarea"), "link": ("link",),
    }  # fmt: skip
    roles = d.rng.choices(list(kinds), k=d.rng.randint(2, 6))
    elements = []
    for role in roles:
        named = role not in ("input", "textarea")
        state = "off" if role in ("radio", "checkbox") else ""
        elements.append(
            Element(label_of(d) if named else "", role, d.word() if not named and d.chance(0.5) else "", state)
        )
    wanted = d.choice(elements)
    first = next(e for e in elements if e.role == wanted.role)
    phrase = d.choice(("press any {}", "use some {}", "hit one {}")).format(d.choice(kinds[wanted.role]))
    lines: list[Line] = [list(elements)] if d.chance(0.3) else [[e] for e in elements]
    return Part(lines, phrase, [("Click", first, None)], frozenset(("field", "checkbox", "radio", "button", "text")))


def buttons(d: Draw) -> Part:
    """Things to press whose names may be anything."""
    roles = d.choice((("button",), ("clickable",), ("button", "link", "clickable", "span", "div")))
    elements = [Element(name, d.choice(roles)) for name in different(lambda: label_of(d), d.rng.randint(1, 6))]
    lines: list[Line] = [list(elements)] if d.chance(0.4) else [[e] for e in elements]
    if d.chance(0.4):
        lines.insert(d.rng.randint(0, len(lines)), [d.sentence()])
    wanted = d.choice(elements)
    phrase = d.choice(("press {}", "hit {}", "use {}", "push {}")).format(quoted(d, wanted.name))
    return Part(lines, phrase, [("Click", wanted, None)], frozenset(("text", "by name")))


def marks(d: Draw) -> Part:
    """Entries with marks behind them that have no names."""
    count, role = d.rng.randint(1, 3), d.choice(("span", "clickable", "button", "div"))
    names = different(d.person if d.chance(0.5) else d.label, d.rng.randint(2, 5))
    lines: list[Line] = []
    rows: list[list[Element]] = []
    for name in names:
        rest = f" {d.sentence()}" if d.chance(0.5) else ""
        row = [Element(name + rest, d.choice(("clickable", "link"))), *(Element("", role) for _ in range(count))]
        rows.append(row)
        lines.append(list(row))
    which, number = d.rng.randrange(len(names)), d.rng.randrange(count + 1)
    name = names[which]
    if number == 0:
        phrase = d.choice(("open {}", "go into what {} has")).format(name)
    else:
        phrase = d.choice(("press the {0} mark beside {1}", "for {1} use the {0} sign")).format(
            "" if count == 1 else d.choice(ORDINALS[number - 1]), name
        )
    phrase = phrase.replace("the  ", "the ")
    return Part(lines, phrase, [("Click", rows[which][number], None)], frozenset(("mark",)))


def tabs(d: Draw) -> Part:
    """Folded parts, as tabs or as headings; what is asked for may be in any of them."""
    as_headings, count = d.chance(0.4), d.rng.randint(1, 4)
    base = d.choice(("Part", "Sheet", "Leaf", d.label()))
    names = [f"{base} {d.choice(('', '#', 'no. '))}{n}" for n in range(1, count + 1)] if d.chance(0.6) else None
    names = names or different(d.label, count)
    heads = [Element(name, "tab", state="closed", heading=as_headings) for name in names]
    opened = d.rng.randrange(-1, count)
    wanted = d.rng.randrange(count)
    hidden: dict[Element, list[Line]] = {}
    contents = different(lambda: label_of(d), 2 * count)
    for number, head in enumerate(heads):
        hidden[head] = [
            [Element(name, d.choice(("clickable", "link", "button")))] for name in contents[2 * number :][:2]
        ]
    lines: list[Line] = [[head] for head in heads]
    part = Part(lines, "", [], frozenset(("tab",)), hidden)
    if opened >= 0:
        _reveal(part, heads[opened])
    if d.chance(0.4) and opened != wanted:
        part.phrase = d.choice(("unfold {}", "bring {} up", "turn to {}")).format(quoted(d, names[wanted]))
        part.moves = [("Click", heads[wanted], None)]
        return part
    thing = hidden[heads[wanted]][0][0]
    order = [] if opened == wanted else [heads[i] for i in range(wanted + 1) if i != opened]
    if d.chance(0.4) and opened != wanted:
        order = [heads[wanted]]
        part.phrase = d.choice(("under {1} press {0}", "{0} in {1} is to be pressed")).format(thing.name, names[wanted])
    else:
        part.phrase = d.choice(
            ("look through the parts for {} and press it", "press {}, wherever it is folded away")
        ).format(quoted(d, thing.name))
    part.moves = [*(("Click", head, None) for head in order), ("Click", thing, None)]
    return part


def menu(d: Draw) -> Part:
    """A menu whose entries come up when it is pressed."""
    names = different(d.label, d.rng.randint(2, 4))
    heads = [Element(name, "menuitem", state="menu") for name in names]
    role = d.choice(("menuitem", "link"))
    hidden = {head: [[Element(d.made_up(), role)] for _ in range(d.rng.randint(1, 3))] for head in heads}
    head = d.choice(heads)
    entry = d.choice(hidden[head])[0]
    phrase = d.choice(("take {0} > {1}", "use {1} of {0}", "choose {0}, there {1}")).format(head.name, entry.name)
    return Part([list(heads)], phrase, [("Click", head, None), ("Click", entry, None)], frozenset(("menu",)), hidden)


def cards(d: Draw) -> Part:
    """Cards that are leafed through until one has the name."""
    names = different(d.made_up, d.rng.randint(2, 4))
    keys = different(d.label, d.rng.randint(1, 3))
    arrow = d.choice((">", "Next", "→", "Forward", "More"))
    role = d.choice(("link", "clickable", "button"))
    pages = []
    for name in names:
        facts = [
            [f"{key}:", Element(text, role)]
            for key, text in zip(keys, different(lambda: text_to_copy(d), len(keys)), strict=True)
        ]
        pages.append([[f"= {name}"], *facts])
    wanted = d.rng.randrange(len(names))
    forward = [Element(arrow, d.choice(("link", "button"))) for _ in names]
    shown = [[*page, ["1", e]] if d.chance(0.3) else [*page, [e]] for page, e in zip(pages, forward, strict=True)]
    key = d.rng.randrange(len(keys))
    phrase = d.choice(("of {0} press the {1}", "leaf to {0} and use the {1}", "press {1} on the card of {0}")).format(
        names[wanted], keys[key]
    )
    moves: list[Move] = [("Click", forward[i], None) for i in range(wanted)]
    moves.append(("Click", pages[wanted][1 + key][1], None))
    follow = dict(zip(forward, shown[1:], strict=False))
    return Part(shown[0], phrase, moves, frozenset(("card", "text")), next_lines=follow)


PARTS: dict[Callable[[Draw], Part], float] = {
    labelled_fields: 4, one_field: 5, fields_in_a_row: 2, boxes: 3, rings: 2, dropdown: 2, numbers: 1, offers: 1,
    pressable_words: 2, some_of_a_kind: 1, buttons: 3, marks: 1.5, tabs: 3, menu: 1, cards: 1,
}  # fmt: skip
"""Kinds of parts with their weights."""


# A page -------------------------------------------------------------------------------------------------------------


def _reveal(part: Part, head: Element) -> None:
    """Show what an element hides, in place of what others hid."""
    others = [line for other, lines in part.hidden.items() if other is not head for line in lines]
    part.lines = [line for line in part.lines if not any(line is other for other in others)]
    place = next(i for i, line in enumerate(part.lines) if any(piece is head for piece in line))
    part.lines[place + 1 : place + 1] = part.hidden[head]
    for other in part.hidden:
        if other.role == "tab":
            other.state = "open" if other is head else "closed"


def _carry_out(part: Part, move: Move) -> None:
    """Change a part as a browser would."""
    name, element, argument = move
    if name == "Type":
        dots = element.role == "password"
        element.value = "•" * len(argument) if dots else argument
        if element.role == "date" and "/" in argument:
            month, day, year = argument.split("/")
            element.value = f"{year}-{month}-{day}"
        element.state = ""
    elif name == "Select Dropdown Option":
        element.value = argument
    elif element in part.hidden:
        _reveal(part, element)
    elif element.role == "checkbox":
        element.state = "off" if element.state == "on" else "on"
    elif element.role == "radio":
        for other in part.elements:
            if other.role == "radio":
                other.state = "on" if other is element else "off"
    elif element in part.next_lines:
        part.lines = part.next_lines[element]


@dataclass
class Goal:
    """A goal on one page."""

    task: str
    steps: list[tuple[View, Move]]
    """Pages, each with the move that is right there; the move's element is the page's own."""


def goal(site: Site) -> Goal:
    """Draw a page of some parts and a goal that wants one or two of them."""
    d, r = site.d, site.rng
    while True:
        parts: list[Part] = []
        taken: set[str] = set()
        for make in r.choices(list(PARTS), list(PARTS.values()), k=r.choices((1, 2, 3), (5, 3, 1))[0]):
            part = make(d)
            if not taken & part.roles:
                parts.append(part)
                taken |= part.roles
        asked = parts[: 2 if d.chance(0.3) else 1]
        end = Element(d.choice(ENDINGS) if d.chance(0.7) else d.label(), d.choice(("button", "button", "link")))
        more = [Element(d.choice(("Cancel", "Back", "Reset", d.label())), "button")] if d.chance(0.25) else []
        closed = d.chance(0.7) or not any(part.moves for part in asked)
        hidden = [line for part in parts for lines in part.hidden.values() for line in lines]
        names = [e.name for e in elements_in([line for part in parts for line in part.lines] + hidden)]
        if end.name not in names and all(e.name not in (end.name, *names) for e in more):
            break
    task = d.choice((" and ", ", ")).join(part.phrase for part in asked)
    if closed:
        task += d.choice((" and press {}", ", then {}", ", at last {}", " and end with {}")).format(quoted(d, end.name))
    task = task[0].upper() + task[1:] + d.choice((".", ""))
    order = r.sample(parts, len(parts))
    buttons: list[Line] = [[end, *more]] if closed or d.chance(0.3) else []
    top: list[Line] = [[task]] if d.chance(0.35) else [[d.sentence()]] if d.chance(0.2) else []
    joined_up = d.chance(0.2)
    path = f"{d.word()}-{d.word()}.html" + (f"?{d.word()}={r.randint(0, 9999)}" if d.chance(0.5) else "")
    framed = d.chance(0.25)

    def page(wanted: Element | None) -> tuple[View, Element | None]:
        lines = [*top, *(line for part in order for line in part.lines), *buttons]
        if joined_up and buttons and len(lines) > 1 and isinstance(lines[-2][-1], Element):
            lines = [*lines[:-2], [*lines[-2], *lines[-1]]]
        shown = copy.deepcopy(lines)  # what is done later must not show on this page
        view = site.view(shown, path) if framed else View(shown, f"{site.key}/{path}")
        return view, wanted and elements_in(shown)[elements_in(lines).index(wanted)]

    steps: list[tuple[View, Move]] = []
    for part in asked:
        for name, element, argument in part.moves:
            view, own = page(element)
            steps.append((view, (name, own, argument)))
            _carry_out(part, (name, element, argument))
    if closed:
        view, own = page(end)
        steps.append((view, ("Click", own, None)))
    return Goal(task, steps)
