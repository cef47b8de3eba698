"""Other worlds: the same sites with other data, in which the tiny base's pre-training episodes are recorded.

Writes one file a world (``python -m webrl_lite.envs.embedded record --world 1``); reads it back with the words of that
world's data, which ``grounding_episodes`` renames.
"""

from __future__ import annotations

import ast
import re
import sqlite3
import tempfile
from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from webrl_lite.actions import describe
from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.backend import EmbeddedSites
from webrl_lite.envs.embedded.families import all_families
from webrl_lite.envs.embedded.play import Tally, play_all
from webrl_lite.grounding_episodes import WORD, Episodes
from webrl_lite.grounding_pages import LONG_MONTHS, MONTHS
from webrl_lite.trajectory import Trajectory, read_jsonl, write_jsonl

DATA_MODULES = ("data", "goods", "names", "people", "words", "reviews")
"""Modules whose texts are data: names, reviews, posts."""
ROLES = "link button input textarea select checkbox radio option menuitem".split()
STATES = "hint required current checked selected expanded collapsed disabled invalid on off".split()
"""How mode ``lite`` writes elements."""


def record_world(out: Path, seed: int, workers: int) -> Tally:
    """Let the oracles solve the pre-training tasks of a world and write what they did; unsolved ones are left out.

    Args:
        out: file, JSONL or JSONL.gz.
        seed: the world's.
        workers: episodes at once.
    """
    sites = EmbeddedSites(other_world=seed)
    kept: list[Trajectory] = []
    try:
        tally = play_all(sites, sites.tasks, workers=workers, others=False, keep=kept.append)
    finally:
        sites.close()
    write_jsonl(out, kept)
    return tally


def site_words() -> frozenset[str]:
    """Return the words of the sites' own labels, of the instructions and of how a page is written, in lower case.

    They keep their meaning. What a site's code says stands in its templates and in its modules' texts, except for the
    modules that make its data.
    """
    texts = [wording for family in all_families() for wording in family.wordings]
    texts += [describe(), *world.SITES, *MONTHS, *LONG_MONTHS, *ROLES, *STATES]
    package = Path(str(resources.files("webrl_lite.envs.embedded")))
    for path in package.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        texts.append(re.sub(r"\{[{%].*?[%}]\}", lambda m: " ".join(re.findall(r"[\"'](.*?)[\"']", m[0])), text))
    for path in package.rglob("*.py"):
        if path.stem not in DATA_MODULES:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            texts += [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and _is_text(node)]
    return frozenset(word.lower() for text in texts for word in WORD.findall(text))


def _is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, str)


def data_words(seed: int) -> frozenset[str]:
    """Return the words of a world's data that are no words of the sites themselves, in lower case."""
    found: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="webrl_lite_words_") as folder:
        path = Path(folder) / world.PRISTINE
        world.build(path, seed)
        db = sqlite3.connect(path)
        try:
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                for row in db.execute(f"SELECT * FROM {table}"):
                    for value in row:
                        if isinstance(value, str):
                            found.update(word.lower() for word in WORD.findall(value))
        finally:
            db.close()
    return frozenset(found - site_words())


def read_worlds(files: Iterable[Path]) -> Episodes:
    """Read recorded worlds.

    Args:
        files: what ``record --world`` wrote; the world's seed is in its tasks' ids.
    """
    solved = [trajectory for file in files for trajectory in read_jsonl(file, Trajectory)]
    seeds = sorted({int(trajectory.task.split.removeprefix("pretraining.")) for trajectory in solved})
    return Episodes(solved, frozenset().union(*(data_words(seed) for seed in seeds)))
