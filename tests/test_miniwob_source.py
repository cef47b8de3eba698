"""MiniWoB++ as a source of a run: splits, demonstrations, new tasks, and a phase end to end."""

import dataclasses
from pathlib import Path

import pytest
from paper_source import config as quick
from task_pages import needs_pages

from webrl_lite import phase
from webrl_lite.browser import BrowserError
from webrl_lite.config import (
    SHORT_PAGES,
    Config,
    CurriculumConfig,
    EnvConfig,
    EvalConfig,
    ModelConfig,
    OrmConfig,
    RolloutConfig,
    SftConfig,
    preset,
)
from webrl_lite.envs.miniwob import MiniwobError
from webrl_lite.envs.miniwob_tasks import HELD_OUT
from webrl_lite.miniwob_source import STOCK, InstancePages, MiniwobSource
from webrl_lite.model import SharedBase
from webrl_lite.observation import count_tokens_default
from webrl_lite.prompt_tokens import Marks
from webrl_lite.run_folder import RunFolder
from webrl_lite.session import Session
from webrl_lite.source_parts import TaskSourceError
from webrl_lite.trajectory import Task, Trajectory, read_jsonl


def settings(**groups: object) -> Config:
    chosen = {"sft": SftConfig(episodes=3), "orm": OrmConfig(rollouts=2), "eval": EvalConfig(tasks=2)}
    return Config(**(chosen | {"rollout": RolloutConfig(environments=1)} | groups))


def test_the_presets_pages_are_those_of_the_oracles_table_that_are_short():
    table = (Path(__file__).parent / "benchmarks/MINIWOB.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")]
    played = [row for row in rows if len(row) == 7 and row[1].isdecimal()]
    short = {row[0] for row in played if float(row[4]) <= 3 and float(row[5]) < 5 and not row[6]}
    assert set(SHORT_PAGES) == short
    assert len(SHORT_PAGES) == 46 and not set(SHORT_PAGES) & set(HELD_OUT)
    assert preset("miniwob").eval.tasks == 46 * preset("miniwob").env.test_seeds


@pytest.fixture(scope="module")
def source():
    made = MiniwobSource(
        settings(rollout=RolloutConfig(environments=2)),
        count_tokens_default,
        (),
        tasks=["click-test", "enter-text"],
        train_seeds=range(4),
        test_seeds=(5, 6),
    )
    yield made
    made.close()


@needs_pages
def test_a_source_has_train_and_test_tasks_that_share_no_seed(source):
    assert [one.task_id for one in source.train] == [
        f"miniwob.{name}.{seed}" for name in ("click-test", "enter-text") for seed in range(4)
    ]
    assert len(source.test) == 2 and {one.split for one in source.test} == {"test"}
    assert len(source.first_tasks(0)) == 2 and source.first_tasks(0) == source.first_tasks(0)


@needs_pages
def test_demonstrations_are_won_and_the_same_for_the_same_seed(source):
    shown = source.demonstrations(0)
    assert len(shown) == 3 and all(one.verdict.success and one.policy == "oracle" for one in shown)
    assert source.demonstrations(0) is shown


@needs_pages
def test_new_tasks_are_new_seeds_of_the_pages_that_failed(source, tmp_path):
    (maker, feasible), (same, _), (other, _) = (source.generator(tmp_path / "llm.jsonl") for _ in range(3))
    failed = [one for one in source.train if one.family == "miniwob.enter-text"][:2]
    made = maker.propose(("miniwob",), failed, 3, "a")
    assert [one.family for one in made] == ["miniwob.enter-text"] * 3
    assert all(one.instantiation_dict["seed"] >= 10_000 and one.eval is None and not one.split for one in made)
    assert made == same.propose(("miniwob",), failed, 3, "a") and made != other.propose(("miniwob",), failed, 3, "b")
    more = [*made, *maker.propose(("miniwob",), failed, 3, "a"), *maker.propose(("miniwob",), failed, 2 * STOCK, "c")]
    assert len({one.start_url for one in more}) == 6 + 2 * STOCK  # it goes on where it was
    assert [feasible(one) for one in made] == [(True, "")] * 3
    graded = source.graded(made)
    assert [one.eval for one in graded] == [{"eval_types": ["page"]}] * 3


@needs_pages
def test_a_task_that_asks_for_something_else_than_its_page_cannot_be_done(source):
    one = source.train[-1]
    assert source.can_be_done(one)
    for wrong in (
        dataclasses.replace(one, intent="Buy a kettle."),
        dataclasses.replace(one, family="miniwob.click-button"),
        dataclasses.replace(one, start_url="__MINIWOB__/miniwob/click-test.html?seed=3"),
        dataclasses.replace(one, instantiation_dict={}),
    ):
        assert not source.can_be_done(wrong)
        assert source.graded([dataclasses.replace(wrong, eval=None)])[0].eval is None


@needs_pages
def test_first_pages_are_what_the_agent_will_see_in_the_order_of_the_tasks(source):
    """Two environments read three pages; the one that is asked for twice is read once."""
    tasks = [source.train[-1], source.train[0], source.test[0], source.train[-1]]
    texts = source.first_pages(tasks)
    assert "into the text field and press Submit.\n[1] input | Submit [2] button" in texts[0]
    assert texts[3] == texts[0] and len(set(texts)) == 3
    played = [source.environments.envs[1].reset(options={"task": task})[0]["text"] for task in tasks]
    assert texts == played


@needs_pages
@pytest.mark.parametrize("faults", [1, 2])
def test_first_pages_are_read_once_more_after_a_fault_and_no_more(source, monkeypatch, faults):
    pages, tries, read = InstancePages(source.environments), [], Session.visit

    async def visit(session, urls):
        tries.append(urls)
        if len(tries) <= faults:
            raise BrowserError("the page is gone")
        await read(session, urls)

    monkeypatch.setattr(Session, "visit", visit)
    if faults == 1:
        assert pages(source.train[:1]) == source.first_pages(source.train[:1])
    else:
        with pytest.raises(TaskSourceError, match="first pages of 1 instances could not be read: the page is gone"):
            pages(source.train[:1])
    assert len(tries) == 2


@needs_pages
def test_pages_held_out_are_evaluated_on_alone():
    made = MiniwobSource(
        settings(eval=EvalConfig(split="test_families")),
        count_tokens_default,
        (),
        tasks=["click-test", "login-user-popup"],
        train_seeds=(0,),
        test_seeds=(1,),
    )
    assert [one.task_id for one in made.train] == ["miniwob.click-test.0"]
    assert [one.task_id for one in made.test] == ["miniwob.login-user-popup.1"]
    made.close()


def test_what_cannot_be_is_refused_before_anything_starts():
    with pytest.raises(MiniwobError, match="`curriculum.generator` must be offline or auto"):
        MiniwobSource(settings(curriculum=CurriculumConfig(generator="llm")), count_tokens_default, ())
    with pytest.raises(MiniwobError, match="must be below 10000, got 10001"):
        MiniwobSource(settings(), count_tokens_default, (), train_seeds=(10_001,))


@needs_pages
def test_demonstrations_need_the_observation_that_oracles_read(source, monkeypatch):
    monkeypatch.setattr(source, "_config", settings(env=EnvConfig(observation="webrl")))
    with pytest.raises(MiniwobError, match="`env.observation` must be lite"):
        source.demonstrations(1)


@needs_pages
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sft_a_judge_and_a_phase_run_on_three_pages(tmp_path):
    chosen = quick(
        tmp_path / "out",
        model=ModelConfig(max_length=1024),
        curriculum=CurriculumConfig(phases=1, tasks_per_phase=4, value_min=0.0, value_max=1.0),
        eval=EvalConfig(tasks=3),
        rollout=RolloutConfig(environments=2, max_steps=4, max_new_tokens=24),
    )
    folder = RunFolder(tmp_path / "out")
    folder.begin(chosen, resume=False)
    shared = SharedBase.load(chosen.model, chosen.lora, device="cpu", seed=chosen.seed)
    played = MiniwobSource(
        chosen,
        lambda text: len(shared.tokenizer.encode(text, add_special_tokens=False)),
        tuple(Marks.of(shared.tokenizer).ids),
        tasks=["click-button", "choose-list", "enter-text"],
        train_seeds=range(4),
        test_seeds=(4,),
    )
    run = phase.Run(chosen, folder, shared, played)
    try:
        phase.learn(run)
    finally:
        run.close()
    new = list(read_jsonl(run.path(1, "tasks.jsonl"), Task))
    assert len(new) == 4 and all(one.instantiation_dict["seed"] >= 10_000 for one in new)
    episodes = list(read_jsonl(run.path(1, "evaluation.jsonl"), Trajectory))
    assert len(episodes) == 3 and all(one.verdict.mode == "miniwob" for one in episodes)
    assert (run.actor(1) / "adapter_model.safetensors").is_file()
