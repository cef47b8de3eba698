"""The environment: gymnasium's contract, stop rules, faults, isolation of workers."""

import base64
import dataclasses
import math
import os
import signal
import struct
import threading
import time
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import gymnasium
import psutil
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import webrl_lite.envs  # noqa: F401  (registers the ids)
from webrl_lite.browser import Browser
from webrl_lite.envs.backend import Start
from webrl_lite.envs.embedded.backend import EmbeddedSites
from webrl_lite.envs.web_env import StopRules, WebEnv, WebEnvBatch, make_env
from webrl_lite.trajectory import StopReason, Task, Trajectory, read_jsonl, write_jsonl

PAGES = {
    "/": "<h1>Home</h1><a href='/two'>Two</a> <a href='/hang'>Hang</a> <a href='/slow'>Slow</a>"
    "<button onclick=\"document.title='x'\">Do</button>",
    "/two": "<h1>Second</h1><a href='/'>Back</a>",
    "/hang": "<h1>Hang</h1><script>setTimeout(() => { for (;;) {} }, 50)</script>",
}


class PlainSites:
    """A backend with one hand-made site, to see the environment alone."""

    name, evaluator = "plain", "strict"

    def __init__(self):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path == "/slow":
                    time.sleep(1.5)
                body = PAGES.get(self.path, "<h1>Slow</h1>").encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        self.starts = 0
        self.tasks = (self.task("home"),)

    def task(self, name, **rules):
        answer = {"eval_types": ["string_match"], "reference_answers": {"exact_match": "42"}, "program_html": []}
        return Task(name, ("shopping",), "Find the answer.", "__SHOPPING__/", eval={**answer, **rules})

    def start(self, task, worker):
        self.starts += 1
        return Start((f"{self.origin}/",), {"site": self.origin}, [], {"__SHOPPING__": self.origin})

    said = None

    def ended(self, worker):
        return self.said

    def before(self, url):
        return None

    def call(self, call, worker):
        return None

    def changes(self, worker):
        return None

    def alive(self):
        return True

    def close(self):
        self.server.shutdown()


@pytest.fixture(scope="module")
def plain():
    backend = PlainSites()
    yield backend
    backend.close()


@pytest.fixture
def env(plain, shared_browser):
    env = WebEnv(plain, browser=shared_browser)
    env.reset()
    yield env
    env.close()


def click(env: WebEnv, name: str) -> str:
    found = next(e for e in env.observation.elements.values() if e.name == name)
    return f'do(action="Click", element="{found.id}")'


# Gymnasium ------------------------------------------------------------------------------------------------------


def test_gymnasium_accepts_the_registered_environment():
    env = gymnasium.make("webrl_lite/test-v0", disable_env_checker=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".*different from the unwrapped version.*")
            warnings.filterwarnings("ignore", ".*render.*")
            check_env(env.unwrapped, skip_render_check=True)
    finally:
        env.close()


def test_the_same_seed_draws_the_same_task(sites, shared_browser):
    env = WebEnv(sites, browser=shared_browser)
    names = [env.reset(seed=seed)[1]["task_id"] for seed in (7, 7, 8)]
    env.close()
    assert names[0] == names[1] != names[2]


def test_an_unknown_task_is_refused(env):
    with pytest.raises(ValueError, match="the id of one, got 'nowhere.1'"):
        env.reset(options={"task": "nowhere.1"})


@pytest.mark.parametrize("options", [{"split": "dev"}, {"split": "test", "task_id": "nowhere.1"}])
def test_make_env_refuses_what_does_not_exist(options):
    with pytest.raises(ValueError, match="must be"):
        make_env(**options)


def test_a_step_after_the_end_asks_for_a_reset(env):
    env.step("exit()")
    with pytest.raises(ResetNeeded):
        env.step("exit()")


# Replies and rewards --------------------------------------------------------------------------------------------


def test_a_right_answer_earns_one_and_terminates(env):
    _, reward, terminated, truncated, info = env.step('exit(message="42")')
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert (info["stop"], info["verdict"]) == ("exit", 1.0)


def test_a_wrong_answer_earns_zero(env):
    _, reward, terminated, _, info = env.step('exit(message="41")')
    assert (reward, terminated, info["verdict"]) == (0.0, True, 0.0)


def test_what_nobody_can_grade_is_nan_and_not_zero(env, plain):
    """EVA-10: a fuzzy rule without a judge is ungraded."""
    env.reset(options={"task": plain.task("f", reference_answers={"fuzzy_match": ["forty-two or so"]})})
    _, reward, _, _, info = env.step('exit(message="about that")')
    assert math.isnan(reward)
    assert info["verdict"] is None


def test_a_task_without_a_grader_is_ungraded(env, plain):
    env.reset(options={"task": Task("free", ("shopping",), "Look around.", "__SHOPPING__/")})
    assert math.isnan(env.step("exit()")[1])
    assert env.trajectory.verdict is None


def test_a_reply_that_cannot_be_read_is_an_error_line_and_nothing_is_clicked(env):
    """ACT-05."""
    values, reward, terminated, truncated, _ = env.step("I will press the button with id 12.")
    assert "holds no action" in values["last_action_error"]
    assert values["last_action_error"] in values["text"]
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert env.steps[0].action is None


def test_an_unknown_element_is_an_error_line(env):
    """ACT-12."""
    for element in ("999", "-1", '3"] , body'):
        values = env.step(f"do(action='Click', element='{element}')")[0]
        assert values["last_action_error"]
        assert values["url"].endswith("/")


def test_only_the_first_call_of_a_reply_runs(env):
    """ACT-06: never a click on the page that the first call led to."""
    values = env.step(click(env, "Two") + '\ndo(action="Click", element="1")')[0]
    assert "Second" in values["text"]
    assert "the rest was ignored" in values["last_action_error"]


def test_a_reply_must_be_text(env):
    with pytest.raises(TypeError, match="text of a reply"):
        env.step(None)


# Stop rules -----------------------------------------------------------------------------------------------------


def test_five_unreadable_replies_end_the_episode(env):
    for number in range(4):
        assert not env.step(f"hm {number}")[3]
    _, reward, terminated, truncated, info = env.step("hm")
    assert (reward, terminated, truncated, info["stop"]) == (0.0, False, True, "parse_failures")


def test_a_readable_reply_starts_the_count_again(env):
    for number in range(4):
        env.step(f"hm {number}")
    env.step('do(action="Scroll Down")')
    assert not env.step("hm")[3]


def test_five_equal_replies_end_the_episode(env):
    for _ in range(4):
        assert not env.step('do(action="Scroll Down")')[3]
    assert env.step('do(action="Scroll Down")')[4]["stop"] == "repeated_reply"


@pytest.mark.parametrize("reward, score", [(1.0, 1.0), (0.5, 0.0)])
def test_a_task_that_ends_by_itself_terminates_with_its_own_word(plain, env, monkeypatch, reward, score):
    own = Task("own", ("shopping",), "Wait.", "__SHOPPING__/", eval={"eval_types": ["page"]})
    env.reset(options={"task": own})
    assert not env.step('do(action="Wait")')[2]
    monkeypatch.setattr(plain, "said", {"reward": reward, "reason": ""})
    _, earned, terminated, truncated, info = env.step('do(action="Wait")')
    assert (earned, terminated, truncated, info["stop"]) == (score, True, False, "task_ended")
    assert env.trajectory.evidence["page"] == {"reward": reward, "reason": ""}


def test_the_step_limit_truncates(plain, shared_browser):
    env = WebEnv(plain, browser=shared_browser, rules=StopRules(max_steps=3))
    env.reset()
    results = [env.step(f'do(action="{name}")') for name in ("Scroll Down", "Scroll Up", "Wait")]
    assert [result[3] for result in results] == [False, False, True]
    assert results[2][4]["stop"] == "max_steps"
    assert env.trajectory.verdict.score == 0.0
    env.close()


@pytest.mark.parametrize(
    "values", [{"max_steps": 0}, {"parse_failures": -1}, {"equal_replies": 2.5}, {"max_steps": True}]
)
def test_stop_rules_out_of_range_are_refused(values):
    with pytest.raises(ValueError, match="must be a whole number of at least 1"):
        StopRules(**values)


# Faults ---------------------------------------------------------------------------------------------------------


def test_an_endless_script_is_an_env_error_in_time_and_the_others_go_on(plain):
    """MPR-04: one of four tasks hangs; it ends within its limit, three finish, and the next episode is clean."""
    with Browser() as browser, WebEnvBatch(plain, 4, browser=browser) as batch:
        batch.reset(["home"] * 4)
        begin = time.monotonic()
        batch.step([click(batch.envs[0], "Hang"), *[click(env, "Two") for env in batch.envs[1:]]])
        ended = batch.envs[0].trajectory is not None  # the hang may show at once or with the next step
        results = batch.step([None if ended else 'do(action="Scroll Down")', *['exit(message="42")'] * 3])
        assert time.monotonic() - begin < 40
        stops = [env.trajectory.stop for env in batch.envs]
        assert stops == [StopReason.ENV_ERROR, *[StopReason.EXIT] * 3]
        assert [result[1] for result in results if result][-3:] == [1.0] * 3
        batch.reset(["home"] * 4)
        assert [r[1] for r in batch.step(['exit(message="42")'] * 4)] == [1.0] * 4


def test_chromium_killed_in_mid_episode_is_an_env_error_and_the_next_episode_is_clean(plain):
    with Browser() as browser:
        env = WebEnv(plain, browser=browser)
        env.reset()
        for pid in browser.pids:
            os.kill(pid, signal.SIGKILL)
        _, reward, terminated, truncated, info = env.step('do(action="Scroll Down")')
        assert math.isnan(reward)
        assert (terminated, truncated) == (False, True)
        assert info["env_error"]
        assert env.trajectory.stop is StopReason.ENV_ERROR
        assert env.trajectory.verdict is None
        env.reset()
        assert env.step('exit(message="42")')[1] == 1.0
        env.close()


def test_a_killed_site_server_is_an_env_error_and_the_next_episode_is_clean(tmp_path, shared_browser):
    sites = EmbeddedSites(tmp_path)
    env = WebEnv(sites, browser=shared_browser)
    env.reset(options={"task": sites.tasks[0]})
    sites.server.process.kill()
    sites.server.process.wait()
    _, reward, _, truncated, info = env.step("exit()")
    assert (math.isnan(reward), truncated) == (True, True)
    assert "env_error" in info
    assert "tab" in env.reset(options={"task": sites.tasks[0]})[0]["text"]
    env.close()
    sites.close()


def test_a_slow_page_is_waited_for(env):
    assert "Slow" in env.step(click(env, "Slow"))[0]["text"]


# Worlds ---------------------------------------------------------------------------------------------------------


def test_two_workers_never_see_each_others_writes(sites, shared_browser):
    """EXE-17: worker 0 changes its cart; worker 1 and the next episode of worker 0 do not see it."""
    task = Task("cart", ("shopping",), "x", "__SHOPPING__/")
    with WebEnvBatch(sites, 2, browser=shared_browser) as batch:
        batch.reset([task, task])
        product = next(e for e in batch.envs[0].observation.elements.values() if "Copper Mug" in e.name)
        batch.step([f'do(action="Click", element="{product.id}")', None])
        batch.step([click(batch.envs[0], "Add to Cart"), None])
        results = batch.step(['do(action="Scroll Up")', 'do(action="Scroll Up")'])
        assert "Cart (1)" in results[0][0]["text"]
        assert "Cart (0)" in results[1][0]["text"]
        assert "Cart (0)" in batch.reset([task, None])[0][0]["text"]


def test_a_signed_out_agent_starts_the_next_episode_signed_in(sites, shared_browser):
    """EXE-17: cookies and server-side state end with the episode."""
    task = Task("in", ("reddit",), "x", "__REDDIT__/")
    out = Task("out", ("reddit",), "x", "__REDDIT__/", extra={"sessions": {"reddit": "out"}})
    env = WebEnv(sites, browser=shared_browser)
    assert "quiet_harbor" not in env.reset(options={"task": out})[0]["text"].split("\n")[1]
    assert "quiet_harbor" in env.reset(options={"task": task})[0]["text"].split("\n")[1]
    env.close()


# Traces ---------------------------------------------------------------------------------------------------------


def test_a_trace_is_enough_to_grade_again(sites, shared_browser, tmp_path):
    from webrl_lite import evaluators
    from webrl_lite.envs.embedded.play import play_oracle

    env = WebEnv(sites, browser=shared_browser)
    kinds = {}
    for task in sites.tasks:
        kinds.setdefault(tuple(task.eval["eval_types"]), task)
    played = [play_oracle(env, task) for task in kinds.values()]
    env.close()
    write_jsonl(tmp_path / "t.jsonl", played)
    read = list(read_jsonl(tmp_path / "t.jsonl", Trajectory))
    assert read == played
    for trajectory in read:
        verdict = evaluators.grade(
            trajectory.task,
            answer=trajectory.answer,
            final_url=trajectory.final_url,
            evidence=trajectory.evidence,
            mode="strict",
            addresses=trajectory.evidence["addresses"],
        )
        assert verdict == trajectory.verdict
        assert verdict.score == 1.0


def test_no_secret_stands_in_a_trace(sites, shared_browser):
    env = WebEnv(sites, browser=shared_browser)
    env.reset(options={"task": sites.tasks[0]})
    cookies = [cookie["value"] for cookie in env._start.cookies]
    env.step("exit()")
    text = str(env.trajectory.to_json())
    env.close()
    assert cookies
    assert not any(cookie in text for cookie in cookies)


# Batches --------------------------------------------------------------------------------------------------------


def test_a_picture_of_the_last_page_is_kept_where_it_is_wanted(sites, shared_browser):
    """A JPEG of the window, 1280 by 720: its size stands in the frame header."""
    env = WebEnv(sites, browser=shared_browser, picture=True)
    env.reset(options={"task": sites.tasks[0]})
    env.step('exit(message="done")')
    value = env.trajectory.evidence["screenshot"]
    assert value.startswith("data:image/jpeg;base64,")
    image = base64.b64decode(value.partition(",")[2])
    frame = image.index(b"\xff\xc0")
    assert struct.unpack(">HH", image[frame + 5 : frame + 9]) == (720, 1280)
    assert env.trajectory.verdict.graded
    env.close()


def test_no_picture_is_taken_otherwise(env):
    env.reset(seed=1)
    env.step('exit(message="done")')
    assert "screenshot" not in env.trajectory.evidence


def test_a_judge_that_takes_its_time_does_not_stop_the_other_episodes(plain, shared_browser):
    """The first episode's judge answers only when the second one has taken a step."""
    stepped = threading.Event()
    batch = WebEnvBatch(plain, 2, browser=shared_browser, evaluator="webarena", judge=Waiting(stepped))
    rules = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["a dozen"]}}
    task = dataclasses.replace(plain.tasks[0], eval=rules)
    batch.reset([task, task])
    act = batch.envs[1]._session.act

    async def step(action):
        outcome = await act(action)
        stepped.set()
        return outcome

    batch.envs[1]._session.act = step
    results = batch.step(['exit(message="12")', 'do(action="Wait")'])
    assert (results[0][1], results[1][1]) == (1.0, 0.0)
    batch.close()


class Waiting:
    """A judge that says yes when an event has happened, and no if it does not happen."""

    name = "waiting"

    def __init__(self, event: threading.Event) -> None:
        self.event = event

    def fuzzy_match(self, intent: str, reference: str, answer: str) -> bool:
        return self.event.wait(20)

    same_reason = fuzzy_match


def test_a_batch_of_the_wrong_length_is_refused(plain, shared_browser):
    with WebEnvBatch(plain, 2, browser=shared_browser) as batch, pytest.raises(ValueError, match="must hold 2 items"):
        batch.reset(["home"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_300_episodes_leave_no_process_and_no_growing_memory(plain):
    with Browser(recycle_after=100) as browser:
        env = WebEnv(plain, browser=browser)
        me = psutil.Process()
        sizes = []
        for episode in range(300):
            env.reset()
            env.step(click(env, "Two"))
            assert env.step('exit(message="42")')[1] == 1.0
            if episode % 100 == 99:
                family = [me, *me.children(recursive=True)]
                sizes.append(sum(p.memory_info().rss for p in family if p.is_running()))
        env.close()
        assert sizes[2] < 1.15 * sizes[0]
        pids = browser.pids
    assert not any(psutil.pid_exists(pid) for pid in pids)
