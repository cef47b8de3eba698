"""MiniWoB++ through our browser: what a page says is the grade, at the moment when it says it.

Needs the pages (``pip install --no-deps miniwob``); without them all but the first tests are skipped.
"""

import dataclasses
import sys
import urllib.error
import urllib.request
from importlib import metadata
from types import SimpleNamespace

import pytest
from task_pages import needs_pages

from webrl_lite import evaluators
from webrl_lite.envs.embedded.oracle import OracleLost
from webrl_lite.envs.miniwob import MiniwobError, MiniwobPages, chosen_names, instance, pages
from webrl_lite.envs.miniwob_play import play_oracle
from webrl_lite.envs.miniwob_tasks import HELD_OUT, ORACLES, SUPPORTED, UNSUPPORTED
from webrl_lite.envs.web_env import StopRules, WebEnv
from webrl_lite.trajectory import Step, StopReason, Task, Trajectory, read_jsonl, write_jsonl

NAMES = ("click-test-2", "click-button", "enter-text", "use-colorwheel", "use-spinner", "choose-list")
PLAYED = ("choose-date", "click-menu", "copy-paste", "order-food", "terminal", "use-autocomplete")


@pytest.fixture(scope="module")
def backend(shared_browser):
    made = MiniwobPages((*NAMES, *PLAYED), train_seeds=(0,), test_seeds=(1, 2), browser=shared_browser)
    yield made
    made.close()


@pytest.fixture
def env(backend, shared_browser):
    made = WebEnv(backend, browser=shared_browser)
    yield made
    made.close()


def task(backend: MiniwobPages, name: str, seed: int = 0) -> Task:
    return next(one for one in backend.tasks if one.task_id == f"miniwob.{name}.{seed}")


def click(env: WebEnv, name: str):
    found = next(e for e in env.observation.elements.values() if e.name == name)
    return env.step(f'do(action="Click", element="{found.id}")')


# Without the pages --------------------------------------------------------------------------------------------------


def test_a_missing_package_is_named_with_the_command_that_gets_it(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(MiniwobError, match=r"`miniwob`.*Run `pip install --no-deps miniwob`"):
        MiniwobPages(["click-test"])


def test_a_page_that_cannot_be_played_is_refused_with_the_reason():
    with pytest.raises(MiniwobError, match="'drag-box': it is played by dragging"):
        chosen_names(["click-test", "drag-box"])
    with pytest.raises(MiniwobError, match="'click-tset': there is no such page"):
        chosen_names(["click-tset"])


def test_at_least_75_pages_are_supported_and_every_other_has_its_reason():
    assert len(SUPPORTED) >= 75
    assert not {*SUPPORTED} & {*UNSUPPORTED} and {*HELD_OUT} < {*SUPPORTED}
    assert all(UNSUPPORTED.values())


# The pages ----------------------------------------------------------------------------------------------------------


@needs_pages
def test_the_two_tables_name_every_page_of_the_package():
    found = {path.stem for path in (pages() / "miniwob").glob("*.html")}
    assert found == {*SUPPORTED, *UNSUPPORTED}


@needs_pages
def test_the_packages_own_python_is_never_imported(backend):
    assert "miniwob" not in sys.modules


@needs_pages
def test_a_task_is_a_page_and_a_seed_with_the_pages_own_instruction(backend):
    one = task(backend, "click-button")
    assert (one.task_id, one.sites, one.family) == ("miniwob.click-button.0", ("miniwob",), "miniwob.click-button")
    assert one.intent == 'Click on the "No" button.'
    assert one.start_url == "__MINIWOB__/miniwob/click-button.html?seed=0"
    assert task(backend, "choose-list", 2).intent == "Select Nigeria from the list and click Submit."


@needs_pages
def test_splits_go_by_seed_and_pages_held_out_are_never_trained_on(backend):
    splits = {one.task_id: one.split for one in backend.tasks}
    assert [splits[f"miniwob.click-button.{seed}"] for seed in (0, 1, 2)] == ["train", "test", "test"]
    assert "miniwob.order-food.0" not in splits and splits["miniwob.order-food.1"] == "test_families"


@needs_pages
def test_a_seed_cannot_be_in_both_splits():
    with pytest.raises(MiniwobError, match="must share no seed .* got 4 in both"):
        MiniwobPages(["click-test"], train_seeds=(3, 4), test_seeds=(4, 5))


@needs_pages
def test_equal_seeds_make_equal_pages_and_the_page_shows_its_instruction(backend, env):
    texts = []
    for seed in (0, 0, 1):
        values, _ = env.reset(options={"task": task(backend, "click-button", seed)})
        texts.append(values["text"].split("\n", 1)[1])
        assert texts[-1].startswith(task(backend, "click-button", seed).intent)
    assert texts[0] == texts[1] != texts[2]


@needs_pages
def test_pages_without_a_declared_charset_are_utf_8(env):
    one = instance("unicode-test", 0, "-")
    values, _ = env.reset(options={"task": one})
    assert 'Click on the "确定" button.' in values["text"]


# The end of an episode ----------------------------------------------------------------------------------------------


@needs_pages
def test_the_page_ends_the_episode_and_its_raw_reward_is_the_grade(backend, env):
    env.reset(options={"task": task(backend, "click-test-2")})
    _, reward, terminated, truncated, info = click(env, "ONE")
    assert (reward, terminated, truncated, info["stop"]) == (1.0, True, False, "task_ended")
    assert env.trajectory.verdict.mode == "miniwob"
    assert env.trajectory.evidence["page"] == {"reward": 1.0, "reason": ""}


@needs_pages
def test_a_wrong_click_ends_the_episode_as_a_failure(backend, env):
    env.reset(options={"task": task(backend, "click-test-2")})
    _, reward, terminated, _, info = click(env, "TWO")
    assert (reward, terminated, info["stop"]) == (0.0, True, "task_ended")
    assert env.trajectory.evidence["page"]["reward"] == -1.0


@needs_pages
def test_a_partial_reward_is_no_success(backend, env):
    """Yellow is FFFF00. FFFF7F is off by 127 of 255 in one of three channels: 1 - 127 / 255 / 3 = 0.834."""
    one = next(t for t in backend.tasks if t.family == "miniwob.use-colorwheel" and "yellow" in t.intent)
    env.reset(options={"task": one})
    env.step('do(action="Type", argument="FFFF7F", element="1")')
    _, reward, terminated, _, _ = click(env, "Submit")
    assert (reward, terminated) == (0.0, True)
    assert env.trajectory.evidence["page"]["reward"] == pytest.approx(0.834, abs=1e-3)


@needs_pages
def test_an_exit_before_the_page_is_done_is_a_failure(backend, env):
    env.reset(options={"task": task(backend, "click-test-2")})
    _, reward, terminated, _, info = env.step('exit(message="done")')
    assert (reward, terminated, info["stop"]) == (0.0, True, "exit")
    assert env.trajectory.verdict.reasons == ("page: the episode ended before the page ended it",)


@needs_pages
def test_the_step_limit_is_a_failure_and_not_ungraded(backend, shared_browser):
    env = WebEnv(backend, browser=shared_browser, rules=StopRules(max_steps=1))
    env.reset(options={"task": task(backend, "click-test-2")})
    _, reward, _, truncated, info = env.step('do(action="Wait")')
    assert (reward, truncated, info["stop"]) == (0.0, True, "max_steps")
    env.close()


@needs_pages
def test_the_end_of_another_page_is_not_this_ones(backend, env):
    """An easier page that is opened by its address is no way round the task."""
    env.reset(options={"task": task(backend, "click-test-2")})
    env.step('do(action="Goto", argument="/miniwob/click-test-2.html?seed=1")')
    _, _, terminated, truncated, _ = click(env, "ONE")
    assert not terminated and not truncated
    assert env.step('exit(message="")')[1] == 0.0


@needs_pages
def test_nothing_of_the_episode_before_is_left(backend, env):
    env.reset(options={"task": task(backend, "click-test-2")})
    click(env, "ONE")
    env.reset(options={"task": task(backend, "click-test-2")})
    _, reward, terminated, _, info = env.step('exit(message="")')
    assert (reward, terminated, info["stop"]) == (0.0, True, "exit")


@needs_pages
def test_the_time_limit_is_off_and_the_cover_away(backend, env, shared_browser):
    env.reset(options={"task": task(backend, "click-test-2")})
    read = env._session.read_here
    assert shared_browser.call(read("core.EPISODE_MAX_TIME")) == "2147483647"
    assert shared_browser.call(read("document.getElementById('sync-task-cover') === null")) == "True"
    assert "START" not in env.observation.text and "Time left" not in env.observation.text


@needs_pages
def test_a_number_field_with_arrows_does_not_count_as_loading(backend, env):
    values, _ = env.reset(options={"task": task(backend, "use-spinner")})
    assert "still loading" not in values["text"]


@needs_pages
def test_the_server_takes_reports_at_one_address_only_and_no_long_ones(backend):
    origin = backend._server.origin(7)
    port = origin.rpartition(":")[2]
    for path, body in (("/other", b"{}"), ("/ended", b"x" * 5000)):
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, headers={"Host": origin[7:]})
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(request, timeout=5)
    assert backend.ended(7) is None


@needs_pages
def test_a_trace_is_read_back_and_graded_again_without_the_page(backend, env, tmp_path):
    env.reset(options={"task": task(backend, "click-test-2")})
    click(env, "ONE")
    write_jsonl(tmp_path / "rollouts.jsonl", [env.trajectory])
    (back,) = read_jsonl(tmp_path / "rollouts.jsonl", Trajectory)
    assert back == env.trajectory and back.stop is StopReason.TASK_ENDED
    again = evaluators.grade(back.task, answer="", final_url="", evidence=back.evidence, mode="strict")
    assert again == back.verdict


# Oracles ------------------------------------------------------------------------------------------------------------


@needs_pages
@pytest.mark.parametrize("name", PLAYED)
def test_oracles_win_through_the_agents_own_replies(backend, env, name):
    episode = play_oracle(env, task(backend, name, 1))
    assert episode.verdict.success and episode.stop is StopReason.TASK_ENDED
    assert all(step.action is not None for step in episode.steps)


@needs_pages
def test_an_oracle_that_does_not_find_its_element_says_what_it_saw(backend, env):
    wrong = dataclasses.replace(task(backend, "click-button"), intent='Click on the "Maybe not" button.')
    with pytest.raises(OracleLost, match="no element 'Maybe not' on:"):
        play_oracle(env, wrong)


def test_a_wait_keeps_an_oracle_from_the_rule_of_equal_replies(monkeypatch):
    """Of five equal replies no three may stand in a row: two, a Wait, two, a Wait, one."""

    def presses(page, goal):
        for _ in range(5):
            yield "press"

    class Stub:
        rules = StopRules(equal_replies=3)
        observation = SimpleNamespace(text="@ page", elements={}, cut=0)
        trajectory = None

        def reset(self, options):
            self.steps = []

        def step(self, reply):
            self.steps.append(Step(len(self.steps), "", "", reply))
            self.trajectory = "ended" if len(self.steps) == 7 else None

    monkeypatch.setitem(ORACLES, "click-test", presses)
    env = Stub()
    assert play_oracle(env, instance("click-test", 0, "")) == "ended"
    wait = 'do(action="Wait")'
    assert [step.reply for step in env.steps] == ["press", "press", wait, "press", "press", wait, "press"]


def test_an_oracle_that_stumbles_is_lost_and_no_fault_of_the_program(monkeypatch):
    def stumbles(page, goal):
        yield page.elements[7]

    env = SimpleNamespace(observation=SimpleNamespace(text="@ page", elements={}, cut=0), reset=lambda options: None)
    monkeypatch.setitem(ORACLES, "click-test", stumbles)
    with pytest.raises(OracleLost, match="the oracle stumbled .IndexError"):
        play_oracle(env, instance("click-test", 0, ""))


@needs_pages
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_is_read_on_one_page_for_many_seeds_is_what_each_seed_asks_alone(shared_browser):
    one = MiniwobPages(train_seeds=(0,), test_seeds=(1, 2), browser=shared_browser)
    try:
        together = [one.intents([(name, 2)])[0] for name in SUPPORTED]
        one._asked.clear()
        assert [one.intents([(name, 2)], shared_browser)[0] for name in SUPPORTED] == together
    finally:
        one.close()
