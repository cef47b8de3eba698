"""The loop, on tasks without a browser; the real sites are in ``test_run``."""

import dataclasses
import json
import math
import multiprocessing
import random
import threading
import time
from pathlib import Path

import pytest
from local_llm import says, serving
from paper_source import PaperSource, config, open_paper, whole_run
from safetensors.torch import load_file

from webrl_lite import phase
from webrl_lite.baselines import METHODS
from webrl_lite.config import CurriculumConfig, LlmConfig, OrmConfig, ReplayConfig
from webrl_lite.curriculum import critic_values
from webrl_lite.experience import Experience, read_experience
from webrl_lite.run_folder import RunFolder
from webrl_lite.trajectory import StopReason, Task, Trajectory, Verdict, read_jsonl, write_jsonl

pytestmark = pytest.mark.timeout(300)


def finished(folder: Path, **settings: object) -> phase.Run:
    chosen = config(folder, **settings)
    run_folder = RunFolder(folder)
    run_folder.begin(chosen, resume=False)
    run = open_paper(chosen, run_folder)
    phase.learn(run)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> phase.Run:
    return finished(tmp_path_factory.mktemp("run") / "out")


def results(folder: Path) -> dict[str, object]:
    """What a run made, without times: weights, rows, tasks, and what was said."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if "checkpoint-" in name:
            continue
        if path.suffix == ".safetensors":
            found[name] = {key: tensor.tolist() for key, tensor in load_file(path).items()}
        elif path.name in ("tasks.jsonl", "experience.jsonl", "selected.jsonl", "replay.json", "curriculum.json"):
            found[name] = path.read_text(encoding="utf-8")
        elif path.name in ("rollouts.jsonl", "labelled.jsonl", "evaluation.jsonl"):
            episodes = read_jsonl(path, Trajectory)
            found[name] = [([step.reply for step in one.steps], one.verdict, one.trajectory_id) for one in episodes]
    return found


def differing(one: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    """Return the names under which two results differ, each with a word on how."""
    found: dict[str, object] = {}
    for name in sorted(one.keys() | other.keys()):
        mine, theirs = one.get(name), other.get(name)
        if mine == theirs:
            continue
        if isinstance(mine, dict) and isinstance(theirs, dict):  # weights
            found[name] = [key for key in sorted(mine.keys() | theirs.keys()) if mine.get(key) != theirs.get(key)]
        else:
            found[name] = [str(side)[:200] for side in (mine, theirs)]
    return found


def rows(run: phase.Run, k: int, name: str = "experience.jsonl") -> tuple[Experience, ...]:
    return read_experience(run.path(k, name))


# The judge's lessons ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("played", "shown", "expected"),
    [
        ("+---", "DD", "+---DD"),  # demonstrations stand in for successes
        ("+---", "DDDD", "+---DD"),
        ("----", "D", "----D"),  # as many as there are
        ("+++++--", "DDDD", "+++++-----"),  # failures are taken again, in turn
        ("+-", "D", "+-"),
        ("+++", "D", "+++"),  # there is none to take
        ("", "DD", ""),
    ],
)
def test_the_judge_sees_as_many_successes_as_failures(played, shown, expected):
    def episodes(kinds: str) -> list[Trajectory]:
        task = Task("a", ("shopping",), "b", "c", {}, "train")
        scores = {"+": 1.0, "-": 0.0, "D": 1.0}
        return [Trajectory(task, (), StopReason.EXIT, answer=kind, verdict=Verdict(scores[kind])) for kind in kinds]

    lessons = phase.judge_lessons(episodes(played), episodes(shown))
    assert "".join(one.answer for one in lessons) == expected


# What a stage reads and writes --------------------------------------------------------------------------------------


def test_a_phase_leaves_every_file_of_the_flow(run):
    for name in ("tasks", "rejected", "rollouts", "labelled", "selected", "experience", "evaluation"):
        assert run.path(1, f"{name}.jsonl").is_file(), name
    for name in ("critic", "actor"):
        assert (run.path(1, name) / "final" / "adapter_model.safetensors").is_file()


def test_every_stage_has_one_line_with_its_time(run):
    lines = [json.loads(line) for line in (run.folder.path / "stages.jsonl").read_text().splitlines()]
    one_phase = ["tasks", "rollout", "label", "select", "critic", "advantage", "actor", "evaluation"]
    assert [line["stage"] for line in lines] == [
        "demonstrations", "sft", "phase_00/evaluation", "phase_00/rollout", "orm/lessons", "orm", "orm/report",
        *(f"phase_01/{name}" for name in one_phase), *(f"phase_02/{name}" for name in one_phase),
    ]  # fmt: skip
    assert all(line["seconds"] >= 0 and line["peak_bytes"] > 0 for line in lines)


def test_the_reference_of_a_phase_is_the_actor_of_the_phase_before(run):
    """Of each step, log pi_ref is what that actor gives: re-anchored every phase."""
    for k in (1, 2):
        run.shared.load_role("ref", run.actor(k - 1))
        some = rows(run, k)[:6]
        with run.shared.role("ref"):
            again = run.shared.action_logprobs([row.sample for row in some]).tolist()
        assert [row.ref_logprob for row in some] == pytest.approx(again, abs=1e-5)
        run.shared.load_role("ref", run.actor(k))
        with run.shared.role("ref"):
            later = run.shared.action_logprobs([row.sample for row in some]).tolist()
        assert max(abs(row.ref_logprob - new) for row, new in zip(some, later, strict=True)) > 1e-4


def test_values_are_those_of_the_phases_own_critic(run):
    run.shared.load_role("critic", run.critic(2))
    some = rows(run, 2)[:6]
    with run.shared.role("critic"):
        assert [row.value for row in some] == pytest.approx(
            run.shared.values([row.prompt for row in some]).tolist(), abs=1e-5
        )


def test_the_reward_is_what_the_orm_said_and_the_graders_word_is_only_kept(run):
    labelled = {one.trajectory_id: one for one in read_jsonl(run.path(1, "labelled.jsonl"), Trajectory)}
    for one in labelled.values():
        assert one.verdict.mode == "orm"
        assert one.verdict.score == float(one.evidence["orm"]["score"] > 0.5)
        assert one.evidence["grader"] in (0.0, 1.0)
    for row in rows(run, 1):
        if row.source == "current":
            assert row.reward == labelled[row.trajectory_id].verdict.score


def test_replay_takes_demonstrations_and_earlier_phases_and_no_failure(run):
    sources = {row.source for k in (1, 2) for row in rows(run, k)}
    assert "current" in sources
    for k in (1, 2):
        current = sum(row.source == "current" for row in rows(run, k))
        replayed = [row for row in rows(run, k) if row.source != "current"]
        assert len(replayed) <= 2 * current
        assert all(row.reward == 1 and row.phase < k for row in replayed)


def test_graded_successes_of_the_first_actor_are_replayed_and_its_failures_are_not(tmp_path):
    """4 demonstrations and 10 first episodes of 2 steps each: a buffer of 28; a band that lets all of them in."""
    run = finished(tmp_path / "out", replay=ReplayConfig(ppl_min=1.0, ppl_max=math.inf, max_ratio=100.0))
    file = run.path(0, "rollouts.jsonl")
    played = sorted(read_jsonl(file, Trajectory), key=lambda one: one.task.task_id)
    write_jsonl(file, [dataclasses.replace(one, verdict=Verdict(float(i >= 7))) for i, one in enumerate(played)])
    run.path(1, "selected.jsonl").unlink()
    phase.select(run, 1)
    assert json.loads(run.path(1, "replay.json").read_text())["buffer"] == 28
    chosen = [row for row in read_experience(run.path(1, "selected.jsonl")) if row.source == "replay"]
    assert sorted({row.task_id for row in chosen}) == ["train7", "train8", "train9"]


def test_a_critic_of_the_first_actors_episodes_filters_the_first_phase_if_asked_for(run, tmp_path):
    """V of the 4 accepted tasks is that of phase 0's critic, which has learned; without it no V is asked."""
    assert json.loads(run.path(1, "curriculum.json").read_text())["values"] == []
    assert not run.critic(0).exists()
    all_of_them = CurriculumConfig(first_phase="critic", phases=1, tasks_per_phase=4, value_min=0.0, value_max=1.0)
    run = finished(tmp_path / "out", curriculum=all_of_them)
    values = json.loads(run.path(1, "curriculum.json").read_text())["values"]
    tasks = list(read_jsonl(run.path(1, "tasks.jsonl"), Task))
    run.shared.load_role("critic", run.critic(0))
    assert values == pytest.approx(critic_values(run.source.first_pages, run.shared, run.config)(tasks), abs=1e-6)
    fresh = open_paper(run.config, run.folder)
    before = critic_values(fresh.source.first_pages, fresh.shared, fresh.config)(tasks)
    assert len(values) == 4 and all(abs(now - then) > 0.05 for now, then in zip(values, before, strict=True))


def test_the_failure_set_grows_and_new_tasks_are_new(run):
    known = {one.intent for one in (*run.source.train, *run.source.test)}
    for k in (1, 2):
        tasks = list(read_jsonl(run.path(k, "tasks.jsonl"), Task))
        assert len(tasks) == 4 and not {one.intent for one in tasks} & known
        known |= {one.intent for one in tasks}
    failed = [json.loads(line) for line in (run.folder.path / "stages.jsonl").read_text().splitlines()]
    sizes = [line["failed_so_far"] for line in failed if line["stage"].endswith("/tasks")]
    assert sizes[0] <= sizes[1]


def test_an_episode_that_the_environment_broke_is_no_lesson(tmp_path, monkeypatch):
    """One broken episode among four: three are learned from."""
    run = finished(tmp_path / "out")
    path = run.path(1, "labelled.jsonl")
    episodes = list(read_jsonl(path, Trajectory))
    episodes[0] = dataclasses.replace(episodes[0], stop=StopReason.ENV_ERROR, env_error="gone")
    write_jsonl(path, episodes)
    run.path(1, "selected.jsonl").unlink()
    phase.select(run, 1)
    names = {row.trajectory_id for row in rows(run, 1, "selected.jsonl") if row.source == "current"}
    assert episodes[0].trajectory_id not in names and len(names) == len(episodes) - 1


# A served judge in the ORM's place ----------------------------------------------------------------------------------


def judged(folder: Path, base_url: str, **orm: object) -> phase.Run:
    """A run of one phase whose rollouts a served model labels."""
    llm = LlmConfig(model="m", base_url=base_url, retries=1, backoff_s=0.01, timeout_s=orm.pop("timeout_s", 30.0))
    few = CurriculumConfig(phases=1, tasks_per_phase=4, value_min=0.0, value_max=1.0)
    return finished(folder, orm=OrmConfig(judge="text", **orm), llm=llm, curriculum=few)


def test_a_served_judge_labels_and_no_orm_is_trained(tmp_path):
    """It calls every second episode a success; what the graders say is kept beside."""
    with serving(says("Done. [YES]"), says("Not done. [NO]"), says("[YES]"), says("[NO]")) as server:
        run = judged(tmp_path / "out", server.url)
        assert len(server.requests) == 4
    labelled = list(read_jsonl(run.path(1, "labelled.jsonl"), Trajectory))
    assert sorted(one.verdict.score for one in labelled) == [0.0, 0.0, 1.0, 1.0]
    assert {(one.verdict.mode, one.verdict.version) for one in labelled} == {("judge-text", "m, prompt 1")}
    assert {one.evidence["grader"] for one in labelled} <= {0.0, 1.0}
    assert not (tmp_path / "out" / "orm").exists()
    measured = json.loads(run.path(1, "orm.json").read_text())["rollouts"]
    assert (measured["judge"], measured["judged"], measured["ungraded"]) == ("text", 4, 0)
    rewards = {row.trajectory_id: row.reward for row in rows(run, 1) if row.source == "current"}
    assert rewards == {one.trajectory_id: one.verdict.score for one in labelled}


def test_graders_can_label_in_place_of_a_judge_and_what_has_none_is_not_learned_from(tmp_path, monkeypatch):
    """Of a phase's four tasks one has no grader: three labels, those of the graders, and no ORM."""

    def graded(self: PaperSource, tasks: list[Task]) -> list[Task]:
        return [dataclasses.replace(tasks[0], extra={"no grader": True}), *tasks[1:]]

    monkeypatch.setattr(PaperSource, "graded", graded)
    few = CurriculumConfig(phases=1, tasks_per_phase=4, value_min=0.0, value_max=1.0)
    run = finished(tmp_path / "out", orm=OrmConfig(judge="grader"), curriculum=few)
    played = {one.trajectory_id: one for one in read_jsonl(run.path(1, "rollouts.jsonl"), Trajectory)}
    labelled = list(read_jsonl(run.path(1, "labelled.jsonl"), Trajectory))
    assert [one.verdict for one in labelled] == [played[one.trajectory_id].verdict for one in labelled]
    assert [one.verdict.graded for one in labelled] == [False, True, True, True]
    assert not (tmp_path / "out" / "orm").exists()
    assert json.loads(run.path(1, "orm.json").read_text()) == {"rollouts": None}
    learned = {row.trajectory_id for row in rows(run, 1) if row.source == "current"}
    assert learned == {one.trajectory_id for one in labelled[1:]}


@pytest.mark.parametrize("fault", ["dead", "slow", "nonsense"])
def test_a_judge_that_cannot_be_asked_or_understood_leaves_ungraded_counts_and_goes_on(tmp_path, fault):
    held = threading.Event()
    replies = {"dead": says("x"), "slow": lambda handler: held.wait(30), "nonsense": says("Perhaps.")}
    with serving(replies[fault]) as server:
        base_url = "http://127.0.0.1:9/v1" if fault == "dead" else server.url
        run = judged(tmp_path / "out", base_url, **({"timeout_s": 0.3} if fault == "slow" else {}))
        held.set()
    labelled = list(read_jsonl(run.path(1, "labelled.jsonl"), Trajectory))
    assert [one.verdict.score for one in labelled] == [None] * 4
    lines = [json.loads(line) for line in (tmp_path / "out" / "stages.jsonl").read_text().splitlines()]
    [label] = [line for line in lines if line["stage"] == "phase_01/label"]
    assert (label["successes"], label["of"], label["ungraded"]) == (0, 4, 4)
    assert not [row for row in rows(run, 1) if row.source == "current"]
    assert run.path(1, "evaluation.jsonl").is_file()


# Methods ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [name for name in METHODS if name != "webrl"])
def test_every_method_goes_through_the_same_loop(tmp_path, method):
    run = finished(tmp_path / "out", method=method)
    row = METHODS[method]
    if row.loss is None:
        assert not run.path(1).exists()
        return
    assert (run.actor(2) / "adapter_model.safetensors").is_file()
    assert run.path(1, "rejected.jsonl").exists() == row.curriculum
    tasks = [one.split for one in read_jsonl(run.path(1, "tasks.jsonl"), Task)]
    assert set(tasks) == ({""} if row.curriculum else {"train"})
    same = run.path(1, "rollouts.jsonl").read_text() == run.path(2, "rollouts.jsonl").read_text()
    assert same == (not row.online)
    replayed = sum(r.source != "current" for k in (1, 2) for r in rows(run, k))
    assert row.replay or not replayed


# Going on -----------------------------------------------------------------------------------------------------------


def test_a_finished_run_does_nothing_again(run):
    before = (run.folder.path / "stages.jsonl").read_text()
    phase.learn(run)
    assert (run.folder.path / "stages.jsonl").read_text() == before


def in_a_process(out: Path) -> multiprocessing.Process:
    """Begin a run or go on with it in a process of its own, which finds everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["webrl_lite.phase"])
    process = context.Process(target=whole_run, args=(str(out),))
    process.start()
    return process


def to_its_end(out: Path) -> None:
    (process := in_a_process(out)).join()
    assert process.exitcode == 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[Path, float]:
    """A run that nobody ended, and its seconds."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    to_its_end(tmp_path_factory.mktemp("warm") / "out")  # the first one waits for the imports
    begin = time.monotonic()
    to_its_end(out)
    return out, time.monotonic() - begin


@pytest.mark.parametrize("number", range(10))
def test_a_run_that_was_killed_at_any_moment_goes_on_to_the_same_result(undisturbed, tmp_path, number):
    """Ten random moments between the start and the end, SIGKILL, by pid.

    No stage of either run is this process's: what other tests have left in it, such as a number of threads, would be
    in some stages and not in others, and weights would differ in the last digit.
    """
    whole, seconds = undisturbed
    process = in_a_process(tmp_path / "out")
    time.sleep(random.Random(number).uniform(0.02, 1) * seconds)
    process.kill()
    process.join()
    to_its_end(tmp_path / "out")
    assert differing(results(tmp_path / "out"), results(whole)) == {}
