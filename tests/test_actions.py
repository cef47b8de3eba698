"""Tests of the action grammar: what is read, what is refused, and that writing and reading are inverse."""

import random
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from webrl_lite import actions
from webrl_lite.actions import (
    ACTIONS,
    Action,
    ActionError,
    describe,
    format_action,
    format_reply,
    parse,
    supporting_line,
)


def read(reply: str) -> Action:
    return parse(reply).action


def refusal(reply: str) -> str:
    with pytest.raises(ActionError) as caught:
        parse(reply)
    return str(caught.value)


# --- what is read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ('do(action="Click", element="7")', Action("Click", "7")),
        ('do(element="7", action="Hover")', Action("Hover", "7")),
        ('do(action="Type", argument="01/01/2023", element="22")', Action("Type", "22", "01/01/2023")),
        ('do(action="Search", argument="kettle", element="13")', Action("Search", "13", "kettle")),
        ('do(action="Press", argument="Escape")', Action("Press", None, "Escape")),
        ('do(action="Press", argument="Tab", element="4")', Action("Press", "4", "Tab")),
        ('do(action="Press Enter")', Action("Press", None, "Enter")),
        ('do(action="Press Enter", element="4")', Action("Press", "4", "Enter")),
        ('do(action="Scroll Down")', Action("Scroll Down")),
        ('do(action="Scroll Up", element="9")', Action("Scroll Up", "9")),
        (
            'do(action="Select Dropdown Option", argument="Month", element="20")',
            Action("Select Dropdown Option", "20", "Month"),
        ),
        ('do(action="New Tab")', Action("New Tab")),
        (
            'do(action="New Tab", argument="http://a.localhost/")',
            Action("New Tab", None, "http://a.localhost/"),
        ),
        ('do(action="Tab Focus", argument="1")', Action("Tab Focus", None, "1")),
        ('do(action="Tab Focus", argument=0)', Action("Tab Focus", None, "0")),
        ('do(action="Tab Focus", element=2)', Action("Tab Focus", None, "2")),
        ('do(action="Switch Tab", argument=" 2 ")', Action("Tab Focus", None, "2")),
        ('do(action="Close Tab")', Action("Close Tab")),
        (
            'do(action="Goto", argument="http://a.localhost/x?y=1")',
            Action("Goto", None, "http://a.localhost/x?y=1"),
        ),
        ("go_backward()", Action("Go Back")),
        ("go_back()", Action("Go Back")),
        ("Go_Forward( )", Action("Go Forward")),
        ('do(action="Go Backward")', Action("Go Back")),
        ('do(action="Go Back")', Action("Go Back")),
        ('do(action="Go Forward")', Action("Go Forward")),
        ('do(action="Wait")', Action("Wait")),
        ('exit(message="65")', Action("Exit", None, "65")),
        ('do(action="scroll_down")', Action("Scroll Down")),
        (
            'do(action="SELECT-dropdown option", argument="a", element="1")',
            Action("Select Dropdown Option", "1", "a"),
        ),
        ("DO ( action = 'click' , element = '3' , )", Action("Click", "3")),
        ('do(action="Click", element="3", argument=None)', Action("Click", "3")),
        ('do(action="Click", element="3", argument="")', Action("Click", "3")),
    ],
)
def test_each_action_and_spelling_is_read(reply, action):
    assert read(reply) == action


@pytest.mark.parametrize(
    ("literal", "message"),
    [
        (r'"Line one\nLine two"', "Line one\nLine two"),
        ('"Line one\nLine two"', "Line one\nLine two"),
        ('"Line one\r\nLine two"', "Line one\r\nLine two"),
        ('"a\tb"', "a\tb"),
        (r'"a\tb"', "a\tb"),
        ('"a\x0bb\x0cc\u2028d\x85e"', "a\x0bb\x0cc\u2028d\x85e"),
        ('"a\x00b"', "a\x00b"),
        ('"""Line one\n"two" three"""', 'Line one\n"two" three'),
        ("'''It's\n''fine'''", "It's\n''fine"),
        ('"""a""', None),
        ('""', ""),
        ("''", ""),
        ('""""""', ""),
    ],
)
def test_line_breaks_and_control_characters_in_a_text_are_kept(literal, message):
    """ACT-01."""
    if message is None:
        assert "closing quote" in refusal(f"exit(message={literal})")
    else:
        assert read(f"exit(message={literal})") == Action("Exit", None, message)


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r'''"Ticket #42: say \"hi\" to Ann's team"''', """Ticket #42: say "hi" to Ann's team"""),
        (r"""'Ticket #42: say "hi" to Ann\'s team'""", """Ticket #42: say "hi" to Ann's team"""),
        ("'# not a comment, (really) = [so]'", "# not a comment, (really) = [so]"),
        ("\"a, element='9')\"", "a, element='9')"),
        ("'“curly” ‘quotes’'", "“curly” ‘quotes’"),
        ('"""say "hi" """', 'say "hi" '),
    ],
)
def test_quotes_and_comment_signs_in_a_text_are_text(literal, text):
    """ACT-02."""
    assert read(f'do(action="Type", argument={literal}, element="5")') == Action("Type", "5", text)


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        (
            'do(action="Type", argument="How to undo( and exit( Vim?", element="9")',
            Action("Type", "9", "How to undo( and exit( Vim?"),
        ),
        ('exit(message="type exit( to leave")', Action("Exit", None, "type exit( to leave")),
        (
            'do(action="Search", argument="\ndo(action=\'Click\', element=\'1\')\n", element="9")',
            Action("Search", "9", "\ndo(action='Click', element='1')\n"),
        ),
        ('exit(message="go_backward()")', Action("Exit", None, "go_backward()")),
    ],
)
def test_call_names_inside_a_text_are_text(reply, action):
    """ACT-03."""
    assert parse(reply) == actions.Reply(action)


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r'"C:\Users\mia\notes"', r"C:\Users\mia\notes"),
        (r'"C:\\Users\\mia\\notes"', r"C:\Users\mia\notes"),
        (r'"^\d+\s*$"', r"^\d+\s*$"),
        (r'"\d says \"no\""', r'\d says "no"'),
        (r'"\d it\'s \\ so"', r"\d it\'s \\ so"),
        (r'"\u00e9t\u00e9"', "été"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\uD83D."', "\ud83d."),
        (r'"\u12 is no escape\n"', r"\u12 is no escape\n"),
        (r'"C:\new"', "C:\new"),
        (r'"\\"', "\\"),
        ('"It\'s here"', "It's here"),
        (r"'It\'s here'", "It's here"),
        (r'"\""', '"'),
        ("'\"'", '"'),
        ('"   three"', "   three"),
        ('"three   "', "three   "),
        ('"日本語 é 👩‍👩‍👧"', "日本語 é 👩‍👩‍👧"),
    ],
)
def test_the_text_arrives_as_meant(literal, text):
    """ACT-09."""
    assert read(f'do(action="Type", argument={literal}, element="5")') == Action("Type", "5", text)


def test_the_empty_text_clears_a_field():
    """ACT-09."""
    assert read('do(action="Type", argument="", element="5")') == Action("Type", "5", "")


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("3", "3"),
        ('" 3 "', "3"),
        ('"-1"', "-1"),
        ("-1", "-1"),
        ("007", "007"),
        ("3.50", "3.50"),
        (r'"3\"] , body"', '3"] , body'),
        ("'3\"] , body'", '3"] , body'),
        ("True", "True"),
    ],
)
def test_an_element_id_is_plain_data(element, text):
    """ACT-10, ACT-12."""
    assert read(f'do(action="Click", element={element})') == Action("Click", text)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("exit()", ""),
        ("exit(message=None)", ""),
        ("exit(None)", ""),
        ('exit("42 items")', "42 items"),
        ("exit(42)", "42"),
        ("exit(message=-0.50)", "-0.50"),
        ("exit(message=True)", "True"),
        ('exit(message="N/A")', "N/A"),
        ("EXIT(message='  x ')", "  x "),
    ],
)
def test_exit_takes_one_message_that_may_be_missing(reply, message):
    """ACT-10."""
    assert read(reply) == Action("Exit", None, message)


# --- the lines around the call -----------------------------------------------------------------------------


def test_notes_and_element_are_read_from_the_comments_before_the_call():
    reply = parse(
        "I look at the list.\n# Note: total is $5, see #7: ok\n#note: second\n# a remark\n"
        '# Element: the "Save" button\n```python\ndo(action="Click", element="3")\n```\n# Note: after'
    )
    assert reply == actions.Reply(Action("Click", "3"), ("total is $5, see #7: ok", "second"), 'the "Save" button', "")


def test_the_last_element_line_counts():
    assert parse("# Element: first\n# Element: second\ngo_back()").element_note == "second"


@pytest.mark.parametrize(
    "reply",
    [
        '`do(action="Click", element="3")`',
        '```do(action="Click", element="3")```',
        '```python\ndo(action="Click", element="3")\n```',
        '  \t do(action="Click", element="3")  # done',
        'I click (see do(action="Hover", element="1")).\r\ndo(action="Click", element="3")\r\n',
        'do(\n    action="Click",  # the button\n    element="3",\n)',
        'do(action="Click", element="3")<|eot_id|>',
        'do(action="Click", element="3") <|user|>\nThat should do(it).',
        'do(action="Click", element="3")\nThen I will exit(message="x") later.',
        'do(action="Click", element="3")\n# do(action="Hover", element="1")',
        '# exit(message="no")\ndo(action="Click", element="3")',
        "undo(x)\nredo (y)\ndo (action='Click', element='3')",
        '\u2028\x0bdo(action="Click", element="3")',
    ],
)
def test_prose_fences_and_special_tokens_are_passed_over(reply):
    parsed = parse(reply)
    assert (parsed.action, parsed.ignored) == (Action("Click", "3"), "")


@pytest.mark.parametrize(
    ("between", "second"),
    [
        ("\n", 'do(action="Click", element="4")'),
        ("\n\nThen:\n```\n", 'do(action="Click", element="4")\n```'),
        ("; ", "exit()"),
        (" ", 'go_backward()\ndo(action="Wait")'),
        ("<|eot_id|>", "exit(message='x')"),
    ],
)
def test_only_the_first_call_runs_and_the_rest_is_kept(between, second):
    """ACT-06."""
    reply = parse('do(action="Click", element="4")' + between + second)
    assert (reply.action, reply.ignored) == (Action("Click", "4"), second)


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n ",
        "I will press the button with id 12.",
        'I will do(action="Click", element="12").',
        "Click 12",
        'action="Click", element="12"',
        'undo(action="Click", element="12")',
        "# Element: the button\n# Note: x",
        '# do(action="Click", element="12")',
        'click(element="12")',
        'x\u2028do(action="Click", element="12")',
    ],
)
def test_a_reply_without_a_call_is_refused(reply):
    """ACT-05."""
    assert "no action" in refusal(reply)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ('do(action="Click")', ["Click takes `element`", "missing"]),
        ('do(action="Click", element=None)', ["`element` is missing"]),
        ('do(action="Click", element="  ")', ["`element` is missing"]),
        ('do(action="Click", element="3", argument="x")', ["Click takes `element`", "no `argument`", '"x"']),
        ('do(action="Type", element="3")', ["Type takes `argument` and `element`", "`argument` is missing"]),
        ('do(action="Type", argument="x")', ["`element` is missing"]),
        ('do(action="Search", argument=None, element="3")', ["`argument` is missing"]),
        ('do(action="Select Dropdown Option", element="3")', ["`argument` is missing"]),
        ('do(action="Scroll Down", argument="3")', ["`element` (optional)", "no `argument`"]),
        ('do(action="Wait", element="3")', ["Wait takes no arguments", '"3"']),
        ('do(action="Press")', ["`argument` is missing"]),
        ('do(action="Press", argument="")', ["`argument` is missing"]),
        ('do(action="Press Enter", argument="Escape")', ["no argument"]),
        ('do(action="Goto")', ["`argument` is missing"]),
        ('do(action="New Tab", element="1")', ["no `element`"]),
        ('do(action="Tab Focus")', ["`argument` is missing"]),
        ('do(action="Tab Focus", argument="two")', ["number of a tab", '"two"']),
        ('do(action="Tab Focus", argument="-1")', ["number of a tab"]),
        ('do(action="Tab Focus", argument="1", element="2")', ["one tab number"]),
        ('do(action="Fly")', ['no action "Fly"', "Click, Hover, Type"]),
        ('do(action="Scrol Down")', ["Did you mean Scroll Down?"]),
        ('do(action="clik", element="1")', ["Did you mean Click?"]),
        ('do(action="Right Click", element="1")', ['no action "Right Click"', "Did you mean Click?"]),
        ('do(action="Exit", argument="done")', ['exit(message="...")']),
        ('do(element="3")', ['`do` needs action="..."']),
        ("do()", ['`do` needs action="..."']),
        ('do(action="")', ['`do` needs action="..."']),
        ('do("Click", "3")', ["keywords only"]),
        ('do(action="Click", "3")', ["keywords only"]),
        ('do(action="Click", id="3")', ["unknown keyword `id`", "Click takes `element`"]),
        ('do(action="Click", element="3", message="x")', ["unknown keyword `message`"]),
        ('do(action="Click", element="3", element="4")', ["`element` is given twice"]),
        ('do(action="Click", action="Hover", element="4")', ["`action` is given twice"]),
        ('exit(answer="x")', ["`exit` takes `message`", "`answer`"]),
        ('exit("a", "b")', ["got 2 arguments"]),
        ('exit("a", message="b")', ["got 2 arguments"]),
        ("go_backward(1)", ["`go_backward` takes no arguments"]),
        ("go_forward(n=1)", ["`go_forward` takes no arguments"]),
        ('do(action="Click", element=[3])', ["quoted text or a number", "[3])"]),
        ('do(action="Click", element={"id": 3})', ["quoted text or a number"]),
        ('do(action="Click", element=(3))', ["quoted text or a number"]),
        ('do(action="Click", element=button)', ["quoted text or a number"]),
        ('do(action="Click", element=str(3))', ["quoted text or a number"]),
        ('do(action="Click", element=3a)', ["quoted text or a number"]),
        ('do(action="Click", element=٣)', ["quoted text or a number"]),
        ('do(action="Click", element=f"3")', ["quoted text or a number"]),
        ("do(action=“Click”, element=“3”)", ["quoted text or a number"]),
        ("do(action=, element=3)", ["quoted text or a number"]),
        ("do(,)", ["quoted text or a number"]),
        ('do(action=="Click")', ["quoted text or a number"]),
        ('do(action="Click" element="3")', ['After a value comes ","']),
        ('do(action="Click" "", element="3")', ['After a value comes ","']),
        ('do(action="Click"; element="3")', ['After a value comes ","']),
        ("exit(message='It's here')", ['After a value comes ","', "quote in a text"]),
        ('do(action="Click", element="3"', ["not closed"]),
        ('do(action="Click", element=3', ["not closed"]),
        ('do(action="Click", element=', ["not closed"]),
        ("exit(", ["not closed"]),
        ('exit(message="no end)', ["no closing quote"]),
        ('exit(message="C:\\")', ["no closing quote"]),
        ("exit(message='''a'')", ["no closing quote"]),
        ("do(es) it work?", ["quoted text or a number"]),
    ],
)
def test_a_call_of_the_wrong_shape_is_refused_with_what_the_action_takes(reply, words):
    """ACT-10."""
    message = refusal(reply)
    assert [word for word in words if word not in message] == []


@pytest.mark.parametrize("reply", ["ex\u0131t()", "E\u0130XIT()", "go_bac\u212a()", "\uff44\uff4f(action='Wait')"])
def test_a_look_alike_call_name_is_no_call(reply):
    assert "no action" in refusal(reply)


@pytest.mark.parametrize(
    "reply",
    [
        'do(action="' + "x" * 10_000 + '")',
        'do(action="a\nb\x00\x1b[31m\u2028\ud800", element="1")',
        "do(" + "k" * 10_000 + '=1, action="Click")',
        "exit(message=\n\n" + "[" * 10_000,
        'do(action="Tab Focus", argument="1\n2")',
        'do(action="Wait", argument="' + "\x00" * 1000 + '")',
    ],
)
def test_a_refusal_is_one_short_printable_line(reply):
    message = refusal(reply)
    assert 0 < len(message) <= 400
    assert message.encode("utf-8").decode().isprintable()


def test_a_refusal_is_cut_at_its_limit():
    assert str(ActionError("x" * 1000)) == "x" * 399 + "…"


# --- writing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (Action("Click", "12"), 'do(action="Click", element="12")'),
        (Action("Type", "5", 'say "hi"\n\\'), r'do(action="Type", argument="say \"hi\"\n\\", element="5")'),
        (Action("Press", None, "Enter"), 'do(action="Press Enter")'),
        (Action("Press", "3", "Enter"), 'do(action="Press", argument="Enter", element="3")'),
        (Action("Press", None, "Escape"), 'do(action="Press", argument="Escape")'),
        (Action("Go Back"), "go_backward()"),
        (Action("Go Forward"), "go_forward()"),
        (Action("Scroll Down"), 'do(action="Scroll Down")'),
        (Action("Exit", None, "N/A"), 'exit(message="N/A")'),
        (Action("Exit", None, ""), 'exit(message="")'),
        (Action("Exit", None, "a\x00\ud800\u2028é😀"), r'exit(message="a\u0000\ud800\u2028é😀")'),
        (Action("Exit", None, "\udc00"), r'exit(message="\udc00")'),
    ],
)
def test_the_written_form_is_the_authors(action, text):
    assert format_action(action) == text


@pytest.mark.parametrize("action", [Action("Fly"), Action("Click"), Action("Type", "1"), Action("Wait", "1")])
def test_an_impossible_action_cannot_be_written(action):
    with pytest.raises(ActionError):
        format_action(action)


def test_a_reply_is_written_with_its_notes_and_element_on_one_line_each():
    text = format_reply(Action("Click", "3"), "the\nbutton ", ("total is\r\n $5", "", "next"))
    assert text == ('# Note: total is $5\n# Note: next\n# Element: the button\ndo(action="Click", element="3")')
    assert parse(text) == actions.Reply(Action("Click", "3"), ("total is $5", "next"), "the button")


def test_the_prompt_lists_each_action_with_an_example_that_parses():
    lines = describe().split("\n")
    assert [read(line).name for line in lines] == list(ACTIONS)
    assert lines[0] == 'do(action="Click", element="12")  Click the element with this id.'


# Every code point, lone surrogates included, and the characters that the grammar itself uses.
ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.text(st.sampled_from("\\\"'nutrU0dD8\n\r\t\x00#(),= "))
ANY_ID = ANY_TEXT.map(str.strip).filter(bool)


@st.composite
def any_action(draw) -> Action:
    name = draw(st.sampled_from(list(ACTIONS)))
    spec = ACTIONS[name]
    element = {"needed": ANY_ID, "optional": st.none() | ANY_ID}.get(spec.element, st.none())
    argument = {
        "text": ANY_TEXT,
        "needed": ANY_TEXT.filter(bool),
        "optional": st.none() | ANY_TEXT.filter(bool),
    }
    if name == "Tab Focus":
        return Action(name, None, str(draw(st.integers(0, 10**9 - 1))))
    return Action(name, draw(element), draw(argument.get(spec.argument, st.none())))


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_action())
@example(Action("Exit", None, "\ud83d\ude00"))
@example(Action("Exit", None, "\\\ud83d\ude00\\ud83d"))
@example(Action("Type", "\\", "C:\\Users\\"))
def test_parsing_the_written_action_gives_it_back(action):
    assert read(format_action(action)) == action


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(any_action(), ANY_TEXT, st.lists(ANY_TEXT, max_size=3))
def test_a_written_reply_gives_back_its_action(action, element_note, notes):
    reply = parse(format_reply(action, element_note, notes))
    assert (reply.action, reply.ignored) == (action, "")


def test_a_hundred_thousand_random_replies_raise_nothing_but_refusals():
    seeds = [format_action(spec.example) for spec in ACTIONS.values()]
    seeds += [
        "# Element: a\n# Note: b\ndo(action='Type', argument='''x\\n''', element=5)",
        'exit("a\\"b")\ndo(',
        "",
    ]
    alphabet = "\"\"''\\\\()[]{},=#\n\r\t `doexit_go1.eE+-NoneTrue\x00\u2028\ud800\U0001f600é|<>"
    rng = random.Random(7)
    read_well = 0
    for _ in range(100_000):
        text = list(rng.choice(seeds))
        for _ in range(rng.randrange(8)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randrange(3)] = rng.choices(alphabet, k=rng.randrange(4))
        try:
            parse("".join(text))
            read_well += 1
        except ActionError:
            pass
    assert 10_000 < read_well < 90_000  # the loop visits both sides of the grammar


@pytest.mark.parametrize(
    "reply",
    [
        '"' * 200_000,
        "exit(" + '"' * 200_000,
        "exit(" + '"' * 199_999,
        'exit("' + "\\" * 200_000,
        'exit("' + "\\" * 200_000 + '")',
        'exit("\\d' + "\\" * 200_000 + '")',
        "exit(" * 200_000,
        "exit(\n" * 200_000,
        "do(action=" + "(" * 200_000,
        "do(action=" + "[" * 200_000 + "]" * 200_000 + ")",
        "do(" + "a=1," * 200_000,
        "do(" + "a" * 200_000,
        "do(action=" + "9" * 200_000 + ")",
        " " * 200_000 + "do",
        "\n" * 200_000 + "do",
        "\n \t" * 200_000 + "exit()",
        "`" * 200_000,
        "# Note" + " " * 200_000,
        "#" * 200_000 + "\nexit()",
        "exit()" + ";" * 200_000,
        "exit()" + "<|" * 200_000,
        "exit()" + "\n   " * 200_000,
        "exit(" + " \n#" * 200_000 + ")",
        'exit("""' + '""\\' * 100_000,
        'do(action="' + "Click" * 100_000 + '")',
    ],
    ids=lambda reply: repr(reply[:12]),
)
def test_time_is_linear_and_depth_is_flat(reply):
    start = time.process_time()
    try:
        parse(reply)
    except ActionError:
        pass
    assert time.process_time() - start < 2  # a quadratic walk over these takes minutes


# The note before an answer -------------------------------------------------------------------------------------------

PAGE = """@ shop/orders | tab 0/1 | 0-720 of 720
Shop [1] | Cart (2) [2]
= Orders
Order | Date | Total | Status
0017 [3] | Jun 14 | $39.88 | Complete
0016 [4] | Jun 6 | $29.00 | Pending
0012 [5] | May 26 | $65.70 | Pending
Weight: 12 g
Owner
Ben Su
3 Reviews [9]"""


@pytest.mark.parametrize(
    ("answer", "hints", "line"),
    [
        ("$29.00", (), "0016 [4] | Jun 6 | $29.00 | Pending"),
        ("Pending", ("0012",), "0012 [5] | May 26 | $65.70 | Pending"),
        ("Pending", (), "0016 [4] | Jun 6 | $29.00 | Pending"),
        ("0012, Pending", (), "0012 [5] | May 26 | $65.70 | Pending"),
        ("12 g", (), "Weight: 12 g"),
        ("Ben Su", (), "Owner | Ben Su"),
        ("3", (), "3 Reviews [9]"),
        ("Orders", (), "= Orders"),
        ("9", (), ""),
        ("Ben", ("nothing",), "Ben Su"),
        ("$29", (), ""),
        ("70", (), ""),
        ("shop/orders", (), ""),
        ("N/A", (), ""),
        ("", (), ""),
    ],
)
def test_the_line_that_holds_an_answer_is_found(answer, hints, line):
    """Cells before parts of cells, ids never, the line with the question's words before the first."""
    assert supporting_line(PAGE, answer, hints) == line


def test_an_answer_that_is_in_many_lines_and_known_by_nothing_has_no_line():
    page = "@ x\n" + "\n".join(f"paid on day {n}" for n in range(5))
    assert supporting_line(page, "day") == ""
    assert supporting_line(page, "day", ("3",)) == "paid on day 3"
