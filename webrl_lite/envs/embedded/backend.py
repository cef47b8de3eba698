"""The embedded sites as a backend of ``WebEnv``: tasks, a fresh world for each episode, and the state to grade.

Reads nothing but the package; writes the databases of its workers into one folder, which it removes at its end if it
made it.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from webrl_lite.envs.backend import Backend, Start
from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.families import make_tasks, pretraining_tasks
from webrl_lite.envs.embedded.server import SiteServer
from webrl_lite.envs.embedded.site import COOKIE
from webrl_lite.trajectory import JSON, Task


class EmbeddedSites(Backend):
    """Five sites, their tasks and one world (database copy and host names) for each worker."""

    name = "embedded"
    evaluator = "strict"
    """Mode in which its tasks are graded unless the caller says otherwise."""

    def __init__(self, folder: Path | None = None, *, other_world: int | None = None) -> None:
        """Build the pristine database, start the site server and write the tasks.

        Args:
            folder: where the workers' databases go; a temporary folder, removed by ``close``, if None.
            other_world: seed of other data on the same sites, with the tasks that the tiny base is pre-trained on; None
                for the world and the tasks that the kit is measured on.
        """
        self._temporary = tempfile.TemporaryDirectory(prefix="webrl_lite_worlds_") if folder is None else None
        self.folder = Path(self._temporary.name if self._temporary else folder).resolve()
        pristine = self.folder / world.PRISTINE
        world.build(pristine, world.SEED if other_world is None else other_world)
        db = sqlite3.connect(f"file:{pristine}?mode=ro&immutable=1", uri=True)
        db.row_factory = sqlite3.Row
        try:
            self.tasks: Sequence[Task] = make_tasks(db) if other_world is None else pretraining_tasks(db, other_world)
            self._accounts = {(row["site"], row["username"]): row for row in db.execute("SELECT * FROM account")}
        finally:
            db.close()
        self.server = SiteServer(self.folder)
        self._restart = threading.Lock()

    def start(self, task: Task, worker: int) -> Start:
        """Reset a worker's world and say where its episode begins.

        The usual accounts are signed in, except where the task says ``out`` or ``expired``
        (``task.extra["sessions"]``). A site server that has died is started again.
        """
        with self._restart:  # several workers start at once, from threads of their own
            if not self.server.alive():
                self.server.close()
                self.server = SiteServer(self.folder)
        name = f"w{worker}"
        world.reset(self.folder, name)
        origins = {site: self.server.origin(site, name) for site in world.SITES}
        addresses = {f"__{site.upper()}__": origin for site, origin in origins.items()}
        sessions = task.extra.get("sessions", {})
        urls = task.start_url
        for placeholder, origin in addresses.items():
            urls = urls.replace(placeholder, origin)
        return Start(
            urls=tuple(url.strip() for url in urls.split("|AND|")),
            allowed=origins,
            cookies=self._cookies(name, sessions),
            addresses=addresses,
            grader_cookies=self._cookies(name, {}) + self._cookies(f"{name}-before", {}),
            grader_allowed=tuple(self.server.origin(site, f"{name}-before") for site in world.SITES),
        )

    def _cookies(self, name: str, sessions: dict[str, str]) -> list[dict[str, str]]:
        cookies = []
        for site in world.SITES:
            username = import_module(f"webrl_lite.envs.embedded.{site}.data").ACCOUNT
            if username is None or sessions.get(site) == "out":
                continue
            value = self.server.cookie(self._accounts[site, username]["id"], expired=sessions.get(site) == "expired")
            cookies.append({"name": COOKIE, "value": value, "url": self.server.origin(site, name)})
        return cookies

    def password(self, site: str, username: str) -> str:
        """Return the password of an account of the sites, for a person who wants to sign in."""
        return self._accounts[site, username]["password"]

    def before(self, url: str) -> str | None:
        """Return the address at which a page shows the state before the episode."""
        for site in world.SITES:
            origin, found, path = url.partition(f".localhost:{self.server.port}")
            if found and origin.startswith(f"http://{site}."):
                return f"{origin}-before{found}{path}"
        return None

    def changes(self, worker: int) -> list[dict[str, JSON]]:
        """List what the worker's episode changed in the database, row by row."""
        return world.changes(self.folder / world.PRISTINE, self.folder / f"w{worker}.db")

    def alive(self) -> bool:
        """Whether the sites answer; if not, the episode is an environment fault."""
        return self.server.alive()

    def close(self) -> None:
        """End the site server and remove the temporary folder; calling it again does nothing."""
        self.server.close()
        if self._temporary:
            self._temporary.cleanup()
