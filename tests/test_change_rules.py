"""Tests of grading by database changes."""

import pytest

from webrl_lite.change_rules import misfits


def insert(table="wishlist", **after):
    return {"table": table, "op": "insert", "key": {"id": after.get("id", 1)}, "before": None, "after": after}


def update(before, after, table="orders", key=None):
    return {"table": table, "op": "update", "key": key or {"id": 7}, "before": before, "after": after}


def delete(table="wishlist", **before):
    return {"table": table, "op": "delete", "key": {"id": before.get("id", 1)}, "before": before, "after": None}


def solved(expected, changes, allowed=()):
    return misfits(expected, allowed, changes, lambda phrase, text: phrase in text) == []


WISH = {"table": "wishlist", "op": "insert", "values": {"sku": "K-12", "qty": 2}}
CANCEL = {"table": "orders", "op": "update", "key": {"id": 7}, "values": {"status": "canceled"}}


def test_an_insert_needs_its_values_and_leaves_other_columns_free():
    assert solved([WISH], [insert(id=9, sku="K-12", qty=2, created_at="now")])


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [insert(id=9, sku="K-13", qty=2)],
        [insert(id=9, sku="K-12")],
        [insert("cart", sku="K-12", qty=2)],
        [delete(sku="K-12", qty=2)],
        [insert(id=8, sku="K-12", qty=2), insert(id=9, sku="K-12", qty=2)],
        [insert(id=8, sku="K-12", qty=2), insert(id=9, sku="K-99", qty=1)],
        [insert(id=8, sku="K-12", qty=2), insert("votes", user=3)],
    ],
    ids=[
        "nothing",
        "wrong value",
        "value missing",
        "other table",
        "other op",
        "twice",
        "one more",
        "collateral",
    ],
)
def test_a_missing_wrong_or_further_change_fails(changes):
    assert not solved([WISH], changes)


@pytest.mark.parametrize(
    ("wanted", "got", "passes"),
    [
        (3, "3", True),
        ("3", 3, True),
        (3, 3.0, True),
        (3, "3.00", True),
        (3, " 3 ", True),
        (3, "three", False),
        (3, 4, False),
        ("02139", "2139", False),
        (True, 1, True),
        (False, 1, False),
        ("a  b\n", "a b", True),
        ("A", "a", False),
        ("", "", True),
        (None, None, True),
        (None, "", False),
        (0, None, False),
        (1, "nan", False),
        ({"one_of": ["a", 3]}, "3", True),
        ({"one_of": ["a", 3]}, "b", False),
        ({"must_include": ["big", "lies"]}, "big little lies", True),
        ({"must_include": ["big", "truth"]}, "big little lies", False),
        ({"must_include": ["big"]}, None, False),
    ],
)
def test_values_are_compared_by_type(wanted, got, passes):
    assert solved([{"table": "t", "op": "insert", "values": {"x": wanted}}], [insert("t", x=got)]) is passes


def test_an_update_finds_its_row_by_key_or_by_columns_before():
    change = update({"number": "000170", "status": "pending"}, {"number": "000170", "status": "canceled"})
    by_column = {**CANCEL, "key": {"number": "000170"}}
    assert solved([CANCEL], [change])
    assert solved([by_column], [change])
    assert not solved([{**CANCEL, "key": {"id": 8}}], [change])
    assert not solved([{**CANCEL, "key": {"number": "000171"}}], [change])


def test_an_update_may_change_named_and_free_columns_only():
    change = update(
        {"status": "pending", "total": 5, "updated_at": 1}, {"status": "canceled", "total": 6, "updated_at": 2}
    )
    assert not solved([CANCEL], [change])
    assert not solved([{**CANCEL, "free": ["updated_at"]}], [change])
    assert solved([{**CANCEL, "free": ["updated_at", "total"]}], [change])


def test_an_update_that_changes_nothing_is_no_change():
    same = update({"status": "canceled"}, {"status": "canceled"})
    assert not solved([CANCEL], [same])
    assert solved([WISH], [insert(sku="K-12", qty=2), same])


def test_a_delete_is_matched_by_the_row_as_it_was():
    gone = delete(id=4, sku="K-12")
    assert solved([{"table": "wishlist", "op": "delete", "values": {"sku": "K-12"}}], [gone])
    assert solved([{"table": "wishlist", "op": "delete", "key": {"id": 4}}], [gone])
    assert not solved([{"table": "wishlist", "op": "delete", "values": {"sku": "K-13"}}], [gone])


def test_a_count_asks_for_exactly_so_many_changes():
    three = {**WISH, "count": 3}
    rows = [insert(id=n, sku="K-12", qty=2) for n in range(4)]
    assert [solved([three], rows[:n]) for n in range(5)] == [False, False, False, True, False]


def test_allowed_changes_are_neither_required_nor_forbidden():
    allowed = [{"table": "log", "op": "insert"}]
    wish = insert(sku="K-12", qty=2)
    assert solved([WISH], [wish], allowed)
    assert solved([WISH], [wish, insert("log", text="x"), insert("log", text="y")], allowed)
    assert not solved([WISH], [wish, delete("log", text="x")], allowed)


def test_allowing_a_kind_does_not_excuse_one_expected_change_too_many():
    allowed = [{"table": "wishlist", "op": "insert"}]
    wish = insert(sku="K-12", qty=2)
    assert solved([WISH], [wish, insert(sku="K-99", qty=1)], allowed)
    assert not solved([WISH], [wish, wish], allowed)


def test_a_change_that_fits_two_expectations_is_given_to_the_one_that_needs_it():
    any_row = {"table": "t", "op": "insert", "values": {"kind": "a"}}
    one_row = {"table": "t", "op": "insert", "values": {"kind": "a", "name": "x"}}
    assert solved([any_row, one_row], [insert("t", kind="a", name="x"), insert("t", kind="a", name="y")])
    assert not solved([any_row, one_row], [insert("t", kind="a", name="y"), insert("t", kind="a", name="z")])


def test_no_expected_change_means_that_nothing_may_change():
    assert solved([], [])
    assert not solved([], [insert(sku="K-12")])


def test_the_lines_name_what_is_missing_and_what_is_too_many():
    lines = misfits([WISH], (), [insert("votes", id=3)], lambda phrase, text: False)
    assert lines == [
        "missing: insert in wishlist with {'sku': 'K-12', 'qty': 2}",
        "too many: insert in votes, key {'id': 3}",
    ]
