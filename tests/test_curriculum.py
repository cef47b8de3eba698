"""The tasks of a phase: rules, limits, and the same through an offline generator and through a served model."""

import dataclasses
import json
import logging
import math
from collections.abc import Callable, Sequence

import pytest
import tiny_models
from local_llm import client, error, says, serving

from webrl_lite.config import Config, CurriculumConfig, ModelConfig, RolloutConfig
from webrl_lite.curriculum import (
    CurriculumError,
    band,
    critic_values,
    evolve,
    failure_set,
    first_values,
    normalised,
    orm_values,
)
from webrl_lite.curriculum_report import FilterErrors, Rejected, filter_errors, read_rejected, write_rejected
from webrl_lite.envs.miniwob import instance
from webrl_lite.prompts import actor_prompt
from webrl_lite.served_tasks import ModelCheck, ModelGenerator
from webrl_lite.trajectory import StopReason, Task, TraceError, Trajectory, Verdict

SHOP, MAP = ("shopping",), ("map",)


def task(intent: str, sites: tuple[str, ...] = SHOP, task_id: str = "", **fields: object) -> Task:
    return Task(task_id or intent, sites, intent, f"__{sites[0].upper()}__/", **fields)


class Script:
    """Proposes what it is told, request by request, and remembers what it was asked."""

    name = "script"
    at_once = 10

    def __init__(self, *requests: Sequence[str]) -> None:
        self.requests = requests
        self.asked: list[tuple[tuple[str, ...], list[str], int, str]] = []

    def propose(self, sites: tuple[str, ...], failed: Sequence[Task], count: int, seed: str) -> list[Task]:
        self.asked.append((sites, [one.intent for one in failed], count, seed))
        intents = self.requests[min(len(self.asked), len(self.requests)) - 1]
        return [dataclasses.replace(task(intent, sites), task_id="") for intent in intents]


def can(_: Task) -> tuple[bool, str]:
    return True, ""


def config(wanted: int = 4, **settings: object) -> CurriculumConfig:
    return CurriculumConfig(tasks_per_phase=wanted, **settings)


def values_by(table: dict[str, float]) -> Callable[[Sequence[Task]], list[float]]:
    return lambda tasks: [table[one.intent] for one in tasks]


def run(generator: Script, wanted: int = 4, value_of=None, feasible=can, failed=None, earlier=(), **more: object):
    failed = [task("seed")] if failed is None else failed
    settings = {"seed": 0, "phase": 1, **more}
    return evolve(failed, earlier, generator, value_of, feasible, config(wanted), **settings)


def intents(tasks: Sequence[Task]) -> list[str]:
    return [one.intent for one in tasks]


# The rules ----------------------------------------------------------------------------------------------------------


def test_duplicates_with_other_case_spaces_and_stops_are_one_task():
    """GEN-06: five tasks again and again, one equal to a seed; asked for 20 there are 4 and a shortfall of 16."""
    same = ["Buy tea.", "Sell tea", "Return  tea!", "Brew tea", "Seed task."]
    again = ["buy TEA", " Sell tea.", "`Return tea`", "Brew\ttea ?", "SEED  task"]
    generator = Script(same, again)
    tasks, report = run(generator, 20, failed=[task("seed task")])
    assert intents(tasks) == ["Buy tea.", "Sell tea", "Return  tea!", "Brew tea"]
    assert (report.accepted, report.shortfall, report.stopped) == (4, 16, "max_requests")
    assert len(generator.asked) == report.requests == report.max_requests == 16  # 8 times 20 / 10
    assert report.reasons == {"duplicate": 76} and report.proposals == 80


@pytest.mark.parametrize("where", ["known", "earlier", "failed"])
def test_earlier_train_and_test_tasks_do_not_come_again(where):
    old = task("Buy tea.", split="test" if where == "known" else "")
    more = {"known": {"known": [old]}, "earlier": {"earlier": [old]}, "failed": {"failed": [old]}}[where]
    tasks, report = run(Script(["BUY TEA", "Sell tea"]), 1, **more)
    assert intents(tasks) == ["Sell tea"]
    assert [(one.task.intent, one.reason) for one in report.rejected] == [("BUY TEA", "duplicate")]


def test_where_a_page_is_made_of_a_seed_the_same_instruction_with_another_seed_is_another_task():
    """Seeds 1 and 2 are new; 7 is the failed task's own, and 1 comes twice."""
    failed = instance("click-dialog-2", 7, "Close the dialog.")

    class Seeds(Script):
        def propose(self, sites, failed, count, seed):
            return [instance("click-dialog-2", number, "Close the dialog.") for number in (7, 1, 1, 2)]

    tasks, report = run(Seeds(), 2, failed=[failed])
    assert [one.instantiation_dict["seed"] for one in tasks] == [1, 2]
    assert report.reasons == {"duplicate": 2}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (0.05, ""),
        (0.75, ""),
        (0.5, ""),
        (0.049, "below_band"),
        (0.0, "below_band"),
        (0.751, "above_band"),
        (1.0, "above_band"),
        (math.nan, "no_value"),
        (math.inf, "no_value"),
        (-math.inf, "no_value"),
        (1.5, "no_value"),
        (-0.2, "no_value"),
        (None, "no_value"),
    ],
)
def test_the_band_holds_its_ends_and_only_numbers(value, reason):
    """GEN-09."""
    assert band(value, config()) == reason


def test_an_end_of_the_band_is_inside_in_float32():
    """0.6 in float32 is 0.60000002."""
    assert band(0.60000002384, CurriculumConfig(value_max=0.6)) == ""


def test_what_v_turns_down_is_kept_with_reason_and_value(tmp_path):
    """GEN-09: NaN is never passed. Worked example of the module: 6 of 10 are left."""
    table = dict(zip("abcdefghij", [0.02, 0.05, 0.3, 0.3, 0.5, 0.75, 0.76, 0.9, math.nan, 0.4], strict=True))
    tasks, report = run(Script(list(table)), 6, values_by(table))
    assert intents(tasks) == list("bcdefj")
    assert report.values == (0.05, 0.3, 0.3, 0.5, 0.75, 0.4)
    assert write_rejected(tmp_path / "rejected.jsonl", report) == 4
    back = read_rejected(tmp_path / "rejected.jsonl")
    assert back == report.rejected
    assert [(one.task.intent, one.reason, one.value) for one in back] == [
        ("a", "below_band", 0.02),
        ("g", "above_band", 0.76),
        ("h", "above_band", 0.9),
        ("i", "no_value", None),
    ]


def test_without_a_critic_the_filter_is_left_out_and_the_log_says_so(caplog):
    """GEN-09."""
    with caplog.at_level(logging.INFO):
        tasks, report = run(Script(["a", "b"]), 2)
    assert "phase 1: no value of the first observation" in caplog.text
    assert len(tasks) == 2 and report.values == ()


def test_v_is_asked_once_a_task_and_not_for_duplicates():
    asked: list[str] = []

    def value_of(tasks: Sequence[Task]) -> list[float]:
        asked.extend(intents(tasks))
        return [0.01 if one.intent == "a" else 0.5 for one in tasks]

    run(Script(["a", "b", "A"], ["a", "c", "d"]), 3, value_of)
    assert asked == ["a", "b", "c", "d"]


def test_too_few_values_are_our_mistake():
    with pytest.raises(CurriculumError, match="`value_of` must give one value a task, got 1 for 2"):
        run(Script(["a", "b"]), 2, lambda tasks: [0.5])


def test_feasibility_is_asked_last_and_only_while_there_is_room():
    asked: list[str] = []

    def feasible(one: Task) -> tuple[bool | None, str]:
        asked.append(one.intent)
        return {"b": (False, "no such thing"), "c": (None, "no verdict")}.get(one.intent, (True, ""))

    tasks, report = run(Script(list("abcdef")), 2, values_by({**dict.fromkeys("abcde", 0.5), "f": 0.9}), feasible)
    assert intents(tasks) == ["a", "d"] and asked == ["a", "b", "c", "d"]
    assert [(one.task.intent, one.reason, one.why) for one in report.rejected] == [
        ("f", "above_band", "V = 0.9"),
        ("b", "infeasible", "no such thing"),
        ("c", "unjudged", "no verdict"),
        ("e", "surplus", ""),
    ]


@pytest.mark.parametrize("intent", ["", "  . ", "x" * 601])
def test_nothing_and_novels_are_no_tasks(intent):
    tasks, report = run(Script([intent, "b"]), 1)
    assert intents(tasks) == ["b"]
    assert [one.reason for one in report.rejected] == ["unreadable"]


def test_what_an_earlier_phase_turned_down_may_come_again():
    assert intents(run(Script(["a"]), 1, values_by({"a": 0.5}), phase=2)[0]) == ["a"]


def test_a_task_of_a_phase_has_a_name_and_no_grader():
    class Careless(Script):
        def propose(self, *asked: object) -> list[Task]:
            return [dataclasses.replace(one, eval={"eval_types": []}, split="train") for one in super().propose(*asked)]

    tasks, report = run(Careless(["a", "a", "b"]), 2, phase=3)
    assert [(one.task_id, one.eval, one.split) for one in tasks] == [
        ("gen.03.0001", None, ""),
        ("gen.03.0003", None, ""),
    ]
    assert report.rejected[0].task.task_id == "gen.03.0002"


def test_every_proposal_is_accepted_or_kept():
    table = {f"{n}": n / 40 for n in range(40)}
    requests = [[f"{n}" for n in range(start, start + 10)] for start in range(0, 40, 10)]
    tasks, report = run(Script(*requests), 12, values_by(table), lambda one: (int(one.intent) % 3 > 0, "third"))
    assert report.proposals == len(tasks) + len(report.rejected)
    assert {*intents(tasks)}.isdisjoint(one.task.intent for one in report.rejected)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Buy tea.", "buy  TEA", True),
        ("Caf\u00e9", "Cafe\u0301", True),
        ("Stra\u00dfe", "STRASSE", True),
        ('"Buy tea"', "Buy tea!", True),
        ("Buy\u00a0tea", "Buy tea", True),
        ("Buy tea 1", "Buy tea 2", False),
        ("Buy 1.5 kg", "Buy 15 kg", False),
    ],
)
def test_texts_that_count_as_one_task(one, other, same):
    """GEN-06, siblings."""
    assert (normalised(one) == normalised(other)) is same


# Asking -------------------------------------------------------------------------------------------------------------


def test_it_asks_again_until_the_phase_has_its_tasks():
    generator = Script(["a", "a"], ["b"], ["c", "d"], ["e"])
    tasks, report = run(generator, 4)
    assert intents(tasks) == ["a", "b", "c", "d"]
    assert (report.requests, report.stopped, report.shortfall) == (3, "enough", 0)


def test_the_seed_of_each_request_is_another_one():
    generator = Script(["a"], ["b"], ["c"], ["d"])
    run(generator, 4)
    assert len({seed for *_, seed in generator.asked}) == 4


def test_seeds_are_of_one_site_each_and_a_site_is_asked_as_often_as_its_share():
    """6 failures on the shop and 3 on the map: of 6 requests 4 and 2."""
    failed = [task(f"shop {n}") for n in range(6)] + [task(f"map {n}", MAP) for n in range(3)]
    generator = Script(*[[f"{n}"] for n in range(6)])
    run(generator, 6, failed=failed)
    assert [sites for sites, *_ in generator.asked].count(SHOP) == 4
    for sites, shown, count, _ in generator.asked:
        assert all(one.startswith("shop" if sites == SHOP else "map") for one in shown)
        assert count == 3  # 6 tasks from 2 groups of sites


def test_at_most_ten_seeds_are_shown():
    generator = Script(["a"])
    run(generator, 1, failed=[task(f"seed {n}") for n in range(30)])
    assert len(generator.asked[0][1]) == len(set(generator.asked[0][1])) == 10


def test_the_order_of_the_failure_set_changes_nothing():
    failed = [task(f"seed {n}", SHOP if n % 2 else MAP) for n in range(20)]
    first, second = Script(["a"], ["b"]), Script(["a"], ["b"])
    run(first, 2, failed=failed)
    run(second, 2, failed=failed[::-1])
    assert first.asked == second.asked


def test_no_task_at_all_is_an_error_with_the_reasons_and_the_way_out():
    with pytest.raises(CurriculumError, match=r"no new task\. .*48 above band.*Raise `curriculum.value_max`") as raised:
        run(Script(*[[f"{n}.{k}" for k in range(3)] for n in range(16)]), 20, lambda tasks: [0.9] * len(tasks))
    assert len(raised.value.report.rejected) == 48


def test_a_generator_that_makes_nothing_is_an_error():
    with pytest.raises(CurriculumError, match="The generator made nothing"):
        run(Script([]), 1)


def test_nothing_failed_is_an_error_with_the_way_out():
    with pytest.raises(CurriculumError, match="everything was solved"):
        run(Script(["a"]), 1, failed=[])


@pytest.mark.parametrize("split", ["test", "test_families"])
def test_no_test_task_is_a_seed(split):
    with pytest.raises(CurriculumError, match="`failed` must hold no test task"):
        run(Script(["a"]), 1, failed=[task("seed", split=split)])


def test_the_report_is_one_object_and_one_line():
    _, report = run(Script(["a", "a"]), 3, values_by({"a": 0.5}), max_requests=2)
    assert json.loads(json.dumps(report.to_json(), allow_nan=False)) == {
        "phase": 1,
        "generator": "script",
        "wanted": 3,
        "accepted": 1,
        "proposals": 4,
        "requests": 2,
        "max_requests": 2,
        "stopped": "max_requests",
        "failed_requests": {},
        "values": [0.5],
        "shortfall": 2,
        "reasons": {"duplicate": 3},
    }
    assert report.line() == (
        "phase 1: 1 of 3 tasks from 4 proposals in 2 requests (turned down: 3 duplicate; failed requests: none); "
        "2 missing, stopped by max_requests"
    )


def test_a_shortfall_is_warned_of(caplog):
    run(Script(["a"]), 2, max_requests=1)
    assert [record.levelname for record in caplog.records if "1 missing" in record.message] == ["WARNING"]


# The failure set ----------------------------------------------------------------------------------------------------


def played(one: Task, score: float | None, stop: StopReason = StopReason.EXIT) -> Trajectory:
    return Trajectory(one, (), stop, verdict=None if score is None else Verdict(score))


def test_the_failure_set_grows_and_holds_failures_only():
    a, b, c, d, e, f = (task(name) for name in "abcdef")
    tested = task("t", split="test")
    first = failure_set((), [played(a, 0.0), played(b, 1.0), played(c, None), played(tested, 0.0)])
    assert first == (a,)
    broken = Trajectory(d, (), StopReason.ENV_ERROR, verdict=Verdict(0.0))
    undecided = Trajectory(f, (), StopReason.EXIT, verdict=Verdict(None))
    second = failure_set(first, [played(a, 1.0), played(e, 0.5), played(e, 0.0), broken, undecided])
    assert second == (a, e)


@pytest.mark.parametrize(
    ("mode", "phase", "expected"),
    [
        ("none", 1, None),
        ("orm", 1, "orm"),
        ("critic", 1, "critic"),
        ("none", 2, "critic"),
        ("orm", 2, "critic"),
        ("critic", 2, "critic"),
    ],
)
def test_what_is_asked_for_v_in_a_phase(mode, phase, expected):
    """GEN-09: before the first phase no phase has trained a critic."""
    asked = {"critic": lambda tasks: [0.1], "orm": lambda tasks: [0.2], None: None}
    found = first_values(CurriculumConfig(first_phase=mode), phase, asked["critic"], asked["orm"])
    assert found is asked[expected]


@pytest.mark.parametrize(
    ("mode", "phase", "missing"),
    [
        ("orm", 1, "there is no ORM"),
        ("critic", 1, "the critic is missing, which phase 1"),
        ("none", 2, "the critic is missing, which phase 2"),
    ],
)
def test_a_missing_critic_or_orm_is_an_error(mode, phase, missing):
    with pytest.raises(CurriculumError, match=missing):
        first_values(CurriculumConfig(first_phase=mode), phase, None, None)


# The filter's errors ------------------------------------------------------------------------------------------------


def test_the_filters_errors_are_counted_against_the_truth():
    """Passed: 2 rightly, 1 wrongly; stopped: 1 rightly, 1 wrongly; unknown and otherwise rejected ones do not count."""
    truth = {"a": True, "b": True, "c": False, "d": False, "e": True, "f": None, "g": False}
    rejected = [Rejected(task("d"), "infeasible"), Rejected(task("e"), "infeasible"), Rejected(task("g"), "duplicate")]
    errors = filter_errors([task(name) for name in "abcf"], rejected, lambda one: truth[one.intent])
    assert errors == FilterErrors(passed=3, passed_wrongly=1, stopped=2, stopped_wrongly=1)
    assert errors.rate == pytest.approx(0.4)
    assert FilterErrors().rate is None


def test_a_damaged_file_of_rejected_tasks_names_its_line(tmp_path):
    _, report = run(Script(["a", "A"]), 1)
    write_rejected(tmp_path / "r.jsonl", report)
    with open(tmp_path / "r.jsonl", "a", encoding="utf-8") as file:
        file.write('{"reason": "dup')
    with pytest.raises(TraceError, match="line 2: not a rejected task"):
        read_rejected(tmp_path / "r.jsonl")


# A served model -----------------------------------------------------------------------------------------------------


def listed(*names: str) -> dict:
    return says("\n".join(f"- `{name}`" for name in names))


def test_a_served_model_invents_and_judges(tmp_path):
    """GEN-07: a word in backticks inside a sentence is no task."""
    new = says("- Use the `status` filter\n- `Buy tea`\n- `Sell tea`")
    with serving(new, says("It can. [YES]"), says("No such thing. [NO]"), listed("Drink tea"), says("[YES]")) as server:
        llm = client(server, tmp_path / "llm.jsonl")
        tasks, report = evolve(
            [task("seed one"), task("seed two")],
            (),
            ModelGenerator(llm),
            None,
            ModelCheck(llm),
            config(2),
            seed=0,
            phase=1,
        )
    assert [(one.intent, one.start_url) for one in tasks] == [
        ("Buy tea", "__SHOPPING__/"),
        ("Drink tea", "__SHOPPING__/"),
    ]
    assert [(one.task.intent, one.reason, one.why) for one in report.rejected] == [
        ("Sell tea", "infeasible", "No such thing. [NO]")
    ]
    assert tasks[0].extra["evolved"]["how"] == "m" and set(tasks[0].extra["evolved"]["from"]) == {
        "seed one",
        "seed two",
    }
    asked = [json.loads(line)["purpose"] for line in (tmp_path / "llm.jsonl").read_text(encoding="utf-8").splitlines()]
    assert asked == ["generate", "feasible", "feasible", "generate", "feasible"]
    assert [request["temperature"] for request in server.requests] == [1.0, 0.0, 0.0, 1.0, 0.0]
    assert "- `seed one`" in server.requests[0]["messages"][0]["content"]
    assert "payment data" in server.requests[1]["messages"][0]["content"]  # what the shop cannot do


@pytest.mark.parametrize(
    "fault", [error(429), says(None), says("I cannot help."), says(None, refusal="No."), error(500)]
)
def test_faults_are_asked_again_and_the_phase_gets_its_tasks(fault):
    """GEN-03."""
    with serving(fault, listed("Buy tea"), fault, says("[YES]")) as server:
        llm = client(server)
        tasks, report = evolve([task("s")], (), ModelGenerator(llm), None, ModelCheck(llm), config(1), seed=0, phase=1)
    assert intents(tasks) == ["Buy tea"] and not report.failed_requests
    assert sum(llm.usage.failures.values()) == 2


def test_a_model_that_never_answers_ends_in_an_error_that_counts():
    """Never zero tasks in silence."""
    with serving(says(None)) as server:
        llm = client(server, retries=1)
        with pytest.raises(CurriculumError, match="failed requests: 3 empty.*repair the access") as raised:
            evolve([task("s")], (), ModelGenerator(llm), None, ModelCheck(llm), config(20), seed=0, phase=1)
        assert len(server.requests) == 6  # three requests in a row, two tries each
    assert raised.value.report.failed_requests == {"empty": 3}


def test_a_wrong_key_is_not_tried_a_hundred_times():
    with serving(error(401)) as server:
        llm = client(server)
        with pytest.raises(CurriculumError, match="1 key") as raised:
            evolve([task("s")], (), ModelGenerator(llm), None, ModelCheck(llm), config(20), seed=0, phase=1)
        assert len(server.requests) == 1
    assert "Set `OPENAI_API_KEY`. See llm.jsonl" in str(raised.value)


def test_a_judge_without_a_verdict_passes_nothing():
    with serving(listed("Buy tea", "Sell tea"), says("Hm."), says("Hm."), says("[YES]")) as server:
        llm = client(server, retries=1)
        tasks, report = evolve([task("s")], (), ModelGenerator(llm), None, ModelCheck(llm), config(1), seed=0, phase=1)
    assert intents(tasks) == ["Sell tea"]
    assert report.reasons == {"unjudged": 1} and "malformed" in report.rejected[0].why


def test_a_budget_that_ends_in_the_middle_keeps_what_there_is():
    with serving(listed("Buy tea", "Sell tea", "Drink tea"), says("[YES]")) as server:
        llm = client(server, max_calls=2)
        tasks, report = evolve([task("s")], (), ModelGenerator(llm), None, ModelCheck(llm), config(9), seed=0, phase=1)
    assert intents(tasks) == ["Buy tea"]
    assert report.reasons == {"unjudged": 2} and report.stopped.startswith("budget: `llm.max_calls` is spent")
    assert report.proposals == 3


def test_a_task_on_two_sites_is_asked_for_with_both():
    with serving(listed("Compare them"), says("[YES]")) as server:
        llm = client(server)
        both = ("shopping", "map")
        tasks, _ = evolve([task("s", both)], (), ModelGenerator(llm), None, ModelCheck(llm), config(1), seed=0, phase=1)
        content = server.requests[0]["messages"][0]["content"]
    assert tasks[0].start_url == "__SHOPPING__/ |AND| __MAP__/"
    assert "an online shop, as a customer and a street map with search and directions" in content


# V ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared():
    shared = tiny_models.load()
    tiny_models.stir(shared, "critic", "orm")
    return shared


SETTINGS = Config(model=ModelConfig(max_length=2000), rollout=RolloutConfig(max_new_tokens=16))


def test_v_is_the_critics_on_the_prompt_that_the_episode_begins_with(shared):
    tasks = [task("click the button"), task("hello")]
    values = critic_values(lambda some: [f"page of {one.intent}" for one in some], shared, SETTINGS)(tasks)
    prompt = actor_prompt(
        shared.tokenizer, "chat", intent="hello", replies=(), page="page of hello", max_length=2000, max_new_tokens=16
    )
    with shared.role("critic"):
        expected = shared.values([prompt.ids]).item()
    assert values[1] == pytest.approx(expected, abs=1e-6)
    assert all(0 < value < 1 for value in values) and values[0] != values[1]


def test_the_orm_can_stand_in_for_the_first_critic(shared):
    values = orm_values(lambda some: ["page"] * len(some), shared, SETTINGS)([task("click the button"), task("hello")])
    assert len(values) == 2 and all(0 < value < 1 for value in values)
