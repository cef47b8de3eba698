"""The processes of one run: which one this is, and helpers that train along with it on a CPU.

The first process does everything; the others take their part of each training stage (``role_trainer``) and wait
through the rest. ``accelerate launch --num_processes N -m webrl_lite.run`` starts one for each GPU. On a CPU a run
starts its helpers itself, because small matrices keep one core each busier than several together.

Standard library only. The environment variables are torch's own (``RANK``, ``WORLD_SIZE``).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

MOST = 4
"""Processes that a run starts on its own; nobody measured more."""
PAUSE_S = 0.1
"""Between two looks of a helper at what it waits for."""
STARTER = "WEBRL_LITE_STARTER"
"""Environment variable: number of the process that a helper helps."""


class HelperError(RuntimeError):
    """A process that should train along has ended."""


def rank() -> int:
    """Return which process of the run this is, from 0."""
    return int(os.environ.get("RANK", 0))


def world() -> int:
    """Return how many processes the run has."""
    return int(os.environ.get("WORLD_SIZE", 1))


def on_a_cpu() -> int:
    """Return how many processes a run on this CPU has: one a core, as far as OMP_NUM_THREADS allows, at most 4."""
    return min(MOST, int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))


def wait_until(done: Callable[[], bool]) -> None:
    """Wait for what the first process does."""
    while not done():
        time.sleep(PAUSE_S)


def be_a_helper() -> None:
    """End when the process that started this one ends, however that ends; and leave Ctrl-C to it.

    A thread looks, because a helper may be waiting anywhere, half an hour long, for a process that is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    starter = int(os.environ.get(STARTER) or os.getppid())

    def watch() -> None:
        wait_until(lambda: os.getppid() != starter)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def helpers(command: Sequence[str], number: int) -> Iterator[None]:
    """Run processes beside this one, which becomes the first of them; all are ended with the block.

    Nothing is started if ``number`` is 1, or if a launcher has started several processes already.

    Args:
        command: what a helper runs.
        number: processes in all.

    Raises:
        HelperError: a helper ended while it was needed.
    """
    if number == 1 or "WORLD_SIZE" in os.environ:
        yield
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": number, "LOCAL_WORLD_SIZE": number, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    names = {**{name: str(value) for name, value in common.items()}, "ACCELERATE_USE_CPU": "true"}
    mine = {**names, "RANK": "0", "LOCAL_RANK": "0"}
    running = []
    for i in range(1, number):
        own = {"RANK": str(i), "LOCAL_RANK": str(i), STARTER: str(os.getpid())}
        running.append(subprocess.Popen(command, env={**os.environ, **names, **own}))
    os.environ.update(mine)
    try:
        yield
    except RuntimeError as error:  # what gloo raises when the other end is gone
        if ended := [process.returncode for process in running if process.poll() is not None]:
            raise HelperError(
                f"a process that trained along has ended (status {ended[0]}). Its message stands above; go on with "
                f"--resume, and with --processes 1 if it happens again. What the first process met: {error}"
            ) from error
        raise
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
        for name in mine:
            os.environ.pop(name, None)
