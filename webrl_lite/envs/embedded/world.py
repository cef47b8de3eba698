"""The sites' state: one database, one copy of it for each worker, and the difference that an episode makes.

``build`` writes the pristine database (seeded, always the same bytes of content); ``reset`` gives a worker a fresh
copy; ``changes`` lists what an episode changed, row by row, for the graders.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from importlib import import_module
from pathlib import Path

from webrl_lite.envs.embedded.site import ACCOUNTS_SCHEMA
from webrl_lite.trajectory import JSON

SITES = ("shopping", "shopping_admin", "reddit", "gitlab", "map")
"""Site keys, in the order in which their data are made (the admin reads the shop's tables)."""
SEED = 2411
"""Seed of the generated data."""
PRISTINE = "pristine.db"
"""File name of the untouched database in a run's folder of worlds."""


def build(path: Path, seed: int = SEED) -> None:
    """Write the pristine database.

    Args:
        path: the file to write; it appears whole or not at all.
        seed: seed of all generated content.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    db = sqlite3.connect(partial)
    try:
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA synchronous = OFF")
        db.executescript(ACCOUNTS_SCHEMA)
        for site in SITES:
            data = import_module(f"webrl_lite.envs.embedded.{site}.data")
            db.executescript(data.SCHEMA)
            data.fill(db, random.Random(f"{seed}:{site}"))
            db.commit()
        db.execute("VACUUM")
        db.close()
        os.replace(partial, path)
    finally:
        db.close()
        partial.unlink(missing_ok=True)


def reset(folder: Path, world: str) -> Path:
    """Give a worker a fresh copy of the pristine database.

    Args:
        folder: the run's folder of worlds, which holds ``pristine.db``.
        world: the worker's name, for example ``w0``.

    Returns:
        The copy's path; requests that still read the old copy keep it.
    """
    target = folder / f"{world}.db"
    partial = folder / f".{world}.partial"
    shutil.copyfile(folder / PRISTINE, partial)
    os.replace(partial, target)
    return target


def changes(before: Path, after: Path) -> list[dict[str, JSON]]:
    """List the rows that differ between two databases of the same schema.

    Args:
        before: the pristine database.
        after: a worker's copy.

    Returns:
        One dict a changed row, tables in alphabetical order, rows by primary key: ``table``; ``op`` (``insert``,
        ``update``, ``delete``); ``key`` (the primary key's columns); ``before`` and ``after``, the whole row as a
        dict or None.
    """
    db = sqlite3.connect(f"file:{after}?mode=ro", uri=True)
    try:
        db.row_factory = sqlite3.Row
        db.execute("ATTACH DATABASE ? AS old", (f"file:{before}?mode=ro&immutable=1",))
        tables = [
            row[0] for row in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        found: list[dict[str, JSON]] = []
        for table in tables:
            columns = db.execute(f"PRAGMA main.table_info({table})").fetchall()
            keys = [column["name"] for column in sorted(columns, key=lambda c: c["pk"]) if column["pk"]]
            old = {tuple(row[k] for k in keys): dict(row) for row in _only_in(db, "old", "main", table)}
            new = {tuple(row[k] for k in keys): dict(row) for row in _only_in(db, "main", "old", table)}
            for key in sorted({*old, *new}, key=repr):
                before_row, after_row = old.get(key), new.get(key)
                op = "insert" if before_row is None else "delete" if after_row is None else "update"
                named = dict(zip(keys, key, strict=True))
                found.append({"table": table, "op": op, "key": named, "before": before_row, "after": after_row})
        return found
    finally:
        db.close()


def _only_in(db: sqlite3.Connection, here: str, there: str, table: str) -> list[sqlite3.Row]:
    return db.execute(f"SELECT * FROM {here}.{table} EXCEPT SELECT * FROM {there}.{table}").fetchall()
