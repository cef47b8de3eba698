"""BrowserGym's tasks run in our browser, and ours under BrowserGym's interface; both work without it installed."""

import asyncio
import functools
import math
import sys
import threading
import types

import gymnasium
import pytest
from local_site import LocalSite

from webrl_lite.browser import Browser
from webrl_lite.envs import browsergym
from webrl_lite.envs.backend import Start
from webrl_lite.envs.browsergym import BrowserGymEnv, EmbeddedTask, PageView, register
from webrl_lite.trajectory import StopReason, Task

# Views --------------------------------------------------------------------------------------------------------------


class Loop:
    """Stands for ``Browser``: a loop in a thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)


class Waiting:
    """Like what ``expect_page`` gives."""

    def __init__(self, page):
        self.page = page

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.page.log.append("left")

    @property
    async def value(self):
        return self.page


class Page:
    """Like Playwright's asyncio page, as far as the tests go."""

    url = "http://x/"

    def __init__(self):
        self.log = []
        self.thread = None

    @property
    def pages(self):
        return [self, Page()]

    async def evaluate(self, code, argument=None):
        self.thread = threading.current_thread()
        self.log.append((code, argument))
        return {"handle": self, "list": [1, "a"]}

    def set_default_timeout(self, milliseconds):
        self.log.append(milliseconds)

    def expect_page(self, predicate=None):
        self.log.append(predicate(self) if predicate else None)
        return Waiting(self)

    def on(self, event, handler):
        self.handler = handler


for one in (Page, Waiting):
    one.__module__ = "playwright.async_api._generated"


@pytest.fixture(scope="module")
def loop():
    loop = Loop()
    yield loop
    loop.loop.call_soon_threadsafe(loop.loop.stop)
    loop.thread.join()
    loop.loop.close()


def test_a_view_awaits_on_the_browser_s_thread_and_shows_what_comes_back_alike(loop):
    page = Page()
    view = PageView(page, loop)
    assert view.url == "http://x/"
    result = view.evaluate("code", [view])
    assert page.log == [("code", [page])]  # the object itself is handed on
    assert page.thread is loop.thread
    assert result == {"handle": view, "list": [1, "a"]}
    assert view in view.pages
    view.set_default_timeout(5)
    assert page.log[-1] == 5


def test_a_view_waits_for_events_in_a_with_block(loop):
    page = Page()
    view = PageView(page, loop)
    with view.expect_page(lambda shown: shown.url == "http://x/") as info:
        assert page.log == [True]
    assert info.value == view
    assert page.log == [True, "left"]


def test_a_handler_of_a_view_may_ask_the_page(loop):
    page, heard = Page(), []
    view = PageView(page, loop)
    view.on("dialog", lambda shown: heard.append(shown.evaluate("in handler")["list"]))
    loop.call(page.handler(page))
    assert heard == [[1, "a"]]


# BrowserGym's tasks in our browser ----------------------------------------------------------------------------------

PAGE = "<title>t</title><button onclick=\"document.title = 'done'\">Press me</button><p>The code is 42.</p>"


class Press:
    """A task in BrowserGym's interface: press the button, or say the code."""

    events: list = []

    def __init__(self, seed, url, broken=""):
        self.viewport = {"width": 500, "height": 320}
        self.seed, self.url, self.broken = seed, url, broken

    def setup(self, page):
        page.goto(self.url, timeout=10000)
        if self.broken == "setup":
            raise AssertionError("no such site")
        self.events.append(("size", page.viewport_size))
        return [{"type": "text", "text": "Press the button."}, {"type": "text", "text": "Or say the code."}], {}

    def validate(self, page, chat_messages):
        self.events.append([(message["role"], message["message"]) for message in chat_messages])
        if self.broken == "validate":
            raise KeyError("score")
        if chat_messages[-1]["role"] == "assistant":
            return float(chat_messages[-1]["message"] == "42"), True, "", {}
        pressed = page.evaluate("() => document.title") == "done"
        return (1 if pressed else 0), pressed, ("" if len(chat_messages) > 1 else "Be quick."), {}

    def teardown(self):
        self.events.append("teardown")


@pytest.fixture(scope="module")
def env():
    """One short run of Chromium for all tests of this part."""
    site = LocalSite()
    site.pages["/"] = PAGE
    tasks = {
        "press": functools.partial(Press, url=f"{site.url}/"),
        "broken": functools.partial(Press, url=f"{site.url}/", broken="validate"),
    }
    with Browser() as browser:
        env = BrowserGymEnv(tasks, sites=[site.url], browser=browser)
        yield env
        env.close()
    site.close()


def test_a_task_that_says_it_is_done_ends_the_episode(env):
    Press.events.clear()
    values, _ = env.reset(seed=3, options={"task": "press"})
    assert values["goal"] == "Press the button.\nOr say the code."
    assert "Press me" in values["text"]
    assert Press.events == [("size", {"width": 500, "height": 320})]
    values, reward, terminated, truncated, _ = env.step('do(action="Wait")')
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert values["last_action_error"] == "The user says: Be quick."
    assert "Be quick." in values["text"]
    button = next(element.id for element in env.observation.elements.values() if element.name == "Press me")
    _, reward, terminated, truncated, info = env.step(f'do(action="Click", element="{button}")')
    assert (reward, terminated, truncated, info["verdict"]) == (1.0, True, False, 1.0)
    assert env.trajectory.stop == StopReason.TASK_ENDED
    assert env.trajectory.task.intent == values["goal"]
    assert env.trajectory.evidence == {"browsergym": {"reward": 1.0, "ended_by": "task"}}
    assert len(env.trajectory.steps) == 2
    assert Press.events[-1] == "teardown"


@pytest.mark.parametrize(
    ("answer", "said", "score"), [("42", ("assistant", "42"), 1.0), ("N/A", ("infeasible", "N/A"), 0.0)]
)
def test_exit_reaches_the_task_as_the_agent_s_message(env, answer, said, score):
    Press.events.clear()
    env.reset(options={"task": "press"})
    _, reward, terminated, _, info = env.step(f'exit(message="{answer}")')
    assert Press.events[-2][-1] == said
    assert (reward, terminated, info["stop"]) == (score, True, "exit")
    assert env.trajectory.verdict.score == score
    assert env.trajectory.evidence["browsergym"]["ended_by"] == "agent"


def test_a_task_that_fails_itself_is_an_environment_fault_and_no_failure(env):
    env.reset(options={"task": "broken"})
    _, reward, terminated, truncated, info = env.step('do(action="Wait")')
    assert math.isnan(reward)
    assert (terminated, truncated) == (False, True)
    assert info["env_error"] == "`validate` of broken failed: KeyError: 'score'"
    assert env.trajectory.verdict is None


def test_the_tasks_of_the_real_package_run_in_our_browser(env):
    """Needs BrowserGym, in whatever version of Playwright is there."""
    core = pytest.importorskip("browsergym.core")
    assert core.__version__
    entry = gymnasium.make("browsergym/openended", disable_env_checker=True).unwrapped.task_entrypoint
    origin = next(iter(env.backend.start(None, 0).allowed.values()))
    real = {"open": functools.partial(entry, start_url=f"{origin}/", goal="Look around.")}
    with_real = BrowserGymEnv(real, sites=[origin], browser=env.browser)
    values, _ = with_real.reset(seed=1, options={"task": "open"})
    assert (values["goal"], "Press me" in values["text"]) == ("Look around.", True)
    _, reward, terminated, _, _ = with_real.step('exit(message="done")')
    assert (reward, terminated) == (0.0, True)
    with_real.close()


def test_a_task_that_is_not_registered_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"got 'browsergym/no\.such'\. Import the package that registers it first"):
        BrowserGymEnv(["browsergym/no.such"], sites=[])


def test_a_registered_task_is_found_without_a_browser(monkeypatch):
    class Env(gymnasium.Env):
        task_kwargs = {"url": "u"}
        task_entrypoint = Press

    monkeypatch.setitem(gymnasium.registry, "browsergym/press", None)
    del gymnasium.registry["browsergym/press"]
    gymnasium.register("browsergym/press", entry_point=Env)
    made = browsergym._registered("browsergym/press")(seed=4)
    assert (made.seed, made.url) == (4, "u")


def test_a_goal_with_pictures_is_refused():
    assert browsergym._goal_text(None) == ""
    with pytest.raises(browsergym.BrowserError, match="only texts are read"):
        browsergym._goal_text([{"type": "image_url", "image_url": "data:"}])


# Our tasks under BrowserGym's interface -----------------------------------------------------------------------------


class Sites:
    """A backend without a server."""

    name, evaluator = "sites", "strict"
    tasks = (
        Task(
            "price.0",
            ("shopping",),
            "What is the price?",
            "__SHOPPING__/ |AND| __SHOPPING__/b",
            {"eval_types": ["string_match"], "reference_answers": {"must_include": ["$65.95"]}},
        ),
        Task("bare.0", ("shopping",), "Buy it.", "__SHOPPING__/"),
        Task(
            "page.0",
            ("shopping",),
            "Write hello.",
            "__SHOPPING__/",
            {
                "eval_types": ["program_html"],
                "program_html": [
                    {"url": "__SHOPPING__/note", "locator": "", "required_contents": {"must_include": ["hello"]}}
                ],
            },
        ),
    )

    def __init__(self):
        self.worlds = []

    def start(self, task, worker):
        self.worlds.append(worker)
        urls = tuple(url.strip().replace("__SHOPPING__", "http://s") for url in task.start_url.split("|AND|"))
        cookies = [{"name": "c", "value": "1", "url": "http://s"}]
        return Start(urls, {"shopping": "http://s"}, cookies, {"__SHOPPING__": "http://s"}, cookies)

    def before(self, url):
        return url.replace("//s", "//before")

    def call(self, call, worker):
        return None

    def changes(self, worker):
        return None


class BlockingPage:
    """Like Playwright's blocking page, context and browser in one."""

    def __init__(self, texts=None, opened=None):
        self.opened = [] if opened is None else opened
        self.texts = texts or {}
        self.url = "about:blank"
        self.cookies = []
        self.context = self.browser = self

    def add_cookies(self, cookies):
        self.cookies += cookies

    def new_page(self):
        page = BlockingPage(self.texts, self.opened)
        page.context = page.browser = self
        return page

    new_context = new_page

    def goto(self, url):
        self.url = url
        self.opened.append(url)
        return types.SimpleNamespace(
            status=200 if url in self.texts or not self.texts else 404, status_text="Not Found"
        )

    def evaluate(self, code):
        assert code == "() => (document.body ? document.body.innerText : '')"
        return self.texts[self.url]

    def wait_for_timeout(self, milliseconds):
        self.opened.append(milliseconds)

    def bring_to_front(self):
        self.opened.append("front")

    def close(self):
        self.opened.append("closed")


def said(text, role="assistant"):
    return [{"role": "user", "timestamp": 0.0, "message": "goal"}, {"role": role, "timestamp": 1.0, "message": text}]


def test_a_task_of_ours_opens_its_start_pages_signed_in():
    sites, page = Sites(), BlockingPage()
    task = EmbeddedTask(seed=1, task_id="price.0", backend=sites)
    goal, info = task.setup(page=page)
    assert (goal, info) == ("What is the price?", {"task_id": "price.0", "sites": ("shopping",)})
    assert page.opened == ["http://s/", "http://s/b", "front"]
    assert [cookie["name"] for cookie in page.cookies] == ["c"]
    task.teardown()


@pytest.mark.parametrize(
    ("messages", "reward", "done"),
    [
        (said("It is $65.95.")[:1], 0.0, False),
        (said("It is $65.95."), 1.0, True),
        (said("It is $66."), 0.0, True),
        (said("no idea", "infeasible"), 0.0, True),
        ([], 0.0, False),
    ],
)
def test_a_task_of_ours_is_graded_when_the_agent_speaks(messages, reward, done):
    task = EmbeddedTask(seed=1, task_id="price.0", backend=Sites())
    page = BlockingPage()
    task.setup(page)
    assert task.validate(page, messages)[:3] == (reward, done, "")
    task.teardown()


def test_a_report_that_the_task_is_infeasible_is_the_answer_na():
    task = EmbeddedTask(seed=1, task_id="price.0", backend=Sites())
    references = {"eval_types": ["string_match"], "reference_answers": {"exact_match": "N/A"}}
    task.task = Task("na.0", ("shopping",), "What is the price?", "__SHOPPING__/", references)
    page = BlockingPage()
    task.setup(page)
    assert task.validate(page, said("there is no price", "infeasible"))[:2] == (1.0, True)
    task.teardown()


def test_a_task_without_a_grader_has_no_reward_rather_than_a_failure():
    task = EmbeddedTask(seed=1, task_id="page.0", backend=Sites())
    task.task = Sites.tasks[1]
    page = BlockingPage()
    task.setup(page)
    reward, done, _, info = task.validate(page, said("x"))
    assert math.isnan(reward)
    assert (done, info["verdict"]) == (True, None)
    task.teardown()


@pytest.mark.parametrize(("note", "score"), [("hello", 1.0), ("", 0.0)])
def test_pages_are_read_for_the_grader_in_a_context_of_their_own(note, score, monkeypatch):
    monkeypatch.setattr(browsergym, "READ_SECONDS", 0.0)
    page = BlockingPage({"http://s/": "", "http://s/note": note, "http://before/note": ""})
    task = EmbeddedTask(seed=1, task_id="page.0", backend=Sites())
    task.setup(page)
    assert task.validate(page, said("done"))[0] == score
    assert page.url == "http://s/"  # the agent's page stays where it is
    assert len(page.cookies) == 1  # nor does its context get the grader's
    assert page.opened.count("closed") == 2
    assert "http://before/note" in page.opened
    task.teardown()


def test_a_page_that_is_not_there_is_no_fault():
    page = BlockingPage({"http://s/": ""})
    task = EmbeddedTask(seed=1, task_id="page.0", backend=Sites())
    task.setup(page)
    reward, done, _, info = task.validate(page, said("done"))
    assert (reward, done) == (0.0, True)
    assert info["reasons"] == ("program_html: 'http://s/note': the page does not exist",)
    task.teardown()


def test_two_tasks_at_once_have_two_worlds_and_give_them_back():
    sites = Sites()
    one, two, three = (EmbeddedTask(seed=1, task_id="price.0", backend=sites) for _ in range(3))
    one.setup(BlockingPage())
    two.setup(BlockingPage())
    one.teardown()
    one.teardown()
    three.setup(BlockingPage())
    assert sites.worlds == [0, 1, 0]
    two.teardown()
    three.teardown()


def test_a_task_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="`task_id` must be the id of a task of sites, got 'none'"):
        EmbeddedTask(seed=1, task_id="none", backend=Sites())


def test_registration_names_our_tasks_and_says_what_is_missing_without_browsergym(monkeypatch):
    monkeypatch.setitem(sys.modules, "browsergym.core.registration", None)
    with pytest.raises(ImportError, match="BrowserGym is not installed: pip install browsergym-core"):
        register(Sites.tasks)
    made = []
    registration = types.ModuleType("browsergym.core.registration")
    registration.register_task = lambda id, task_class, task_kwargs: made.append((id, task_class, task_kwargs))
    task = types.ModuleType("browsergym.core.task")

    class Base:
        register = classmethod(lambda cls, other: made.append(other))

    task.AbstractBrowserTask = Base
    for name in ("browsergym", "browsergym.core"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "browsergym.core.registration", registration)
    monkeypatch.setitem(sys.modules, "browsergym.core.task", task)
    assert register(Sites.tasks[:1]) == ("browsergym/webrl_lite.price.0",)
    assert made == [EmbeddedTask, ("webrl_lite.price.0", EmbeddedTask, {"task_id": "price.0"})]


def test_the_real_package_takes_our_tasks():
    task_module = pytest.importorskip("browsergym.core.task")
    assert register(Sites.tasks[:1]) == ("browsergym/webrl_lite.price.0",)
    entry = gymnasium.make("browsergym/webrl_lite.price.0", disable_env_checker=True).unwrapped.task_entrypoint
    made = entry(seed=2, backend=Sites())
    assert isinstance(made, task_module.AbstractBrowserTask)
    # all that BrowserEnv reads of a task
    bare = type("Bare", (task_module.AbstractBrowserTask,), {"setup": None, "validate": None})(seed=1)
    assert set(vars(bare)) - {"random"} <= set(vars(made))
