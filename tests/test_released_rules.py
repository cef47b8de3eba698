"""Tests of the released evaluators' rules against verdicts that the originals give."""

from decimal import Decimal

import pytest

from webrl_lite.released_rules import (
    exact_vab,
    exact_webarena,
    excludes_vab,
    includes_vab,
    includes_webarena,
    url_vab,
    url_webarena,
    within_vab,
    words,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [  # each checked against nltk 3.9's word_tokenize
        ("order 170.", ["order", "170", "."]),
        ("the order is 170. it ships.", ["the", "order", "is", "170.", "it", "ships", "."]),
        ("buy the kettle. it is blue", ["buy", "the", "kettle", ".", "it", "is", "blue"]),
        ("mr. smith. he", ["mr.", "smith", ".", "he"]),
        ("$0.00", ["$", "0.00"]),
        ("#170", ["#", "170"]),
        ("000000170", ["000000170"]),
        ("170/189", ["170/189"]),
        ("a, b: c;d", ["a", ",", "b", ":", "c", ";", "d"]),
        ("3,36 euros 1:45", ["3,36", "euros", "1:45"]),
        ("can't cannot it's ann's", ["ca", "n't", "can", "not", "it", "'s", "ann", "'s"]),
        ("(a) [b] <c>", ["(", "a", ")", "[", "b", "]", "<", "c", ">"]),
        ("wait... what?! 5--6", ["wait", "...", "what", "?", "!", "5", "--", "6"]),
        ("n/a.", ["n/a", "."]),
        ("sean@x.org", ["sean", "@", "x.org"]),
        ("", []),
    ],
)
def test_words_are_nltks(text, tokens):
    assert words(text) == tokens


@pytest.mark.parametrize(
    ("phrase", "text", "passes"),
    [
        ("170", "000000170", False),
        ("170", "1700", False),
        ("170", "order 170.", True),
        ("170", "#170", True),
        ("170", "170/189", True),
        ("0", "$0.00", False),
        ("0", "it is 0. there are none", False),
        ("65", "13 items", False),
        ("one stop", "at One Stop Market", True),
        ("one stop", "bone stopper", True),
    ],
)
def test_vab_looks_up_one_token_among_the_tokens(phrase, text, passes):
    assert includes_vab(phrase, text) is passes


def test_vab_excludes_without_the_parts_at_slashes():
    assert excludes_vab("170", "170/189")
    assert not excludes_vab("170", "see 170")
    assert not excludes_vab("a b", "a b c")


@pytest.mark.parametrize(
    ("phrase", "text", "alone", "passes"),
    [
        ("0", "10", True, False),
        ("0", "10", False, True),
        ("0", "it is 0", True, True),
        ("170", "1700", True, True),
        ("170", "000000170", True, True),
    ],
)
def test_webarena_looks_up_a_lone_letter_only(phrase, text, alone, passes):
    assert includes_webarena(phrase, text, alone) is passes


def test_only_webarena_strips_white_space():
    assert exact_webarena("Yes", ' "YES" ')
    assert exact_vab("Yes", '"YES"')
    assert not exact_vab("Yes", " YES ")


@pytest.mark.parametrize(
    ("sign", "text", "passes"),
    [("<", "700", True), ("<", "701", False), (">=", "1,700", True), ("==", "700", True), (">", "7.5", False)],
)
def test_vab_reads_whole_numbers_and_lets_a_strict_bound_be_met(sign, text, passes):
    assert within_vab(sign, Decimal(700), text) is passes


@pytest.mark.parametrize(
    ("reference", "url", "vab_exact", "vab_contained", "webarena"),
    [
        ("http://s.x/viewed", "http://s.x/viewed", True, True, True),
        ("http://s.x/viewed", "http://s.x/viewed/", True, True, True),
        ("http://s.x/viewed", "http://s.x/viewedasdf", False, True, True),
        ("http://s.x/viewed", "http://s.x/viewed?p=1", False, True, True),
        ("http://s.x/s?a=1&b=2", "http://s.x/s?b=2&a=1", False, False, True),
        ("http://s.x/s?q=a%20b", "http://s.x/s?q=a+b", False, False, True),
        ("http://s.x/s?q=a", "http://s.x/s?q=ab", False, True, False),
        ("http://localhost:7/a", "http://127.0.0.1:7/a", True, True, False),
        ("http://s.x/a", "https://s.x/a", False, False, True),
        ("http://s.x/a", "http://e.x/http://s.x/a", False, True, True),
        ("http://s.x/a", "http://[broken", False, False, False),
    ],
)
def test_released_address_rules_compare_text(reference, url, vab_exact, vab_contained, webarena):
    assert url_vab([reference], url, False) is vab_exact
    assert url_vab([reference], url, True) is vab_contained
    assert url_webarena([reference], url) is webarena
