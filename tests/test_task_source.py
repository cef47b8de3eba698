"""Which source of tasks a name opens, and the embedded sites as one."""

import sys
from types import SimpleNamespace

import pytest

from webrl_lite import phase
from webrl_lite.config import ConfigError, EnvConfig, from_dict
from webrl_lite.envs.embedded.demonstrations import demonstrations
from webrl_lite.observation import count_tokens_default
from webrl_lite.run_folder import RunFolder
from webrl_lite.source_parts import draw_unshown
from webrl_lite.task_source import EmbeddedSource, TaskSourceError, open_source
from webrl_lite.trajectory import StopReason, Task, Trajectory, Verdict, write_jsonl


def opened(**groups: object) -> object:
    return open_source(from_dict(groups), count_tokens_default, ())


def test_miniwob_gets_names_and_seeds_and_no_test_seed_is_a_train_seed(monkeypatch):
    """Train seeds count from 0, test seeds from the first that its module names for testing."""
    asked = {}
    maker = SimpleNamespace(MiniwobSource=lambda *given, **named: asked.update(named) or given)
    monkeypatch.setitem(sys.modules, "webrl_lite.miniwob_source", maker)
    monkeypatch.setitem(sys.modules, "webrl_lite.envs.miniwob", SimpleNamespace(TEST_SEEDS=(1000, 1001)))
    opened(env={"name": "miniwob", "tasks": ["click-test", "enter-text"], "train_seeds": 3, "test_seeds": 2})
    assert asked["tasks"] == ("click-test", "enter-text")
    assert (list(asked["train_seeds"]), list(asked["test_seeds"])) == ([0, 1, 2], [1000, 1001])


@pytest.mark.parametrize("name", ["train_seeds", "test_seeds"])
def test_seeds_are_at_least_one(name):
    with pytest.raises(ConfigError, match=f"`env.{name}` must be at least 1, got 0"):
        EnvConfig(**{name: 0})


@pytest.fixture
def own_file(tmp_path):
    """Three of the shipped demonstrations, the second of them as a failure."""
    first, second, third = demonstrations()[:3]
    failed = Trajectory(second.task, second.steps, StopReason.EXIT, verdict=Verdict(0.0, "strict", "1"))
    write_jsonl(tmp_path / "own.jsonl", [first, failed, third])
    return tmp_path / "own.jsonl"


def test_the_embedded_sites_take_demonstrations_of_a_file(own_file):
    source = opened(sft={"file": str(own_file), "episodes": None})
    try:
        assert isinstance(source, EmbeddedSource)
        expected = [demonstrations()[0].task.task_id, demonstrations()[2].task.task_id]
        assert [one.task.task_id for one in source.demonstrations(0)] == expected
        assert {task.split for task in source.train} == {"train"}
        assert source.environments.envs[0].evaluator == "strict"
        assert not source.environments.envs[0].picture
        change = next(task for task in source.test if task.kind == "change")
        played = [Trajectory(change, (), StopReason.EXIT, verdict=Verdict(1.0, "strict", "1"))]
        lines = source.score(played).splitlines()
        assert lines[0] == "embedded, test, evaluator strict 1: 1/1 = 100.0 %, Wilson 95 % [20.7, 100.0]"
        assert lines[2].startswith('floor: an agent that always answers "N/A": 0 of 1')
    finally:
        source.close()


def test_a_file_that_is_not_used_whole_is_named(own_file, caplog):
    source = opened(sft={"file": str(own_file), "episodes": 1})
    try:
        assert len(source.demonstrations(0)) == 1
        assert f"{own_file}: 1 of its 2 demonstrations are learned from" in caplog.text
    finally:
        source.close()


@pytest.mark.parametrize("groups", [{"env": {"pictures": True}}, {"orm": {"judge": "screenshot"}}])
def test_pictures_are_taken_where_a_judge_looks_at_them(groups):
    source = opened(**groups)
    try:
        assert source.environments.envs[0].picture
    finally:
        source.close()


def test_an_agent_reads_a_page_as_its_demonstration_showed_it(tmp_path):
    """The tiny base has words such as "Click" and "NO" as tokens of their own; pages are not broken at them."""
    shown = {one.task.task_id: one.steps[0].observation for one in demonstrations()}
    names = ["shopping.price.train.0", "gitlab.clone_address.train.0", "map.phone.train.0"]
    run = phase.open_run(from_dict({"rollout": {"environments": 3}}), RunFolder(tmp_path / "out"), roles=("actor",))
    try:
        tasks = [task for task in run.source.train if task.task_id in names]
        pages = [values["text"] for values, _ in run.source.environments.reset(tasks)]
    finally:
        run.close()
    assert any("Northby" in page for page in pages) and any("Notes" in page for page in pages)
    assert pages == [shown[task.task_id] for task in tasks]


def test_the_embedded_sites_keep_to_tasks_that_are_short_enough():
    """Train, test and demonstrations alike: of a task that needs 6 replies there is no trace."""
    source = opened(env={"max_required_steps": 4}, eval={"tasks": None}, sft={"episodes": None})
    try:
        shown = source.demonstrations(0)
        assert {task.required_steps for task in source.test} == {2, 3, 4} == {len(one.steps) for one in shown}
        assert [one.task for one in shown] == list(source.train)
    finally:
        source.close()


def test_a_limit_that_leaves_no_task_is_refused_with_the_shortest_there_is():
    with pytest.raises(TaskSourceError, match="the split 'test_families', whose shortest needs 3 replies; got 2"):
        opened(env={"max_required_steps": 2}, eval={"split": "test_families"})


@pytest.mark.parametrize(
    ("shown", "number", "expected"),
    [
        ("abcd", 3, {"efg"}),  # all there are
        ("abc", 2, {"de", "df", "dg", "ef", "eg", "fg"}),  # only of those
        ("abcde", 3, {"afg", "bfg", "cfg", "dfg", "efg"}),  # all of those, and one besides
        ("abcdefg", 6, {"abcdef", "abcdeg", "abcdfg", "abcefg", "abdefg", "acdefg", "bcdefg"}),
        ("abc", None, {"abcdefg"}),
        ("", 9, {"abcdefg"}),
    ],
)
def test_tasks_without_a_demonstration_come_first(shown, number, expected):
    tasks = [Task(name, ("map",), "do", "__MAP__", {}, "train") for name in "abcdefg"]
    drawn = ["".join(one.task_id for one in draw_unshown(tasks, set(shown), number, str(seed))) for seed in range(99)]
    assert set(drawn) == expected


def test_the_first_actor_plays_what_its_demonstrations_did_not_show():
    source = opened(sft={"episodes": 200}, orm={"rollouts": 78})  # 278 train tasks need at most 5 replies
    try:
        shown = {one.task.task_id for one in source.demonstrations(3)}
        first = {task.task_id for task in source.first_tasks(3)}
        assert len(shown) == 200 and len(first) == 78 and not shown & first
    finally:
        source.close()
