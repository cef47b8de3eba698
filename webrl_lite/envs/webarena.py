"""WebArena and WebArena-Lite on sites that the user hosts, as a backend of ``WebEnv``.

Reads task files (``webarena_tasks``) and talks to the sites (``webarena_sites``). Before an episode the sites are reset
where there is a hook for it, the sessions of the task's sites are renewed, and the placeholders are mapped. The agent
may reach every hosted site, as in the benchmark, since tasks on the map need the encyclopedia. Tasks whose site is not
hosted are left out, counted, and named beside every score.

    python -m webrl_lite.envs.webarena --tasks webarena_lite --sign-in

prints the number of tasks by site and eval type and one line a site; it ends with status 1 if a site is not well.

Source: web-arena-x/webarena ``run.py`` and VisualAgentBench's. Differs from both: tasks on a site without a session in
their ``storage_state`` (the map with the shop's administration) begin signed in on all their sites; an environment
fault is no failure.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from webrl_lite.browser import BrowserError
from webrl_lite.envs.backend import Backend, Start
from webrl_lite.envs.webarena_hooks import Account
from webrl_lite.envs.webarena_sites import LIMITS, LOGINS, SITES, Health, HostedSites, addresses_of
from webrl_lite.envs.webarena_tasks import SETS, Score, counts, read_tasks, score
from webrl_lite.evaluators import MODES, Call
from webrl_lite.gate import origin_of
from webrl_lite.trajectory import Task, Trajectory

__all__ = ["Account", "WebArenaSites"]


class WebArenaSites(Backend):
    """Tasks of WebArena's kind on the user's own sites."""

    def __init__(
        self,
        source: str = "webarena_lite",
        *,
        train: str | Sequence[Task] | None = None,
        evaluator: str | None = None,
        addresses: Mapping[str, str] | None = None,
        environ: Mapping[str, str] | None = None,
        accounts: Mapping[str, Account] | None = None,
        reset: str = "",
        reset_each: Literal["run", "episode"] = "run",
    ) -> None:
        """Read the tasks and the addresses; the sites are asked nothing yet, see ``check``.

        Args:
            source: ``webarena_lite``, ``webarena``, ``webarena_verified``, ``webarena_verified_hard``, or a path.
            train: further tasks, of split ``train``, as they are or by name or path; of a published set only those that
                are not in WebArena-Lite. Ids get ``train.`` in front; one with a test task's instruction is dropped.
            evaluator: mode of the grader; the set's own if None, ``strict`` for a path.
            addresses: by site, in place of environment variables.
            environ: environment variables; the process's own if None.
            accounts: by site, in place of the published ones.
            reset: hook that puts the sites into their initial state, see ``HostedSites``.
            reset_each: when it runs: once before the first episode, or before every one.

        Raises:
            FileNotFoundError, TraceError, TaskError: see ``read_tasks``.
            ValueError: an option or an address is wrong, or no task can be played.
        """
        if evaluator is not None and evaluator not in MODES:
            raise ValueError(f"`evaluator` must be one of {', '.join(MODES)}, got {evaluator!r}.")
        if reset_each not in ("run", "episode"):
            raise ValueError(f"`reset_each` must be run or episode, got {reset_each!r}.")
        published = SETS.get(source)
        self.name = source if published else Path(source).stem
        self.evaluator = evaluator or (published.evaluator if published else "strict")
        self.sites = HostedSites(addresses_of(environ, addresses), accounts=accounts, reset=reset, environ=environ)
        self.reset_each = reset_each
        read = read_tasks(source, repair=self.evaluator == "strict")
        self.defects: dict[str, str] = dict(read.defects)
        """Tasks whose grader is broken as released: id to what is wrong."""
        further = _training(train, read.tasks, self.evaluator) if train else ()
        self.all_tasks = (*read.tasks, *further)
        """Those that cannot be played included."""
        self.left_out: dict[str, str] = {}
        """Tasks that cannot be played: id to reason."""
        for task in self.all_tasks:
            reason = self._unplayable(task)
            if reason:
                self.left_out[task.task_id] = reason
        self.tasks: Sequence[Task] = tuple(task for task in self.all_tasks if task.task_id not in self.left_out)
        if not self.tasks:
            raise ValueError(
                f"none of the {len(self.all_tasks)} tasks of `{source}` can be played: "
                f"{next(iter(self.left_out.values()), 'the file is empty')}. Set SHOPPING, SHOPPING_ADMIN, REDDIT, "
                "GITLAB, MAP and WIKIPEDIA to your sites' addresses."
            )
        self._playing: dict[int, tuple[str, ...]] = {}
        self._was_reset: set[str] = set()
        self._lock = threading.Lock()

    def _unplayable(self, task: Task) -> str:
        """Say why a task cannot be played, "" if it can."""
        for site in task.sites:
            if site not in SITES:
                return f"there is no site {site}"
            if site not in self.sites.addresses:
                return f"{site} is not hosted"
        allowed = {origin_of(url) for url in self.sites.allowed().values()}
        for url in self._urls(task, 0):
            try:
                fine = urlsplit(url).scheme in ("http", "https") and origin_of(url) in allowed
            except ValueError:
                fine = False
            if not fine:
                return f"its start page is on no hosted site: {re.split('[?#]', url)[0][:80]}"
        return ""

    def _urls(self, task: Task, worker: int) -> tuple[str, ...]:
        urls = task.start_url
        for placeholder, address in self.sites.placeholders(worker).items():
            urls = urls.replace(placeholder, address)
        return tuple(url.strip() for url in urls.split("|AND|"))

    # What an environment asks of a backend

    def start(self, task: Task, worker: int) -> Start:
        """Reset and sign in as the task needs it, and say where its episode begins.

        Raises:
            BrowserError: a site does not answer, refuses the account, or the reset failed.
            ValueError: the task's site is not hosted, or every episode is to be reset on sites that workers share.
        """
        self._reset(task, worker)
        self._playing[worker] = task.sites
        return Start(
            urls=self._urls(task, worker),
            allowed=self.sites.allowed(worker),
            cookies=self.sites.cookies(task.sites, worker),
            addresses=self.sites.placeholders(worker),
            grader_cookies=self.sites.cookies(task.sites, worker, grader=True),
            geolocation=task.extra.get("geolocation"),
            limits=LIMITS,
        )

    def _reset(self, task: Task, worker: int) -> None:
        with self._lock:
            if self.reset_each == "episode":
                together = [site for site in task.sites if self.sites.shared(site)]
                if self.sites.reset_by and together and any(other != worker for other in self._playing):
                    raise ValueError(
                        f"`reset_each` must be run where several workers share {together[0]}: a reset would pull the "
                        f"site from under the others. Give each a copy, `{together[0].upper()}=address,address`."
                    )
                self.sites.reset(task.sites, worker)
                return
            stale = [s for s in self.sites.addresses if s in LOGINS]
            stale = [site for site in stale if self.sites.address(site, worker) not in self._was_reset]
            self.sites.reset(stale, worker)
            self._was_reset.update(self.sites.address(site, worker) for site in stale)

    def call(self, call: Call, worker: int) -> str | None:
        """Run a helper that asks the shop's REST interface; None for the others."""
        return self.sites.call(call, worker)

    def alive(self) -> bool:
        """Whether the sites of the tasks under way answer, without a server error."""
        return all(self.sites.alive(sites, worker) for worker, sites in list(self._playing.items()))

    def close(self) -> None:
        """Do nothing: the sites are the user's, and the browser for signing in closes each time."""

    # For a person

    def check(self, *, sign_in: bool = True) -> list[Health]:
        """Look at every site that a task of the set needs; ``str`` of each is one line.

        Args:
            sign_in: whether to sign in where the tasks begin signed in.
        """
        needed = {site for task in self.all_tasks for site in task.sites}
        found = self.sites.health([site for site in SITES if site in needed], sign_in=sign_in)
        lost = {site: sum(site in task.sites for task in self.all_tasks) for site in needed}
        return [
            dataclasses.replace(one, problem=f"{one.problem}; {lost[one.site]} tasks need it") if one.problem else one
            for one in found
        ]

    def require(self) -> None:
        """Refuse to go on if a hosted site is not well; call it before a run.

        Raises:
            BrowserError: one line a site that does not answer or refuses to sign in.
        """
        bad = [str(one) for one in self.check() if one.problem and one.address]
        if bad:
            raise BrowserError("\n".join(bad))

    def score(self, trajectories: Sequence[Trajectory], mode: str | None = None) -> Score:
        """Return the score of episodes on these tasks with all that belongs to it; ``str`` is its text."""
        return score(
            trajectories,
            name=self.name,
            mode=mode or self.evaluator,
            left_out=self.left_out,
            defects=self.defects,
        )


def _training(source: str | Sequence[Task], tests: Sequence[Task], evaluator: str) -> tuple[Task, ...]:
    """Return training tasks, none of which is a test task."""
    taken = {_folded(task.intent) for task in tests}
    given = read_tasks(source, repair=evaluator == "strict").tasks if isinstance(source, str) else source
    published = isinstance(source, str) and source in SETS
    return tuple(
        dataclasses.replace(task, task_id=f"train.{task.task_id}", split="train")
        for task in given
        if (not published or task.split == "train") and _folded(task.intent) not in taken
    )


def _folded(intent: str) -> str:
    return " ".join(re.findall(r"\w+", intent.casefold()))


def main(arguments: Sequence[str]) -> int:
    """Print the tasks and the state of the sites; 1 if a site is not well."""
    parser = argparse.ArgumentParser(prog="python -m webrl_lite.envs.webarena", description="Look at tasks and sites.")
    parser.add_argument("--tasks", default="webarena_lite", help=f"{', '.join(SETS)}, or a path")
    parser.add_argument("--sign-in", action="store_true", help="sign in to the sites as well")
    options = parser.parse_args(arguments)
    try:
        backend = WebArenaSites(options.tasks)
        read = backend.all_tasks
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    found = backend.check(sign_in=options.sign_in)
    sys.stdout.write("\n".join([str(counts(read)), *map(str, found), ""]))
    return int(any(one.problem for one in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
