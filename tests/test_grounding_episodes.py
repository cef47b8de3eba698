"""Recorded episodes as grounding: names drawn anew, pages read back, judgements made wrong."""

import random
import re

import pytest

from webrl_lite.actions import parse
from webrl_lite.envs.embedded.demonstrations import demonstrations
from webrl_lite.envs.embedded.families import PRETRAINING, all_families
from webrl_lite.envs.embedded.other_worlds import data_words, site_words
from webrl_lite.envs.embedded.world import SEED
from webrl_lite.grounding_episodes import Episodes, episode_documents, episode_judgement, page_view, renaming
from webrl_lite.grounding_pages import Draw

PAGE = """@ shop/orders?q=tea | tab 0/1 | 0-720 of 900
! No element has the id 40.
My Shop [1] | Search [2] input "tea" required | Go [3] button
Sort by [4] select "Name" of Name | Price | Date
= Orders
Number | Customer | Total
000000142 [5] | Ada Lovell | $5.00
000000143 [6] | Ada Morse | $6.50
000000150 [9] | Bo Morse | $5.00
Carrier | Swift Post
Shipped | June 3"""


@pytest.fixture(scope="module")
def episodes() -> Episodes:
    return Episodes(demonstrations(), data_words(SEED))


# Names --------------------------------------------------------------------------------------------------------------


def test_a_word_becomes_the_same_other_word_everywhere_and_no_two_become_one():
    rename = renaming(Draw(random.Random(1)), {"kestrel", "mug", "rug"})
    new = rename("Kestrel Mug costs 3; kestrel-mug, KESTREL_2 rug")
    first, second, *_ = re.findall(r"[A-Za-z]+", new)
    third = new.split()[-1]
    assert new == (f"{first} {second} costs 3; {first.lower()}-{second.lower()}, {first.upper()}_2 {third}")
    assert len({first.lower(), second.lower(), third, "kestrel", "mug", "rug"}) == 6
    assert rename("mug") == second.lower()


def test_what_is_no_data_stays():
    rename = renaming(Draw(random.Random(1)), {"kestrel"})
    assert rename('# Element: Search [2] input\ndo(action="Click", element="2")') == (
        '# Element: Search [2] input\ndo(action="Click", element="2")'
    )


def test_the_sites_own_words_are_no_data():
    """Labels in templates and code, roles, months and actions keep their meaning; names of things do not."""
    data = data_words(SEED)
    assert not data & {"button", "search", "shopping", "click", "june", "orders", "wish", "merge", "directions"}
    assert {"kestrel", "lindqvist", "larkhaven"} <= data
    assert not data & site_words()


# Pages --------------------------------------------------------------------------------------------------------------


def test_a_page_is_read_back():
    view = page_view(PAGE)
    assert view.text() == PAGE
    assert [e.id for e in view.elements] == ["1", "2", "3", "4", "5", "6", "9"]
    assert view.find("Search").value == "tea" and view.find("Sort by").options == ("Name", "Price", "Date")
    assert view.more and view.error == "No element has the id 40."


def test_a_page_has_its_facts_and_its_table():
    view = page_view(PAGE)
    assert view.facts == {"Carrier": "Swift Post", "Shipped": "June 3"}
    assert view.section.columns == ["Number", "Customer", "Total"]
    assert [row.cells for row in view.rows] == [
        ["000000142", "Ada Lovell", "$5.00"], ["000000143", "Ada Morse", "$6.50"], ["000000150", "Bo Morse", "$5.00"],
    ]  # fmt: skip


def test_every_page_of_the_demonstrations_is_read_back(episodes):
    for trajectory in episodes.solved[::5]:
        for step in trajectory.steps:
            assert page_view(step.observation).text() == step.observation


# Documents ----------------------------------------------------------------------------------------------------------


def test_a_reply_still_names_an_element_of_its_page(episodes):
    seen = 0
    for seed in range(60):
        for document in episode_documents(random.Random(seed), episodes):
            for query in document.queries:
                action = parse(query.reply).action
                if action.element is not None:
                    note = query.reply.split("\n")[0].removeprefix("# Element: ")
                    assert note.removesuffix(" link") in document.page, (note, document.page)
                    assert f"[{action.element}]" in note
                    seen += 1
    assert seen > 200


def test_the_same_seed_gives_the_same_document(episodes):
    assert episode_documents(random.Random(5), episodes) == episode_documents(random.Random(5), episodes)
    assert episode_documents(random.Random(5), episodes) != episode_documents(random.Random(6), episodes)


def test_names_of_the_kits_tasks_are_not_read(episodes):
    """An entity of two words or more is never on a page as it was."""
    for seed in range(40):
        rng = random.Random(seed)
        chosen = random.Random(seed).choice(episodes.solved)
        names = [e.partition(":")[2] for e in chosen.task.entities]
        for document in episode_documents(rng, episodes):
            for name in names:
                words = re.findall(r"[A-Za-z]{3,}", name)
                if len(words) > 1 and {w.lower() for w in words} <= set(episodes.words):
                    assert name not in document.page and name not in document.queries[0].task


def test_half_of_the_judgements_are_right_and_wrong_ones_differ(episodes):
    cases = [episode_judgement(random.Random(seed), episodes) for seed in range(200)]
    assert 70 <= sum(case.right for case in cases) <= 130
    right = {(case.task, case.replies, case.page) for case in cases if case.right}
    assert not right & {(case.task, case.replies, case.page) for case in cases if not case.right}


# What is kept apart -------------------------------------------------------------------------------------------------


def test_no_task_is_of_a_pre_training_family_and_no_wording_is_shared(sites):
    assert not {task.family for task in sites.tasks} & PRETRAINING
    assert PRETRAINING < {family.name for family in all_families()}
    theirs = {wording for family in all_families() if family.pretraining for wording in family.wordings}
    ours = {wording for family in all_families() if not family.pretraining for wording in family.wordings}
    assert not theirs & ours


def test_other_worlds_hold_other_data(tmp_path):
    import sqlite3

    from webrl_lite.envs.embedded import world

    found = []
    for seed in (SEED, 1):
        world.build(tmp_path / f"{seed}.db", seed)
        with sqlite3.connect(tmp_path / f"{seed}.db") as db:
            found.append({row[0] for row in db.execute("SELECT name || price FROM shop_product")})
    assert not found[0] & found[1]
