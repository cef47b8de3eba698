"""Questions to this machine that may hang or crash, each asked in a process of its own with a time limit.

Used by ``doctor``: a driver that never answers, a library that ends Python, a browser that does not start or a server
that sends a byte a minute costs one line of its report. When ``ask`` returns, its processes and files are gone.
Standard library only; what is asked about is imported by the process that asks. No equation of the paper.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from webrl_lite.config import JSON


@dataclass(frozen=True)
class Question:
    """What is asked, and for how long."""

    probe: str
    """A key of ``PROBES``."""
    seconds: float
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    values: Mapping[str, JSON] = field(default_factory=dict)
    """As the probe gave them; empty after a fault."""
    fault: str = ""
    """One line: why there are none."""


def ask(questions: Mapping[str, Question]) -> dict[str, Answer]:
    """Ask all questions at once and return the answers by the questions' names.

    Raises:
        OSError: no temporary folder can be made.
    """
    folder = Path(tempfile.mkdtemp(prefix="webrl_doctor_"))
    running: dict[str, subprocess.Popen[bytes]] = {}
    faults: dict[str, Answer] = {}
    try:
        begin = time.monotonic()
        for name, question in questions.items():
            try:
                running[name] = _start(question, folder / name)
            except OSError as error:
                faults[name] = Answer(fault=f"no process can be started: {error}")
        ends = {name: begin + questions[name].seconds for name in running}
        return faults | {name: _answer(one, folder / name, ends[name]) for name, one in running.items()}
    finally:
        for process in running.values():
            _end(process)
        _remove(folder, running)


def _start(question: Question, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir()
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "webrl_lite.probes", question.probe, str(folder)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            process_group=0,  # so that all of it can be ended, and Ctrl-C reaches the parent, which does so
        )
    with contextlib.suppress(OSError):  # a process that is gone already shows itself when it is waited for
        process.stdin.write(json.dumps(dict(question.arguments)).encode())  # not an argument: it may hold a key
        process.stdin.close()
    return process


def _answer(process: subprocess.Popen[bytes], folder: Path, end: float) -> Answer:
    try:
        code = process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return Answer(fault="no answer in time")
    lines = (folder / "out").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if code == 0 and lines:
        with contextlib.suppress(ValueError):
            return Answer(json.loads(lines[-1]))
    said = (folder / "err").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if code < 0:
        return Answer(fault=f"the process was ended by {signal.Signals(-code).name}")
    return Answer(fault=said[-1].strip()[:300] if said else f"the process ended with status {code}")


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.wait()


def _remove(folder: Path, names: Mapping[str, subprocess.Popen[bytes]]) -> None:
    """Delete the folder, and end what a killed probe's browser left, by the notes that it keeps there."""
    with contextlib.suppress(ImportError):
        from webrl_lite.chromium import RunFolder

        for name in names:
            RunFolder.sweep(folder / name)
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)  # a server that has lost its parent writes its last


# The probes: each runs in a process of its own -----------------------------------------------------------------------


def torch_build(folder: Path) -> dict[str, JSON]:
    """Return torch's build and what the GPUs are; a product of matrices on each shows that they work."""
    import torch

    cards: list[JSON] = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        properties = torch.cuda.get_device_properties(index)
        square = torch.ones(64, 64, device=f"cuda:{index}")
        works = bool(((square @ square) == 64).all())
        cards.append({"name": properties.name, "bytes": properties.total_memory, "works": works})
    half = torch.cuda.is_bf16_supported(including_emulation=False) if cards else None
    return {"version": torch.__version__, "cuda": torch.version.cuda, "cards": cards, "bfloat16": half}


def nf4(folder: Path) -> dict[str, JSON]:
    """Return the relative error of weights that were packed into 4 bits and unpacked again; about 0.09."""
    import torch
    from bitsandbytes.functional import dequantize_4bit, quantize_4bit

    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = torch.randn(256, 256, generator=torch.Generator().manual_seed(0)).to(device)
    packed, state = quantize_4bit(weights, quant_type="nf4", compress_statistics=True)
    error = (dequantize_4bit(packed, state) - weights).norm() / weights.norm()
    return {"device": device, "error": float(error)}


def imports(folder: Path) -> dict[str, JSON]:
    """Import both sides of the kit, so that packages which do not go together show."""
    import webrl_lite.actor
    import webrl_lite.envs  # noqa: F401

    return {"imported": True}


def browser(folder: Path) -> dict[str, JSON]:
    """Let Chromium load a page of 127.0.0.1 that holds a word of its own, and return whether it was read."""
    from webrl_lite.browser import Browser, find_chromium

    word = secrets.token_hex(8)

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<!doctype html><title>doctor</title><p>{word}</p>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    path = find_chromium()
    begin = time.monotonic()
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server, Browser(folder=folder) as chromium:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        site = f"http://127.0.0.1:{server.server_port}"
        session = chromium.call(chromium.open([site]))
        chromium.call(session.visit([f"{site}/"]))
        text = chromium.call(session.observe()).text
        chromium.call(session.close())
        server.shutdown()
    return {"path": str(path), "read": word in text, "seconds": time.monotonic() - begin}


def sites(folder: Path) -> dict[str, JSON]:
    """Start the embedded sites, reset a world, and return how a task's start page answers."""
    from webrl_lite.envs.embedded.backend import EmbeddedSites

    begin = time.monotonic()
    embedded = EmbeddedSites(folder)
    try:
        address = urlsplit(embedded.start(embedded.tasks[0], 0).urls[0])
        # the name is one of *.localhost, which browsers resolve and not every system does
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=30)
        connection.request("GET", address.path or "/", headers={"Host": address.netloc})
        status = connection.getresponse().status
        connection.close()
    finally:
        embedded.close()
    return {"status": status, "tasks": len(embedded.tasks), "seconds": time.monotonic() - begin}


def served(folder: Path, url: str, key: str) -> dict[str, JSON]:
    """Return the status of an OpenAI-compatible server's list of models, and their names where it gives them."""
    request = urllib.request.Request(f"{url.rstrip('/')}/models", headers={"Authorization": f"Bearer {key or 'none'}"})
    try:
        with urllib.request.urlopen(request) as response:  # noqa: S310 - the process has a time limit
            status, body = response.status, response.read(2**20)
    except urllib.error.HTTPError as error:
        return {"status": error.code, "models": None}
    try:
        models = [str(model["id"]) for model in json.loads(body)["data"]]
    except (ValueError, TypeError, KeyError):
        models = None
    return {"status": status, "models": models}


PROBES = {
    "torch": torch_build,
    "nf4": nf4,
    "imports": imports,
    "browser": browser,
    "sites": sites,
    "served": served,
}
"""Probes by name; each takes a folder of its own and the arguments of its question."""


def main(name: str, folder: str) -> None:
    """Run one probe; its arguments are JSON on the standard input, its answer is one line of JSON."""
    answer = PROBES[name](Path(folder), **json.loads(sys.stdin.read() or "{}"))
    sys.stdout.write(f"\n{json.dumps(answer)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
