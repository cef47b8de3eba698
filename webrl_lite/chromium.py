"""Chromium as a program: finding or installing it, its flags, its processes and its temporary files.

Standard library and psutil; ``browser.py`` starts it through Playwright.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import psutil

log = logging.getLogger(__name__)

KILL_SECONDS = 5.0
# A Unix socket's path has at most 107 characters; Chromium adds about 45 to its temporary folder.
LONGEST_TEMP = 60

# A later --disable-features replaces Playwright's own list, so what matters of that is repeated here.
_FEATURES_OFF = (
    *("HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "MediaRouter", "LensOverlay"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled"),
    *("PreconnectToSearch", "AutofillServerCommunication", "Translate", "SpareRendererForSitePerProcess"),
    # The drop-down of the address bar, which nobody sees, is a page with a renderer of its own in each context.
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "PreloadTopChromeWebUI"),
)
FLAGS = (
    f"--disable-features={','.join(_FEATURES_OFF)}",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--no-pings",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # its older name
)
"""Chromium's flags beside Playwright's own. The last three close the ways past a proxy: audit pings, DNS, UDP."""

_NAMES = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser", "chrome", "msedge", "microsoft-edge")
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
_NONE_FOUND = (
    "No Chromium or Chrome was found. Run `python -m webrl_lite.browser install`, "
    "or set WEBRL_LITE_CHROMIUM to the path of one."
)


class BrowserError(RuntimeError):
    """The environment failed: no browser, a crash, a page that does not answer, a site that is gone.

    Never the agent's doing, so never a reward of 0: the episode ends with ``StopReason.ENV_ERROR``.
    """


def is_root() -> bool:
    """Whether Python runs as root, where Chromium refuses to use its sandbox; False on Windows."""
    return getattr(os, "geteuid", lambda: 1)() == 0


def find_chromium() -> Path:
    """Return the browser to use: ``WEBRL_LITE_CHROMIUM``, Playwright's own, then Chrome or Chromium on the PATH.

    Raises:
        BrowserError: there is none, or the variable names a file that cannot be run.
    """
    named = os.environ.get("WEBRL_LITE_CHROMIUM")
    if named:
        if not (os.path.isfile(named) and os.access(named, os.X_OK)):
            raise BrowserError(
                f"`WEBRL_LITE_CHROMIUM` must name an executable file, got {named!r}. "
                "Correct it, or unset it to use a browser found elsewhere."
            )
        return Path(named)
    for path in (*_playwright_browsers(), *map(shutil.which, _NAMES), *_PLACES):
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return Path(path)
    raise BrowserError(_NONE_FOUND)


def _playwright_browsers() -> list[Path]:
    """Browsers that ``playwright install`` put on this machine, newest first, the full Chromium before the shell."""
    home = Path.home()
    places = {"darwin": home / "Library/Caches", "win32": home / "AppData/Local"}
    cache = places.get(sys.platform) or Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    root = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or cache / "ms-playwright")
    found: list[Path] = []
    for kind, names in (
        ("chromium", ("chrome-*/chrome", "chrome-*/chrome.exe", "chrome-*/*.app/Contents/MacOS/*")),
        (
            "chromium_headless_shell",
            ("chrome-*/headless_shell", "chrome-*/chrome-headless-shell", "chrome-*/*shell.exe"),
        ),
    ):
        folders = sorted(root.glob(f"{kind}-*"), key=lambda p: int(p.name.rpartition("-")[2] or 0), reverse=True)
        found += [path for folder in folders for name in names for path in sorted(folder.glob(name))]
    return found


def install() -> Path:
    """Return a browser, getting one if there is none: Playwright's, or the system's package where that fails.

    Raises:
        BrowserError: neither way worked; the message says what to do by hand.
    """
    with contextlib.suppress(BrowserError):
        return find_chromium()
    if os.environ.get("WEBRL_LITE_CHROMIUM"):
        return find_chromium()  # raises: a wrong setting is not repaired by another browser
    root = [] if is_root() else ["sudo"]
    ways = [[[sys.executable, "-m", "playwright", "install", "chromium"]]]
    if shutil.which("apt-get"):
        apt = [*root, "apt-get"]
        ways.append([[*apt, "update"], [*apt, "install", "-y", "--no-install-recommends", "chromium"]])
    elif sys.platform == "darwin" and shutil.which("brew"):
        ways.append([["brew", "install", "--cask", "chromium"]])
    for way in ways:
        for command in way:
            log.info("running %s", " ".join(command))
            try:
                if subprocess.run(command, check=False).returncode != 0:
                    break
            except OSError:
                break
        with contextlib.suppress(BrowserError):
            return find_chromium()
    raise BrowserError(
        "No browser could be installed. Install Chrome or Chromium by hand (e.g. `apt-get install chromium`, "
        "https://www.google.com/chrome) and set WEBRL_LITE_CHROMIUM to its path if it is not on the PATH."
    )


class Loop(asyncio.ProactorEventLoop if sys.platform == "win32" else asyncio.SelectorEventLoop):
    """A loop whose children keep their temporary files in a folder of ours."""

    def __init__(self, temp: Path):
        super().__init__()
        self.temp = temp

    async def subprocess_exec(self, protocol_factory, *command, **options):  # noqa: ANN001, ANN002, ANN003, ANN201
        """Start a child with its temporary files in the folder."""
        places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.temp))
        options["env"] = {**(options.get("env") or os.environ), **places}
        return await super().subprocess_exec(protocol_factory, *command, **options)


def end_tree(pid: int) -> None:
    """Kill a process of ours and its children."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(family, timeout=KILL_SECONDS)


class RunFolder:
    """Where one Browser keeps its profile and temporary files, and notes its processes for a later sweep."""

    def __init__(self, run_folder: Path):
        run_folder.mkdir(parents=True, exist_ok=True)
        self.sweep(run_folder)
        self.mark = uuid.uuid4().hex[:12]
        self.path = run_folder.resolve() / f"chromium-{self.mark}"
        self.path.mkdir()
        self.temp = self.path
        if len(str(self.path)) > LONGEST_TEMP and sys.platform != "win32":
            self.temp = self.short_name(self.mark)
            self.temp.symlink_to(self.path)
        self.note([])

    @staticmethod
    def short_name(mark: str) -> Path:
        """Link to a folder whose path is too long for a socket."""
        return Path(tempfile.gettempdir()) / f"webrl-{mark}"

    def note(self, pids: Sequence[int]) -> None:
        """Write down whose the folder is and which Chromium processes belong to it."""
        owner = psutil.Process()
        record = {"owner": owner.pid, "started": owner.create_time(), "pids": list(pids)}
        (self.path / "run.json").write_text(json.dumps(record), encoding="utf-8")

    def remove(self) -> None:
        """Delete the folder; files that a dying Chromium still writes are tried again for a moment."""
        if self.temp != self.path:
            self.temp.unlink(missing_ok=True)
        for _ in range(20):
            shutil.rmtree(self.path, ignore_errors=True)
            if not self.path.exists():
                return
            time.sleep(0.05)

    @classmethod
    def sweep(cls, run_folder: Path) -> None:
        """End and delete what Browsers of this folder left whose Python is gone."""
        for path in run_folder.glob("chromium-*"):
            mark = path.name.partition("-")[2]
            try:
                record = json.loads((path / "run.json").read_text(encoding="utf-8"))
                owner = psutil.Process(record["owner"])
                if abs(owner.create_time() - record["started"]) < 1:
                    continue
            except psutil.NoSuchProcess:
                pass
            except (OSError, ValueError, KeyError):
                continue  # being made at this moment, or not ours
            for pid in record["pids"]:
                with contextlib.suppress(psutil.Error):
                    if any(mark in argument for argument in psutil.Process(pid).cmdline()):
                        end_tree(pid)
            shutil.rmtree(path, ignore_errors=True)
            cls.short_name(mark).unlink(missing_ok=True)
