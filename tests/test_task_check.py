"""Tests of the check that a task file gets when it is loaded."""

import pytest

from webrl_lite.task_check import Call, TaskError, check_eval, parse_call

PAGE = {"url": "last", "locator": "", "required_contents": {"must_include": ["x"]}}
CHANGE = {"table": "t", "op": "insert", "values": {"a": 1}}


def text(**answers):
    return {"eval_types": ["string_match"], "reference_answers": answers}


def url(reference, **more):
    return {"eval_types": ["url_match"], "reference_url": reference, **more}


def page(**changes):
    return {"eval_types": ["program_html"], "program_html": [{**PAGE, **changes}]}


def database(*changes, **more):
    return {"eval_types": ["database"], "database": {"changes": list(changes), **more}}


@pytest.mark.parametrize(
    "evaluation",
    [
        text(exact_match="N/A"),
        text(must_include=["65 |OR| 3"], must_exclude=["4"]),
        text(fuzzy_match="N/A"),
        text(fuzzy_match=["a", "b"]),
        text(required_values=[">= 300 |OR| == -1.5"]),
        url("__SHOPPING_ADMIN__/a |OR| http://x.localhost/b"),
        url("/reports/viewed", url_note="EXACT"),
        url("__MAP__", url_note=None),
        page(),
        page(url="__REDDIT__/f/books", locator="document.querySelector('a').outerText", prep_actions=["a()"]),
        page(locator="[...document.links].join()", required_contents={"exact_match": "???"}),
        page(url="func:reddit_get_post_url('__last_url__')"),
        page(locator="func:gitlab_get_project_memeber_role(__page__, 'vinta')"),
        page(locator="lambda:() => 1"),
        database(CHANGE, allow=[{"table": "log", "op": "insert"}]),
        database({"table": "t", "op": "delete", "key": {"id": 3}, "count": 2}),
        database(
            {"table": "t", "op": "update", "key": {"id": 3}, "values": {"a": {"one_of": [1, None]}}, "free": ["b"]}
        ),
        {**text(exact_match="x"), "eval_types": ["string_match", "database"], "database": {"changes": []}},
        {**text(exact_match="x"), "reference_url": "not an address", "annotation_note": 3, "program_html": []},
    ],
)
def test_a_good_task_passes(evaluation):
    check_eval("7", evaluation)


@pytest.mark.parametrize(
    ("evaluation", "field"),
    [
        (None, "eval"),
        ("string_match", "eval"),
        ([], "eval"),
        ({}, "eval.eval_types"),
        ({"eval_types": []}, "eval.eval_types"),
        ({"eval_types": "string_match"}, "eval.eval_types"),
        ({"eval_types": ["string_match", "page_image_query"]}, "eval.eval_types"),
        ({"eval_types": [["string_match"]]}, "eval.eval_types"),
        ({**text(exact_match="x"), "eval_types": ["string_match", "string_match"]}, "eval.eval_types"),
        ({"eval_types": ["string_match"]}, "eval.reference_answers"),
        ({"eval_types": ["string_match"], "reference_answers": "x"}, "eval.reference_answers"),
        ({"eval_types": ["string_match"], "reference_answers": ["x"]}, "eval.reference_answers"),
        (text(), "eval.reference_answers"),
        (text(must_includes=["x"]), "eval.reference_answers"),
        (text(exact_match=""), "eval.reference_answers.exact_match"),
        (text(exact_match="'"), "eval.reference_answers.exact_match"),
        (text(exact_match="“ ”"), "eval.reference_answers.exact_match"),
        (text(exact_match=["x"]), "eval.reference_answers.exact_match"),
        (text(exact_match=3), "eval.reference_answers.exact_match"),
        (text(must_include="yjlou"), "eval.reference_answers.must_include"),
        (text(must_include=[]), "eval.reference_answers.must_include"),
        (text(must_include=["a", ""]), "eval.reference_answers.must_include[1]"),
        (text(must_include=["a", " \n"]), "eval.reference_answers.must_include[1]"),
        (text(must_include=["a |OR| "]), "eval.reference_answers.must_include[0]"),
        (text(must_include=[5]), "eval.reference_answers.must_include[0]"),
        (text(fuzzy_match="anything"), "eval.reference_answers.fuzzy_match"),
        (text(required_values=["about 3"]), "eval.reference_answers.required_values"),
        (text(required_values=["> 3 |OR| 5"]), "eval.reference_answers.required_values"),
        (url(""), "eval.reference_url"),
        (url(None), "eval.reference_url"),
        (url("__MAP__ |OR| "), "eval.reference_url"),
        (url("shop.localhost/a"), "eval.reference_url"),
        (url("javascript:alert(1)"), "eval.reference_url"),
        (url("__MAP__", url_note="PRED in GOLD"), "eval.url_note"),
        ({"eval_types": ["program_html"]}, "eval.program_html"),
        ({"eval_types": ["program_html"], "program_html": []}, "eval.program_html"),
        ({"eval_types": ["program_html"], "program_html": ["last"]}, "eval.program_html[0]"),
        ({"eval_types": ["program_html"], "program_html": [PAGE, {"url": "last"}]}, "eval.program_html[1]"),
        (page(url=""), "eval.program_html[0].url"),
        (page(url="last_page"), "eval.program_html[0].url"),
        (page(url="file:///etc/passwd"), "eval.program_html[0].url"),
        (page(url="func:unknown_helper()"), "eval.program_html[0].url"),
        (page(locator="querySelector('a')"), "eval.program_html[0].locator"),
        (page(locator="css=.a"), "eval.program_html[0].locator"),
        (page(locator=None), "eval.program_html[0].locator"),
        (page(locator="func:open('x')"), "eval.program_html[0].locator"),
        (page(locator="func:shopping_get_product_price()"), "eval.program_html[0].locator"),
        (page(prep_actions="a()"), "eval.program_html[0].prep_actions"),
        (page(required_contents="x"), "eval.program_html[0].required_contents"),
        (page(required_contents={}), "eval.program_html[0].required_contents"),
        (page(required_contents={"fuzzy_match": "N/A"}), "eval.program_html[0].required_contents.fuzzy_match"),
        (page(required_contents={"must_include": ["'"]}), "eval.program_html[0].required_contents.must_include[0]"),
        ({"eval_types": ["database"]}, "eval.database"),
        (database(), "eval.database.changes"),
        (database(CHANGE, alow=[]), "eval.database"),
        (database(CHANGE, allow={"table": "t"}), "eval.database.allow"),
        (database(CHANGE, allow=[{"table": "t"}]), "eval.database.allow[0]"),
        (database({**CHANGE, "op": "upsert"}), "eval.database.changes[0]"),
        (database({**CHANGE, "value": {}}), "eval.database.changes[0]"),
        (database({**CHANGE, "key": {"id": 1}}), "eval.database.changes[0]"),
        (database({**CHANGE, "free": ["a"]}), "eval.database.changes[0]"),
        (database({**CHANGE, "count": 0}), "eval.database.changes[0].count"),
        (database({**CHANGE, "count": True}), "eval.database.changes[0].count"),
        (database({**CHANGE, "values": {}}), "eval.database.changes[0].values"),
        (database({**CHANGE, "values": {"a": [1]}}), "eval.database.changes[0].values.a"),
        (database({**CHANGE, "values": {"a": {"regex": "x"}}}), "eval.database.changes[0].values.a"),
        (database({**CHANGE, "values": {"a": {"one_of": []}}}), "eval.database.changes[0].values.a"),
        (database({**CHANGE, "values": {"a": {"must_include": [""]}}}), "eval.database.changes[0].values.a[0]"),
    ],
)
def test_a_broken_task_is_refused_with_its_id_and_field(evaluation, field):
    """EVA-14, EVA-11."""
    with pytest.raises(TaskError) as caught:
        check_eval("shop.7", evaluation)
    assert str(caught.value).startswith((f"task shop.7: `{field}` must ", f"task shop.7: `{field}` may "))


def test_a_call_is_read_as_data():
    assert parse_call("shopping_get_latest_order_url()") == Call("shopping_get_latest_order_url", ())
    assert parse_call(" get_query_text(__page__, 'a[\"x\"]') ") == Call("get_query_text", ("__page__", 'a["x"]'))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "reddit_get_post_url",
        "reddit_get_post_url()",
        "reddit_get_post_url('a', 'b')",
        "reddit_get_post_url(url='a')",
        "reddit_get_post_url(*['a'])",
        "reddit_get_post_url(open('x'))",
        "reddit_get_post_url('a' + 'b')",
        "reddit_get_post_url(f'{1}')",
        "reddit_get_post_url(None)",
        "reddit_get_post_url(page)",
        "reddit_get_post_url('a').upper()",
        "__import__('os').system('true')",
        "eval('1')",
        "reddit_get_post_url('a'); eval('1')",
        "(" * 5000,
        "reddit_get_post_url(" + "-" * 100_000 + "1)",
        "reddit_get_post_url('\x00')",
    ],
)
def test_anything_but_one_registered_call_with_literals_is_refused(text):
    """EVA-21."""
    with pytest.raises(ValueError, match="must"):
        parse_call(text)
