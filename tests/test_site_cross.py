"""The tasks across two sites: their instances, and what their graders expect."""

import re
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.cross.tasks import FAMILIES
from webrl_lite.envs.embedded.families import entity_split


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory):
    path: Path = tmp_path_factory.mktemp("worlds") / world.PRISTINE
    world.build(path)
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


def family(name: str):
    return next(family for family in FAMILIES if family.name == f"cross.{name}")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_fills_its_splits(family, db):
    pools = Counter()
    for instance in family.instances(db):
        splits = {entity_split(entity) for entity in instance.entities}
        pools[splits.pop() if len(splits) == 1 else "between"] += 1
    if family.held_out:
        assert pools.total() >= 7
    else:
        assert pools["train"] >= 12 and pools["test"] >= 5


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_an_episode_starts_with_a_tab_on_each_of_two_sites(family, db):
    assert len(set(family.sites)) == 2
    for instance in family.instances(db):
        assert len(instance.start) == 2
        assert all("{" not in wording.format(**instance.values) for wording in family.wordings)


def test_no_instruction_gives_its_answer_away(db):
    for family in FAMILIES:
        for instance in family.instances(db):
            words = " ".join(wording.format(**instance.values) for wording in family.wordings)
            for change in instance.eval.get("database", {}).get("changes", ()):
                body = change["values"]["body"]
                assert ("body" in instance.values) == (body in words)
            if instance.eval["reference_answers"]:
                assert not any(f" {text} " in words for text in instance.eval["reference_answers"]["must_include"])


def test_the_price_to_post_is_the_one_that_the_shop_shows(db):
    instance = next(iter(family("price_post").instances(db)))
    cents = db.execute("SELECT price FROM shop_product WHERE name = ?", (instance.values["product"],)).fetchone()[0]
    (change,) = instance.eval["database"]["changes"]
    assert change["values"]["body"].replace("$", "").replace(",", "") == f"{cents // 100}.{cents % 100:02}"


def test_the_station_to_note_lies_in_the_town_of_the_biography(db):
    for instance in family("user_note").instances(db):
        user = (instance.values["user"],)
        bio = db.execute("SELECT bio FROM reddit_user WHERE username = ?", user).fetchone()[0]
        (change,) = instance.eval["database"]["changes"]
        key = (change["values"]["place_id"],)
        station = db.execute("SELECT name FROM map_place WHERE id = ?", key).fetchone()[0]
        assert station == re.search(r"from (.+)\. Likes", bio)[1] + " Station"


def test_an_order_is_never_asked_about_from_its_own_town(db):
    for instance in family("order_distance").instances(db):
        number = (instance.values["order"],)
        town = db.execute("SELECT ship_town FROM shop_order WHERE number = ?", number).fetchone()[0]
        assert town != instance.values["start"]
