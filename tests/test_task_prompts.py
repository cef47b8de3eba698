"""New tasks and feasibility: what is asked, and what counts as an answer."""

import pytest

from webrl_lite.task_prompts import feasibility_messages, generation_messages, parse_feasible, parse_tasks


def test_generation_is_one_user_message_with_the_failed_tasks_in_backticks():
    messages = generation_messages("shopping_admin", ["Show order 7. ", "List reviews."], 5)
    assert [message["role"] for message in messages] == ["user"]
    content = messages[0]["content"]
    assert "#Given Task#\n- `Show order 7.`\n- `List reviews.`\n\n#Created Task#\n" in content
    assert "write 5 new ones" in content and "back office" in content


def test_a_site_without_a_name_of_its_own_is_asked_by_its_key():
    assert "The website is wikipedia." in generation_messages("wikipedia", ["x"], 1)[0]["content"]


@pytest.mark.parametrize(
    "answer",
    [
        "- `Buy tea`\n- `Sell  tea`\n- `Return tea`",
        "Sure:\n1. `Buy tea`\n2) `Sell tea`.\n  * `Return tea` \nEnjoy!",
        'Here you are:\n```json\n["Buy tea", "Sell tea", "Return tea"]\n```\nDone.',
        '["Buy tea", "Sell tea", "Return tea"]',
        '{"tasks": ["Buy tea", "Sell tea", "Return tea"]}',
        '[{"web": "shopping", "task": "Buy tea"}, {"task": "Sell tea"}, {"task": "Return\\ntea"}]',
    ],
)
def test_three_tasks_are_read_in_each_form(answer):
    """GEN-01."""
    assert parse_tasks(answer) == ["Buy tea", "Sell tea", "Return tea"]


def test_words_in_backticks_inside_a_sentence_are_no_tasks():
    """GEN-07."""
    answer = "- Use the `status` filter\n- `Buy tea`\nThe field `name` and `id` matter.\n- `Sell tea`"
    assert parse_tasks(answer) == ["Buy tea", "Sell tea"]


@pytest.mark.parametrize(
    "answer",
    [None, "", "I cannot help with that.", "``", "[1, 2]", "{}", "[]", '["Buy tea", "Se', "[" * 5000, "- Buy"],
)
def test_an_answer_without_tasks_has_none(answer):
    """GEN-03: empty, null, refused, cut off, or in no form that was asked for."""
    assert parse_tasks(answer) == []


def test_complete_lines_before_a_break_count():
    """GEN-03."""
    assert parse_tasks("- `Buy tea`\n- `Sell t") == ["Buy tea"]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("The map has no weather. [NO]", False),
        ("It has everything. [YES]", True),
        ("[yes]", True),
        ("Not [YES] but rather [ NO ]", False),
        ("YES", None),
        ("", None),
        (None, None),
    ],
)
def test_the_last_bracketed_word_is_the_verdict(answer, verdict):
    assert parse_feasible(answer) is verdict


def test_feasibility_names_what_the_site_lacks():
    assert "weather" in feasibility_messages("map", "Is it raining?")[0]["content"]
    gitlab = feasibility_messages("gitlab", " Star the project. ")[0]["content"]
    assert "It offers everything" in gitlab and "Task: Star the project.\n" in gitlab
    assert "[YES] or [NO]" in gitlab
