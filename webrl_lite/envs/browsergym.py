"""BrowserGym and this kit in each other's place. BrowserGym is optional, and imported only when asked for.

``BrowserGymEnv`` plays BrowserGym's tasks with our observation, executor, stop rules and traces::

    import browsergym.miniwob
    env = BrowserGymEnv(["browsergym/miniwob.click-test"], sites=["http://127.0.0.1:8000"])

BrowserGym's browser is not used: a task is shown a ``PageView``, Playwright's blocking interface over the page that our
browser has open, so its code runs as it is. ``exit(message=...)`` reaches the task as the agent's message, "N/A" as the
report that the task is infeasible.

``register()`` offers our tasks to BrowserGym's users as ``browsergym/webrl_lite.<task id>``: BrowserGym's browser,
observation and actions, our sites and graders::

    webrl_lite.envs.browsergym.register()
    env = gymnasium.make("browsergym/webrl_lite.shopping.price.train.0")

Source: ``browsergym-core`` 0.14.3, ``core/task.py``, ``core/env.py``. It pins Playwright 1.44, but runs with ours:
``pip install --no-deps browsergym-core`` and then the packages that it misses.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import dataclasses
import functools
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from types import TracebackType
from typing import Protocol
from urllib.parse import urlsplit

import gymnasium
from playwright.async_api import Error as PlaywrightError

from webrl_lite import evaluators
from webrl_lite.browser import Browser, BrowserError
from webrl_lite.envs.backend import Backend, Start
from webrl_lite.envs.web_env import StepResult, WebEnv
from webrl_lite.evaluators import Read
from webrl_lite.trajectory import JSON, StopReason, Task, Verdict

TASK_SECONDS = 60.0
"""For the code of a BrowserGym task: its setup, a validation, its teardown."""
READ_SECONDS = 4.0
"""For a page that a grader reads to hold what is expected."""
Message = dict[str, str | float]
"""One entry of BrowserGym's chat: ``role`` (user, assistant, infeasible), ``timestamp`` and ``message``."""


class BrowserGymTask(Protocol):
    """What is used of BrowserGym's ``AbstractBrowserTask``."""

    viewport: dict[str, int] | None

    def setup(self, page: object) -> tuple[str | list[dict[str, JSON]] | None, dict[str, object]]:
        """Begin the task; return goal and info."""

    def validate(self, page: object, chat_messages: list[Message]) -> tuple[float, bool, str, dict[str, object]]:
        """Return the reward since the last call, whether the task has ended, a message to the agent, and info."""

    def teardown(self) -> None:
        """Release what the task holds."""


EntryPoint = Callable[..., BrowserGymTask]
"""Makes a task of a seed."""


# BrowserGym's tasks in our browser ----------------------------------------------------------------------------------


class PageView:
    """A blocking view of one of Playwright's asyncio objects, for code written against Playwright's blocking interface.

    Both interfaces have the same names; the view awaits what is awaitable on the browser's thread and shows what comes
    back in the same way. Its calls must come from another thread than that one.
    """

    def __init__(self, target: object, browser: Browser) -> None:
        """Show an object of a running browser."""
        self.__dict__.update(_target=target, _browser=browser)

    def __getattr__(self, name: str) -> object:
        """Return an attribute or method of the object as the blocking interface has it."""
        value = self._shown(getattr(self._target, name))
        if not callable(value) or isinstance(value, PageView):
            return value

        @functools.wraps(value)
        def call(*arguments: object, **keywords: object) -> object:
            given = [self._given(one, name) for one in arguments]
            named = {key: self._given(one, name) for key, one in keywords.items()}
            return self._shown(self._browser.call(_call(value, given, named)))

        return call

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PageView) and self._target == other._target

    def __hash__(self) -> int:
        return hash(self._target)

    def __repr__(self) -> str:
        return f"PageView({self._target!r})"

    def __enter__(self) -> object:
        """Enter what waits for an event (``expect_page`` and its like); the value is there at the end."""
        return self._shown(self._browser.call(self._target.__aenter__()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._browser.call(self._target.__aexit__(kind, error, trace))

    def _shown(self, value: object) -> object:
        if asyncio.isfuture(value) or asyncio.iscoroutine(value):
            value = self._browser.call(_result(value))
        if isinstance(value, list | tuple):
            return type(value)(map(self._shown, value))
        if isinstance(value, dict):
            return {key: self._shown(one) for key, one in value.items()}
        ours = type(value).__module__.startswith("playwright.") and not isinstance(value, Exception | str)
        return PageView(value, self._browser) if ours and not callable(value) else value

    def _given(self, value: object, method: str) -> object:
        """Return an argument as the asyncio interface takes it."""
        if isinstance(value, PageView):
            return value._target
        if isinstance(value, list | tuple):
            return type(value)(self._given(one, method) for one in value)
        if isinstance(value, dict):
            return {key: self._given(one, method) for key, one in value.items()}
        if not callable(value):
            return value
        if method in ("on", "once", "route", "expose_function", "expose_binding", "add_locator_handler"):

            async def handle(*arguments: object) -> object:  # may ask the page, so not on the browser's thread
                shown = [self._shown(one) for one in arguments]
                return self._given(await asyncio.to_thread(value, *shown), method)

            return handle
        return lambda *arguments: value(*map(self._shown, arguments))  # a condition, which is asked for its answer


async def _call(function: Callable[..., object], arguments: list[object], keywords: dict[str, object]) -> object:
    """Call on the browser's thread, where Playwright wants to be called."""
    value = function(*arguments, **keywords)
    return await value if asyncio.iscoroutine(value) else value


async def _result(value: object) -> object:
    return await value


class _Tasks(Backend):
    """The backend of ``BrowserGymEnv``: the tasks bring their pages and graders themselves."""

    name = "browsergym"
    evaluator = "strict"

    def __init__(self, tasks: Sequence[Task], sites: Mapping[str, str]) -> None:
        self.tasks, self._sites = tasks, sites

    def start(self, task: Task, worker: int) -> Start:
        return Start(urls=(), allowed=self._sites, cookies=[], addresses={})


class BrowserGymEnv(WebEnv):
    """Tasks of BrowserGym behind the interface of ``WebEnv``, traces included.

    The task is asked after every reply, as BrowserGym does; it ends the episode when it says so, with ``terminated``
    and ``StopReason.TASK_ENDED``. The reward at the end is 1.0 if the rewards that the task gave add up to at least 1,
    else 0.0; the sum itself is in ``trajectory.evidence["browsergym"]``, with who ended the episode. Code of the task
    that raises or does not come back is an environment fault.
    """

    def __init__(
        self,
        tasks: Sequence[str] | Mapping[str, EntryPoint],
        *,
        sites: Sequence[str] | Mapping[str, str],
        **options: object,
    ) -> None:
        """Prepare the environment.

        Args:
            tasks: ids that are registered with gymnasium (``browsergym/miniwob.click-test``), or names with what makes
                the task of ``seed=``.
            sites: origins that the tasks may reach, such as ``http://127.0.0.1:8000``; a mapping gives each the name
                that the agent sees. Files (``file:``) cannot be opened: serve them.
            options: further arguments of ``WebEnv``.

        Raises:
            ValueError: a task is not registered.
        """
        if not isinstance(tasks, Mapping):
            tasks = {name: _registered(name) for name in tasks}
        self._entry_points = dict(tasks)
        named = sites if isinstance(sites, Mapping) else {urlsplit(url).netloc: url for url in sites}
        ours = [Task(name, sites=tuple(named), intent="", start_url="about:blank") for name in tasks]
        super().__init__(_Tasks(ours, named), **options)
        self._played: BrowserGymTask | None = None
        self._chat: list[Message] = []
        self._rewards = 0.0
        self._done = False

    async def _observe(self) -> None:
        if self._played is None:  # the first look of an episode
            await self._set_up()
        await super()._observe()

    async def _set_up(self) -> None:
        tabs = self._session.tabs
        page = tabs.active
        made = await asyncio.to_thread(self._entry_points[self.task.task_id], seed=self._seed)
        if made.viewport:
            await page.set_viewport_size(made.viewport)
        self._played, self._rewards, self._done = made, 0.0, False
        goal, _ = await self._run_task("setup", lambda: made.setup(page=PageView(page, self.browser)))
        if len(tabs.pages) > 1:
            await tabs.focus(tabs.pages[0])
        await tabs.settle(time.time() * 1000)
        self.task = dataclasses.replace(self.task, intent=_goal_text(goal))
        self._chat = [_message("user", self.task.intent)]

    async def _step(self, reply: str) -> StepResult:
        result = await super()._step(reply)
        if self.trajectory is not None:
            return result
        try:
            words = await self._validate()
            if self._done:
                return await self._finish(StopReason.TASK_ENDED)
            if words:
                self._chat.append(_message("user", words))
                self._error = f"{self._error} The user says: {' '.join(words.split())}".strip()
                await self._observe()
        except BrowserError as failure:
            return await self._finish(StopReason.ENV_ERROR, str(failure))
        return self._values(), *result[1:]

    async def _validate(self) -> str:
        """Ask the task for its reward and whether it has ended; return what it says to the agent."""
        page = PageView(self._session.tabs.active, self.browser)
        reward, done, words, _ = await self._run_task("validate", lambda: self._played.validate(page, self._chat))
        self._rewards += float(reward)
        self._done = bool(done)
        return words or ""

    async def _finish(self, stop: StopReason, env_error: str = "", answer: str = "") -> StepResult:
        ended_by = "task" if self._done else "agent" if stop is StopReason.EXIT else "rule"
        if stop is not StopReason.ENV_ERROR and not self._done:
            if stop is StopReason.EXIT:
                unreachable = answer.strip().lower() in ("n/a", "na")
                self._chat.append(_message("infeasible" if unreachable else "assistant", answer))
            try:
                await self._validate()
            except BrowserError as failure:
                stop, env_error = StopReason.ENV_ERROR, str(failure)
        values, reward, terminated, truncated, info = await super()._finish(stop, env_error, answer)
        if self.trajectory.stop is not StopReason.ENV_ERROR:
            reward = 1.0 if self._rewards >= 1 else 0.0
            reasons = (f"the task's rewards add up to {self._rewards:g}",)
            self.trajectory = dataclasses.replace(
                self.trajectory,
                verdict=Verdict(reward, "browsergym", _version(), reasons),
                evidence={"browsergym": {"reward": self._rewards, "ended_by": ended_by}},
            )
            info.update(verdict=reward, reasons=reasons)
        return values, reward, terminated, truncated, info

    async def _end_session(self) -> None:
        played, self._played = self._played, None
        if played is not None:
            with contextlib.suppress(BrowserError):
                await self._run_task("teardown", played.teardown)
        await super()._end_session()

    async def _run_task(self, name: str, work: Callable[[], object]) -> object:
        """Run a task's blocking code on a thread of its own; whatever it raises is a fault of the environment."""
        try:
            async with asyncio.timeout(TASK_SECONDS):
                return await asyncio.to_thread(work)
        except TimeoutError:
            raise BrowserError(f"`{name}` of {self.task.task_id} took longer than {TASK_SECONDS:g} s.") from None
        except Exception as error:  # somebody else's code
            line = " ".join(str(error).split())[:200]
            raise BrowserError(f"`{name}` of {self.task.task_id} failed: {type(error).__name__}: {line}") from error


def _registered(name: str) -> EntryPoint:
    """Return what makes the task of an id, out of the environment that BrowserGym registered; no browser starts."""
    try:
        env = gymnasium.make(name, disable_env_checker=True).unwrapped
        return functools.partial(env.task_entrypoint, **env.task_kwargs)
    except (gymnasium.error.Error, AttributeError) as error:
        raise ValueError(
            f"`tasks` must be ids of BrowserGym tasks, got {name!r}. Import the package that registers it first, for "
            "example browsergym.miniwob."
        ) from error


def _goal_text(goal: str | list[dict[str, JSON]] | None) -> str:
    """Return a goal as one text.

    Raises:
        BrowserError: a part of it is no text, which no policy here could read.
    """
    if goal is None or isinstance(goal, str):
        return goal or ""
    for part in goal:
        if part.get("type") != "text":
            raise BrowserError(f"The task's goal holds {part.get('type')!r}, and only texts are read here.")
    return "\n".join(str(part["text"]) for part in goal)


def _message(role: str, text: str) -> Message:
    return {"role": role, "timestamp": time.time(), "message": text}


def _version() -> str:
    try:
        return metadata.version("browsergym-core")
    except metadata.PackageNotFoundError:
        return ""


# Our tasks for BrowserGym's users -----------------------------------------------------------------------------------


class _Worlds:
    """The embedded sites of this process, started at first use, and the worlds that are free."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._backend: Backend | None = None
        self._taken: set[int] = set()

    def backend(self) -> Backend:
        with self._lock:
            if self._backend is None:
                from webrl_lite.envs.embedded.backend import EmbeddedSites

                self._backend = EmbeddedSites()
                atexit.register(self._backend.close)
            return self._backend

    def take(self) -> int:
        with self._lock:
            number = next(n for n in range(len(self._taken) + 1) if n not in self._taken)
            self._taken.add(number)
            return number

    def give_back(self, number: int) -> None:
        with self._lock:
            self._taken.discard(number)


_WORLDS = _Worlds()


class EmbeddedTask:
    """One of our tasks as BrowserGym plays it; it satisfies ``AbstractBrowserTask``.

    It is graded once, when the agent sends a message (its answer, which may be anything where none is asked for) or
    reports that the task is infeasible (the answer "N/A"); that ends the episode. The reward is 1.0 or 0.0; NaN where
    the grader cannot decide. ``info`` holds ``verdict`` (score or None) and ``reasons``.
    """

    def __init__(self, seed: int, task_id: str, backend: Backend | None = None) -> None:
        """Choose a task.

        Args:
            seed: BrowserGym gives one; the tasks are fixed and do not depend on it.
            task_id: id of a task of the backend.
            backend: the tasks and their sites; the embedded ones of this process if None.

        Raises:
            ValueError: there is no such task.
        """
        self.viewport = {"width": 1280, "height": 720}
        self.slow_mo = 0  # ms; the sites are on this machine
        self.timeout = 8000  # ms
        self.locale, self.timezone_id = "en-US", "UTC"
        self._backend = backend or _WORLDS.backend()
        found = [task for task in self._backend.tasks if task.task_id == task_id]
        if not found:
            raise ValueError(f"`task_id` must be the id of a task of {self._backend.name}, got {task_id!r}.")
        self.task = found[0]
        self._world: int | None = None

    @classmethod
    def get_task_id(cls) -> str:
        """Return the name under which the tasks are registered."""
        return "webrl_lite"

    def setup(self, page: object) -> tuple[str, dict[str, object]]:
        """Reset a world and open the start pages; return the instruction and what it is about."""
        self._world = _WORLDS.take()
        self._start = self._backend.start(self.task, self._world)
        page.context.add_cookies(self._start.cookies)
        for number, url in enumerate(self._start.urls):
            (page if number == 0 else page.context.new_page()).goto(url)
        page.bring_to_front()
        return self.task.intent, {"task_id": self.task.task_id, "sites": self.task.sites}

    def validate(self, page: object, chat_messages: Sequence[Message]) -> tuple[float, bool, str, dict[str, object]]:
        """Grade the task if the agent has spoken last; see the class for what is returned."""
        last = chat_messages[-1] if chat_messages else {}
        if last.get("role") not in ("assistant", "infeasible"):
            return 0.0, False, "", {}
        answer = "N/A" if last["role"] == "infeasible" else str(last["message"])
        mode, addresses = self._backend.evaluator, self._start.addresses
        reads = evaluators.reads(self.task, page.url, mode, addresses) if self.task.eval else ()
        evidence: dict[str, JSON] = {"reads": {read.key: self._read(page, read) for read in reads}}
        evidence["addresses"] = dict(addresses)
        changed = self._backend.changes(self._world)
        if changed is not None:
            evidence["database"] = {"changes": changed}
        verdict = evaluators.grade(
            self.task, answer=answer, final_url=page.url, evidence=evidence, mode=mode, addresses=addresses
        )
        reward = math.nan if verdict.score is None else verdict.score
        return reward, True, "", {"verdict": verdict.score, "reasons": verdict.reasons}

    def teardown(self) -> None:
        """Give the world back."""
        if self._world is not None:
            _WORLDS.give_back(self._world)
            self._world = None

    def _read(self, page: object, read: Read) -> JSON:
        """Read one page for the grader, in a context of its own, until it holds the expected text or the time is up."""
        url = page.url if read.url == "last" else read.url
        for call in (read.url_call, read.locator_call):
            if call is not None:
                value = self._backend.call(call, self._world)
                if value is None or call is read.locator_call:
                    return {"error": f"these sites have no helper {call.name}"} if value is None else value
                url = value
        if read.before:
            url = self._backend.before(url)
            if url is None:
                return {"error": "these sites do not keep the state before the episode"}
        mode, addresses = self._backend.evaluator, self._start.addresses
        context = page.context.browser.new_context()
        try:
            context.add_cookies(self._start.grader_cookies)
            reader = context.new_page()
            response = reader.goto(url)
            if response is not None and response.status >= 400:
                return {"error": f"{response.status} {response.status_text}".strip()}
            for statement in read.prep:
                reader.evaluate(f"() => {{ {statement} }}")
            locator = read.locator or "document.body ? document.body.innerText : ''"
            end = time.monotonic() + READ_SECONDS
            while True:
                value = reader.evaluate(f"() => ({locator})")
                text = "" if value is None or value is False else str(value)
                good = evaluators.satisfied(self.task, read, text, mode, None, addresses)
                if good or time.monotonic() > end:
                    return text
                reader.wait_for_timeout(100)
        except PlaywrightError as error:
            return {"error": error.message.splitlines()[0]}
        finally:
            context.close()


def register(tasks: Iterable[Task] | None = None) -> tuple[str, ...]:
    """Register tasks of the embedded sites with gymnasium as ``browsergym/webrl_lite.<task id>``; return the ids.

    Args:
        tasks: which ones; all if None.

    Raises:
        ImportError: BrowserGym is not installed.
    """
    try:
        from browsergym.core.registration import register_task
        from browsergym.core.task import AbstractBrowserTask
    except ImportError as error:
        raise ImportError("BrowserGym is not installed: pip install browsergym-core") from error
    AbstractBrowserTask.register(EmbeddedTask)
    names = [task.task_id for task in (_WORLDS.backend().tasks if tasks is None else tasks)]
    for name in names:
        register_task(f"{EmbeddedTask.get_task_id()}.{name}", EmbeddedTask, task_kwargs={"task_id": name})
    return tuple(f"browsergym/{EmbeddedTask.get_task_id()}.{name}" for name in names)
