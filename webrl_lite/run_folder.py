"""The folder of a run: its settings, which stages are done, how long they took; one process at a time.

Written by ``phase``; read by ``report``. A stage is a piece of work with one file or folder at its end, which appears
whole or not at all; so what is there is done, and a run that was killed goes on with the first stage whose result is
missing. Standard library only.

Of several processes (``processes``) the first one works; the others join it in stages that are done together, and wait
for the results of the rest.

    config.json    the settings; a run goes on only with the same ones
    stages.jsonl   one line a finished stage: name, seconds, peak memory, what it counted
    .lock          held while a process works in the folder
"""

from __future__ import annotations

import fcntl
import json
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from webrl_lite.config import Config, ConfigError, from_dict, to_dict
from webrl_lite.processes import rank, wait_until
from webrl_lite.trajectory import JSON, whole_file

CONFIG = "config.json"
STAGES = "stages.jsonl"
FREE = ("out", "report_to", "processes", "rollout.base_url")
"""Settings that may differ when a run goes on: they change no result but for the rounding of sums; a server may have
moved."""
LEAST_SPACE = 200 * 2**20
"""Bytes that must be free before a stage begins; trainers ask for what their checkpoints need besides."""


class RunError(RuntimeError):
    """A folder that a run cannot use: names it, the rule and the way out."""


class RunFolder:
    """A run's folder."""

    def __init__(self, path: str | Path, tell: Callable[[str], None] = lambda line: None) -> None:
        """Take a folder; nothing is read or written yet.

        Args:
            path: the folder.
            tell: called with one line before and after each stage.
        """
        self.path = Path(path)
        self.tell = tell
        self._started = time.monotonic()

    def begin(self, config: Config, *, resume: bool) -> None:
        """Make the folder, or check that it holds a run with these settings.

        Args:
            config: the settings.
            resume: whether to go on with what is there.

        Raises:
            RunError: it holds another run, or none to go on with, or cannot be written.
        """
        file = self.path / CONFIG
        if rank() > 0:
            wait_until(file.exists)
            return
        if resume:
            self._check(config)
            return
        if file.exists():
            raise RunError(
                f"`out` must be a folder without a run, but {self.path} has one. Go on with it by "
                f"--resume {self.path}, or use another folder."
            )
        try:
            write_json(file, to_dict(config))
        except OSError as error:
            raise RunError(f"`out` must be a folder that can be written, {self.path} is not: {error}.") from error

    def config(self) -> Config:
        """Return the settings that the run was begun with.

        Raises:
            RunError: there is no run, or its settings cannot be read.
        """
        file = self.path / CONFIG
        try:
            values = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(values, dict):
                raise ConfigError(f"it must hold settings by name, got {type(values).__name__}")
            return from_dict(values)
        except FileNotFoundError:
            raise RunError(f"{self.path} holds no run: {CONFIG} is missing. Begin one with --out.") from None
        except (OSError, ValueError, ConfigError) as error:
            raise RunError(f"{file} cannot be read: {error}. Was it written by another version?") from error

    def _check(self, config: Config) -> None:
        old, new = flat(to_dict(self.config())), flat(to_dict(config))
        differing = [name for name in old if old[name] != new.get(name) and name not in FREE]
        if differing:
            shown = ", ".join(f"`{name}` was {old[name]!r} and is {new.get(name)!r}" for name in differing)
            raise RunError(
                f"{self.path} was begun with other settings: {shown}. Leave them out to go on, or use another folder."
            )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out; the system lets go when this one ends, however it ends.

        Of several processes of one run the first keeps it for all.

        Raises:
            RunError: another process works here, or the folder cannot be written.
        """
        if rank() > 0:
            yield
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = open(self.path / ".lock", "w")  # noqa: SIM115 - held until the block ends
        except OSError as error:
            raise RunError(f"`out` must be a folder that can be written, {self.path} is not: {error}.") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(f"another process works in {self.path}. Wait for it, or use another folder.") from None
            yield

    def once(
        self, name: str, result: Path, work: Callable[[], Mapping[str, JSON] | None], *, together: bool = False
    ) -> None:
        """Do a stage's work unless its result is there.

        Args:
            name: of the stage, for example ``phase_01/rollout``.
            result: file or folder that the work writes last, whole or not at all.
            work: does it; returns numbers for ``stages.jsonl``.
            together: whether all processes of the run work; else the first one does, and the others wait.

        Raises:
            RunError: the disk is full, or the work left no result.
            OSError: a file could not be written; what earlier stages wrote is untouched.
        """
        if result.exists():
            return
        if rank() > 0:
            if together:
                work()
            wait_until(result.exists)
            return
        self.tell(f"{self._clock()} {name}")
        free = shutil.disk_usage(self.path).free
        if free < LEAST_SPACE:
            raise RunError(
                f"{name} needs {LEAST_SPACE / 2**20:.0f} MiB of free disk, {self.path} has {free / 2**20:.0f}. Free "
                f"some and go on with --resume {self.path}."
            )
        begin = time.monotonic()
        numbers = work() or {}
        if not result.exists():
            raise RunError(f"{name} ended without {result}. This is a fault of the program; please report it.")
        line = {"stage": name, "seconds": round(time.monotonic() - begin, 3), "peak_bytes": peak_bytes(), **numbers}
        with open(self.path / STAGES, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        shown = ", ".join(f"{key} {_short(value)}" for key, value in numbers.items())
        self.tell(f"{self._clock()} {name}: {line['seconds']:.0f} s{'; ' if shown else ''}{shown}")

    def _clock(self) -> str:
        seconds = int(time.monotonic() - self._started)
        return f"[{seconds // 60:02d}:{seconds % 60:02d}]"


def write_json(path: Path, value: JSON) -> None:
    """Write a JSON file whole or not at all; its folder is made if it is missing."""
    with whole_file(path) as file:
        file.write((json.dumps(value, indent=1) + "\n").encode())


def flat(values: Mapping[str, JSON], path: str = "") -> dict[str, JSON]:
    """Return nested settings by their paths: ``{"actor": {"beta": 1}}`` becomes ``{"actor.beta": 1}``."""
    found: dict[str, JSON] = {}
    for key, value in values.items():
        name = f"{path}{key}"
        found.update(flat(value, f"{name}.") if isinstance(value, Mapping) else {name: _plain(value)})
    return found


def peak_bytes() -> int:
    """Return the most memory that this process has had so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _plain(value: JSON) -> JSON:
    return list(value) if isinstance(value, tuple) else value


def _short(value: JSON) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
