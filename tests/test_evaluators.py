"""Tests of grading: verdicts by mode, what is read, what stays ungraded, and the rate."""

import dataclasses
import json

import pytest

from webrl_lite import evaluators
from webrl_lite.evaluators import (
    MODES,
    Call,
    OfflineJudge,
    TaskError,
    Ungradable,
    check,
    grade,
    reads,
    repaired,
    satisfied,
    success_rate,
)
from webrl_lite.trajectory import StopReason, Task, Trajectory, Verdict

SHOP = "http://shop.w0.localhost:1234"
FORUM = "http://reddit.w0.localhost:1234"
ADDRESSES = {"__SHOPPING__": SHOP, "__REDDIT__": FORUM}


def task(eval_=None, **fields):
    record = {"task_id": "t1", "sites": ["shopping"], "intent": "What is it?", "start_url": "__SHOPPING__"}
    return Task.from_json({**record, "eval": eval_, **fields})


def ask(**answers):
    return task({"eval_types": ["string_match"], "reference_answers": answers})


def visit(reference, **more):
    return task({"eval_types": ["url_match"], "reference_url": reference, **more})


def page(contents, url="last", locator="", **fields):
    item = {"url": url, "locator": locator, "required_contents": contents}
    return task({"eval_types": ["program_html"], "program_html": [item]}, **fields)


def score(a_task, answer="done", url="http://elsewhere.localhost/", texts=None, mode="strict", **more):
    evidence = {"reads": texts or {}, **more.pop("evidence", {})}
    return grade(
        a_task, answer=answer, final_url=url, evidence=evidence, mode=mode, **{"addresses": ADDRESSES, **more}
    ).score


def page_score(contents, text, mode="strict"):
    return score(page(contents), texts={"program_html.0": text}, mode=mode)


class Yes:
    """A judge that agrees and remembers what it was asked."""

    name = "yes"

    def __init__(self):
        self.asked = []

    def fuzzy_match(self, intent, reference, answer):
        self.asked.append((intent, reference, answer))
        return True

    same_reason = fuzzy_match


class Down:
    """A judge that cannot be reached."""

    name = "down"

    def fuzzy_match(self, intent, reference, answer):
        raise Ungradable("the judge timed out")

    same_reason = fuzzy_match


# --- answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "passes"), [("3", 1.0), ("65", 1.0), ("4", 0.0), ("13 items", 0.0)])
def test_alternatives_count_in_all_three_evaluators(answer, passes):
    """EVA-01."""
    url = visit("__SHOPPING__/r/65 |OR| __SHOPPING__/r/3")
    assert score(ask(must_include=["65 |OR| 3"]), answer) == passes
    assert score(ask(exact_match="65 |OR| 3"), answer) == passes
    assert score(url, url=f"{SHOP}/r/{answer}") == passes
    assert page_score({"must_include": ["65 |OR| 3"]}, answer) == passes
    assert page_score({"exact_match": "65 |OR| 3"}, answer) == passes


@pytest.mark.parametrize(
    ("row", "answers", "answer", "webarena", "vab", "strict"),
    [
        ("2", {"must_include": ["65 |OR| 3"]}, "65", 0.0, 1.0, 1.0),
        ("3", {"exact_match": "October 21st"}, "Oct 21, 2023", 0.0, 0.0, 1.0),
        ("3", {"must_include": ["October 21st"]}, "It is on Oct 21.", 0.0, 0.0, 1.0),
        ("4", {"must_include": ["0"]}, "$0.00", 0.0, 0.0, 1.0),
        ("4", {"exact_match": "0"}, "$0.00", 0.0, 0.0, 1.0),
        ("16", {"must_include": ["170"]}, "000000170", 1.0, 0.0, 1.0),
        ("16", {"must_include": ["170"]}, "1700", 1.0, 0.0, 0.0),
        ("17", {"must_include": ["0"]}, "It is 0. There are none", 0.0, 0.0, 1.0),
        ("18", {"exact_match": "21"}, "21 inches", 0.0, 0.0, 1.0),
        ("", {"must_include": ["142"]}, "1142", 1.0, 0.0, 0.0),
        ("", {"must_include": ["1h 45min"]}, "It takes 1 hour 45 minutes.", 0.0, 0.0, 1.0),
        ("", {"must_include": ["two"]}, "2 of them", 0.0, 0.0, 1.0),
        ("", {"must_include": ["5"]}, "May 5, 2023", 1.0, 1.0, 0.0),
        ("", {"must_include": ["5"]}, "15", 0.0, 0.0, 0.0),
        ("", {"must_include": ["5", "1"]}, "15", 1.0, 0.0, 0.0),
        ("", {"exact_match": "Yes"}, " yes ", 1.0, 0.0, 1.0),
        ("", {"must_exclude": ["red"]}, "a bored cat", None, 1.0, 1.0),
        ("", {"must_exclude": ["red"]}, "a red cat", None, 0.0, 0.0),
        ("", {"required_values": ["< 700"]}, "700", None, 1.0, 0.0),
        ("", {"required_values": [">= 3 |OR| == 1"]}, "1", None, 1.0, 1.0),
        ("", {"required_values": ["> 3"]}, "about four", None, 0.0, 0.0),
    ],
)
def test_known_flaws_of_answer_rules_by_mode(row, answers, answer, webarena, vab, strict):
    """The number is the row in the public list of flaws: reproduced by the released modes, repaired in strict."""
    assert [score(ask(**answers), answer, mode=mode) for mode in ("webarena", "vab", "strict")] == [
        webarena,
        vab,
        strict,
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answer", ["", " ", "'", '"', "''", "\n\t", "“”"])
@pytest.mark.parametrize(
    "answers",
    [{"exact_match": "A"}, {"must_include": ["A"]}, {"must_exclude": ["A"]}, {"fuzzy_match": ["A"]}]
    + [{"fuzzy_match": "N/A"}, {"exact_match": "N/A"}],
    ids=str,
)
def test_an_empty_answer_never_passes(mode, answer, answers):
    """EVA-11, EVA-08."""
    assert score(ask(**answers), answer, mode=mode, judge=Yes()) == 0.0


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_answer_fails(mode):
    """EVA-11."""
    assert score(ask(exact_match="A"), "B", mode=mode) == 0.0
    assert score(ask(must_include=["A"]), "B", mode=mode) == 0.0


NOT_AVAILABLE = [{"exact_match": "N/A"}, {"must_include": ["N/A"]}, {"fuzzy_match": "N/A"}, {"fuzzy_match": ["N/A"]}]


@pytest.mark.parametrize("answers", NOT_AVAILABLE, ids=str)
@pytest.mark.parametrize("answer", ["N/A", "n/a.", ' "N/A" ', "N/A!", "(n/a)"])
def test_an_impossible_task_is_met_by_saying_so(answers, answer):
    """EVA-08."""
    assert score(ask(**answers), answer) == 1.0


@pytest.mark.parametrize("answers", NOT_AVAILABLE, ids=str)
@pytest.mark.parametrize("answer", ["There is no such order", "I couldn't find it", "The shop cannot show that"])
def test_an_explanation_is_judged_or_ungraded(answers, answer):
    """EVA-08."""
    evaluation = {"eval_types": ["string_match"], "reference_answers": answers, "string_note": "no order 12"}
    judge = Yes()
    assert score(task(evaluation), answer) is None
    assert score(task(evaluation), answer, judge=Down()) is None
    assert score(task(evaluation), answer, judge=judge) == 1.0
    assert judge.asked == [("What is it?", "no order 12", answer)]


def test_an_explanation_cannot_be_judged_if_the_task_gives_no_reason():
    """EVA-08."""
    judge = Yes()
    assert score(ask(fuzzy_match="N/A"), "There is none", judge=judge) is None
    assert judge.asked == []


@pytest.mark.parametrize("answers", NOT_AVAILABLE, ids=str)
@pytest.mark.parametrize("answer", ["42", "wrong answer", "The blue kettle costs $5"])
def test_a_claim_on_an_impossible_task_fails_without_a_judge(answers, answer):
    """EVA-08."""
    assert score(ask(**answers), answer) == 0.0


@pytest.mark.parametrize("answers", [{"exact_match": "5"}, {"must_include": ["N", "A"]}, {"fuzzy_match": ["5 min"]}])
def test_not_available_fails_on_a_task_that_can_be_done(answers):
    """EVA-08."""
    assert score(ask(**answers), "N/A") == 0.0


@pytest.mark.parametrize("mode", ["vab", "webarena"])
def test_released_modes_ask_the_judge_only_if_the_answer_is_not_exactly_not_available(mode):
    """EVA-08."""
    evaluation = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": "N/A"}, "string_note": "gone"}
    assert score(task(evaluation), "N/A", mode=mode) == 1.0
    assert score(task(evaluation), "There is none", mode=mode) is None
    assert score(task(evaluation), "There is none", mode=mode, judge=Yes()) == 1.0


@pytest.mark.parametrize(
    ("mode", "asked"),
    [("vab", ["a 1, b 2"]), ("strict", ["a 1, b 2"]), ("webarena", ["a 1", "b 2"])],
)
def test_several_fuzzy_references_go_to_the_judge_as_the_mode_says(mode, asked):
    """Row 5 of the flaws: one call a reference denies a right whole."""
    judge = Yes()
    assert score(ask(fuzzy_match=["a 1", "b 2"]), "both", mode=mode, judge=judge) == 1.0
    assert [reference for _, reference, _ in judge.asked] == asked


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("judge", [None, Down()])
def test_without_a_judge_a_fuzzy_task_is_ungraded_and_says_why(mode, judge):
    """EVA-10."""
    verdict = grade(ask(fuzzy_match=["5 min"]), answer="300 s", final_url="", evidence={}, mode=mode, judge=judge)
    assert verdict.score is None
    assert "judge" in verdict.reasons[0]


def test_the_rate_counts_graded_tasks_and_says_so():
    """EVA-10."""
    tasks = [ask(exact_match="a"), ask(exact_match="a"), ask(exact_match="b"), ask(fuzzy_match=["a"])]
    verdicts = [grade(one, answer="a", final_url="", evidence={}, mode="strict") for one in tasks]
    rate = success_rate(verdicts)
    assert (rate.successes, rate.graded, rate.ungraded) == (2, 3, 1)
    assert "2/3 = 66.7 %" in str(rate)
    assert "over graded episodes only; 1 ungraded" in str(rate)


@pytest.mark.parametrize(
    ("reference", "answer", "verdict"),
    [
        ("driving: 13min, walking: 1h 45min", "Walking takes 1 hour 45 minutes, driving 13 minutes", True),
        ("11 min", "It takes eleven minutes", True),
        ("11 min", "It takes 12 minutes", False),
        ("$0 total spend, 0 order", "You spent a total of $0.00, spend in 0 order", True),
        ("January 16th 2023", "on 1/16/2023", True),
        ("January 16th 2023", "in January 2023", False),
        ("170: cancelled", "Order #170 was canceled", True),
        ("1.4km", "1400 m away", True),
        ("Yes", "yes.", True),
        ("Yes", "No", False),
        ("No, it is open", "It is open: no", True),
        ("No, it is open", "Still open", None),
        ("The last order was canceled. It will never arrive.", "It was called off", None),
    ],
)
def test_the_offline_judge_decides_by_values_and_words_or_not_at_all(reference, answer, verdict):
    """EVA-10."""
    expected = None if verdict is None else float(verdict)
    assert score(ask(fuzzy_match=[reference]), answer, judge=OfflineJudge()) == expected


def test_the_offline_judge_does_not_judge_reasons():
    with pytest.raises(Ungradable):
        OfflineJudge().same_reason("Buy it", "no such shop", "there is no such shop")


# --- addresses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "reference", "note", "url", "webarena", "vab", "strict"),
    [
        ("1", "__SHOPPING__/viewed", "GOLD in PRED", "/viewedasdf", 1.0, 1.0, 0.0),
        ("1", "__SHOPPING__/viewed", "GOLD in PRED", "/viewed/7?p=1", 1.0, 1.0, 1.0),
        ("1", "__SHOPPING__/viewed", "EXACT", "/viewed/", None, 1.0, 1.0),
        ("1", "__SHOPPING__/viewed", "EXACT", "/viewed?p=1", None, 0.0, 0.0),
        ("32", "__SHOPPING__/s?q=a+b&dir=asc", "GOLD in PRED", "/s?dir=asc&q=a+b", 1.0, 0.0, 1.0),
        ("32", "__SHOPPING__/s?q=a%20b", "GOLD in PRED", "/s?q=a+b", 1.0, 0.0, 1.0),
        ("32", "__SHOPPING__/s?q=a", "GOLD in PRED", "/s?q=ab", 0.0, 1.0, 0.0),
        ("", "__SHOPPING__/viewed", None, "/viewed/7", 1.0, 0.0, 0.0),
    ],
)
def test_known_flaws_of_address_rules_by_mode(row, reference, note, url, webarena, vab, strict):
    """EVA-05; the number is the row in the public list of flaws."""
    one = visit(reference, url_note=note)
    assert [score(one, url=SHOP + url, mode=mode) for mode in ("webarena", "vab", "strict")] == [webarena, vab, strict]


@pytest.mark.parametrize("note", ["EXACT", "GOLD in PRED"])
def test_a_path_without_a_host_is_on_the_tasks_own_site(note):
    """EVA-05."""
    one = visit("/reports/viewed", url_note=note)
    assert score(one, url=f"{SHOP}/reports/viewed/") == 1.0
    assert score(one, url="http://other.localhost/reports/viewed") == 0.0
    assert score(one, url=f"{SHOP}/reports/viewedasdf") == 0.0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://shop.localhost:1234", "http://shop.localhost:1234/cart/view"),
        ("http://shop.localhost:1234/", "http://shop.localhost:1234/cart/view"),
        ("http://shop.localhost:1234///", "http://shop.localhost:1234/cart/view"),
        ("http://shop.localhost:1234/sub/", "http://shop.localhost:1234/sub/cart/view"),
        ("http://shop.localhost:1234/Sub", "http://shop.localhost:1234/Sub/cart/view"),
        ("HTTP://SHOP.localhost:1234", "http://shop.localhost:1234/cart/view"),
    ],
)
def test_the_spelling_of_a_sites_base_does_not_change_the_verdict(mode, base, url):
    """EVA-06, row 21 of the flaws."""
    addresses = {"__SHOPPING__": base, "__SHOPPING_ADMIN__": "http://admin.localhost/admin"}
    one = visit("__SHOPPING__/cart/view", url_note="GOLD in PRED")
    assert score(one, url=url, mode=mode, addresses=addresses) == 1.0
    assert score(one, url=url.replace("view", "edit"), mode=mode, addresses=addresses) == 0.0


def test_localhost_is_127_0_0_1():
    """Row 22 of the flaws."""
    one = visit("__SHOPPING__/a")
    assert score(one, url="http://127.0.0.1:7/a", addresses={"__SHOPPING__": "http://localhost:7"}) == 1.0


def test_a_site_without_an_address_is_ungraded():
    assert score(visit("__WIKIPEDIA__/a"), url="http://wiki.localhost/a") is None


# --- pages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("contents", "text", "webarena", "vab", "strict"),
    [
        ({"exact_match": "27.00"}, "27.00", 1.0, 1.0, 1.0),
        ({"exact_match": "27.00"}, "27", 0.0, 0.0, 1.0),
        ({"exact_match": "Good idea"}, " Good\n idea ", 0.0, 0.0, 1.0),
        ({"exact_match": "???"}, "???", 1.0, 1.0, 1.0),
        ({"must_include": ["Tom & Jerry"]}, "see Tom & Jerry", 1.0, 1.0, 1.0),
        ({"must_include": ["Tom & Jerry"]}, "see Tom &amp; Jerry", 1.0, 0.0, 1.0),
        ({"must_include": ["Tom & Jerry"]}, "see Tom\u00a0&\n  Jerry", 0.0, 0.0, 1.0),
        ({"must_include": ["a &amp; b"]}, "type a &amp; b", 0.0, 1.0, 1.0),
        ({"must_include": ["__REDDIT__/f/books/7"]}, f"link: {FORUM}/f/books/7", 1.0, 1.0, 1.0),
        ({"must_include": ["car"]}, "carpet", 1.0, 0.0, 0.0),
        ({"must_include": ["a", "b"]}, "a c", 0.0, 0.0, 0.0),
        ({"must_exclude": ["red"]}, "a blue cat", None, 1.0, 1.0),
        ({"must_exclude": ["a < b"]}, "so a &lt; b", None, 1.0, 0.0),
        ({"required_values": ["> 3"]}, "4", None, 1.0, 1.0),
        ({"required_values": ["> 3"]}, "4.5", None, 0.0, 1.0),
        ({"fuzzy_match": ["a refund"]}, "give me my money", None, None, None),
        ({"exact_match": "a b", "must_include": ["c"]}, "a b", 1.0, 1.0, 0.0),
        ({"must_include": ["a"]}, "", 0.0, 0.0, 0.0),
        ({"must_include": ["a"]}, None, 0.0, 0.0, 0.0),
        ({"exact_match": "true"}, True, 1.0, 1.0, 1.0),
        ({"exact_match": "2"}, 2, 1.0, 1.0, 1.0),
        ({"must_include": ["a"]}, {"error": "404 Not Found"}, 0.0, 0.0, 0.0),
        ({"must_include": ["a"]}, {"error": "timed out"}, None, None, None),
    ],
)
def test_page_rules_by_mode(contents, text, webarena, vab, strict):
    """EVA-20 (pure part): text is compared and not markup; row 37: a fault is ungraded."""
    assert [page_score(contents, text, mode) for mode in ("webarena", "vab", "strict")] == [webarena, vab, strict]


def test_a_text_that_was_not_read_is_ungraded():
    one = page({"must_include": ["a"]})
    for mode in MODES:
        assert score(one, mode=mode) is None
    assert grade(one, answer="", final_url="", evidence={}, mode="strict").score is None


BIO = page({"must_include": ["Seeking positions"]}, url="__SHOPPING__/me", locator="document.body.outerText")


@pytest.mark.parametrize(
    ("after", "before", "passes"),
    [
        ("Seeking positions", "Hello", 1.0),
        ("Seeking positions", "", 1.0),
        ("Seeking positions", {"error": "404 Not Found"}, 1.0),
        ("Seeking positions, now", "Seeking positions", 0.0),
        ("Hello", "Hello", 0.0),
        ("Hello", {"error": "timed out"}, 0.0),
        ("Seeking positions", {"error": "timed out"}, None),
        ({"error": "timed out"}, "Hello", None),
    ],
)
def test_text_that_stood_on_the_page_before_the_task_earns_nothing(after, before, passes):
    """Row 34 of the flaws."""
    texts = {"program_html.0": after, "program_html.0.before": before}
    assert score(BIO, texts=texts) == passes


def test_the_state_before_the_task_must_be_known():
    assert score(BIO, texts={"program_html.0": "Seeking positions"}) is None


@pytest.mark.parametrize("mode", ["vab", "webarena"])
def test_released_modes_credit_text_that_stood_there(mode):
    """Row 34 of the flaws."""
    assert score(BIO, texts={"program_html.0": "Seeking positions"}, mode=mode) == 1.0


def test_an_item_of_several_phrases_counts_if_it_was_not_met_as_a_whole():
    one = page({"must_include": ["456 Oak Avenue", "New York"]}, url="__SHOPPING__/orders/7")
    before = {"program_html.0.before": "1 Elm Street, New York"}
    assert score(one, texts={"program_html.0": "456 Oak Avenue, New York", **before}) == 1.0
    assert score(one, texts={"program_html.0": "1 Elm Street, New York", **before}) == 0.0


def test_an_absence_counts_only_if_it_is_new():
    one = page({"must_exclude": ["Kettle"]}, url="__SHOPPING__/wishlist")
    assert score(one, texts={"program_html.0": "Cup", "program_html.0.before": "Cup, Kettle"}) == 1.0
    assert score(one, texts={"program_html.0": "Cup", "program_html.0.before": "Cup"}) == 0.0


def test_a_fuzzy_page_rule_earns_nothing_if_the_page_did_not_change():
    one = page({"fuzzy_match": ["a refund"]}, url="__SHOPPING__/contact")
    same = {"program_html.0": "give me my  money", "program_html.0.before": "Give me my money"}
    assert score(one, texts=same, judge=Yes()) == 0.0
    assert score(one, texts={**same, "program_html.0.before": ""}, judge=Yes()) == 1.0


def test_the_last_page_is_compared_with_its_former_state_only_if_it_is_the_start_page():
    one = page({"must_include": ["Canceled"]}, start_url="__SHOPPING__/orders |AND| __SHOPPING__/cart")
    texts = {"program_html.0": "Canceled", "program_html.0.before": "Canceled orders"}
    assert score(one, url=f"{SHOP}/orders/", texts=texts) == 0.0
    assert score(one, url=f"{SHOP}/cart", texts=texts) == 0.0
    assert score(one, url=f"{SHOP}/orders?status=canceled", texts=texts) == 1.0


def test_strict_reads_explicit_pages_before_and_after():
    after, before = reads(BIO, f"{SHOP}/x", "strict", ADDRESSES)
    assert (after.key, after.url, after.locator, after.before) == (
        "program_html.0",
        f"{SHOP}/me",
        "document.body.outerText",
        False,
    )
    assert before == dataclasses.replace(after, key="program_html.0.before", before=True)
    assert reads(BIO, f"{SHOP}/x", "vab", ADDRESSES) == (after,)


def test_the_last_page_is_read_where_the_episode_ended():
    one = page({"must_include": ["a"]})
    (read,) = reads(one, f"{SHOP}/x", "strict", ADDRESSES)
    assert (read.url, read.locator) == ("last", "")
    _, before = reads(one, f"{SHOP}/", "strict", ADDRESSES)
    assert (before.url, before.before) == (SHOP, True)


def test_released_modes_compare_the_source_where_there_is_no_locator():
    (read,) = reads(page({"must_include": ["a"]}), SHOP, "vab", ADDRESSES)
    assert read.locator == "document.documentElement.outerHTML"


def test_a_function_locator_becomes_an_expression():
    (read,) = reads(page({"must_include": ["a"]}, locator="lambda:() => 1"), SHOP, "vab", ADDRESSES)
    assert read.locator == "(() => 1)()"


def test_preparations_are_passed_on():
    item = {"url": "last", "locator": "document.x", "required_contents": {"exact_match": "a"}, "prep_actions": ["f()"]}
    (read,) = reads(task({"eval_types": ["program_html"], "program_html": [item]}), SHOP, "vab")
    assert read.prep == ("f()",)


def test_tasks_without_pages_need_no_reading():
    assert reads(ask(exact_match="a"), SHOP, "strict") == ()


@pytest.mark.parametrize(
    ("url", "post"),
    [
        (f"{FORUM}/f/books/12/a-title/-/comment/9?x=1#top", f"{FORUM}/f/books/12/"),
        (f"{FORUM}/f/books/12", f"{FORUM}/f/books/12/"),
        (f"{FORUM}/f/books", f"{FORUM}/f/books"),
        (f"{FORUM}/user/a/b/c", f"{FORUM}/user/a/b/c"),
        ("http://[broken", "http://[broken"),
        ("", ""),
    ],
)
def test_the_post_of_an_address_is_found_without_a_page(url, post):
    one = page({"must_include": ["a"]}, url="func:reddit_get_post_url('__last_url__')")
    (read,) = reads(one, url, "vab")
    assert (read.url, read.url_call) == (post, None)


def test_an_address_in_a_helper_call_is_data_and_never_code(tmp_path):
    """EVA-21."""
    marker = tmp_path / "marker"
    hostile = f"http://x/f/a/b') or open({str(marker)!r}, 'w') or ('"
    one = page(
        {"must_include": ["a"]},
        url="func:reddit_get_post_url('__last_url__')",
        locator="func:get_query_text(__page__, '__last_url__')",
    )
    for mode in MODES:
        read = reads(one, hostile, mode)[0]
        assert read.locator_call is None
        assert read.locator.endswith(f"({json.dumps(hostile)})")  # one JavaScript text
        score(one, url=hostile, texts={"program_html.0": "a"}, mode=mode)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["unknown_helper", "eval", "open", "print"])
def test_an_unknown_helper_is_refused_with_the_tasks_name(name):
    """EVA-21."""
    one = page({"must_include": ["a"]}, url=f"func:{name}('__last_url__')")
    for refusing in (lambda: check(one), lambda: reads(one, SHOP, "strict"), lambda: score(one)):
        with pytest.raises(TaskError, match="task t1.*program_html.0..url"):
            refusing()


def test_site_helpers_are_passed_on_by_name():
    one = page({"must_include": ["a"]}, url="func:shopping_get_latest_order_url()")
    (read,) = reads(one, SHOP, "vab")
    assert (read.url, read.url_call) == ("func:", Call("shopping_get_latest_order_url", ()))


@pytest.mark.parametrize(
    ("contents", "text", "settled"),
    [
        ({"must_include": ["Tom & Jerry"]}, "", False),
        ({"must_include": ["Tom & Jerry"]}, "Loading…", False),
        ({"must_include": ["Tom & Jerry"]}, "Tom &amp;\u00a0Jerry!", True),
        ({"must_include": ["__SHOPPING__/a"]}, f"{SHOP}/a", True),
        ({"exact_match": "3"}, "2", False),
        ({"exact_match": "3"}, "3 ", True),
        ({"must_exclude": ["x"]}, "y", False),
        ({"fuzzy_match": ["x"]}, "", True),
    ],
)
def test_polling_stops_when_the_rule_is_settled(contents, text, settled):
    """EVA-20 (pure part)."""
    one = page(contents)
    (read,) = reads(one, f"{SHOP}/x", "strict", ADDRESSES)
    assert satisfied(one, read, text, "strict", None, ADDRESSES) is settled


def test_polling_does_not_ask_the_judge_and_does_not_wait_for_the_past():
    """EVA-20 (pure part)."""
    one = page({"fuzzy_match": ["x"]}, url="__SHOPPING__/a")
    after, before = reads(one, SHOP, "strict", ADDRESSES)
    judge = Yes()
    assert [satisfied(one, after, text, "strict", judge) for text in ("", "some text")] == [False, True]
    assert satisfied(one, before, "", "strict", judge)
    assert judge.asked == []


# --- the database, and types together ------------------------------------------------------------------------


CHANGE = {"table": "wishlist", "op": "insert", "values": {"sku": "K-12", "note": {"must_include": ["blue"]}}}
_ROW = {"sku": "K-12", "note": "Blue!"}
MADE = {"table": "wishlist", "op": "insert", "key": {"id": 1}, "before": None, "after": _ROW}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("record", "passes"),
    [
        ({"changes": [MADE]}, 1.0),
        ({"changes": []}, 0.0),
        ({"changes": [MADE, {**MADE, "table": "votes"}]}, 0.0),
        ({"error": "the site is gone"}, None),
        (None, None),
    ],
)
def test_the_database_is_graded_by_its_changes(mode, record, passes):
    one = task({"eval_types": ["database"], "database": {"changes": [CHANGE]}})
    assert score(one, evidence={"database": record}, mode=mode) == passes


@pytest.mark.parametrize(
    ("answer", "url", "passes"),
    [("5", "/a", 1.0), ("6", "/a", 0.0), ("5", "/b", 0.0), ("6", "/b", 0.0)],
)
def test_the_score_is_the_product_over_the_types(answer, url, passes):
    both = {"eval_types": ["string_match", "url_match"], "reference_answers": {"must_include": ["5"]}}
    assert score(task({**both, "reference_url": "__SHOPPING__/a"}), answer, url=SHOP + url) == passes


def test_a_definite_failure_outweighs_what_cannot_be_decided():
    both = {"eval_types": ["string_match", "url_match"], "reference_answers": {"fuzzy_match": ["5"]}}
    one = task({**both, "reference_url": "__SHOPPING__/a"})
    assert score(one, "5", url=f"{SHOP}/b") == 0.0
    assert score(one, "5", url=f"{SHOP}/a") is None


def test_a_verdict_names_its_evaluator_and_its_reasons():
    verdict = grade(ask(must_include=["5"]), answer="6", final_url="", evidence={}, mode="strict")
    assert (verdict.mode, verdict.version) == ("strict", evaluators.VERSION)
    assert verdict.reasons == ("string_match: must_include \"['5']\" against '6'",)


def test_a_task_without_a_grader_is_ungraded_but_refused_at_load():
    """EVA-14."""
    assert score(task(None)) is None
    with pytest.raises(TaskError, match="task t1: `eval` must be an object"):
        check(task(None))


def test_an_unknown_mode_is_our_mistake():
    with pytest.raises(ValueError, match="`mode` must be one of strict, webarena, vab"):
        score(ask(exact_match="a"), mode="lenient")


def test_the_defect_of_webarena_lite_81_is_refused_unless_repaired():
    """EVA-14, row 31 of the flaws."""
    broken = Task.from_json(
        {
            "task_id": 81,
            "sites": ["gitlab"],
            "intent": "Who else has access?",
            "start_url": "__GITLAB__",
            "eval": {"eval_types": ["string_match"], "reference_answers": {"must_include": "yjlou"}},
        }
    )
    with pytest.raises(TaskError, match="task 81: `eval.reference_answers.must_include`"):
        check(broken)
    assert score(repaired(broken), "It is yjlou.") == 1.0
    good = ask(must_include=["a"])
    assert repaired(good) is good


def test_evidence_survives_a_trace_file():
    evidence = json.loads(json.dumps({"reads": {"program_html.0": "a"}, "database": {"changes": [MADE]}}))
    one = page({"must_include": ["a"]})
    assert grade(one, answer="", final_url=f"{SHOP}/x", evidence=evidence, mode="strict").score == 1.0


# --- the rate --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("raw", "success"), [(0.0, 0), (0.1, 0), (0.5, 0), (0.999, 0), (1.0, 1), (-1.0, 0)])
def test_only_a_score_of_exactly_one_is_a_success(raw, success):
    """EVA-16."""
    assert success_rate([Verdict(raw, "miniwob", "1")]).successes == success


def test_a_score_that_is_no_number_is_an_error():
    """EVA-16."""
    with pytest.raises(ValueError, match="nan"):
        success_rate([Verdict(float("nan"), "miniwob", "1")])


def test_scores_of_different_evaluators_are_not_mixed():
    with pytest.raises(ValueError, match="not comparable"):
        success_rate([Verdict(1.0, "strict", "1"), Verdict(1.0, "vab", "1")])
    with pytest.raises(ValueError, match="not comparable"):
        success_rate([Verdict(1.0, "strict", "1"), Verdict(1.0, "strict", "2")])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "said, score",
    [
        ({"reward": 1, "reason": ""}, 1.0),
        ({"reward": 0.999, "reason": ""}, 0.0),
        ({"reward": -1, "reason": "timed out"}, 0.0),
        (None, 0.0),
    ],
)
def test_a_page_that_judges_itself_is_believed_only_with_a_reward_of_1(mode, said, score):
    evidence = {} if said is None else {"page": said}
    verdict = grade(task({"eval_types": ["page"]}), answer="1", final_url=SHOP, evidence=evidence, mode=mode)
    assert (verdict.score, verdict.mode) == (score, "miniwob")


def test_no_other_judge_stands_beside_a_page_that_judges_itself():
    both = {"eval_types": ["page", "string_match"], "reference_answers": {"exact_match": "a"}}
    with pytest.raises(TaskError, match="must hold page alone"):
        check(task(both))


def test_faults_and_ungraded_episodes_are_in_no_denominator():
    def episode(stop, verdict):
        return Trajectory(ask(exact_match="a"), (), stop, verdict=verdict)

    rate = success_rate(
        [
            episode(StopReason.EXIT, Verdict(1.0, "strict", "1")),
            episode(StopReason.MAX_STEPS, Verdict(0.0, "strict", "1")),
            episode(StopReason.ENV_ERROR, Verdict(0.0, "strict", "1")),
            episode(StopReason.ENV_ERROR, None),
            episode(StopReason.EXIT, Verdict(None, "strict", "1")),
            episode(StopReason.EXIT, None),
        ]
    )
    assert (rate.successes, rate.graded, rate.ungraded, rate.faulted) == (1, 2, 2, 2)
    assert str(rate) == (
        "1/2 = 50.0 % [9.5, 90.5] (evaluator strict 1; over graded episodes only; 2 ungraded, 2 faulted)"
    )


@pytest.mark.parametrize(
    ("successes", "graded", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)],
)
def test_the_interval_is_wilsons(successes, graded, low, high):
    """Tabulated values of the 95 % Wilson score interval."""
    rate = evaluators.Rate(successes, graded)
    assert (round(rate.low, 4), round(rate.high, 4)) == (low, high)


def test_an_empty_rate_is_no_number():
    assert evaluators.Rate(0, 0, ungraded=2).rate is None
    assert "nothing graded" in str(evaluators.Rate(0, 0, ungraded=2))
