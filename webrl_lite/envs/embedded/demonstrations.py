"""The demonstrations that ship with the kit: what the oracles did on every train task, recorded through Chromium.

``python -m webrl_lite.envs.embedded record`` makes the file again; that takes some minutes, reading it a second.
"""

from __future__ import annotations

from pathlib import Path

from webrl_lite.trajectory import Trajectory, read_jsonl

DEMONSTRATIONS = Path(__file__).with_name("demonstrations.jsonl.gz")
"""Solved episodes of all train tasks, in the order of the tasks."""


def demonstrations() -> tuple[Trajectory, ...]:
    """Return the recorded episodes, each a success."""
    return tuple(read_jsonl(DEMONSTRATIONS, Trajectory))
