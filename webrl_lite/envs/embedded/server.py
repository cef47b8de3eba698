"""The process that serves the five sites to any number of workers, and the handle to it.

A request's host name says whose world it enters: ``shopping.w3.localhost`` is the shop of worker ``w3``, and
``shopping.w3-before.localhost`` the same shop before the episode, read-only, for graders. The process listens on
127.0.0.1 only, on a port that the system chooses, and ends when its parent does. It has no end-point that shows or
changes state beyond what a visitor can do: graders read the database file.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path

from webrl_lite.envs.embedded.site import DATABASE, READ_ONLY, mint_cookie
from webrl_lite.envs.embedded.world import PRISTINE, SITES

HOST = re.compile(rf"({'|'.join(SITES)})\.([a-z0-9]+)(-before)?\.localhost(?::\d+)?", re.ASCII)
"""Site, worker, and whether the state before the episode is meant."""

WSGI = Callable[[dict[str, object], Callable[..., object]], Iterable[bytes]]


def application(worlds: Path, secret: str) -> WSGI:
    """Make the WSGI application that sends each request to its site and its worker's database.

    Args:
        worlds: folder of the databases, ``pristine.db`` and one for each worker.
        secret: key that signs the session cookies.
    """
    sites = {site: import_module(f"webrl_lite.envs.embedded.{site}.pages").app for site in SITES}
    for app in sites.values():
        app.secret_key = secret

    def dispatch(environ: dict[str, object], start_response: Callable[..., object]) -> Iterable[bytes]:
        match = HOST.fullmatch(str(environ.get("HTTP_HOST", "")).lower())
        database = worlds / (PRISTINE if match and match[3] else f"{match[2]}.db") if match else None
        if match is None or not database.is_file():
            start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [b"There is no site of this name."]
        environ[DATABASE] = str(database)
        environ[READ_ONLY] = bool(match[3])
        return sites[match[1]](environ, start_response)

    return dispatch


class SiteServer:
    """The running server process: addresses, cookies, and its end."""

    def __init__(self, worlds: Path) -> None:
        """Start the process and wait until it listens.

        Args:
            worlds: folder that holds ``pristine.db``; workers' copies go there too.

        Raises:
            RuntimeError: the process ended before it listened.
        """
        self.worlds = worlds
        self.secret = secrets.token_hex(16)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "webrl_lite.envs.embedded.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C reaches the parent, which closes this process in its own time
        )
        self.process.stdin.write(json.dumps({"worlds": str(worlds), "secret": self.secret}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"The site server ended with exit code {self.process.wait()} before it listened.")
        self.port: int = json.loads(line)["port"]

    def origin(self, site: str, world: str) -> str:
        """Return a site's address for one worker, without a slash at its end."""
        return f"http://{site}.{world}.localhost:{self.port}"

    def cookie(self, account_id: int | None, *, expired: bool = False) -> str:
        """Return a session cookie's value that this server accepts; see ``site.mint_cookie``."""
        return mint_cookie(self.secret, account_id, expired=expired)

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def close(self) -> None:
        """End the process; calling it again does nothing."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()  # the process ends when its input does
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def serve() -> None:
    """Serve until the standard input ends; its first line names the folder and the signing key."""
    from waitress import create_server

    logging.getLogger("waitress").setLevel(logging.ERROR)  # queue-depth warnings say nothing to a user
    settings = json.loads(sys.stdin.readline())
    app = application(Path(settings["worlds"]), settings["secret"])
    server = create_server(app, host="127.0.0.1", port=0, threads=8)
    sys.stdout.write(json.dumps({"port": server.effective_port}) + "\n")
    sys.stdout.flush()

    def end_with_parent() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    server.run()


if __name__ == "__main__":
    serve()
