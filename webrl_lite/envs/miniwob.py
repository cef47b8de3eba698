"""MiniWoB++ as a backend of ``WebEnv``: pages of the package ``miniwob``, each begun with a seed, each its own judge.

The pages come from the PyPI package ``miniwob`` (``pip install --no-deps miniwob``): it is found by its metadata, and
none of its Python is imported. A small server on 127.0.0.1 hands them out as they are, with ``miniwob_start.js`` behind
their ``core.js``: it begins the episode at once with the seed of the address, switches the time limit off, and reports
the raw reward when the page ends the episode. An instance is a ``Task`` such as ``miniwob.click-button.17``, whose
instruction is what the page asks for with that seed.

Success is a raw reward of exactly 1, taken at the moment when the page ends the episode; it does not fall with time. An
agent that calls ``exit`` before has failed.

Source: Farama-Foundation/miniwob-plusplus 1.1.0, ``core/core.js``. Differs from it: no time limit, no decay of the
reward (its default takes both from a person's speed), and a partial reward is no success.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata, resources
from pathlib import Path
from urllib.parse import urlsplit

from webrl_lite.browser import Browser
from webrl_lite.envs.backend import Backend, Start
from webrl_lite.envs.miniwob_tasks import HELD_OUT, SUPPORTED, UNSUPPORTED
from webrl_lite.trajectory import JSON, Task

SITE = "miniwob"
PLACEHOLDER = "__MINIWOB__"
TRAIN_SEEDS = tuple(range(10))
TEST_SEEDS = tuple(range(1000, 1005))
"""Seeds of the splits; what is made later takes seeds between them, see ``miniwob_source``."""

_HOST = re.compile(r"w([0-9]+)\.localhost(?::[0-9]+)?", re.ASCII)
_INTENTS = """JSON.stringify(SEEDS.map((seed) => {
  Math.seedrandom(String(seed));
  core.startEpisodeReal();
  const said = core.getUtterance();  // a few pages give the values beside the text
  return (said.utterance ?? said).replace(/\\s+/g, " ").trim();
}))"""
READER = 1_000_000
"""Number in the address from which instructions are read, which no worker has."""
_LONGEST_REPORT = 4096


class MiniwobError(RuntimeError):
    """MiniWoB++ cannot be used: names what is missing and the way out."""


def pages() -> Path:
    """Return the folder of the package's pages.

    Raises:
        MiniwobError: the package is not installed, or holds no pages.
    """
    try:
        folder = Path(str(metadata.distribution("miniwob").locate_file("miniwob/html")))
    except metadata.PackageNotFoundError:
        raise MiniwobError(
            "`miniwob`, the package with the pages of MiniWoB++, is not installed. Run `pip install --no-deps miniwob`;"
            " nothing that it depends on is needed."
        ) from None
    if not (folder / "core" / "core.js").is_file():
        raise MiniwobError(
            f"`miniwob` has no pages in {folder}. Run `pip install --force-reinstall --no-deps miniwob`."
        )
    return folder


def instance(name: str, seed: int, intent: str, split: str = "") -> Task:
    """Return the task of a page and a seed.

    Args:
        name: of the page, such as ``click-button``.
        seed: what the page's random numbers begin with, at least 0.
        intent: what the page asks for with this seed.
        split: of the task.
    """
    return Task(
        task_id=f"miniwob.{name}.{seed}",
        sites=(SITE,),
        intent=intent,
        start_url=f"{PLACEHOLDER}/miniwob/{name}.html?seed={seed}",
        eval={"eval_types": ["page"]},
        split=split,
        family=f"miniwob.{name}",
        kind="change",
        instantiation_dict={"seed": seed},
    )


def chosen_names(tasks: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the pages to play, all supported ones if None.

    Raises:
        MiniwobError: there is no such page, or it is not supported; the message says why.
    """
    for name in tasks or ():
        if name not in SUPPORTED:
            reason = UNSUPPORTED.get(name, "there is no such page")
            raise MiniwobError(f"`tasks` must name pages that can be played as text, got {name!r}: {reason}.")
    return tuple(SUPPORTED if tasks is None else dict.fromkeys(tasks))


class MiniwobPages(Backend):
    """Pages of MiniWoB++, their instances as tasks, and what each worker's page said at its end."""

    name = "miniwob"
    evaluator = "strict"
    """A page's own word is the same in every mode."""

    def __init__(
        self,
        tasks: Sequence[str] | None = None,
        *,
        train_seeds: Sequence[int] = TRAIN_SEEDS,
        test_seeds: Sequence[int] = TEST_SEEDS,
        held_out: Sequence[str] = HELD_OUT,
        browser: Browser | None = None,
    ) -> None:
        """Start the server and read what the pages ask for, some tenths of a second a page.

        Args:
            tasks: names of pages; all supported ones if None.
            train_seeds: of split ``train``.
            test_seeds: of split ``test``, and of ``test_families`` for the pages held out.
            held_out: pages that nothing is trained on; where ``tasks`` is given, only those of them.
            browser: the browser to read with; one of its own, closed again, if None.

        Raises:
            MiniwobError: the package is missing, a page is not supported, or a seed is in both splits.
            BrowserError: the browser failed.
        """
        root = pages()
        self.names = chosen_names(tasks)
        both = sorted({*train_seeds} & {*test_seeds})
        if both:
            raise MiniwobError(f"`test_seeds` must share no seed with `train_seeds`, got {both[0]} in both.")
        self._server = _Server(root)
        self._asked: dict[tuple[str, int], str] = {}
        wanted: list[tuple[str, int, str]] = []
        for name in self.names:
            if name not in held_out:
                wanted += [(name, seed, "train") for seed in train_seeds]
            wanted += [(name, seed, "test_families" if name in held_out else "test") for seed in test_seeds]
        try:
            said = self.intents([(name, seed) for name, seed, _ in wanted], browser)
        except BaseException:
            self._server.close()
            raise
        self.tasks: Sequence[Task] = tuple(
            instance(name, seed, intent, split) for (name, seed, split), intent in zip(wanted, said, strict=True)
        )

    def intents(self, wanted: Sequence[tuple[str, int]], browser: Browser | None = None) -> list[str]:
        """Return what pages ask for.

        Args:
            wanted: names and seeds; those of one page are read together.
            browser: see the class.

        Raises:
            BrowserError: the browser failed.
        """
        seeds: dict[str, list[int]] = {}
        for name, seed in dict.fromkeys(wanted):
            if (name, seed) not in self._asked:
                seeds.setdefault(name, []).append(seed)
        if seeds:
            own = browser is None
            browser = browser or Browser()
            browser.start()
            try:
                self._asked |= browser.call(self._intents(browser, seeds))
            finally:
                if own:
                    browser.close()
        return [self._asked[one] for one in wanted]

    async def _intents(self, browser: Browser, seeds: Mapping[str, Sequence[int]]) -> dict[tuple[str, int], str]:
        origin = self._server.origin(READER)
        found: dict[tuple[str, int], str] = {}
        session = await browser.open({SITE: origin})
        try:
            for name, own in seeds.items():
                await session.visit([f"{origin}/miniwob/{name}.html?seed={own[0]}"])
                said = json.loads(await session.read_here(_INTENTS.replace("SEEDS", json.dumps(list(own)))))
                found.update({(name, seed): text for seed, text in zip(own, said, strict=True)})
        finally:
            await session.close()
        return found

    # What an environment asks of a backend

    def start(self, task: Task, worker: int) -> Start:
        """Forget what the worker's last page said, and say where the episode begins."""
        origin = self._server.origin(worker)
        url = task.start_url.replace(PLACEHOLDER, origin)
        self._server.expect(worker, url.removeprefix(origin))
        return Start(urls=(url,), allowed={SITE: origin}, cookies=[], addresses={PLACEHOLDER: origin})

    def ended(self, worker: int) -> dict[str, JSON] | None:
        """Return ``reward`` (raw) and ``reason`` if the task's page has ended the episode."""
        return self._server.ended(worker)

    def alive(self) -> bool:
        """Whether the server runs."""
        return self._server.alive()

    def close(self) -> None:
        """End the server; calling it again does nothing."""
        self._server.close()


class _Server:
    """Hands out the pages on a thread of its own, and takes down what each worker's page says at its end."""

    def __init__(self, root: Path) -> None:
        self._expected: dict[int, str] = {}
        self._ended: dict[int, dict[str, JSON]] = {}
        handler = partial(_Handler, server_state=self, directory=str(root))
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, name="webrl_lite miniwob", daemon=True)
        self._thread.start()

    def origin(self, worker: int) -> str:
        """Return the address that only this worker's pages have."""
        return f"http://w{worker}.localhost:{self._http.server_port}"

    def expect(self, worker: int, page: str) -> None:
        """Begin an episode of a worker on a page; only this page's word counts, so none can be solved on another."""
        self._ended.pop(worker, None)
        self._expected[worker] = page

    def report(self, worker: int, page: str, reward: float, reason: str) -> None:
        """Take down the first end of an episode."""
        if page == self._expected.get(worker):
            self._ended.setdefault(worker, {"reward": reward, "reason": reason})

    def ended(self, worker: int) -> dict[str, JSON] | None:
        """Return how the worker's episode ended, None if it goes on."""
        return self._ended.get(worker)

    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the thread."""
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()


class _Handler(SimpleHTTPRequestHandler):
    """Files of the package, ``core.js`` with our part behind it, and the reports of pages."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: object, server_state: _Server, directory: str) -> None:
        self._state = server_state
        super().__init__(*arguments, directory=directory)

    def do_GET(self) -> None:  # noqa: N802  (the base class names it)
        """Send a file."""
        if urlsplit(self.path).path == "/core/core.js":
            core = Path(self.directory, "core", "core.js").read_bytes()
            self._send(core + b"\n" + _start_script(), "text/javascript")
        else:
            super().do_GET()

    def do_POST(self) -> None:  # noqa: N802
        """Take a page's report."""
        worker = _HOST.fullmatch(self.headers.get("Host", ""))
        length = self.headers.get("Content-Length", "")
        if self.path != "/ended" or worker is None or not length.isdigit() or int(length) > _LONGEST_REPORT:
            self.close_connection = True
            self.send_error(404)
            return
        said = json.loads(self.rfile.read(int(length)))
        self._state.report(int(worker[1]), str(said["page"]), float(said["reward"]), str(said["reason"]))
        self._send(b"", "text/plain")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def list_directory(self, path: str) -> None:
        """Show no folder: an agent has no business there."""
        self.send_error(404)

    def guess_type(self, path: str) -> str:
        """Return a file's type; the pages are UTF-8 and do not all say so."""
        kind = super().guess_type(path)
        return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Say nothing: requests are no news."""


@cache
def _start_script() -> bytes:
    return resources.files("webrl_lite.envs").joinpath("miniwob_start.js").read_bytes()
