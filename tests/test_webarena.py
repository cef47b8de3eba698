"""WebArena on hosted sites: task files, addresses, signing in, resets, health, and episodes on the stand-in."""

import json
import logging
import sys

import pytest
from standin_sites import StandIn, short_patience

from webrl_lite.browser import BrowserError
from webrl_lite.envs import webarena, webarena_hooks, webarena_sites, webarena_tasks
from webrl_lite.envs.web_env import WebEnv
from webrl_lite.envs.webarena import WebArenaSites
from webrl_lite.envs.webarena_hooks import Account
from webrl_lite.envs.webarena_sites import HostedSites, addresses_of
from webrl_lite.envs.webarena_tasks import LITE_IDS, counts, na_floor, read_tasks
from webrl_lite.evaluators import OfflineJudge
from webrl_lite.task_check import Call, TaskError
from webrl_lite.trajectory import StopReason, Task, TraceError, Trajectory, Verdict


def record(task_id, sites, start, types, answers=None, url="", pages=(), **more):
    """A task in the form of the published files, with the keys that they have and the kit does not use."""
    evaluation = {
        "eval_types": types.split("+"),
        "reference_answers": answers,
        "reference_url": url,
        "program_html": list(pages),
        "string_note": "",
        "reference_answer_raw_annotation": "",
        **({"url_note": "GOLD in PRED"} if url else {}),
    }
    return {
        "sites": sites.split("+"),
        "task_id": task_id,
        "require_login": True,
        "storage_state": f"./.auth/{sites.split('+')[0]}_state.json",
        "start_url": start,
        "geolocation": None,
        "intent_template": "Do {{what}}",
        "instantiation_dict": {"what": "it"},
        "intent": f"Do it, number {task_id}",
        "require_reset": False,
        "eval": evaluation,
        "intent_template_id": 200 + task_id,
        **more,
    }


def page(url, locator, **contents):
    return {"url": url, "locator": locator, "required_contents": contents}


LISTING = "document.querySelector('.submission__inner').outerText"
RECORDS = [
    record(0, "shopping", "__SHOPPING__", "string_match", {"exact_match": "Blue Kettle"}),
    record(1, "map+wikipedia", "__MAP__", "string_match", {"must_include": ["914", "Pittsburgh"]}),
    record(2, "shopping_admin", "__SHOPPING_ADMIN__", "string_match", {"fuzzy_match": ["No, it is open"]}),
    record(3, "gitlab", "__GITLAB__", "url_match", url="__GITLAB__/dashboard/todos"),
    record(4, "gitlab", "__GITLAB__", "string_match+url_match", {"exact_match": "Yes"}, url="__GITLAB__/a/-/issues/7"),
    record(
        *(5, "reddit", "__REDDIT__", "program_html"),
        pages=[
            page(
                "__REDDIT__/user/MarvelsGrantMan136",
                "document.querySelector('.user-bio__biography').outerText",
                exact_match="Freelance Web Developer",
            )
        ],
    ),
    record(
        *(6, "shopping+reddit", "__SHOPPING__", "url_match+program_html"),
        url="__REDDIT__/f/gaming |OR| __REDDIT__/f/games",
        pages=[page("func:reddit_get_post_url('__last_url__')", LISTING, must_include=["Wheel", "pedals stopped"])],
    ),
    record(
        *(7, "shopping", "__SHOPPING__/sales/order/view/order_id/180/", "program_html"),
        pages=[
            page(
                "func:shopping_get_latest_order_url()",
                "document.querySelector('.order-details-items.ordered').outerText",
                must_include=["B0738JQG6Q"],
            )
        ],
    ),
    record(
        *(8, "shopping", "__SHOPPING__/review/product/B00J8RZL7I", "program_html"),
        pages=[
            page("last", "func:shopping_get_sku_latest_review_rating('B00J8RZL7I')", must_include=["100"]),
            page("last", "func:shopping_get_sku_latest_review_author('B00J8RZL7I')", must_include=["Emma"]),
        ],
    ),
    record(
        *(9, "shopping", "__SHOPPING__/tall-candles.html |AND| __SHOPPING__/white-candles.html", "program_html"),
        pages=[page("__SHOPPING__/checkout/cart", "", must_include=["White Candles |OR| White Taper"])],
    ),
    record(
        *(10, "wikipedia+map", "__MAP__", "program_html"),
        pages=[
            page("last", "document.querySelector('[name=\"route_from\"').value", must_include=["Carnegie"]),
            page("last", "document.querySelector('div#content select.routing_engines').selectedIndex", exact_match="1"),
        ],
    ),
    record(
        *(11, "gitlab+reddit", "__GITLAB__/projects/new", "program_html"),
        pages=[page("__GITLAB__/byteblaze/diy/-/raw/main/README.md", "", must_include=["__REDDIT__/f/DIY/11/glue"])],
    ),
    record(12, "shopping", "__SHOPPING__", "string_match", {"exact_match": "N/A"}),
    record(
        *(13, "gitlab", "__GITLAB__/byteblaze/dotfiles/-/project_members", "program_html"),
        pages=[
            page(
                "__GITLAB__/byteblaze/dotfiles/-/project_members",
                "func:gitlab_get_project_memeber_role(__page__, 'vinta')",
                must_include=["Guest"],
            )
        ],
    ),
    record(
        *(14, "shopping", "__SHOPPING__/contact", "url_match+program_html"),
        url="__SHOPPING__/contact",
        pages=[page("last", "document.querySelector('[title=\"What’s on your mind?\"').value", fuzzy_match=["12.99"])],
    ),
    record(
        *(15, "shopping_admin", "__SHOPPING_ADMIN__/sales_rule/promo_quote/new", "program_html"),
        pages=[
            page("last", "document.querySelector('[name=\"name\"').value", must_include=["spring"]),
            {
                **page("last", "document.querySelector('[name=\"discount_amount\"').value", exact_match="20"),
                "prep_actions": [
                    "document.querySelector('[data-index=\"actions\"]').querySelector('.admin__collapsible-title').click()"
                ],
            },
        ],
    ),
]


def write(folder, records, name="tasks.json", lines=False):
    path = folder / name
    path.write_text("\n".join(map(json.dumps, records)) if lines else json.dumps(records, indent=1), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module", autouse=True)
def patience():
    with short_patience():
        yield


@pytest.fixture(scope="module")
def standin():
    sites = StandIn()
    yield sites
    sites.close()


@pytest.fixture(scope="module")
def backend(standin, tmp_path_factory):
    path = write(tmp_path_factory.mktemp("webarena"), RECORDS)
    return WebArenaSites(path, evaluator="vab", addresses=standin.addresses, environ={})


@pytest.fixture
def fresh(standin):
    standin.clear()
    standin.broken.clear()
    standin.seen.clear()
    standin.resets.clear()
    return standin


ALL = {site: f"http://sites.example:{port}" for port, site in enumerate(webarena_sites.SITES, start=7000)}


# Task files ------------------------------------------------------------------------------------------------------


def wheel(folder, name, files):
    """Lay an installed wheel into a folder: its files and their list, as pip does."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


def test_tasks_are_read_from_an_installed_wheel_whose_python_cannot_be_imported(tmp_path, monkeypatch):
    lite = record(0, "shopping", "__SHOPPING__", "string_match", {"exact_match": "a"}, old_task_id=4)
    files = {
        "browsergym/webarenalite/__init__.py": "raise RuntimeError",
        "browsergym/webarenalite/test_webarena_lite.raw.json": json.dumps([lite]),
    }
    wheel(tmp_path, "browsergym-webarenalite", files)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])  # nothing else is installed
    found = read_tasks("webarena_lite")
    assert [(task.task_id, task.split, task.extra["old_task_id"]) for task in found.tasks] == [("0", "test", 4)]
    assert "browsergym.webarenalite" not in sys.modules


def test_the_full_set_is_found_in_either_wheel_and_split_by_the_ids_of_lite(tmp_path, monkeypatch):
    tasks = [record(n, "map", "__MAP__", "string_match", {"exact_match": "a"}) for n in (3, 4, 811)]
    wheel(tmp_path, "webarena-verified", {"webarena_verified/assets/dataset/test.raw.json": json.dumps(tasks)})
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert {task.task_id: task.split for task in read_tasks("webarena").tasks} == {
        "3": "train",
        "4": "test",
        "811": "test",
    }


def test_a_set_that_is_not_installed_says_which_package_has_it(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(FileNotFoundError, match="--no-deps libwebarena` or `pip install --no-deps webarena"):
        read_tasks("webarena")


def test_a_path_that_is_not_there_is_refused():
    with pytest.raises(FileNotFoundError, match="must be one of webarena_lite, webarena, .* there is none"):
        read_tasks("/nowhere/tasks.json")


@pytest.mark.parametrize("lines", [False, True])
def test_a_json_list_and_json_lines_give_the_same_tasks(tmp_path, lines):
    found = read_tasks(write(tmp_path, RECORDS, lines=lines))
    assert [task.task_id for task in found.tasks] == [str(n) for n in range(16)]
    assert found.tasks[6].sites == ("shopping", "reddit")
    assert found.tasks[6].family == "webarena.206"


def test_unknown_keys_are_kept(tmp_path):
    odd = {**RECORDS[0], "annotation_note": "x", "string_note": "y"}
    assert read_tasks(write(tmp_path, [odd])).tasks[0].extra["annotation_note"] == "x"


def test_bare_intents_are_numbered_and_have_no_grader(tmp_path):
    bare = {"intent": "Look", "sites": ["map"], "start_url": "__MAP__"}
    tasks = read_tasks(write(tmp_path, [bare, bare])).tasks
    assert [(task.task_id, task.eval) for task in tasks] == [("0", None), ("1", None)]


def test_verified_tasks_keep_their_own_grader_and_join_their_start_pages(tmp_path):
    verified = {
        **{"sites": ["map"], "task_id": 9, "intent": "Look", "start_urls": ["__MAP__", "__MAP__/b"]},
        "eval": [{"evaluator": "AgentResponseEvaluator", "expected": {"status": "SUCCESS"}}],
    }
    task = read_tasks(write(tmp_path, [verified])).tasks[0]
    assert task.start_url == "__MAP__ |AND| __MAP__/b"
    assert task.eval is None
    assert task.extra["verified_eval"][0]["evaluator"] == "AgentResponseEvaluator"


def test_broken_graders_are_refused_together_with_task_and_field(tmp_path):
    """EVA-14."""
    broken = [
        {**RECORDS[0], "task_id": 90, "eval": {**RECORDS[0]["eval"], "eval_types": ["guess"]}},
        record(91, "map", "__MAP__", "string_match", {"must_include": ["a", ""]}),
        record(92, "map", "__MAP__", "program_html", pages=[page("last", "page.title()", exact_match="a")]),
        record(93, "map", "__MAP__", "program_html", pages=[page("func:__import__('os')", "", exact_match="a")]),
    ]
    with pytest.raises(TaskError) as caught:
        read_tasks(write(tmp_path, [RECORDS[0], *broken]))
    lines = str(caught.value).splitlines()
    assert "4 tasks" in lines[0]
    assert [line.split("`")[0] + line.split("`")[1] for line in lines[1:]] == [
        "task 90: eval.eval_types",
        "task 91: eval.reference_answers.must_include[1]",
        "task 92: eval.program_html[0].locator",
        "task 93: eval.program_html[0].url",
    ]


DEFECT = record(81, "gitlab", "__GITLAB__", "string_match", {"must_include": "yjlou"})


def test_the_known_defect_is_ungraded_as_released_and_repaired_in_strict(tmp_path):
    """WebArena-Lite's id 81: a text where a list is due stops the released evaluator."""
    path = write(tmp_path, [RECORDS[0], DEFECT])
    for mode in ("vab", "webarena"):
        sites = WebArenaSites(path, evaluator=mode, addresses=ALL, environ={})
        assert sites.tasks[1].eval is None
        assert "must be a non-empty list of texts, got 'yjlou'" in sites.defects["81"]
    sites = WebArenaSites(path, addresses=ALL, environ={})
    assert sites.evaluator == "strict"
    assert sites.tasks[1].eval["reference_answers"] == {"must_include": ["yjlou"]}
    assert list(sites.defects) == ["81"]


def test_two_tasks_of_one_id_are_refused(tmp_path):
    with pytest.raises(TraceError, match="got twice: 0"):
        read_tasks(write(tmp_path, [RECORDS[0], RECORDS[0]]))


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1, 2]", "item 0: a task must be an object"), ("{]", "JSON list or one JSON"), ('{"a": 1}\n{', "line 2")],
)
def test_a_file_that_holds_no_tasks_is_refused(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(TraceError, match=message):
        read_tasks(path)


@pytest.mark.parametrize("place", ["Berlin", {"latitude": 1}, {"latitude": "1", "longitude": 2}, 3])
def test_a_place_that_is_none_is_refused(tmp_path, place):
    with pytest.raises(TraceError, match="task 0: `geolocation` must be null or"):
        read_tasks(write(tmp_path, [{**RECORDS[0], "geolocation": place}]))


def test_training_tasks_have_ids_of_their_own_and_no_test_instruction(tmp_path):
    tests = write(tmp_path, RECORDS[:2])
    train = write(
        tmp_path, [{**RECORDS[5], "intent": "Another"}, {**RECORDS[3], "intent": "do IT,  number 0!"}], "t.json"
    )
    sites = WebArenaSites(tests, train=train, addresses=ALL, environ={})
    assert [(task.task_id, task.split) for task in sites.tasks] == [("0", "test"), ("1", "test"), ("train.5", "train")]


# Counts and scores -------------------------------------------------------------------------------------------------


def test_counts_are_by_sites_types_and_rules(tmp_path):
    found = counts(read_tasks(write(tmp_path, [*RECORDS, DEFECT])).tasks)
    assert found.tasks == 17
    assert found.sites["shopping"] == 6
    assert found.sites["gitlab+reddit"] == 1
    assert found.eval_types == {
        "string_match": 5,
        "program_html": 8,
        **{"url_match": 1, "string_match+url_match": 1, "url_match+program_html": 2},
    }
    assert found.answers == {"exact_match": 3, "must_include": 2, "fuzzy_match": 1}
    assert found.contents == {"must_include": 9, "exact_match": 3, "fuzzy_match": 1}


def test_lite_has_165_tasks_of_the_812():
    assert len(LITE_IDS) == 165
    assert max(LITE_IDS) == 811


def test_the_floor_counts_what_an_agent_gets_that_only_says_not_available():
    """An exact "N/A" needs no judge, a list of one to be judged does; any other fuzzy reference is not met."""
    tasks = [
        Task.from_json(record(0, "map", "__MAP__", "string_match", {"exact_match": "N/A"})),
        Task.from_json(record(1, "map", "__MAP__", "string_match", {"fuzzy_match": "N/A"})),
        Task.from_json(record(2, "map", "__MAP__", "string_match", {"fuzzy_match": ["N/A"]})),
        Task.from_json(record(3, "map", "__MAP__", "string_match", {"fuzzy_match": ["ten"]})),
        Task.from_json(record(4, "map", "__MAP__", "string_match", {"exact_match": "ten"})),
        Task.from_json(record(5, "map", "__MAP__", "url_match", url="__MAP__/there")),
    ]
    assert str(na_floor(tasks, "vab")) == (
        'an agent that always answers "N/A": 2 of 6 = 33.3 %; with a judge 3 = 50.0 %'
    )
    assert na_floor(tasks, "strict").successes == 3


def graded(task, score, reason="", stop=StopReason.EXIT):
    return Trajectory(task=task, steps=(), stop=stop, verdict=Verdict(score, "vab", "1", (reason,)))


def test_a_score_prints_evaluator_numbers_interval_floor_and_what_is_left_out(backend):
    """3 of 4: Wilson's interval is 30.1 to 95.4 %."""
    tasks = backend.tasks
    episodes = [
        *(graded(tasks[n], 1.0) for n in (0, 3, 4)),
        graded(tasks[1], 0.0),
        graded(tasks[2], None, "fuzzy_match 'a' against 'b': needs a judge, none is configured"),
        graded(tasks[5], None, "no page"),
        graded(tasks[12], None, stop=StopReason.ENV_ERROR),
    ]
    shown = webarena_tasks.score(
        episodes, name="some", mode="vab", left_out={"8": "map is not hosted", "9": "map is not hosted"}
    )
    assert str(shown).splitlines() == [
        "some, evaluator vab 1: 3/4 = 75.0 %, Wilson 95 % [30.1, 95.4]",
        "graded 4, ungraded 2 (1 for want of a judge), faulted 1; the rate is over graded episodes only",
        'floor: an agent that always answers "N/A": 1 of 7 = 14.3 %',
        "left out: 2 tasks, so this is not the score of the whole set (2: map is not hosted)",
        "  gitlab: 2/2",
        "  map+wikipedia: 0/1",
        "  reddit: 0/0",
        "  shopping: 1/1",
        "  shopping_admin: 0/0",
    ]


def test_a_score_of_nothing_graded_says_so(backend):
    shown = str(backend.score([graded(backend.tasks[2], None)]))
    assert "0/0 = nothing graded, Wilson 95 % [0.0, 100.0]" in shown


def test_scores_of_two_evaluators_are_not_added(backend):
    other = Trajectory(task=backend.tasks[0], steps=(), stop=StopReason.EXIT, verdict=Verdict(1.0, "strict", "1"))
    with pytest.raises(ValueError, match="not comparable"):
        backend.score([graded(backend.tasks[1], 1.0), other])


# The published files -----------------------------------------------------------------------------------------------


def installed(name):
    wheels = [wheel for wheel, _ in webarena_tasks.SETS[name].places]
    try:
        webarena_tasks.find_file(name)
    except FileNotFoundError:
        return pytest.mark.skip(reason=f"none of the wheels {', '.join(wheels)} is installed")
    return pytest.mark.filterwarnings("default")


@installed("webarena_lite")
def test_the_165_tasks_are_all_read_and_counted():
    found = read_tasks("webarena_lite")
    number = counts(found.tasks)
    assert number.tasks == 165
    assert {site: n for site, n in number.sites.items() if "+" not in site} == {
        **{"shopping": 45, "shopping_admin": 35, "gitlab": 30, "map": 26, "reddit": 19}
    }
    assert number.eval_types == {
        **{"string_match": 78, "program_html": 48, "url_match+program_html": 19, "url_match": 18},
        "string_match+url_match": 2,
    }
    assert number.answers == {"must_include": 37, "fuzzy_match": 35, "exact_match": 7, "fuzzy_match+must_include": 1}
    assert number.contents == {"must_include": 59, "exact_match": 27, "fuzzy_match": 4}
    assert list(found.defects) == ["81"]
    assert {task.extra["old_task_id"] for task in found.tasks} == LITE_IDS
    assert (na_floor(found.tasks, "vab").successes, na_floor(found.tasks, "vab").judged) == (8, 2)


@installed("webarena")
def test_the_812_tasks_are_all_read_and_counted():
    found = read_tasks("webarena")
    number = counts(found.tasks)
    assert number.tasks == 812
    assert number.eval_types == {
        **{"string_match": 325, "program_html": 282, "url_match+program_html": 129, "url_match": 66},
        "string_match+url_match": 10,
    }
    assert number.answers == {
        **{"must_include": 172, "fuzzy_match": 114, "exact_match": 45, "fuzzy_match+must_include": 4}
    }
    assert number.contents == {"must_include": 463, "exact_match": 188}
    assert number.sites["shopping"] == 187
    assert not found.defects
    assert sum(task.split == "test" for task in found.tasks) == 165


@installed("webarena_verified")
def test_the_verified_tasks_are_read():
    assert counts(read_tasks("webarena_verified").tasks).eval_types == {"none": 812}
    assert len(read_tasks("webarena_verified_hard").tasks) == 258


# Addresses ---------------------------------------------------------------------------------------------------------


def test_an_argument_goes_before_a_prefixed_variable_and_that_before_the_bare_one():
    environ = {"WA_SHOPPING": "http://b:1", "SHOPPING": "http://c:1", "GITLAB": "http://d:1", "WA_GITLAB": ""}
    assert addresses_of(environ) == {"shopping": ("http://b:1",), "gitlab": ("http://d:1",)}
    assert addresses_of(environ, {"shopping": "http://a:1"})["shopping"] == ("http://a:1",)


@pytest.mark.parametrize(
    "text", ["http://H.example:7780/admin", "http://h.example:7780/admin/", "HTTP://h.EXAMPLE:7780/admin//"]
)
def test_slashes_at_the_end_and_case_of_the_host_do_not_count(text):
    """EVA-06, BrowserGym#366."""
    assert addresses_of({"SHOPPING_ADMIN": text}) == {"shopping_admin": ("http://h.example:7780/admin",)}


@pytest.mark.parametrize("text", ["", " ", "todo", "TODO", "PASS", "pass"])
def test_placeholder_values_mean_that_a_site_is_not_hosted(text):
    assert addresses_of({"MAP": text}) == {}


@pytest.mark.parametrize(
    "text", ["shop.example:7770", "http://", "ftp://a", "http://a:99999", "http://[::1", "http://a?b=c", "http://a,b"]
)
def test_an_address_that_is_none_is_refused_with_its_variable(text):
    with pytest.raises(ValueError, match="`WA_MAP` must be like http"):
        addresses_of({"WA_MAP": text})


def test_a_site_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="must be of shopping, .*, got 'shop'"):
        addresses_of({}, {"shop": "http://a"})


def test_workers_have_copies_where_several_addresses_are_given():
    sites = HostedSites(addresses_of({"REDDIT": "http://a:1, http://b:2/", "MAP": "http://m:1"}))
    assert [sites.address("reddit", 0), sites.address("reddit", 1)] == ["http://a:1", "http://b:2"]
    assert sites.address("map", 5) == "http://m:1"
    with pytest.raises(ValueError, match="worker 2 has no copy of reddit: `REDDIT` names 2"):
        sites.address("reddit", 2)


def test_workers_on_one_copy_are_told_once(caplog):
    sites = HostedSites(addresses_of({"GITLAB": "http://a:1"}))
    with caplog.at_level(logging.WARNING):
        for worker in (0, 1, 2):
            sites.address("gitlab", worker)
    assert [r.message for r in caplog.records] == [
        "several workers play on one gitlab and see each other's writes; give each a copy of its own"
    ]


def test_an_agent_may_reach_a_site_by_any_name_and_is_shown_its_host():
    names = HostedSites(addresses_of({"SHOPPING_ADMIN": "http://localhost:7780/admin"}), environ={}).allowed()
    assert names == {
        "shopping_admin": "http://localhost:7780",
        "luma.com": "http://localhost:7780",
        "localhost:7780": "http://localhost:7780",
        "127.0.0.1:7780": "http://127.0.0.1:7780",
    }
    assert list(names)[-2] == "localhost:7780"


def test_the_maps_servers_and_further_origins_may_be_reached():
    environ = {"WEBRL_LITE_ALSO_ALLOWED": "http://tiles.example:81/x, https://routes.example"}
    names = HostedSites(addresses_of({"MAP": "http://m.example:3000"}), environ=environ).allowed()
    assert set(names.values()) == {
        *(f"http://m.example:{port}" for port in (3000, 8080, 8085, 5000, 5001, 5002)),
        *("http://tiles.example:81", "https://routes.example"),
    }


def test_tasks_on_sites_that_are_not_hosted_are_left_out_with_the_reason(tmp_path):
    odd = [{**RECORDS[0], "task_id": 50, "sites": ["moon"]}, {**RECORDS[0], "task_id": 51, "start_url": "http://else/"}]
    hosted = {"shopping": "http://a:1", "map": "http://m:1"}
    sites = WebArenaSites(write(tmp_path, [*RECORDS, *odd]), addresses=hosted, environ={})
    assert [task.task_id for task in sites.tasks] == ["0", "7", "8", "9", "12", "14"]
    assert sites.left_out["1"] == "wikipedia is not hosted"
    assert sites.left_out["50"] == "there is no site moon"
    assert sites.left_out["51"] == "its start page is on no hosted site: http://else/"


def test_without_any_site_nothing_can_be_played(tmp_path):
    with pytest.raises(ValueError, match="none of the 16 tasks .* shopping is not hosted. Set SHOPPING"):
        WebArenaSites(write(tmp_path, RECORDS), environ={})


@pytest.mark.parametrize("option", [{"evaluator": "best"}, {"reset_each": "step"}])
def test_unknown_options_are_refused(tmp_path, option):
    with pytest.raises(ValueError, match=f"`{next(iter(option))}` must be"):
        WebArenaSites(write(tmp_path, RECORDS), addresses=ALL, environ={}, **option)


# Health, resets, helpers -------------------------------------------------------------------------------------------


def test_health_is_one_line_a_site(fresh):
    fresh.broken["reddit"] = 502
    addresses = {**fresh.addresses, "gitlab": "http://127.0.0.9:9", "shopping_admin": fresh.origin("shopping_admin")}
    del addresses["wikipedia"]
    found = HostedSites({site: (address,) for site, address in addresses.items()}).health()
    lines = {one.site: str(one) for one in found}
    assert list(lines) == list(webarena_sites.SITES)
    assert lines["shopping"].startswith(f"shopping       ok      {fresh.addresses['shopping']} answered in ")
    assert lines["shopping_admin"].endswith("has no path; the panel is usually at /admin")
    assert lines["reddit"] == f"reddit         FAILED  {fresh.addresses['reddit']} answered with status 502"
    assert "http://127.0.0.9:9 does not answer: " in lines["gitlab"]
    assert lines["wikipedia"].endswith("is not hosted: neither `WA_WIKIPEDIA` nor `WIKIPEDIA` is set")


def test_a_site_that_sends_elsewhere_is_not_well(fresh, monkeypatch):
    """WA#18: the base URL that was baked into the shop."""
    monkeypatch.setattr(
        webarena_sites, "ask", lambda url, **_: webarena_hooks.Answer(200, "http://baked.example/", "<h1>Shop</h1>")
    )
    line = str(HostedSites({"shopping": ("http://127.0.0.1:7770",)}).health(["shopping"])[0])
    assert "sends to http://baked.example: set the site's base URL, or `SHOPPING` to that" in line


def test_the_command_line_prints_counts_and_sites(fresh, tmp_path, monkeypatch, capsys):
    for site, address in fresh.addresses.items():
        monkeypatch.setenv(f"WA_{site.upper()}", address)
    fresh.broken["map"] = 500
    assert webarena.main(["--tasks", write(tmp_path, RECORDS)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "16 tasks"
    assert [line for line in out if "FAILED" in line] == [
        f"map            FAILED  {fresh.addresses['map']} answered with status 500; 2 tasks need it"
    ]
    assert webarena.main(["--tasks", "/nowhere"]) == 2


def test_env_ctrl_resets_each_site_and_waits_until_it_is_ready(fresh, monkeypatch):
    monkeypatch.setattr(webarena_hooks, "POLL_SECONDS", 0.01)
    fresh.cart, fresh.busy = ["x"], 2
    environ = {"SHOPPING_ENV_CTRL": fresh.control}
    sites = HostedSites({"shopping": ("http://h.example:7770",)}, reset="env-ctrl", environ=environ)
    sites.reset(["shopping", "map"])
    assert (fresh.resets, fresh.cart, fresh.busy) == (["env-ctrl"], [], -1)
    assert fresh.seen == ["control POST /reset", *["control GET /status"] * 3]


def test_env_ctrl_is_asked_at_the_published_port(monkeypatch):
    asked = []
    monkeypatch.setattr(webarena_sites, "reset_container", asked.append)
    some = {"shopping": ("http://a:7770",), "reddit": ("http://b:9999",), "gitlab": ("http://c:8023/x",)}
    HostedSites(some, reset="env-ctrl", environ={}).reset(["shopping", "reddit", "gitlab"])
    assert asked == ["http://a:7771", "http://b:9998", "http://c:8024"]


def test_a_reset_that_fails_is_an_environment_fault(fresh):
    fresh.reset_answer = {"success": False, "message": "disk is full"}
    with pytest.raises(BrowserError, match=r"/reset failed with status 200: disk is full"):
        webarena_hooks.reset_container(fresh.control)
    fresh.reset_answer = {"success": True}
    with pytest.raises(BrowserError, match="has no reset of its own; give a command instead"):
        webarena_hooks.reset_container(fresh.control + "/other")


def test_a_reset_command_finds_the_sites_in_its_environment(tmp_path):
    script = tmp_path / "reset it.py"
    target = tmp_path / "out"
    script.write_text(
        "import os, sys\nopen(sys.argv[1], 'w').write(os.environ['WEBRL_LITE_SITES'] + ' ' + os.environ['REDDIT'])"
    )
    command = f"{sys.executable} '{script}' {target}"
    sites = HostedSites({"reddit": ("http://a:1", "http://b:2"), "map": ("http://m:1",)}, reset=command)
    sites.reset(["reddit", "map"], worker=1)
    assert target.read_text() == "reddit http://b:2"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("/nowhere/reset.sh", "could not be run"),
        (f"{sys.executable} -c 'print(5); raise SystemExit(3)'", "ended with status 3: 5"),
        ("'", "could not be run"),
    ],
)
def test_a_reset_command_that_fails_is_an_environment_fault(command, message):
    with pytest.raises(BrowserError, match=message):
        webarena_hooks.run_command(command, {}, ["reddit"])


def test_a_reset_command_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(webarena_hooks, "RESET_SECONDS", 0.3)
    with pytest.raises(BrowserError, match=r"took longer than 0.3 s"):
        webarena_hooks.run_command(f"{sys.executable} -c 'import time; time.sleep(60)'", {}, ["reddit"])


@pytest.fixture
def no_sign_in(monkeypatch):
    monkeypatch.setattr(HostedSites, "cookies", lambda self, sites, worker, grader=False: [])


def test_sites_are_reset_once_a_run_or_before_each_episode(tmp_path, no_sign_in, monkeypatch):
    """EXE-17."""
    done = []
    monkeypatch.setattr(webarena_sites, "run_command", lambda command, addresses, sites: done.append(list(sites)))
    path = write(tmp_path, RECORDS)
    sites = WebArenaSites(path, addresses=ALL, environ={}, reset="script")
    for task in (sites.tasks[0], sites.tasks[6]):
        sites.start(task, 0)
    assert done == [["shopping", "shopping_admin", "reddit", "gitlab"]]
    done.clear()
    sites = WebArenaSites(path, addresses=ALL, environ={}, reset="script", reset_each="episode")
    for task in (sites.tasks[0], sites.tasks[6], sites.tasks[1]):
        sites.start(task, 0)
    assert done == [["shopping"], ["shopping", "reddit"]]
    with pytest.raises(ValueError, match="several workers share reddit"):
        sites.start(sites.tasks[5], 1)


def test_workers_with_copies_of_their_own_may_reset_each_episode(tmp_path, no_sign_in, monkeypatch):
    done = []
    monkeypatch.setattr(
        webarena_sites, "run_command", lambda command, addresses, sites: done.append(addresses["reddit"])
    )
    two = {**ALL, "reddit": "http://a:1,http://b:1"}
    sites = WebArenaSites(write(tmp_path, RECORDS), addresses=two, environ={}, reset="x", reset_each="episode")
    for worker in (0, 1):
        sites.start(sites.tasks[5], worker)
    assert done == ["http://a:1", "http://b:1"]


def test_an_episode_starts_on_all_its_tabs_with_addresses_for_the_graders(tmp_path, no_sign_in):
    sites = WebArenaSites(write(tmp_path, RECORDS), addresses={**ALL, "shopping": "http://s:1/"}, environ={})
    start = sites.start(sites.tasks[9], 0)
    assert start.urls == ("http://s:1/tall-candles.html", "http://s:1/white-candles.html")
    assert start.addresses["__SHOPPING__"] == "http://s:1"
    assert start.allowed["onestopmarket.com"] == "http://s:1"
    assert sites.before("http://s:1/") is None
    assert sites.changes(0) is None


def test_the_shops_helpers_ask_its_rest_interface(fresh):
    sites = HostedSites({"shopping": (fresh.addresses["shopping"],)})
    fresh.orders.append({"increment_id": "000000190", "entity_id": 191, "items": ""})
    shop = fresh.addresses["shopping"]
    sku = ("B00J8RZL7I",)
    assert sites.call(Call("shopping_get_latest_order_url", ())) == f"{shop}/sales/order/view/order_id/191/"
    assert sites.call(Call("shopping_get_sku_latest_review_author", sku)) == "Mia"
    assert sites.call(Call("shopping_get_sku_latest_review_rating", sku)) == "40"
    assert sites.call(Call("shopping_get_sku_latest_review_title", sku)) == "t"
    assert sites.call(Call("shopping_get_sku_latest_review_text", sku)) == "d"
    assert sites.call(Call("shopping_get_sku_latest_review_author", ("B/0 1",))) == ""
    assert sites.call(Call("shopping_get_sku_product_page_url", ("AB1",))) == f"{shop}/product-ab1.html"
    assert sites.call(Call("shopping_get_product_price", ("__page__",))) is None
    assert sites.call(Call("get_query_text", ("__page__", "h1"))) is None


def test_a_shop_that_refuses_its_helpers_is_an_environment_fault(fresh):
    sites = HostedSites(
        {"shopping": (fresh.addresses["shopping"],)}, accounts={"shopping_admin": Account("admin", "changed")}
    )
    with pytest.raises(BrowserError, match="integration/admin/token answered with status 401"):
        sites.call(Call("shopping_get_latest_order_url", ()))
    sites = HostedSites({"shopping": (fresh.addresses["shopping"],)})
    fresh.orders.clear()
    with pytest.raises(BrowserError, match="the shop's answer has no items.0"):
        sites.call(Call("shopping_get_latest_order_url", ()))


def test_a_password_is_not_shown():
    assert repr(Account("mia", "secret")) == "Account('mia')"


# Signing in (browser) ----------------------------------------------------------------------------------------------


def test_one_signs_in_once_a_worker_and_again_when_the_session_has_expired(fresh):
    """WA#64, WA#230."""
    sites = HostedSites({site: (fresh.addresses[site],) for site in ("reddit", "map")})
    fresh.sign_ins.clear()
    first = sites.cookies(["reddit", "map"], 0)
    assert [cookie["name"] for cookie in first] == ["PHPSESSID"]
    assert sites.cookies(["reddit"], 0) == first
    assert fresh.sign_ins == {"reddit": 1}
    fresh.sign_out("reddit")
    again = sites.cookies(["reddit"], 0)
    assert again != first
    assert fresh.sign_ins == {"reddit": 2}
    assert sites.cookies(["reddit"], 0, grader=True) != again


def test_a_refused_account_and_a_page_without_form_are_environment_faults(fresh, monkeypatch):
    wrong = {"gitlab": Account("byteblaze", "changed")}
    sites = HostedSites({"gitlab": (fresh.addresses["gitlab"],)}, accounts=wrong)
    line = str(sites.health(["gitlab"], sign_in=True)[0])
    assert line.endswith(f"gitlab refused to sign in byteblaze at {fresh.addresses['gitlab']}/users/sign_in.")
    monkeypatch.setattr(webarena_sites, "LIMITS", webarena_sites.Limits(settle=0.5))
    sites = HostedSites({"gitlab": (fresh.addresses["map"],)})
    with pytest.raises(BrowserError, match="gitlab: no sign-in form at http"):
        sites.cookies(["gitlab"], 0)


def test_two_sites_that_share_a_cookie_are_named_and_the_first_keeps_it(caplog):
    """VisualWebArena signs no one in to such a pair."""
    standin = StandIn(same_host=True)
    try:
        sites = HostedSites({site: (standin.addresses[site],) for site in ("shopping", "reddit")})
        with caplog.at_level(logging.WARNING):
            jar = sites.cookies(["shopping", "reddit"], 0)
        assert [standin.sessions[cookie["value"]] for cookie in jar] == ["shopping"]
        assert "shopping and reddit both use the cookie PHPSESSID on 127.0.0.1" in caplog.text
    finally:
        standin.close()


# Episodes (browser) ------------------------------------------------------------------------------------------------


def play(env, task_id, *moves):
    """Play moves: a reply as it is, or (action, name of an element, argument)."""
    env.reset(options={"task": task_id})
    for move in moves:
        if not isinstance(move, str):
            action, name, argument = move
            found = next(e for e in env.observation.elements.values() if e.name == name)
            move = f'do(action="{action}", element="{found.id}"' + (f', argument="{argument}")' if argument else ")")
        env.step(move)
    return env.trajectory


def goto(url):
    return f'do(action="Goto", argument="{url}")'


def stop(answer="done"):
    return f'exit(message="{answer}")'


SOLUTIONS = {
    0: [stop("blue kettle")],
    1: [goto("wikipedia.org/wiki/Pittsburgh"), goto("map/"), stop("914 km to Pittsburgh")],
    2: [stop("no, it is still open")],
    3: [goto("/dashboard/todos"), stop()],
    4: [goto("gitlab.com/a/-/issues/7"), stop("Yes")],
    5: [
        goto("/user/MarvelsGrantMan136/edit_biography"),
        ("Type", "Biography", "Freelance Web Developer"),
        ("Click", "Save", None),
        stop(),
    ],
    6: [
        goto("reddit/submit/gaming"),
        ("Type", "Title", "Racing Wheel"),
        ("Type", "Body", "pedals stopped working"),
        ("Click", "Create submission", None),
        stop(),
    ],
    7: [("Click", "Reorder", None), stop()],
    8: [("Type", "Nickname", "Emma Lopez"), ("Type", "Stars", "5"), ("Click", "Submit Review", None), stop()],
    9: ['do(action="Tab Focus", argument="1")', ("Click", "Add to Cart", None), stop()],
    10: [goto("/directions?engine=1&from=Carnegie+Mellon&to=Boston"), stop()],
    12: [stop("N/A")],
    13: [("Type", "Username", "vinta"), ("Type", "Role", "Guest"), ("Click", "Invite", None), stop()],
    14: [("Type", "Message", "The screen protector for 12.99 broke"), stop()],
    15: [("Click", "Actions", None), ("Type", "Rule name", "spring sale"), ("Type", "Discount", "20"), stop()],
}
"""Agents that solve the hand-made tasks, one for each eval type, rule and helper."""


@pytest.fixture(scope="module")
def env(backend, shared_browser):
    env = WebEnv(backend, browser=shared_browser, judge=OfflineJudge())
    yield env
    env.close()


@pytest.mark.parametrize("number", SOLUTIONS)
def test_a_scripted_agent_solves_the_task_and_one_that_does_nothing_does_not(fresh, env, number):
    done = play(env, str(number), *SOLUTIONS[number])
    assert done.verdict.score == 1.0, done.verdict.reasons
    assert done.verdict.mode == "vab"
    fresh.clear()
    idle = play(env, str(number), stop("nothing to do"))
    assert idle.verdict.score in (0.0, None), idle.verdict.reasons
    if number != 2:  # the offline judge cannot say that a paraphrase is wrong
        assert idle.verdict.score == 0.0


def test_links_of_one_site_in_a_file_of_another_are_compared_with_real_addresses(fresh, env):
    link = f"{fresh.addresses['reddit']}/f/DIY/11/glue"
    moves = [("Type", "Project name", "diy"), ("Type", "README", link), ("Click", "Create project", None), stop()]
    assert play(env, "11", *moves).verdict.score == 1.0


def test_all_start_tabs_are_open_and_the_first_is_active(fresh, env):
    values, _ = env.reset(options={"task": "9"})
    assert [url.rsplit("/", 1)[1] for url in values["tabs"]] == ["tall-candles.html", "white-candles.html"]
    assert values["url"].endswith("/tall-candles.html")


def test_an_agent_that_signs_out_is_signed_in_again_in_the_next_episode_and_graders_stay_signed_in(fresh, env):
    """WA#32, EXE-17."""
    env.reset(options={"task": "5"})
    mine = {cookie["value"] for cookie in env.backend.sites.cookies(["reddit"], 0)}
    for token in mine:
        fresh.sessions.pop(token, None)
    env.step(stop())
    assert env.trajectory.verdict.score == 0.0  # read, with the graders' session
    assert play(env, "5", *SOLUTIONS[5]).verdict.score == 1.0


def test_a_site_that_breaks_during_an_episode_is_a_fault_and_no_failure(fresh, env):
    env.reset(options={"task": "0"})
    fresh.broken["shopping"] = 503
    _, reward, _, truncated, info = env.step(stop("a wrong answer"))
    assert (info["stop"], truncated, reward == reward) == ("env_error", True, False)
    assert str(env.backend.score([env.trajectory])).splitlines()[1].startswith("graded 0, ungraded 0 (0 for want of a")


def test_the_check_before_a_run_signs_in_everywhere(fresh, backend):
    lines = [str(one) for one in backend.check()]
    assert len(lines) == 6
    assert all(" ok " in line for line in lines), lines
    assert lines[0].endswith("signed in as emma.lopez@gmail.com")
    backend.require()
    fresh.broken["gitlab"] = 502
    with pytest.raises(BrowserError, match="gitlab .*FAILED .*answered with status 502; 4 tasks need it"):
        backend.require()


def test_the_browser_is_told_where_the_user_is(fresh, backend, shared_browser):
    place = {"latitude": 40.44, "longitude": -79.94}
    env = WebEnv(backend, browser=shared_browser)
    env.reset(options={"task": Task.from_json({**RECORDS[1], "task_id": 77, "geolocation": place})})
    options = env._session._options
    assert (options["geolocation"], options["permissions"]) == (place, ["geolocation"])
    assert env._session.limits == webarena_sites.LIMITS
    env.close()


def test_strict_compares_with_the_state_before_the_task_which_it_reads_at_the_start(fresh, backend, shared_browser):
    env = WebEnv(backend, browser=shared_browser, evaluator="strict", judge=OfflineJudge())
    assert play(env, "5", *SOLUTIONS[5]).verdict.score == 1.0
    idle = play(env, "5", stop())
    assert idle.verdict.score == 0.0
    assert "but that was so before the task" in idle.verdict.reasons[0]
    assert play(env, "7", *SOLUTIONS[7]).verdict.score == 1.0
    assert play(env, "10", *SOLUTIONS[10]).verdict.score == 1.0
    assert play(env, "6", *SOLUTIONS[6]).verdict.score is None  # the post's page cannot be known beforehand
    env.close()


# Published tasks on the stand-in (browser; where their wheels are installed) ------------------------------------------


def post(forum, title, body):
    return [
        goto(f"reddit/submit/{forum}"),
        ("Type", "Title", title),
        ("Type", "Body", body),
        ("Click", "Create submission", None),
        stop(),
    ]


REVIEWS = (
    "Unable to set neutral steering; Doesn’t work with PC; Crazy problems in automatic mode; pedals stopped working"
)
ROUTE = "engine=1&from=Carnegie+Mellon+University,+Pittsburgh&to=TD+Garden,+Boston,+Massachusetts"
PUBLISHED = {
    ("webarena_lite", 0): [stop("Impulse Duffle, Overnight Duffle, Hawkeye Yoga Short-32-Blue")],
    ("webarena_lite", 9): [goto("/dashboard/todos"), stop()],
    ("webarena_lite", 23): [stop("914 km")],
    ("webarena_lite", 27): [stop("N/A")],
    ("webarena_lite", 29): [goto("/catalogsearch/result/?q=jaw+bruxism+mouth+guard"), stop()],
    ("webarena_lite", 44): [goto("/byteblaze/empathy-prompts/-/issues/8"), stop("No, it is open")],
    ("webarena_lite", 45): [goto("/a11yproject/a11yproject.com/-/issues/719"), stop("Yes")],
    ("webarena_lite", 64): [stop("Acadia National Park, 10h 33min")],
    ("webarena_lite", 87): [goto("/search?query=Carnegie+Music+Hall"), stop()],
    ("webarena_lite", 97): [
        goto("/user/MarvelsGrantMan136/edit_biography"),
        ("Type", "Biography", "Seeking SDE positions"),
        ("Click", "Save", None),
        stop(),
    ],
    ("webarena_lite", 98): [
        goto("/f/books/124260/adults-reading-to-each-other-out-loud"),
        ("Click", "Upvote", None),
        stop(),
    ],
    ("webarena_lite", 103): [
        'do(action="Tab Focus", argument="1")',
        ("Type", "Product", "SPAAS White Taper Candles - 4 Pack"),
        ("Click", "Add to Cart", None),
        stop(),
    ],
    ("webarena_lite", 104): [goto("/sales/order/view/order_id/180/"), ("Click", "Reorder", None), stop()],
    ("webarena_lite", 112): [
        goto("/byteblaze/dotfiles/-/project_members"),
        ("Type", "Username", "vinta"),
        ("Type", "Role", "Guest"),
        ("Click", "Invite", None),
        stop(),
    ],
    ("webarena_lite", 142): [
        goto("/contact"),
        ("Type", "Message", "A refund: it broke after three days of use, order 148, B003FVW3VA"),
        stop(),
    ],
    ("webarena_lite", 132): [goto("/f/MachineLearning"), ("Click", "Subscribe", None), stop()],
    ("webarena_lite", 133): post("nyc", "is car necessary in NYC", "?"),
    ("webarena_lite", 139): post("books", "Harry Potter", "A virtual meetup on July 8th"),
    ("webarena_lite", 141): [("Type", "Comment", "???"), ("Click", "Post", None), stop()],
    ("webarena_lite", 144): post(
        "gaming", "real user feedback on Racing Wheel Overdrive for Xbox X", f"{REVIEWS}; Only works with certain games"
    ),
    ("webarena_lite", 145): [goto("/admin/sales/order/?status=Canceled"), stop()],
    ("webarena_lite", 146): post("technology", "chatgpt on GitLab", "__GITLAB__/convexegg/chatgpt"),
    ("webarena_lite", 155): [goto(f"/directions?{ROUTE}"), stop()],
    ("webarena_lite", 161): [stop("N/A")],
    ("webarena", 585): [
        goto("/review/product/B00J8RZL7I"),
        ("Type", "Nickname", "Emma Lopez"),
        ("Type", "Stars", "5"),
        ("Click", "Submit Review", None),
        stop(),
    ],
}
"""Agents that solve published tasks: every eval type and helper, several sites, several tabs."""


@pytest.fixture(scope="module")
def published(standin):
    """Backends by set; the sites' sessions are made once."""
    sites = None
    backends = {}
    for name in ("webarena_lite", "webarena"):
        backends[name] = WebArenaSites(name, evaluator="vab", addresses=standin.addresses, environ={})
        sites = backends[name].sites = sites or backends[name].sites
    return backends


@pytest.mark.parametrize(
    ("name", "number"), [pytest.param(*key, marks=installed(key[0])) for key in PUBLISHED], ids=lambda value: str(value)
)
def test_a_published_task_is_played_and_graded(fresh, published, shared_browser, name, number):
    env = WebEnv(published[name], browser=shared_browser, judge=OfflineJudge())
    moves = [
        tuple(part and part.replace("__GITLAB__", fresh.addresses["gitlab"]) for part in move)
        if isinstance(move, tuple)
        else move
        for move in PUBLISHED[name, number]
    ]
    try:
        done = play(env, str(number), *moves)
        assert done.verdict.score == 1.0, done.verdict.reasons
        fresh.clear()
        idle = play(env, str(number), stop("nothing to do"))
        assert idle.verdict.score in (0.0, None), idle.verdict.reasons
    finally:
        env.close()
