"""What the README says is what the code does."""

import re
from pathlib import Path

from webrl_lite.actions import describe

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_action_list_is_the_codes():
    assert describe() in README


def test_every_module_stands_in_the_tree():
    tree = README.split("## The files")[1].split("## ")[0]
    for path in (ROOT / "webrl_lite").glob("*.py"):
        if path.stem != "__init__":
            assert re.search(rf"\b{path.stem}\b", tree), path.name


def test_the_task_table_counts_what_ships(sites):
    rows = re.findall(r"^\| (\w[\w ]*) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", README, re.MULTILINE)
    assert len(rows) == 6
    for name, families, held_out, *splits in rows:
        prefix = "cross" if name == "two sites" else name
        own = [task for task in sites.tasks if task.family.split(".")[0] == prefix]
        assert len({task.family for task in own}) == int(families)
        assert len({task.family for task in own if task.split == "test_families"}) == int(held_out)
        for split, number in zip(("train", "test", "test_families"), splits, strict=True):
            assert sum(task.split == split for task in own) == int(number), (name, split)
    assert f"{len(sites.tasks):,} tasks in {len({task.family for task in sites.tasks})} families" in README


def test_scripts_are_started_as_modules_where_they_are_told_of():
    """Started by its path a script does not find the package."""
    for path in (
        ROOT / "README.md",
        *(ROOT / "tests" / "benchmarks").iterdir(),
        *(ROOT / "tests" / "gpu").glob("*.py"),
    ):
        if path.is_file():
            assert "python tests/" not in path.read_text(encoding="utf-8"), path.name
