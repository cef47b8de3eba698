"""``WebEnv``: a web task in a real browser behind gymnasium's interface, and its batch form.

Reads a task, writes a ``Trajectory``. The agent's reply goes through ``actions.parse`` to the executor; what goes
wrong because of the agent comes back as one line at the top of the next observation, what goes wrong in the
environment ends the episode with ``info["env_error"]`` and is never a reward of 0. Grading happens once, when the
episode has ended and the agent's tabs are closed, on pages that only the grader opens and on the database.

Source: stop rules of WebArena-Lite (30 steps, 5 unreadable replies, 5 equal replies in a row).
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar

import gymnasium
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Dict, Text
from gymnasium.spaces import Sequence as SequenceSpace

from webrl_lite import evaluators
from webrl_lite.actions import Action, ActionError, parse
from webrl_lite.browser import Browser, BrowserError
from webrl_lite.envs.backend import Backend, Start
from webrl_lite.judges import data_url
from webrl_lite.observation import Observation, count_tokens_default
from webrl_lite.session import PageError, Session
from webrl_lite.trajectory import JSON, Step, StopReason, Task, Trajectory, Verdict

Result = TypeVar("Result")
Values = dict[str, str | tuple[str, ...]]
"""An observation as gymnasium sees it."""
StepResult = tuple[Values, float, bool, bool, dict[str, object]]
"""Gymnasium's five: observation, reward, terminated, truncated, info."""


class AnyText(Text):
    """A space of all texts up to a length: any characters, not a fixed set."""

    def contains(self, x: object) -> bool:
        """Return whether ``x`` is a text that is not too long."""
        return isinstance(x, str) and len(x) <= self.max_length

    def __repr__(self) -> str:
        return f"AnyText({self.max_length})"


@dataclass(frozen=True)
class StopRules:
    """When an episode ends without ``exit``; all three are WebArena-Lite's defaults."""

    max_steps: int = 30
    """Replies of the agent."""
    parse_failures: int = 5
    """Replies in a row that hold no action that can be read."""
    equal_replies: int = 5
    """Equal replies in a row."""

    def __post_init__(self) -> None:
        for name in ("max_steps", "parse_failures", "equal_replies"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}.")

    def stop(self, steps: Sequence[Step]) -> StopReason | None:
        """Return the rule that the steps so far meet, or None."""
        if len(steps) >= self.parse_failures and all(s.action is None for s in steps[-self.parse_failures :]):
            return StopReason.PARSE_FAILURES
        if len(steps) >= self.equal_replies and len({s.reply for s in steps[-self.equal_replies :]}) == 1:
            return StopReason.REPEATED_REPLY
        return StopReason.MAX_STEPS if len(steps) >= self.max_steps else None


class WebEnv(gymnasium.Env[Values, str]):
    """One agent at one task at a time.

    ``reset(seed=, options={"task": task})`` starts a task (a ``Task`` or a task's id; without the option one of
    ``tasks`` is drawn with the seed) and ``step(reply)`` takes what the policy wrote. The observation holds ``text``
    (the page, see ``observation``), ``goal`` (the instruction), ``url`` and ``tabs`` (addresses) and
    ``last_action_error`` (one line, empty if all went well).

    The reward is 1.0 or 0.0 at the end of the episode and 0.0 before. Where nobody can say (no judge for the task,
    environment fault) it is NaN, so that it cannot pass for a failure. ``terminated`` means that the agent called
    ``exit`` or that the task's page ended the episode; ``truncated`` that a stop rule or an environment fault did.
    ``info`` holds ``task_id``, ``steps``, and at the end ``stop``, ``verdict`` (score or None), ``reasons`` and, after
    a fault, ``env_error``.
    The whole episode is in ``trajectory``.
    """

    metadata = {"render_modes": ["ansi"]}

    def __init__(
        self,
        backend: Backend,
        *,
        tasks: Sequence[Task] | None = None,
        browser: Browser | None = None,
        worker: int = 0,
        mode: str = "lite",
        budget: int | None = 900,
        count_tokens: Callable[[str], int] = count_tokens_default,
        special_tokens: Sequence[str] = (),
        rules: StopRules = StopRules(),  # noqa: B008  (frozen)
        evaluator: str | None = None,
        judge: evaluators.Judge | None = None,
        picture: bool = False,
        render_mode: str | None = None,
        owns_backend: bool = False,
    ) -> None:
        """Prepare the environment; the browser starts with the first reset if none is given.

        Args:
            backend: the tasks and the sites they run on.
            tasks: the tasks that ``reset`` draws from; all of the backend's if None.
            browser: a browser to share; the environment starts and closes its own if None.
            worker: number of the world this environment owns; two environments of one backend need two numbers.
            mode: observation format, ``lite`` or ``webrl``.
            budget: most tokens of an observation, None for no limit.
            count_tokens: counts the tokens of a text; the policy's tokenizer in training.
            special_tokens: the tokenizer's special tokens, which page text must not be able to write.
            rules: when an episode ends without ``exit``.
            evaluator: mode of the grader; the backend's usual one if None.
            judge: judges free-text answers; without one such tasks are ungraded.
            picture: whether the trajectory keeps a picture of the last page, ``evidence["screenshot"]``, for judges.
            render_mode: ``ansi`` makes ``render`` return the observation's text.
            owns_backend: whether ``close`` closes the backend too.
        """
        self.backend = backend
        self.tasks = tuple(backend.tasks if tasks is None else tasks)
        self.browser = browser or Browser()
        self.worker = worker
        self.mode, self.budget, self.count_tokens = mode, budget, count_tokens
        self.special_tokens = tuple(special_tokens)
        self.rules = rules
        self.evaluator = evaluator or backend.evaluator
        if self.evaluator not in evaluators.MODES:
            raise ValueError(f"`evaluator` must be one of {', '.join(evaluators.MODES)}, got {self.evaluator!r}.")
        self.judge = judge
        self.picture = picture
        self.render_mode = render_mode
        self._owns_browser, self._owns_backend = browser is None, owns_backend
        self._by_id = {task.task_id: task for task in (*backend.tasks, *self.tasks)}
        text, line = AnyText(1_000_000), AnyText(20_000)
        self.observation_space = Dict(
            {"text": text, "goal": line, "url": line, "tabs": SequenceSpace(line), "last_action_error": line}
        )
        self.action_space = AnyText(100_000)
        self._session: Session | None = None
        self._start: Start | None = None
        self.steps: list[Step] = []
        """The steps of the episode so far."""
        self._error = ""
        self._url, self._tabs = "", ()
        self._seed: int | None = None
        self.observation: Observation | None = None
        """The last observation with its elements."""
        self.trajectory: Trajectory | None = None
        """The episode, once it has ended."""

    # Gymnasium's interface -------------------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: Mapping[str, object] | None = None) -> tuple[Values, dict]:
        """Start an episode.

        Args:
            seed: seeds the draw of a task.
            options: ``{"task": task}`` with a ``Task`` or the id of one of the backend's tasks.

        Returns:
            The first observation and ``info``.

        Raises:
            ValueError: there is no such task.
            BrowserError: the task could not be started, twice.
        """
        task = self._choose(seed, options)
        return self._run(self._reset(task))

    def step(self, action: str) -> StepResult:
        """Carry out one reply of the agent; never raises because of what the agent wrote.

        Raises:
            ResetNeeded: the episode has ended, or none was started.
            TypeError: the reply is not a text.
        """
        return self._run(self._step(action))

    def render(self) -> str | None:
        """Return the last observation's text (render mode ``ansi``)."""
        return self.observation.text if self.render_mode == "ansi" and self.observation else None

    def close(self) -> None:
        """Close the episode, and the browser and backend if the environment owns them."""
        if self._session is not None:
            self._run(self._end_session())
        if self._owns_browser:
            self.browser.close()
        if self._owns_backend:
            self.backend.close()

    # The same as coroutines of the browser's thread -------------------------------------------------------------------

    def _run(self, work: Coroutine[object, object, Result]) -> Result:
        self.browser.start()
        return self.browser.call(work)

    def _choose(self, seed: int | None, options: Mapping[str, object] | None) -> Task:
        super().reset(seed=seed)
        self._seed = seed
        wanted = (options or {}).get("task")
        if wanted is None:
            if not self.tasks:
                raise ValueError("`tasks` is empty: pass tasks to the environment or a task to reset().")
            return self.tasks[int(self.np_random.integers(len(self.tasks)))]
        task = wanted if isinstance(wanted, Task) else self._by_id.get(str(wanted))
        if task is None:
            raise ValueError(f"`options['task']` must be a Task or the id of one, got {wanted!r}; see env.tasks.")
        if task.eval is not None:
            evaluators.check(task)
        return task

    async def _reset(self, task: Task) -> tuple[Values, dict[str, object]]:
        await self._end_session()
        self.task = task
        self.steps, self._error, self.trajectory = [], "", None
        for attempt in (1, 2):  # a browser that died between two episodes is replaced by the second attempt
            try:
                # in a thread: sites that a user hosts are reset and signed in to for minutes, while others play
                self._start = await asyncio.to_thread(self.backend.start, task, self.worker)
                self._session = await self.browser.open(
                    allowed=self._start.allowed,
                    cookies=self._start.cookies,
                    geolocation=self._start.geolocation,
                    limits=self._start.limits,
                )
                await self._remember()
                await self._session.visit(self._start.urls)
                await self._observe()
                break
            except BrowserError:
                await self._end_session()
                if attempt == 2:
                    raise
        return self._values(), {"task_id": task.task_id, "steps": 0}

    async def _step(self, reply: str) -> StepResult:
        if not isinstance(reply, str):
            raise TypeError(f"`action` must be the text of a reply, got {type(reply).__name__}.")
        if self._session is None or self.observation is None or self.trajectory is not None:
            raise ResetNeeded("The episode has ended or none was started: call reset().")
        before = self.observation
        action: Action | None = None
        error, seconds = "", {}
        fault = ""
        try:
            parsed = parse(reply)
            action, ignored = parsed.action, parsed.ignored
        except ActionError as refusal:
            error, ignored = str(refusal), ""
        try:
            if action is not None and action.name != "Exit":
                outcome = await self._session.act(action)
                error, seconds = outcome.error, outcome.seconds
        except BrowserError as failure:
            fault = str(failure)
        if ignored and action is not None:
            error = f"{error} Only the first action of a reply is carried out; the rest was ignored.".strip()
        named = before.elements.get(action.element) if action is not None and action.element else None
        step = Step(
            index=len(self.steps),
            observation=before.text,
            url=self._url,
            reply=reply,
            action=None
            if action is None
            else {"name": action.name, "element": action.element, "argument": action.argument},
            error=error,
            element=f"{named.name} {named.role}".strip() if named else "",
            seconds=seconds,
        )
        self.steps.append(step)
        self._error = error
        if fault:
            return await self._finish(StopReason.ENV_ERROR, fault)
        if action is not None and action.name == "Exit":
            return await self._finish(StopReason.EXIT, answer=action.argument or "")
        if self.backend.ended(self.worker) is not None:
            return await self._finish(StopReason.TASK_ENDED)
        stop = self.rules.stop(self.steps)
        if stop is not None:
            return await self._finish(stop)
        try:
            await self._observe()
        except BrowserError as failure:
            return await self._finish(StopReason.ENV_ERROR, str(failure))
        return self._values(), 0.0, False, False, {"task_id": self.task.task_id, "steps": len(self.steps)}

    async def _observe(self) -> None:
        begin = time.perf_counter()
        self.observation = await self._session.observe(
            mode=self.mode,
            budget=self.budget,
            count_tokens=self.count_tokens,
            special_tokens=self.special_tokens,
            error=self._error,
        )
        self._url, self._tabs = self._session.url, self._session.urls
        if self.steps:  # the reset's read-out belongs to no step
            self.steps[-1].seconds["observe"] = time.perf_counter() - begin

    async def _finish(self, stop: StopReason, env_error: str = "", answer: str = "") -> StepResult:
        """End the episode: freeze, grade once, close the session, write the trajectory."""
        final_url, verdict, evidence = self._url, None, {}
        if stop is not StopReason.ENV_ERROR:
            try:
                left = await self._left()
                picture = await self._session.screenshot() if self.picture else None
                final_url = (await self._session.final()).url
                if self.task.eval is not None:
                    evidence = await self._evidence(final_url, left)
                    # in a thread: a served judge takes its time, and the other episodes play on this loop
                    verdict = await asyncio.to_thread(self._grade, answer, final_url, evidence)
                if picture is not None:
                    evidence["screenshot"] = data_url(picture)
                if not await asyncio.to_thread(self.backend.alive):
                    raise BrowserError("The sites stopped answering before the episode could be graded.")
            except BrowserError as failure:
                stop, env_error, verdict = StopReason.ENV_ERROR, str(failure), None
        await self._end_session()
        self.trajectory = Trajectory(
            task=self.task,
            steps=tuple(self.steps),
            stop=stop,
            answer=answer,
            final_url=final_url,
            verdict=verdict,
            evidence=evidence,
            env_error=env_error,
            seed=self._seed,
        )
        info: dict[str, object] = {"task_id": self.task.task_id, "steps": len(self.steps), "stop": str(stop)}
        if verdict is not None:
            info.update(verdict=verdict.score, reasons=verdict.reasons)
        if env_error:
            info["env_error"] = env_error
        reward = math.nan if verdict is None or verdict.score is None else verdict.score
        terminated = stop in (StopReason.EXIT, StopReason.TASK_ENDED)
        return self._values(), reward, terminated, not terminated, info

    async def _remember(self) -> None:
        """Read what graders compare with the state before the task, where the sites will not show it later."""
        self._former: dict[str, tuple[str, JSON]] = {}
        if self.task.eval is None or self.backend.before(self._start.urls[0]) is not None:
            return
        for read in evaluators.reads(self.task, self._start.urls[0], self.evaluator, self._start.addresses):
            if read.before:
                now = dataclasses.replace(read, before=False)
                self._former[read.key] = read.url, await self._read(now, self._start.urls[0], wait=False)

    async def _left(self) -> dict[str, JSON]:
        """Read what the grader wants of the agent's page as it stands: a form may be filled in and not sent."""
        texts: dict[str, JSON] = {}
        if self.task.eval is not None:
            for read in evaluators.reads(self.task, self._session.url, self.evaluator, self._start.addresses):
                if read.url == "last" and not read.before and read.locator_call is None:
                    until = None if self.evaluator == "strict" else self._expected(read)  # `_evidence` waits for it
                    texts[read.key] = await self._session.read_here(read.locator, read.prep, until=until)
        return texts

    async def _evidence(self, final_url: str, left: Mapping[str, JSON]) -> dict[str, JSON]:
        """Read all that the task's grader needs, so that it can be graded again without the sites.

        The page where the agent stopped counts as it was left; in mode ``strict`` also as the site shows it anew.
        """
        self._session.gate.allow(self._start.grader_allowed)  # no tab of the agent is open any more
        texts: dict[str, JSON] = {}
        for read in evaluators.reads(self.task, final_url, self.evaluator, self._start.addresses):
            text = left.get(read.key)
            if text is None or self.evaluator == "strict" and not self._expected(read)(str(text)):
                text = await self._read(read, final_url)
            texts[read.key] = text
        evidence: dict[str, JSON] = {"reads": texts, "addresses": dict(self._start.addresses)}
        said = self.backend.ended(self.worker)
        if said is not None:
            evidence["page"] = said
        changed = self.backend.changes(self.worker)
        if changed is not None:
            evidence["database"] = {"changes": changed}
        return evidence

    def _expected(self, read: evaluators.Read) -> Callable[[str], bool]:
        def expected(text: str) -> bool:
            return evaluators.satisfied(self.task, read, text, self.evaluator, self.judge, self._start.addresses)

        return expected

    async def _read(self, read: evaluators.Read, final_url: str, *, wait: bool = True) -> JSON:
        """Read one page for the grader, if ``wait`` again and again until it holds what is expected or time is up."""
        url = final_url if read.url == "last" else read.url
        for call in (read.url_call, read.locator_call):
            if call is not None:
                value = await asyncio.to_thread(self.backend.call, call, self.worker)
                if value is None or call is read.locator_call:
                    return {"error": f"these sites have no helper {call.name}"} if value is None else value
                url = value
        if read.before:
            url = self.backend.before(url)
            if url is None:
                address, text = self._former.get(read.key, ("", None))
                known = text is not None and address == read.url
                return text if known else {"error": "it was not read on the state before the episode"}
        until = self._expected(read) if wait else None
        try:
            return await self._session.read(
                url, read.locator, read.prep, until=until, cookies=self._start.grader_cookies
            )
        except (ValueError, PageError) as refusal:  # not on the episode's sites, or not there
            return {"error": str(refusal)}

    def _grade(self, answer: str, final_url: str, evidence: Mapping[str, JSON]) -> Verdict:
        return evaluators.grade(
            self.task,
            answer=answer,
            final_url=final_url,
            evidence=evidence,
            mode=self.evaluator,
            judge=self.judge,
            addresses=self._start.addresses,
        )

    async def _end_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _values(self) -> Values:
        return {
            "text": self.observation.text,
            "goal": self.task.intent,
            "url": self.trajectory.final_url if self.trajectory else self._url,
            "tabs": self._tabs,
            "last_action_error": self._error,
        }


class WebEnvBatch:
    """Several environments on one browser and one backend, stepped at once.

    Environment ``i`` owns world ``i``: none sees another's writes. A fault in one leaves the others alone.
    """

    def __init__(self, backend: Backend, count: int, *, browser: Browser | None = None, **options: object) -> None:
        """Prepare ``count`` environments.

        Args:
            backend: the tasks and the sites they run on.
            count: N, at least 1.
            browser: a browser to share; the batch starts and closes its own if None.
            options: arguments of ``WebEnv`` for all of them.
        """
        if count < 1:
            raise ValueError(f"`count` must be at least 1, got {count}.")
        self.browser = browser or Browser()
        self._owns_browser = browser is None
        self.envs = tuple(WebEnv(backend, browser=self.browser, worker=i, **options) for i in range(count))

    def reset(self, tasks: Sequence[Task | str | None]) -> list[tuple[Values, dict[str, object]] | None]:
        """Start a task in each environment; None leaves an environment as it is.

        Args:
            tasks: (N,) tasks or ids.

        Returns:
            (N,) first observations with ``info``; None for those left alone. A task that could not be started has
            ``info["env_error"]`` and an environment whose ``trajectory`` says so.
        """
        self._check(tasks, "tasks")
        chosen = [
            None if t is None else env._choose(None, {"task": t}) for env, t in zip(self.envs, tasks, strict=True)
        ]
        return self._gather([None if t is None else _start(env, t) for env, t in zip(self.envs, chosen, strict=True)])

    def step(self, replies: Sequence[str | None]) -> list[StepResult | None]:
        """Carry out one reply in each environment; None leaves an environment as it is.

        Args:
            replies: (N,) what the policy wrote.

        Returns:
            (N,) gymnasium's five; None for those left alone.
        """
        self._check(replies, "replies")
        return self._gather([None if r is None else env._step(r) for env, r in zip(self.envs, replies, strict=True)])

    def close(self) -> None:
        """Close all environments, and the browser if the batch owns it."""
        for env in self.envs:
            env.close()
        if self._owns_browser:
            self.browser.close()

    def __enter__(self) -> WebEnvBatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self, values: Sequence[object], name: str) -> None:
        if len(values) != len(self.envs):
            raise ValueError(f"`{name}` must hold {len(self.envs)} items, one an environment, got {len(values)}.")

    def _gather(self, work: Sequence[Coroutine[object, object, Result] | None]) -> list[Result | None]:
        async def all_at_once() -> list[Result | BaseException]:
            return await asyncio.gather(*(w for w in work if w is not None), return_exceptions=True)

        self.browser.start()
        results = iter(self.browser.call(all_at_once()))
        placed = [None if w is None else next(results) for w in work]
        for result in placed:  # the others have finished; a fault of the program must not pass in silence
            if isinstance(result, BaseException):
                raise result
        return placed


async def _start(env: WebEnv, task: Task) -> tuple[Values, dict[str, object]]:
    try:
        return await env._reset(task)
    except BrowserError as failure:
        env.trajectory = Trajectory(task=task, steps=(), stop=StopReason.ENV_ERROR, env_error=str(failure))
        values: Values = {"text": "", "goal": task.intent, "url": "", "tabs": (), "last_action_error": ""}
        return values, {"task_id": task.task_id, "steps": 0, "env_error": str(failure)}


def make_env(
    *, split: str | None = None, task_id: str | None = None, count: int | None = None, **options: object
) -> WebEnv | WebEnvBatch:
    """Build an environment on the embedded sites; ``gymnasium.make("webrl_lite/test-v0")`` calls this.

    Args:
        split: ``train``, ``test`` or ``test_families``: the tasks that ``reset`` draws from; all if None.
        task_id: play this one task only.
        count: build a batch of this many environments instead of one.
        options: further arguments of ``WebEnv``.

    Raises:
        ValueError: there is no such split or task.
    """
    from webrl_lite.envs.embedded.backend import EmbeddedSites
    from webrl_lite.envs.embedded.families import SPLITS

    if split is not None and split not in SPLITS:
        raise ValueError(f"`split` must be one of {', '.join(SPLITS)}, got {split!r}.")
    sites = EmbeddedSites()
    tasks = [t for t in sites.tasks if split in (None, t.split) and task_id in (None, t.task_id)]
    if not tasks:
        sites.close()
        raise ValueError(f"`task_id` must be the id of a task of split {split!r}, got {task_id!r}.")
    if count is not None:
        return WebEnvBatch(sites, count, tasks=tasks, owns_backend=True, **options)
    return WebEnv(sites, tasks=tasks, owns_backend=True, **options)
