"""MiniWoB++ as a run's source of tasks: instances by seed, demonstrations by oracles, new instances of failed pages.

Has the interface of ``task_source.TaskSource``, so that the loop trains and evaluates on it as on the embedded sites.
What differs: a task is a page and a seed, so new tasks are new seeds of pages that the agent failed on; demonstrations
are played when they are asked for; and no served model can make tasks, since a page makes its instruction itself.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from webrl_lite.browser import Browser, BrowserError
from webrl_lite.config import Config
from webrl_lite.curriculum import Feasible, Generator
from webrl_lite.envs.embedded.oracle import OracleLost
from webrl_lite.envs.miniwob import TEST_SEEDS, TRAIN_SEEDS, MiniwobError, MiniwobPages, instance
from webrl_lite.envs.miniwob_play import play_oracle
from webrl_lite.envs.web_env import WebEnv, WebEnvBatch
from webrl_lite.envs.webarena_tasks import score
from webrl_lite.source_parts import FirstPages, TaskSourceError, draw, draw_unshown, environment_options
from webrl_lite.trajectory import Task, Trajectory

NEW_SEEDS = range(10_000, 1_000_000)
"""Seeds of new instances; none of a split may be among them."""
PAGES_PER_CONTEXT = 8
"""First pages for which another context is opened, which takes as long as reading two or three."""
STOCK = 20
"""Instructions of a page that are read whenever it is opened for a new instance."""


class MiniwobSource:
    """Pages of MiniWoB++ as a run uses them."""

    environments: WebEnvBatch
    """``rollout.environments`` workers on one browser."""
    train: tuple[Task, ...]
    test: tuple[Task, ...]
    """What every evaluation plays."""
    first_pages: InstancePages

    def __init__(
        self,
        config: Config,
        count_tokens: Callable[[str], int],
        special_tokens: Sequence[str],
        *,
        tasks: Sequence[str] | None = None,
        train_seeds: Sequence[int] = TRAIN_SEEDS,
        test_seeds: Sequence[int] = TEST_SEEDS,
    ) -> None:
        """Start the server and a browser, and read the instructions, some tenths of a second a page.

        Args:
            config: gives ``env``, ``rollout``, ``sft``, ``orm`` and ``eval``.
            count_tokens: tokens of a text, by the policy's tokenizer.
            special_tokens: the tokenizer's special tokens, which no page may write.
            tasks: names of pages, such as ``click-button``; all supported ones if None.
            train_seeds: instances of each page that are trained on.
            test_seeds: instances of each page that are evaluated on.

        Raises:
            MiniwobError: the package is missing, a page is not supported, a seed is where it must not be, or
                ``curriculum.generator`` is a served model.
            BrowserError: the browser failed.
        """
        if config.curriculum.generator == "llm":
            raise MiniwobError(
                "`curriculum.generator` must be offline or auto for MiniWoB++, got 'llm': a page makes its instruction "
                "itself, of a seed."
            )
        used = [seed for seed in (*train_seeds, *test_seeds) if seed in NEW_SEEDS]
        if used:
            raise MiniwobError(
                f"`train_seeds` and `test_seeds` must be below {NEW_SEEDS.start}, got {used[0]}: new tasks take the "
                "others."
            )
        self._config = config
        self._browser = Browser()
        try:
            self._pages = MiniwobPages(tasks, train_seeds=train_seeds, test_seeds=test_seeds, browser=self._browser)
        except BaseException:
            self._browser.close()
            raise
        self.train = tuple(task for task in self._pages.tasks if task.split == "train")
        self.test = draw(
            [task for task in self._pages.tasks if task.split == config.eval.split],
            config.eval.tasks,
            f"test:{config.eval.seed}",
        )
        self._demonstrations: dict[int, tuple[Trajectory, ...]] = {}
        self.environments = WebEnvBatch(
            self._pages,
            config.rollout.environments,
            browser=self._browser,
            **environment_options(config, count_tokens, special_tokens),
        )
        self.first_pages = InstancePages(self.environments)

    def close(self) -> None:
        """End the browser and the server."""
        self.environments.close()
        self._browser.close()
        self._pages.close()

    def demonstrations(self, seed: int) -> tuple[Trajectory, ...]:
        """Let the oracles play train tasks and return what they won: of ``sft.episodes`` tasks, drawn with the seed.

        Raises:
            MiniwobError: ``env.observation`` is a format that the oracles cannot read, or none won.
        """
        if self._config.env.observation != "lite":
            raise MiniwobError(
                f"`env.observation` must be lite for demonstrations of MiniWoB++, got "
                f"{self._config.env.observation!r}: the oracles that play them read no other."
            )
        if seed not in self._demonstrations:
            tasks = self._shown(seed)
            played = self._play(tasks)
            if tasks and not played:
                raise MiniwobError("no demonstration could be played. Look at the pages with `tests/benchmarks`.")
            self._demonstrations[seed] = played
        return self._demonstrations[seed]

    def _shown(self, seed: int) -> tuple[Task, ...]:
        return draw(self.train, self._config.sft.episodes, f"demonstrations:{seed}")

    def _play(self, tasks: Sequence[Task]) -> tuple[Trajectory, ...]:
        """Play tasks by their oracles, in all environments at once; return the won ones in the order of the tasks."""
        free: SimpleQueue[WebEnv] = SimpleQueue()
        for env in self.environments.envs:
            free.put(env)

        def won(task: Task) -> Trajectory | None:
            env = free.get()
            try:
                for _ in range(2):  # an environment fault is tried once more
                    try:
                        episode = play_oracle(env, task)
                    except BrowserError:
                        continue
                    except OracleLost:
                        return None
                    if episode.verdict is not None:
                        return dataclasses.replace(episode, policy="oracle") if episode.verdict.success else None
                return None
            finally:
                free.put(env)

        with ThreadPoolExecutor(len(self.environments.envs)) as pool:
            return tuple(episode for episode in pool.map(won, tasks) if episode is not None)

    def first_tasks(self, seed: int) -> tuple[Task, ...]:
        """Return the train tasks that the first actor plays, those that SFT did not show it first."""
        shown = {task.task_id for task in self._shown(seed)}
        return draw_unshown(self.train, shown, self._config.orm.rollouts, f"first:{seed}")

    def graded(self, tasks: Sequence[Task]) -> list[Task]:
        """Return generated tasks with their pages as graders; for measuring the ORM only."""
        doable = [task.eval is None and self.can_be_done(task) for task in tasks]
        return [
            dataclasses.replace(task, eval={"eval_types": ["page"]}) if known else task
            for task, known in zip(tasks, doable, strict=True)
        ]

    def can_be_done(self, task: Task) -> bool:
        """Return whether a task asks for what its page asks for with its seed."""
        name, seed = task.family.removeprefix("miniwob."), task.instantiation_dict.get("seed")
        if name not in self._pages.names or not isinstance(seed, int):
            return False
        asked = self._pages.intents([(name, seed)], self._browser)[0]
        return task.intent == asked and task.start_url == instance(name, seed, asked).start_url

    def score(self, episodes: Sequence[Trajectory]) -> str:
        """Return the score with the interval and the floor."""
        mode = self.environments.envs[0].evaluator
        return str(score(episodes, name=f"MiniWoB++, {self._config.eval.split}", mode=mode))

    def generator(self, log: Path) -> tuple[Generator, Feasible]:
        """Return who makes new instances and who tells which can be done.

        Args:
            log: not written, since no model is asked.
        """
        return NewSeeds(self._pages, self._browser), self._feasible

    def _feasible(self, task: Task) -> tuple[bool, str]:
        return (True, "") if self.can_be_done(task) else (False, "its page asks for something else, or is not played")


class InstancePages(FirstPages):
    """Texts of the pages that instances start on, with no episode for each.

    A page of MiniWoB++ keeps nothing for the next one, so one context reads many of them: a third of the time.
    """

    def _read(self, tasks: Sequence[Task]) -> list[str]:
        if not tasks:
            return []
        browser = self._environments.browser
        browser.start()
        try:
            try:
                return browser.call(self._read_all(tasks))
            except BrowserError:  # a browser that died is replaced by the second attempt
                return browser.call(self._read_all(tasks))
        except BrowserError as error:
            raise TaskSourceError(
                f"the first pages of {len(tasks)} instances could not be read: {error}. Go on with --resume; "
                "`doctor` tells what is wrong if it stays so."
            ) from error

    async def _read_all(self, tasks: Sequence[Task]) -> list[str]:
        contexts = min(len(self._environments.envs), math.ceil(len(tasks) / PAGES_PER_CONTEXT))
        share = math.ceil(len(tasks) / contexts)
        shares = [tasks[begin : begin + share] for begin in range(0, len(tasks), share)]
        work = [self._read_share(env, some) for env, some in zip(self._environments.envs, shares, strict=False)]
        return [text for texts in await asyncio.gather(*work) for text in texts]

    async def _read_share(self, env: WebEnv, tasks: Sequence[Task]) -> list[str]:
        session = await env.browser.open(env.backend.start(tasks[0], env.worker).allowed)
        texts = []
        try:
            for task in tasks:
                await session.visit(env.backend.start(task, env.worker).urls)
                seen = await session.observe(
                    mode=env.mode, budget=env.budget, count_tokens=env.count_tokens, special_tokens=env.special_tokens
                )
                texts.append(seen.text)
        finally:
            await session.close()
        return texts


class NewSeeds:
    """Makes new instances of the pages that the agent failed on."""

    name = "new seeds"
    at_once = 40
    """Enough that reading them, not opening contexts for it, takes the time."""

    def __init__(self, pages: MiniwobPages, browser: Browser) -> None:
        """Take the pages, and the browser in which their instructions are read."""
        self._pages, self._browser = pages, browser
        self._unused: dict[str, list[int]] = {}

    def propose(self, sites: tuple[str, ...], failed: Sequence[Task], count: int, seed: str) -> list[Task]:
        """Return instances of the failed tasks' pages in turn, each with a seed of ``NEW_SEEDS``.

        A page is opened for its first instance, and then for one in ``STOCK``: opening takes longer than all of them.
        """
        names = [task.family.removeprefix("miniwob.") for task in failed]
        chosen = [names[i % len(names)] for i in range(count)]
        opened = []
        for name, needed in Counter(chosen).items():
            unused = self._unused.setdefault(name, [])
            if len(unused) < needed:
                unused += random.Random(f"miniwob:{seed}:{name}").sample(NEW_SEEDS, max(STOCK, needed))
                opened += [(name, number) for number in unused]
        self._pages.intents(opened, self._browser)
        wanted = [(name, self._unused[name].pop(0)) for name in chosen]
        intents = self._pages.intents(wanted, self._browser)
        return [
            dataclasses.replace(instance(name, number, intent), task_id="", eval=None)
            for (name, number), intent in zip(wanted, intents, strict=True)
        ]
