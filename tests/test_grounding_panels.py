"""Small pages: what a goal asks for is what its moves do, and a page shows what was done."""

import random
import re

import pytest

from webrl_lite.envs.miniwob import pages
from webrl_lite.grounding_pages import Draw, Element, Site
from webrl_lite.grounding_panels import (
    Part,
    _carry_out,
    boxes,
    cards,
    fields_in_a_row,
    goal,
    joined,
    numbers,
    offers,
    one_field,
    tabs,
)

GOALS = [goal(Site(random.Random(seed))) for seed in range(600)]


def drawn(make, count: int = 300) -> list[Part]:
    return [make(Draw(random.Random(seed))) for seed in range(count)]


def part(*elements: Element, **more) -> Part:
    return Part([[e] for e in elements], "", [], frozenset(), **more)


def test_a_moves_element_stands_on_the_page_of_its_step():
    for one in GOALS:
        for view, (_, element, _) in one.steps:
            assert sum(element is e for e in view.elements) == 1 and element.id
            assert f"[{element.id}] {element.role}".removesuffix(" link") in view.text()


def test_pages_of_one_goal_change_and_earlier_ones_stay_as_they_were():
    """A page is written down after the goal was carried out, so it must not show what came later."""
    for one in GOALS:
        texts = [view.text() for view, _ in one.steps]
        for (_, (name, element, text)), after in zip(one.steps, texts[1:], strict=False):
            if name == "Type" and element.role == "input":
                assert element.value != text and f'] input "{text}"' in after


def test_a_goal_takes_one_to_six_moves_two_in_the_mean():
    lengths = [len(one.steps) for one in GOALS]
    assert (min(lengths), max(lengths)) == (1, 6)
    assert 1.9 < sum(lengths) / len(lengths) < 2.3


# What a browser would show --------------------------------------------------------------------------------------------


def test_typed_text_is_the_fields_value_a_passwords_is_dots_and_a_days_is_iso():
    field, secret, day = Element("", "input", state='hint "Name"'), Element("", "password"), Element("", "date")
    for element, text in ((field, "Ana"), (secret, "xyz"), (day, "12/01/2016")):
        _carry_out(part(field, secret, day), ("Type", element, text))
    field.id, secret.id, day.id = "1", "2", "3"
    assert [e.text() for e in (field, secret, day)] == [
        '[1] input "Ana"',
        '[2] password "•••"',
        '[3] date "2016-12-01"',
    ]


def test_a_box_turns_and_of_radio_buttons_one_is_on():
    box, first, second = Element("A", "checkbox", state="on"), Element("B", "radio", state="on"), Element("C", "radio")
    page = part(box, first, second)
    _carry_out(page, ("Click", box, None))
    _carry_out(page, ("Click", second, None))
    assert (box.state, first.state, second.state) == ("off", "off", "on")


def test_a_tab_shows_its_lines_and_hides_the_others():
    one, two = Element("One", "tab", state="closed"), Element("Two", "tab", state="closed")
    page = part(one, two, hidden={one: [["first text"]], two: [["second text"]]})
    _carry_out(page, ("Click", one, None))
    assert page.lines == [[one], ["first text"], [two]] and (one.state, two.state) == ("open", "closed")
    _carry_out(page, ("Click", two, None))
    assert page.lines == [[one], [two], ["second text"]] and (one.state, two.state) == ("closed", "open")


# What is asked for ----------------------------------------------------------------------------------------------------


def test_the_number_that_is_pressed_is_the_largest_or_the_smallest():
    for one in drawn(numbers):
        values = [int(e.name) for e in one.elements]
        best = max(values) if re.search("biggest|highest", one.phrase) else min(values)
        assert one.moves[0][1].name == str(best)


def test_the_button_of_the_best_offer_is_the_one_behind_its_value():
    for one in drawn(offers):
        seen, values = None, {}
        for piece in (piece for line in one.lines for piece in line):
            if isinstance(piece, Element):
                values[piece] = seen
            elif found := re.search(r"(\d+)(?: min| km|h 5m|%)?$", piece):
                seen = int(found[1])
        best = max if re.search("most|largest", one.phrase) else min
        assert values[one.moves[0][1]] == best(values.values())


def test_a_field_gets_the_text_the_fact_the_word_or_the_sum_that_is_asked_for():
    ways = set()
    for one in drawn(one_field, 500):
        ((name, element, text),) = one.moves
        plain = [line for line in one.lines if all(isinstance(p, str) for p in line)]
        assert (name, element) == ("Type", one.elements[0])
        if found := re.fullmatch(r"(\d+) ([+-]) (\d+) =", str(one.lines[0][0])):
            a, b = int(found[1]), int(found[3])
            assert text == str(a + b if found[2] == "+" else a - b)
            ways.add("sum")
        elif found := re.search(r"word number (\d)", one.phrase):
            assert plain[0][0].split()[int(found[1]) - 1] == text
            ways.add("word")
        elif re.search("signs above|letters of the page", one.phrase):
            assert text == "".join(plain[0])
            ways.add("pieces")
        elif re.match("copy (?!word number)|carry|bring", one.phrase):
            facts = dict(line if len(line) == 2 else line[0].split(": ", 1) for line in plain)
            assert [key for key, value in facts.items() if key in one.phrase and value == text]
            ways.add("fact")
        elif found := re.search("capitals|big letters|small letters|little letters", one.phrase):
            assert text == (text.upper() if found[0] in ("capitals", "big letters") else text.lower())
            assert text.lower() in one.phrase.lower()
            ways.add("case")
        elif "word above" not in one.phrase:
            assert text in one.phrase
            ways.add("given")
    assert ways == {"sum", "word", "fact", "case", "pieces", "given"}


def test_the_place_of_a_field_is_counted_from_the_first():
    places = ("first|1st", "second|2nd", "third|3rd", "fourth|4th", "fifth|5th")
    for one in drawn(fields_in_a_row):
        place = next(i for i, e in enumerate(one.elements) if e is one.moves[0][1])
        assert re.search(rf"the ({places[place]}) ", one.phrase)


def test_marked_are_the_boxes_that_are_named_and_not_yet_on():
    for one in drawn(boxes):
        pressed = [element.name for _, element, _ in one.moves]
        on = [e.name for e in one.elements if e.state == "on"]
        assert not set(pressed) & set(on) and all(name in one.phrase for name in pressed)
        if re.search("no box|none of them|not a single one", one.phrase):
            assert pressed == []


@pytest.mark.parametrize(("names", "expected"), [(["A"], {"A"}), (["A", "B", "C"], {"A, B and C", "A and B and C"})])
def test_names_are_joined_as_people_do(names, expected):
    assert {joined(Draw(random.Random(seed)), names) for seed in range(20)} == expected


@pytest.mark.parametrize("make", [tabs, cards])
def test_what_is_folded_away_can_be_seen_when_its_turn_comes(make):
    for one in drawn(make):
        for move in one.moves:
            assert any(move[1] is e for e in one.elements), one.phrase
            _carry_out(one, move)


# Nothing of MiniWoB++ -------------------------------------------------------------------------------------------------


def test_no_wording_of_miniwob_occurs():
    """Four words in a row of its pages' source, where its instructions stand."""
    sources = (page.read_text(encoding="utf-8") for page in (pages() / "miniwob").glob("*.html"))
    theirs = set().union(*map(grams, sources))
    assert ("text", "field", "and", "press") in theirs
    assert not theirs & set().union(*(grams(one.task) for one in GOALS))


def grams(text: str) -> set[tuple[str, ...]]:
    found = re.findall(r"[a-z]+", re.sub("<[^>]*>", " 0 ", text.lower()))
    return {tuple(found[i : i + 4]) for i in range(len(found) - 3)}
