"""Grounding: the right reply is right, the pages read like real ones, and nothing of the embedded tasks is in them."""

import random
import re
from collections import Counter

import pytest

from webrl_lite.actions import parse
from webrl_lite.envs.embedded.families import all_families
from webrl_lite.grounding import MAKERS, Document, judgement, page_document, queries, walk, walk_documents
from webrl_lite.grounding_pages import Element, Row, Section, Site, View, words

DOCUMENTS = [page_document(random.Random(seed)) for seed in range(300)]
WALKS = [walk_documents(random.Random(seed)) for seed in range(150)]


def all_documents() -> list[Document]:
    return DOCUMENTS + [document for found in WALKS for document in found]


def element_line(page: str, element_id: str) -> str:
    lines = [line for line in page.split("\n") if f"[{element_id}]" in line]
    assert len(lines) == 1
    return lines[0]


def name_of(page: str, element_id: str) -> str:
    """The name of an element by observation.py's rule: what stands between the last separator and the id."""
    return element_line(page, element_id).split(f"[{element_id}]")[0].split(" | ")[-1].removeprefix("= ").rstrip(" ")


def test_every_reply_is_understood_and_names_an_element_that_stands_on_the_page_with_that_id():
    for document in all_documents():
        for query in document.queries:
            said = parse(query.reply)
            if said.action.element is not None:
                name = name_of(document.page, said.action.element)
                named = f"{name} [{said.action.element}] ".lstrip()
                assert said.element_note.startswith(named), (query, document.page)


def test_ids_count_from_1_in_reading_order():
    for document in all_documents():
        ids = re.findall(r"\[(\d+)\]", document.page)
        assert ids == [str(n) for n in range(1, len(ids) + 1)]


def test_an_answer_stands_on_the_page_or_is_a_count_done_or_not_available():
    for document in all_documents():
        for query in document.queries:
            said = parse(query.reply)
            if said.action.name == "Exit" and said.action.argument not in ("N/A", "done"):
                for part in [said.action.argument] if query.kind != "list" else said.action.argument.split(", "):
                    assert part in document.page or query.kind == "count"


def test_what_is_typed_or_chosen_stands_in_the_instruction_on_small_pages_also_on_the_page_or_is_a_sum():
    for document in all_documents():
        for query in document.queries:
            action = parse(query.reply).action
            if action.name in ("Type", "Search", "Select Dropdown Option"):
                told = f"{query.task}\n{document.page}".casefold()
                small = ".html" in document.page.split("\n")[0]
                assert action.argument in query.task or (
                    small and (action.argument.casefold() in told or re.search(r"\d+ [+-] \d+ =", document.page))
                ), (query, document.page)


def test_what_is_missing_is_nowhere_on_the_page():
    asked = [(d.page, q) for d in DOCUMENTS for q in d.queries if q.kind == "missing"]
    assert len(asked) > 50
    wordings = r"(?:Read the line of|Report what|Copy|Enter the entry|Press|See more of) "
    for page, query in asked:
        name = re.sub(r"(?: has| from here| down there)?[.?]$", "", re.sub(f"^{wordings}", "", query.task))
        assert name and name not in page
        more = re.match(r"@ \S+ \| tab \d/\d \| \d+-(\d+) of (\d+)", page)
        goes_on = int(more[1]) < int(more[2])
        assert (parse(query.reply).action.name == "Scroll Down") == goes_on


def test_all_kinds_of_instructions_occur_and_none_is_most_of_them():
    kinds = Counter(query.kind for document in DOCUMENTS for query in document.queries)
    assert set(kinds) == {"press", "point", "type", "search", "pick", "in row", "open row", "cell", "row name", "count",
                          "list", "nth", "fact", "missing", "field", "scroll"}  # fmt: skip
    assert max(kinds.values()) < 0.3 * kinds.total()


def test_the_same_seed_draws_the_same():
    assert page_document(random.Random(7)) == page_document(random.Random(7)) != page_document(random.Random(8))
    assert walk_documents(random.Random(7)) == walk_documents(random.Random(7))
    assert judgement(random.Random(7)) == judgement(random.Random(7))


def test_a_walk_tells_what_was_done_before():
    for found in WALKS:
        first = found[0].queries[0]
        assert first.replies == ()
        for before, after in zip(found, found[1:], strict=False):
            assert after.queries[0].replies == (*before.queries[0].replies, before.queries[0].reply)
        if ".html" not in found[0].page.split("\n")[0]:  # goals on one page may end with what they ask for
            assert parse(found[-1].queries[0].reply).action.name == "Exit"


def test_about_half_of_the_judged_goals_were_done_right():
    cases = [judgement(random.Random(seed)) for seed in range(300)]
    assert 110 < sum(case.right for case in cases) < 190


def test_a_wrong_one_is_told_by_what_was_done_or_asked():
    """A judge can know: a wrong case differs from the right one in the goal, the answer or the steps."""
    for seed in range(200):
        case = judgement(random.Random(seed))
        task, steps, _ = walk(random.Random(seed))
        same = (case.task, case.replies) == (task, tuple(reply for _, reply in steps))
        assert case.right == same


# A page that a person can check -------------------------------------------------------------------------------------


@pytest.fixture
def site() -> Site:
    made = Site(random.Random(0))
    section = Section(
        label="Boats",
        menu="",
        columns=["Boat", "Harbour", "Length"],
        kinds=["title", "town", "number"],
        rows=[
            Row(["Blue Hen", "Maro", "12"], {"Owner": "Ana Ro"}, ("Sell",)),
            Row(["Old Pearl", "Tiva", "30"], {"Owner": "Ben Su"}, ("Sell",)),
        ],
        fields=[Element("Length", "input")],
        save="Save",
        row_action="Book",
        status=-1,
    )
    made.sections, made.order, made.menus, made.footer = [section], [section], [], []
    made.brand, made.search, made.key = False, "", "sea"
    return made


def ask(site: Site, kind: str, view: View) -> str:
    """Instructions of a kind with their replies, notes left out, over many draws."""
    found = {
        (q.task, re.sub(r"# Note: .*\n", "", q.reply))
        for _ in range(300)
        if (q := MAKERS[kind][0](site.d, view)) is not None
    }
    return "\n".join(sorted(f"{task} => {reply}" for task, reply in found)).replace("\ndo(", " / do(")


def test_a_cell_is_read_in_its_row_and_column(site: Site):
    said = ask(site, "cell", site.listing(site.sections[0]))
    assert 'Read Harbour of Old Pearl. => exit(message="Tiva")' in said
    assert 'Length for Blue Hen? => exit(message="12")' in said


def test_an_answer_repeats_the_line_it_is_read_from(site: Site):
    view = site.listing(site.sections[0])
    (number,) = [e.id for e in view.elements if e.name == "Old Pearl"]
    for query in (MAKERS["cell"][0](site.d, view) for _ in range(50)):
        if "Old Pearl" in query.task:
            line = f"Old Pearl [{number}] | Tiva | 30 | Book [{int(number) + 1}]"
            assert query.reply.split("\n")[0] == f"# Note: {line}"


def test_a_row_is_named_by_a_value(site: Site):
    assert 'Whose Length is 30? => exit(message="Old Pearl")' in ask(site, "row_name", site.listing(site.sections[0]))


def test_the_action_of_a_row_is_the_one_on_its_line(site: Site):
    view = site.listing(site.sections[0])
    books = [e.id for e in view.elements if e.name == "Book"]
    said = ask(site, "in_row", view)
    assert (
        f'For Maro, use Book. => # Element: Book [{books[0]}] link / do(action="Click", element="{books[0]}")' in said
    )
    assert (
        f'For Old Pearl, use Book. => # Element: Book [{books[1]}] link / do(action="Click", element="{books[1]}")'
        in said
    )


def test_a_fact_is_the_value_beside_its_key(site: Site):
    section = site.sections[0]
    assert 'Owner? => exit(message="Ben Su")' in ask(site, "fact", site.detail(section, section.rows[1]))


def test_a_name_that_occurs_twice_is_never_pressed_by_name_alone(site: Site):
    said = ask(site, "press", site.listing(site.sections[0]))
    assert "Blue Hen" in said and "Book" not in said.replace("Book ", "")


def test_an_unfolded_menu_shows_its_sections(site: Site):
    site.menus, site.sections[0].menu, site.order = ["Fleet"], "Fleet", ["Fleet"]
    assert site.home().find("Boats") is None
    assert site.home(opened="Fleet").find("Boats") is not None


# Nothing of the embedded tasks --------------------------------------------------------------------------------------


def test_no_wording_of_an_embedded_task_occurs():
    def grams(text: str) -> set[tuple[str, ...]]:
        found = re.findall(r"[a-z]+", re.sub(r"\{[^}]*\}", " 0 ", text.lower()))
        return {tuple(found[i : i + 4]) for i in range(len(found) - 3)}

    theirs = set().union(*(grams(wording) for family in all_families() for wording in family.wordings))
    ours = set().union(*(grams(query.task) for document in all_documents() for query in document.queries))
    assert not theirs & ours


def test_no_entity_of_an_embedded_task_can_be_drawn():
    """Names there have a capital and mean one thing; no label here is made of their words."""
    names = "kestrel lindqvist kettleby larkhaven meadow teapot stonemill oakline saltby copperlea heron badger".split()
    assert not set(names) & set(words())


def test_queries_about_one_page_differ():
    site = Site(random.Random(3))
    found = queries(site.d, site.listing(site.sections[0]), 6)
    assert len({q.task for q in found}) == len(found) > 1
