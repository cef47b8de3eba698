"""WebArena as a run's source of tasks: what is tested, what is learned from, and whole commands on stand-in sites."""

import dataclasses
import json

import pytest
from local_llm import Handler, respond, says, serving
from standin_sites import StandIn, short_patience
from test_webarena import RECORDS, installed, stop, write

from webrl_lite import webarena_source
from webrl_lite.browser import BrowserError
from webrl_lite.config import Config, from_dict
from webrl_lite.llm import KEY_VARIABLE, LlmError
from webrl_lite.observation import count_tokens_default
from webrl_lite.run import main
from webrl_lite.task_source import TaskSourceError, open_source
from webrl_lite.trajectory import Step, StopReason, Task, Trajectory, Verdict, read_jsonl, write_jsonl
from webrl_lite.webarena_source import WebArenaSource

pytestmark = pytest.mark.timeout(300)
TESTS = [RECORDS[0], RECORDS[12], RECORDS[3]]
TRAIN = [
    {**RECORDS[n], "intent": f"Learn to do number {n}", "task_id": 100 + n} for n in (0, 1, 3, 12)
]  # of shopping, the map, gitlab, shopping


@pytest.fixture(scope="module", autouse=True)
def patience():
    with short_patience():
        yield


@pytest.fixture(scope="module")
def standin():
    sites = StandIn()
    yield sites
    sites.close()


@pytest.fixture
def hosted(standin, monkeypatch):
    """Its addresses in the environment, as a user has them; sites at rest."""
    standin.clear()
    standin.broken.clear()
    for name in ("OPENAI_API_KEY", "WEBRL_LITE_ALSO_ALLOWED"):
        monkeypatch.delenv(name, raising=False)
    for site, address in standin.addresses.items():
        monkeypatch.setenv(site.upper(), address)
    return standin


@pytest.fixture
def unasked(monkeypatch):
    """The look at the sites before a run is left out: it starts a browser."""
    monkeypatch.setattr(webarena_source.WebArenaSites, "require", lambda self: None)


def settings(tmp_path, **groups) -> Config:
    env = {"name": "webarena_lite", "tasks_file": write(tmp_path, TESTS), **groups.pop("env", {})}
    return from_dict({"out": str(tmp_path / "out"), "env": env, "eval": {"tasks": None}, **groups})


def opened(config: Config) -> WebArenaSource:
    return open_source(config, count_tokens_default, ())


def demonstration(task: Task, *replies: str, score: float | None = None) -> Trajectory:
    steps = tuple(Step(i, "@ shopping/\nTea [1]", "http://shop/", reply) for i, reply in enumerate(replies))
    verdict = None if score is None else Verdict(score, mode="vab", version="1")
    return Trajectory(task, steps, StopReason.EXIT, verdict=verdict)


# Tasks -------------------------------------------------------------------------------------------------------------


def test_test_tasks_are_the_set_and_train_tasks_the_users_file(tmp_path, hosted, unasked):
    source = opened(settings(tmp_path, env={"train_file": write(tmp_path, TRAIN, "train.json")}))
    assert [task.task_id for task in source.test] == ["0", "12", "3"]
    assert [task.task_id for task in source.first_tasks(0)] == ["train.100", "train.101", "train.103", "train.112"]
    assert source.environments.envs[0].evaluator == "strict"  # a file of one's own has no published mode
    source.close()


def test_demonstrations_that_have_a_grader_are_train_tasks_and_those_of_test_tasks_are_dropped(
    tmp_path, hosted, unasked, caplog
):
    """Two demonstrations stay: one of a failure and one of a test task's instruction, in other letters, go."""
    graded, failed, leaking = (Task.from_json(one) for one in (TRAIN[0], TRAIN[2], TESTS[0]))
    bare = Task("b", ("shopping",), "Look at the tea.", "__SHOPPING__/")
    leaking = dataclasses.replace(leaking, intent=leaking.intent.upper())
    file = tmp_path / "sft.jsonl"
    shown = [
        demonstration(graded, stop(), score=1.0),
        demonstration(failed, stop(), score=0.0),
        demonstration(leaking, stop()),
        demonstration(bare, stop()),
    ]
    write_jsonl(file, shown)
    source = opened(settings(tmp_path, sft={"file": str(file)}))
    assert [one.task.task_id for one in source.demonstrations(0)] == ["100", "b"]
    assert "2 demonstrations; left out: 1 that failed, 1 of test tasks" in caplog.text
    assert [task.task_id for task in source.train] == ["train.100"]
    source.close()


def test_the_authors_conversations_are_demonstrations_and_find_their_site_in_the_train_file(tmp_path, hosted, unasked):
    intent = TRAIN[0]["intent"]
    prompt = f"Task Instruction: {intent}\n\nRound 0\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n<html> </html>\n\n<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n"  # fmt: skip  # noqa: E501
    talk = [{"from": "human", "value": prompt}, {"from": "gpt", "value": stop("tea")}]
    file = tmp_path / "web_policy_sft.json"
    file.write_text(json.dumps([{"conversations": talk}]))
    train = write(tmp_path, TRAIN, "train.json")
    source = opened(settings(tmp_path, env={"train_file": train}, sft={"file": str(file)}))
    [one] = source.demonstrations(0)
    assert (one.task.sites, one.steps[0].reply) == (("shopping",), 'exit(message="tea")')
    source.close()


@installed("webarena_lite")
@installed("webarena")
def test_without_a_file_the_tasks_of_webarena_that_lite_does_not_test_are_train_tasks(tmp_path, hosted, unasked):
    """812 tasks without the 165, and without 12 whose instruction is a test task's: 635."""
    config = from_dict({"out": str(tmp_path / "out"), "env": {"name": "webarena_lite"}, "eval": {"tasks": None}})
    source = opened(config)
    assert len(source.test) == 165
    assert len(source.train) == 635
    assert not {task.intent for task in source.train} & {task.intent for task in source.test}
    assert source.environments.envs[0].evaluator == "vab"
    assert source.demonstrations(0) == ()
    source.close()


def test_only_named_tasks_are_tested(tmp_path, hosted, unasked):
    source = opened(settings(tmp_path, env={"tasks": ["12", "0"]}))
    assert [task.task_id for task in source.test] == ["0", "12"]
    source.close()
    with pytest.raises(
        TaskSourceError, match="`env.tasks` must name test tasks of tasks whose sites are hosted, got 77"
    ):
        opened(settings(tmp_path, env={"tasks": ["77"]}))


def test_a_set_without_train_tasks_is_refused_only_where_one_learns(tmp_path, hosted, unasked, monkeypatch):
    monkeypatch.setattr(webarena_source, "find_file", lambda name: (_ for _ in ()).throw(FileNotFoundError(name)))
    source = opened(settings(tmp_path))
    with pytest.raises(TaskSourceError, match="`env.train_file` must name graded tasks"):
        source.first_tasks(0)
    source.close()


def test_what_the_sites_would_refuse_in_the_middle_is_refused_at_the_start(tmp_path, hosted, unasked, monkeypatch):
    with pytest.raises(TaskSourceError, match="`rollout.environments` must be 1 where every episode is reset on one"):
        opened(settings(tmp_path, env={"reset": "env-ctrl", "reset_each": "episode"}, rollout={"environments": 2}))
    monkeypatch.setenv("SHOPPING", "http://127.0.0.1:1,http://127.0.0.1:2")
    with pytest.raises(TaskSourceError, match="worker 2 has no copy of shopping"):
        opened(settings(tmp_path, rollout={"environments": 3}))
    with pytest.raises(TaskSourceError, match="`eval.split` must be test"):
        opened(settings(tmp_path, eval={"split": "test_families"}))
    with pytest.raises(TaskSourceError, match="there is none"):
        opened(settings(tmp_path, env={"tasks_file": str(tmp_path / "none.json")}))


def test_without_any_site_the_variables_are_named(tmp_path, monkeypatch):
    for site in ("SHOPPING", "SHOPPING_ADMIN", "GITLAB", "MAP", "WIKIPEDIA", "REDDIT", "HOMEPAGE"):
        monkeypatch.delenv(site, raising=False)
        monkeypatch.delenv(f"WA_{site}", raising=False)
    with pytest.raises(TaskSourceError, match="Set SHOPPING, SHOPPING_ADMIN, REDDIT, GITLAB, MAP and WIKIPEDIA"):
        opened(settings(tmp_path))


def test_new_tasks_come_from_the_served_model_and_from_nobody_else(tmp_path, hosted, unasked, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    source = opened(settings(tmp_path, curriculum={"generator": "offline"}))
    with pytest.raises(TaskSourceError, match="`curriculum.generator` must be auto or llm with webarena_lite"):
        source.generator(tmp_path / "llm.jsonl")
    source.close()
    source = opened(settings(tmp_path))
    with pytest.raises(LlmError, match="`OPENAI_API_KEY` must be set"):
        source.generator(tmp_path / "llm.jsonl")
    source.close()
    with serving(says("1. `Find tea`"), says("It can. [YES]")) as server:
        source = opened(settings(tmp_path, llm={"base_url": server.url, "model": "m"}))
        generator, feasible = source.generator(tmp_path / "llm.jsonl")
        [new] = generator.propose(("shopping",), [source.test[0]], 1, "s")
        assert (new.intent, new.start_url, feasible(new)[0]) == ("Find tea", "__SHOPPING__/", True)
        source.close()


@pytest.mark.parametrize(("judge", "name"), [("model", None), ("offline", "offline"), ("none", None)])
def test_without_a_key_fuzzy_rules_have_no_judge_which_is_said(tmp_path, hosted, unasked, caplog, judge, name):
    source = opened(settings(tmp_path, env={"judge": judge}))
    found = source.environments.envs[0].judge
    assert (found and found.name) == name
    assert ("fuzzy rules stay ungraded: `OPENAI_API_KEY` must be set" in caplog.text) == (judge == "model")
    source.close()


def test_a_site_that_is_not_well_stops_the_run_before_it_begins(tmp_path, hosted):
    """Of the three test and four train tasks four are of the shop."""
    hosted.broken["shopping"] = 502
    train = write(tmp_path, TRAIN, "train.json")
    with pytest.raises(BrowserError, match="shopping .*FAILED .*answered with status 502; 4 tasks need it"):
        opened(settings(tmp_path, env={"train_file": train}))


# Whole commands (browser) -------------------------------------------------------------------------------------------

SMALL = (
    "--sft.epochs 1 --orm.epochs 1 --curriculum.phases 1 --curriculum.tasks_per_phase 2 --rollout.max_steps 2 "
    "--rollout.max_new_tokens 24 --rollout.environments 2 --lora.rank 2 --lora.alpha 4"
).split()


def helper(handler: Handler) -> None:
    """A served model that invents tasks, finds all of them feasible, and exits where it acts."""
    server = handler.server
    asked = json.dumps(server.requests[-1]["messages"])
    if "#Created Task#" in asked:
        number = len(server.requests)
        return respond(handler, says(f"- `Find tea number {number}`\n- `Find a pot number {number}`"))
    if "do(action=" in asked and "Task: " in asked and "What the user wanted" not in asked:
        return respond(handler, says(stop("blue kettle")))
    return respond(handler, says("So it is. [YES]"))


def test_the_whole_loop_runs_on_hosted_sites(tmp_path, hosted, capsys):
    """Demonstrations, SFT, the ORM, one phase with served tasks, evaluation."""
    train = write(tmp_path, TRAIN, "train.json")
    file = tmp_path / "sft.jsonl"
    write_jsonl(file, [demonstration(Task.from_json(one), stop("tea"), score=1.0) for one in TRAIN[:2]])
    out = tmp_path / "out"
    with serving(helper) as server:
        command = f"""--env webarena_lite --env.tasks_file {write(tmp_path, TESTS)} --env.train_file {train}
            --sft.file {file} --llm.base_url {server.url} --llm.model m --out {out}""".split()
        assert main([*command, *SMALL]) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert "tasks, evaluator strict 1, judge m, prompt 1: " in shown
    assert 'floor: an agent that always answers "N/A": 1 of 3 = 33.3 %' in shown
    assert "graded 3, ungraded 0 (0 for want of a judge), faulted 0" in shown
    tasks = list(read_jsonl(out / "phase_01" / "tasks.jsonl", Task))
    assert {task.intent.split(" number ")[0] for task in tasks} <= {"Find tea", "Find a pot"} and len(tasks) == 2
    labelled = list(read_jsonl(out / "phase_01" / "labelled.jsonl", Trajectory))
    assert [one.verdict.mode for one in labelled] == ["orm", "orm"]
    assert (out / "phase_01" / "actor" / "final").is_dir()
    first = list(read_jsonl(out / "phase_00" / "rollouts.jsonl", Trajectory))
    assert [one.task.task_id for one in first] == ["train.100", "train.101", "train.103", "train.112"]


def test_a_prompted_model_plays_the_test_tasks_and_its_score_is_printed(tmp_path, hosted, capsys):
    """It says ``blue kettle`` to every task: right for task 0, wrong for the other two."""
    out = tmp_path / "out"
    with serving(helper) as server:
        command = f"""eval --policy prompted --env webarena_lite --env.tasks_file {write(tmp_path, TESTS)}
            --env.evaluator vab --env.judge none --llm.base_url {server.url} --llm.model m --out {out}
            --rollout.environments 2""".split()
        assert main(command) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert "prompted m\ntasks, evaluator vab 1: 1/3 = 33.3 %, Wilson 95 % [6.1, 79.2]" in shown
    played = list(read_jsonl(out / "phase_00" / "evaluation.jsonl", Trajectory))
    assert [(one.policy, one.answer) for one in played] == [("prompted m", "blue kettle")] * 3
    assert not (out / "sft").exists()  # no model was loaded
