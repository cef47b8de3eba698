"""The publicly known flaws of graders, one by one: reproduced in the released modes, right in ``strict``, or why not.

``ROWS`` is the whole list. A flaw of a rule is a ``Case`` that is graded here in every mode; one of the program around
the rules names the tests that show what happens here instead; one of something that is not graded here has a reason.
``python -m tests.test_grader_flaws`` writes the list for people, ``tests/benchmarks/GRADERS.md``.

Sources: WA is web-arena-x/webarena, VWA visualwebarena, BG BrowserGym, AL AgentLab, WV webarena-verified; a number is
an issue, with "PR" a pull request. Numbers 31 to 40 were found by reading the released programs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from webrl_lite.evaluators import Judge, OfflineJudge, Ungradable, grade
from webrl_lite.trajectory import JSON, Task

TESTS = Path(__file__).parent
PAPER = TESTS / "benchmarks" / "GRADERS.md"
SHOP = "http://shop.w0.localhost:1234"
FORUM = "http://reddit.w0.localhost:1234"
ADDRESSES = {"__SHOPPING__": SHOP, "__REDDIT__": FORUM}
NOT_REPAIRED = "Not repaired: "


class Agreeing:
    """A judge that is too lenient."""

    name = "agreeing"

    def fuzzy_match(self, intent: str, reference: str, answer: str) -> bool:
        return True

    same_reason = fuzzy_match


class Pedantic(Agreeing):
    """A judge for whom an answer that tells more numbers than its reference is another answer."""

    name = "pedantic"

    def fuzzy_match(self, intent: str, reference: str, answer: str) -> bool:
        return re.findall("[0-9]+", reference) == re.findall("[0-9]+", answer)


class Mute(Agreeing):
    """A judge whose reply holds no verdict."""

    name = "mute"

    def fuzzy_match(self, intent: str, reference: str, answer: str) -> bool:
        raise Ungradable("the reply holds no verdict")

    same_reason = fuzzy_match


@dataclass(frozen=True)
class Case:
    """An episode's end and its scores; a score of None is ungraded."""

    evaluation: Mapping[str, JSON]
    right: float | None
    """What ought to come out; None where nobody can have decided."""
    webarena: float | None
    vab: float | None
    strict: float | None
    answer: str = "done"
    url: str = f"{SHOP}/where/it/ended"
    reads: Mapping[str, JSON] = field(default_factory=dict)
    page: Mapping[str, JSON] | None = None
    judge: Judge | None = None
    addresses: Mapping[str, str] = field(default_factory=lambda: ADDRESSES)


@dataclass(frozen=True)
class Row:
    """A flaw, by a case, by tests, or by a note alone; a flaw of several sides has several rows."""

    number: int
    source: str
    flaw: str
    note: str
    case: Case | None = None
    tests: tuple[str, ...] = ()
    """Each ``file::function``."""


def ask(note: str = "", **answers: JSON) -> dict[str, JSON]:
    return {"eval_types": ["string_match"], "reference_answers": answers, "string_note": note}


def visit(reference: str) -> dict[str, JSON]:
    return {"eval_types": ["url_match"], "reference_url": reference, "url_note": "GOLD in PRED"}


def see(url: str, locator: str = "", **contents: JSON) -> dict[str, JSON]:
    item = {"url": url, "locator": locator, "required_contents": contents}
    return {"eval_types": ["program_html"], "program_html": [item]}


def texts(after: JSON, before: JSON = None) -> dict[str, JSON]:
    return {"program_html.0": after, "program_html.0.before": before}


NO_PAGE = {"error": "404 Not Found"}
THE_TASKS_OWN = (
    f"{NOT_REPAIRED}the reference is the task file's, and a mode compares with it as it stands; correct it there."
)
NOT_GRADED_HERE = (
    "Nothing to grade: Verified's graders of recorded requests and typed answers are not here. Its tasks are read "
    "without a grader and labelled by a reward model."
)
VERIFIED = ("test_webarena.py::test_verified_tasks_keep_their_own_grader_and_join_their_start_pages",)

ROWS = (
    Row(
        *(1, "WA PR#77", "A longer last part of the path passes."),
        "strict compares paths part by part.",
        Case(visit("__SHOPPING__/viewed"), 0.0, 1.0, 1.0, 0.0, url=f"{SHOP}/viewedasdf"),
    ),
    Row(
        *(2, "WA#275", "Alternatives in an answer's must_include are one phrase, which nobody writes."),
        "vab and strict split at |OR|.",
        Case(ask(must_include=["65 |OR| 3"]), 1.0, 0.0, 1.0, 1.0, answer="3"),
    ),
    Row(
        *(3, "WA#134, WA#104", "A date in another form is denied."),
        "strict reads dates.",
        Case(
            see("last", must_include=["Oct 21st"]), 1.0, 0.0, 0.0, 1.0, reads=texts("We meet on October 21, at noon.")
        ),
    ),
    Row(
        *(3, "WA#134, WA#104", "The singular of a wanted word is denied."),
        f"{NOT_REPAIRED}words are compared as written, since a cut ending can be another word; |OR| takes both forms.",
        Case(
            *(see("last", must_include=["racing cars"]), 1.0, 0.0, 0.0, 0.0),
            reads=texts("For every racing car enthusiast"),
        ),
    ),
    Row(
        *(4, "WA#211", "An amount of nothing is not 0."),
        "strict reads money.",
        Case(ask(must_include=["0"]), 1.0, 0.0, 0.0, 1.0, answer="You spent $0.00."),
    ),
    Row(
        *(5, "WA#139", "Each reference is judged alone, and the whole answer is not any one of them."),
        "vab and strict have all references judged at once.",
        Case(
            *(ask(fuzzy_match=["170: cancelled", "189: pending"]), 1.0, 0.0, 1.0, 1.0),
            answer="170 is cancelled, 189 is pending.",
            judge=Pedantic(),
        ),
    ),
    Row(
        *(5, "WA#139", "The other spelling of a word is denied."),
        "A judge's matter; the offline judge knows both spellings.",
        Case(
            *(ask(fuzzy_match=["170: cancelled", "189: pending"]), 1.0, 1.0, 1.0, 1.0),
            answer="170 is Canceled, 189 is Pending.",
            judge=OfflineJudge(),
        ),
    ),
    Row(
        *(6, "WA PR#272", "The judge's verdict is a word anywhere in its reasoning."),
        "Not reproduced: in every mode the judge is ours, and its last word in brackets counts.",
        tests=("test_judges.py::test_the_last_word_in_brackets_is_the_verdict",),
    ),
    Row(
        *(7, "VWA#40", 'A judge that replies "n/a" ends the run.'),
        "Not reproduced: no verdict is no score, in every mode.",
        Case(ask(fuzzy_match=["a red kettle"]), None, None, None, None, answer="A crimson one", judge=Mute()),
        ("test_judges.py::test_an_answer_without_a_verdict_is_asked_again_and_then_undecided",),
    ),
    Row(
        *(8, "WA#246, WA#210", "The vote that counts is on the hottest post and not on the newest."),
        THE_TASKS_OWN,
        Case(
            *(see("__REDDIT__/f/trains/7", "document.querySelector('form').className", must_include=["user-upvoted"]),),
            *(1.0, 0.0, 0.0, 0.0),
            reads=texts("vote", "vote"),
        ),
    ),
    Row(
        *(8, "WA#246, WA#210", "A form's field is looked for on a page that has no form."),
        THE_TASKS_OWN,
        Case(
            *(see("__REDDIT__/f/songs", "document.querySelector('#sidebar').value", must_include=["devices"]),),
            *(1.0, 0.0, 0.0, 0.0),
            reads=texts("", NO_PAGE),
        ),
    ),
    Row(
        *(9, "WA#174", "A page is read before it has loaded."),
        "Not reproduced, as it is a race: in every mode a page is read again until its rule is met or time is up.",
        tests=(
            "test_evaluators.py::test_polling_stops_when_the_rule_is_settled",
            "test_browser.py::test_a_grader_waits_for_what_comes_late",
        ),
    ),
    Row(
        *(10, "WA#53", "A locator that is a JavaScript list is an error."),
        "Not reproduced: later releases take it too.",
        Case(
            see(
                "func:reddit_get_post_url('__last_url__')",
                "[...document.querySelectorAll('[src]')].map(e => e.src).join(' ')",
                must_include=["b021.jpg"],
            ),
            *(1.0, 1.0, 1.0, 1.0),
            url=f"{FORUM}/f/funny/12/a-title",
            reads=texts("/f/funny /images/b021.jpg", NO_PAGE),
        ),
    ),
    Row(
        *(11, "WA#51, WA#56", "A reference that is a text where a list is usual, or a type named twice, is an error."),
        "The text N/A is taken, as in later releases; a type that is named twice is refused when the file is loaded.",
        Case(ask("no such order", fuzzy_match="N/A"), 1.0, 1.0, 1.0, 1.0, answer="N/A"),
        ("test_task_check.py::test_a_broken_task_is_refused_with_its_id_and_field",),
    ),
    Row(
        *(12, "WA PR#274", "Wrong references, such as a status that the shop calls otherwise."),
        THE_TASKS_OWN,
        Case(see("last", must_include=["Completed"]), 1.0, 0.0, 0.0, 0.0, reads=texts("Status: Complete")),
    ),
    Row(
        *(13, "WA#185", "The clone command has the host of the authors' own machine."),
        THE_TASKS_OWN,
        Case(
            *(ask(exact_match="git clone ssh://git@authors.example:2222/ann/tool.git"), 1.0, 0.0, 0.0, 0.0),
            answer="git clone ssh://git@git.mine.example:2222/ann/tool.git",
        ),
    ),
    Row(
        *(14, "WA#79, WA PR#81", "On an impossible task only the letters N/A count."),
        "strict has any denial judged against the task's reason.",
        Case(
            *(ask("no such order", exact_match="N/A"), 1.0, 0.0, 0.0, 1.0),
            answer="There is no such order.",
            judge=Agreeing(),
        ),
    ),
    Row(
        *(14, "WA#79, WA PR#81", "A lenient judge takes a made-up result for the reason why the task is impossible."),
        "strict lets only what denies something reach the judge.",
        Case(
            *(ask("no such order", fuzzy_match="N/A"), 0.0, 1.0, 1.0, 0.0),
            answer="The order costs $42.",
            judge=Agreeing(),
        ),
    ),
    Row(
        *(15, "WA#24, WA#25, WA#30, WA#44", "Wrong references that earlier releases corrected."),
        "Nothing to grade: data. The file of the installed wheel is read as it is (`webarena_tasks.read_tasks`).",
    ),
    Row(
        *(16, "VWA#71", "An order's number with zeros in front passes in one evaluator and fails in the other."),
        "strict reads numbers.",
        Case(ask(must_include=["170"]), 1.0, 1.0, 0.0, 1.0, answer="000000170"),
    ),
    Row(
        *(16, "VWA#71", "A number that only begins like the wanted one passes."),
        "strict compares whole tokens.",
        Case(ask(must_include=["170"]), 0.0, 1.0, 0.0, 0.0, answer="1700"),
    ),
    Row(
        *(17, "VWA#84", "A 0 before a full stop is not found."),
        "strict reads the full stop as the sentence's.",
        Case(ask(must_include=["0"]), 1.0, 0.0, 0.0, 1.0, answer="It is 0. There are none"),
    ),
    Row(
        *(18, "VWA#41", "A number with its unit is not the number."),
        "strict reads units. That a right answer may come from a wrong page, as at task 142, no rule for answers sees.",
        Case(ask(exact_match="21"), 1.0, 0.0, 0.0, 1.0, answer="21 inches"),
    ),
    Row(
        *(19, "BG#93", "A branch of BrowserGym's validation is skipped in silence."),
        "Nothing to grade: code of one of its tasks. Our tasks in BrowserGym are graded by our rules; one of its own, "
        "if played here, keeps its own word.",
        tests=("test_browsergym.py::test_a_task_of_ours_is_graded_when_the_agent_speaks",),
    ),
    Row(
        *(20, "BG#304", "Grading at every step tells when the task is met and discards what was typed."),
        "Not reproduced: graded once, at the end, on pages of the grader's own. Only a task of BrowserGym's own, if "
        "played here, is asked after each step, as its interface wants it.",
        tests=(
            "test_browser.py::test_final_freezes_the_episode",
            "test_browser.py::test_a_grader_reads_in_a_page_of_its_own_with_the_agents_cookies",
            "test_browsergym.py::test_pages_are_read_for_the_grader_in_a_context_of_their_own",
        ),
    ),
    Row(
        *(21, "BG#366", "A slash at the end of a site's address makes a double one in the reference."),
        "Not reproduced: an address is put in without its last slash.",
        Case(
            *(visit("__SHOPPING__/catalogsearch/result/?q=xbox"), 1.0, 1.0, 1.0, 1.0),
            url=f"{SHOP}/catalogsearch/result/?q=xbox",
            addresses={"__SHOPPING__": f"{SHOP}/"},
        ),
    ),
    Row(
        *(22, "BG#280", "localhost and 127.0.0.1 are two hosts, and the second is off the site."),
        "vab and strict take them for one; an agent may open both.",
        Case(
            *(visit("__SHOPPING__/cart"), 1.0, 0.0, 1.0, 1.0),
            url="http://127.0.0.1:7770/cart",
            addresses={"__SHOPPING__": "http://localhost:7770"},
        ),
        ("test_webarena.py::test_an_agent_may_reach_a_site_by_any_name_and_is_shown_its_host",),
    ),
    Row(
        *(23, "AL#227", "A link of the site that leads off it ends the episode with 0."),
        "Not reproduced: the way out is refused and the page stays.",
        tests=(
            "test_browser.py::test_no_way_out_of_a_page_reaches_a_foreign_server",
            "test_browser.py::test_a_stray_that_comes_after_the_step_is_sent_back_at_the_next_look",
        ),
    ),
    Row(
        *(24, "webarena-setup#4", "Another router of the map gives another travel time than the reference."),
        f"{NOT_REPAIRED}nothing says how much a time may differ; correct the reference for the map that is hosted.",
        Case(ask(fuzzy_match=["9min"]), 1.0, 0.0, 0.0, 0.0, answer="It takes 10 minutes.", judge=OfflineJudge()),
    ),
    Row(
        *(25, "WA#136, WA#161, WA#91", "What earlier tasks changed changes the right end of later ones."),
        "The sites' matter: put back for each episode on the embedded sites, and by a hook on hosted ones.",
        tests=(
            "test_embedded.py::test_a_reset_gives_the_pristine_state_back",
            "test_webarena.py::test_sites_are_reset_once_a_run_or_before_each_episode",
        ),
    ),
    Row(
        *(26, "WA#212, WA#120", "The forum's limit of posts per hour stops parallel episodes."),
        "Nothing to grade: a setting of the hosted forum, to be lifted there; the embedded forum has no limit, and "
        "workers may have copies of their own.",
        tests=("test_webarena.py::test_workers_have_copies_where_several_addresses_are_given",),
    ),
    Row(27, "WV#42", "Only the last navigation counts, where two were asked for.", NOT_GRADED_HERE, tests=VERIFIED),
    Row(28, "WV#5", "The answer that nothing was found is an error.", NOT_GRADED_HERE, tests=VERIFIED),
    Row(29, "WV PR#45, WV PR#46", "Wrong rules for recorded requests.", NOT_GRADED_HERE, tests=VERIFIED),
    Row(
        *(30, "BG#392, BG PR#396, miniwob-plusplus#104, #108, PR#125", "The wrong card's 0.1 is a success."),
        "Not reproduced: only a raw reward of exactly 1 is a success. BrowserGym's own task keeps its own word.",
        Case({"eval_types": ["page"]}, 0.0, 0.0, 0.0, 0.0, page={"reward": 0.1, "reason": ""}),
        ("test_miniwob.py::test_a_partial_reward_is_no_success",),
    ),
    Row(
        *(31, "WebArena-Lite, id 81", "A text where a list is due stops the evaluator."),
        "Ungraded in webarena and vab, which have no score for it; repaired in strict.",
        tests=(
            "test_evaluators.py::test_the_defect_of_webarena_lite_81_is_refused_unless_repaired",
            "test_webarena.py::test_the_known_defect_is_ungraded_as_released_and_repaired_in_strict",
        ),
    ),
    Row(
        *(32, "VisualAgentBench", "The order of an address's query counts."),
        "strict compares the query's pairs in any order.",
        Case(visit("__SHOPPING__/s?q=tea&dir=asc"), 1.0, 1.0, 0.0, 1.0, url=f"{SHOP}/s?dir=asc&q=tea"),
    ),
    Row(
        *(32, "VisualAgentBench", "The way a blank is encoded in an address counts."),
        "strict decodes both addresses.",
        Case(visit("__SHOPPING__/s?q=green%20tea"), 1.0, 1.0, 0.0, 1.0, url=f"{SHOP}/s?q=green+tea"),
    ),
    Row(
        *(33, "WebAgent-R1", "Who never stops is taken to have answered N/A."),
        "Not reproduced: without exit the answer is empty, which never passes.",
        Case(ask("no such order", fuzzy_match="N/A"), 0.0, 0.0, 0.0, 0.0, answer="", judge=Agreeing()),
    ),
    Row(
        *(33, "WebAgent-R1", "An answer in other quotes than double ones is lost."),
        "Not reproduced: the parser of actions reads an answer however it is quoted.",
        tests=(
            "test_actions.py::test_exit_takes_one_message_that_may_be_missing",
            "test_actions.py::test_quotes_and_comment_signs_in_a_text_are_text",
        ),
    ),
    Row(
        *(34, "WebArena, VisualAgentBench", "Text that stood on the page before the task earns the credit."),
        "strict reads the page on the state before the task too.",
        Case(
            *(see("__SHOPPING__/me", must_include=["Open to offers"]), 0.0, 1.0, 1.0, 0.0),
            reads=texts("Mia. Open to offers.", "Mia. Open to offers."),
        ),
    ),
    Row(
        *(34, "WebArena, VisualAgentBench", "What the agent typed into the search box is found in the page's source."),
        "strict reads what the page shows and not its source.",
        tests=(
            "test_evaluators.py::test_released_modes_compare_the_source_where_there_is_no_locator",
            "test_evaluators.py::test_the_last_page_is_read_where_the_episode_ended",
        ),
    ),
    Row(
        *(34, "WebArena, VisualAgentBench", "A list of results repeats the words that the agent searched for."),
        f"{NOT_REPAIRED}a page that is only read is the same before the task, so nothing tells an echo from a find.",
        Case(
            *(see("last", must_include=["Chatham University"]), 0.0, 1.0, 1.0, 1.0),
            reads=texts("No results for Chatham University"),
        ),
    ),
    Row(
        *(35, "WebArena", "The newest order of all is graded, which may be another worker's."),
        "The order is asked for as released, but by its entity_id. Workers need copies of their own, which is said.",
        tests=(
            "test_webarena.py::test_the_shops_helpers_ask_its_rest_interface",
            "test_webarena.py::test_workers_on_one_copy_are_told_once",
        ),
    ),
    Row(
        *(36, "WebArena, VisualAgentBench", "Texts of a task file are run as code."),
        "Not reproduced: a call is looked up by its name, and its arguments are data.",
        tests=(
            "test_task_check.py::test_anything_but_one_registered_call_with_literals_is_refused",
            "test_evaluators.py::test_an_address_in_a_helper_call_is_data_and_never_code",
        ),
    ),
    Row(
        *(
            37,
            "BrowserGym, VisualAgentBench",
            "A fault while grading is a 0, or takes the task out of the mean unsaid.",
        ),
        "Ungraded in every mode, and counted beside the rate.",
        Case(see("last", must_include=["tea"]), None, None, None, None, reads=texts({"error": "timed out"})),
        ("test_evaluators.py::test_faults_and_ungraded_episodes_are_in_no_denominator",),
    ),
    Row(
        *(38, "WebArena, VisualAgentBench", "The tab that happens to be current is graded."),
        "Kept in every mode, but not by chance: the episode ends on the active tab, which the agent was shown last.",
        Case(visit("__SHOPPING__/wanted"), 0.0, 0.0, 0.0, 0.0, url=f"{SHOP}/opened/later"),
        ("test_executor.py::test_a_link_to_a_new_tab_is_followed_and_the_old_tab_can_be_focused",),
    ),
    Row(
        *(39, "VisualAgentBench", "An action that ran has a reward of 1 inside, which is no success."),
        "Nothing to grade: a step has no reward here; of released traces the score is read, from its file or field.",
        tests=(
            "test_evaluators.py::test_only_a_score_of_exactly_one_is_a_success",
            "test_exchange.py::test_fixed_traces_come_back_with_their_scores",
        ),
    ),
    Row(
        *(40, "VisualAgentBench", "Two rates over two numbers of tasks; of several tries the best one counts."),
        "Not reproduced: one rate that names what it is over, of one try a task; only an episode that the environment "
        "broke is played again.",
        tests=(
            "test_webarena.py::test_a_score_prints_evaluator_numbers_interval_floor_and_what_is_left_out",
            "test_rollout.py::test_every_task_is_played_once_and_comes_back_in_its_place",
        ),
    ),
)


def cell(score: float | None) -> str:
    return "ungraded" if score is None else f"{score:g}"


def line(row: Row) -> str:
    """Return the row of a Markdown table."""
    case = row.case
    scores = (case.right, case.webarena, case.vab, case.strict) if case else ()
    names = ", ".join(f"`{test.split('::')[1]}`" for test in row.tests)
    note = f"{row.note} Tests: {names}." if names else row.note
    cells = [row.number, row.source, row.flaw.replace("|", "\\|"), *(map(cell, scores) if case else [""] * 4)]
    return f"| {' | '.join(map(str, cells))} | {note.replace('|', chr(92) + '|')} |"


def table() -> str:
    """Return the list for people."""
    head = "# Known flaws of graders\n\nMade by `python -m tests.test_grader_flaws > tests/benchmarks/GRADERS.md`. "
    text = (
        "For an episode that\n`tests/test_grader_flaws.py` grades there are four scores: the one that ought to come "
        "out (right), and those of the\nthree modes. A row without scores is not of a rule: its note says what becomes "
        "of it, and which tests show it.\n`Not repaired` is where strict is wrong too. WA is web-arena-x/webarena, VWA "
        "visualwebarena, BG BrowserGym, AL AgentLab,\nWV webarena-verified, with numbers of issues or pull requests "
        "(PR); 31 to 40 were found by reading the programs.\n\n"
    )
    columns = "| number | source | flaw | right | webarena | vab | strict | note |\n"
    return f"{head}{text}{columns}|{' --- |' * 8}\n" + "".join(f"{line(row)}\n" for row in ROWS)


CASES = [row for row in ROWS if row.case]


def test_every_known_flaw_has_a_row():
    assert sorted({row.number for row in ROWS}) == list(range(1, 41))
    assert [row.number for row in ROWS] == sorted(row.number for row in ROWS)


@pytest.mark.parametrize("mode", ["webarena", "vab", "strict"])
@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row.number}-{row.source}")
def test_a_flaw_has_this_score_in_each_mode(row, mode):
    case = row.case
    record = {"task_id": "t", "sites": ["shopping"], "intent": "Do it.", "start_url": "__SHOPPING__/start"}
    verdict = grade(
        Task.from_json({**record, "eval": case.evaluation}),
        answer=case.answer,
        final_url=case.url,
        evidence={"reads": case.reads} if case.page is None else {"page": case.page},
        mode=mode,
        judge=case.judge,
        addresses=case.addresses,
    )
    assert verdict.score == getattr(case, mode), verdict.reasons


@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row.number}-{row.source}")
def test_strict_is_right_or_the_note_says_why_not(row):
    assert (row.case.strict != row.case.right) == row.note.startswith(NOT_REPAIRED)


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in row.tests}))
def test_a_test_that_is_named_exists(name):
    file, function = name.split("::")
    assert re.search(rf"^def {function}\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_a_row_without_case_and_tests_says_that_nothing_is_graded():
    bare = [row for row in ROWS if not row.case and not row.tests]
    assert [row.number for row in bare if not row.note.startswith("Nothing to grade: ")] == []


def test_the_list_for_people_is_this_one():
    assert PAPER.read_text(encoding="utf-8") == table()


if __name__ == "__main__":
    print(table(), end="")
