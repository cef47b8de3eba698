"""Methods x seeds from one start: what differs between two rows of the table is the method alone.

The first actor, its rollouts and the judge are made once (``start/``); every run begins with a copy of them and goes
through its phases with its own method and seed, in a process of its own (``<method>-<seed>/``, with ``log.txt``).
The first phase's tasks, episodes and labels depend on the seed and on whether there is a curriculum, not on the rest of
the method: the first run of each such pair makes them, the others begin with a copy.
Called again with the same folder it goes on: a run that is done takes no time, one that was killed is taken up where
it was. A run that fails does not stop the others.

Source: paper Table 1 and Section 3.7, which have one seed each.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from webrl_lite import report
from webrl_lite.baselines import METHODS
from webrl_lite.config import Config, ConfigError, to_dict
from webrl_lite.run_folder import CONFIG, RunFolder, write_json

SHARED = ("sft", "orm", "phase_00", "tasks_test.jsonl")
"""What every run takes over from the start."""
FIRST = (
    *(f"phase_01/{name}" for name in ("tasks.jsonl", "curriculum.json", "rejected.jsonl", "llm.jsonl")),
    *(f"phase_01/{name}" for name in ("rollouts.jsonl", "pictures", "labelled.jsonl", "orm.json", "judge.jsonl")),
)
"""What runs of one seed have in common whose methods both have a curriculum, or both have none."""
LOG = "log.txt"


def compare(
    config: Config,
    *,
    methods: Sequence[str] | None,
    seeds: Sequence[int],
    jobs: int,
    tell: Callable[[str], None],
) -> int:
    """Run methods with several seeds and print one table.

    Args:
        config: settings of all runs but for method, seed and folder; ``out`` gets everything.
        methods: rows of ``METHODS``; None: all.
        seeds: of the phases; the start has ``config.seed``.
        jobs: runs at once, each on its share of the cores.
        tell: called with each line of progress.

    Returns:
        0, or 1 if a run failed.

    Raises:
        ConfigError: an unknown method, no or repeated seeds, fewer than one job.
    """
    chosen = tuple(METHODS) if methods is None else tuple(methods)
    _check(chosen, seeds, jobs)
    root = Path(config.out)
    start = root / "start"
    if _run("orm", start, config, tell, cores=os.cpu_count() or 1):
        return 1
    runs = [(method, seed, root / f"{method}-{seed}") for seed in seeds for method in chosen]
    leaders: dict[tuple[int, bool], Path] = {}
    first: dict[Path, Path | None] = {}
    for method, seed, folder in runs:
        learns = METHODS[method].loss is not None  # SFT ends before the first phase
        first[folder] = leaders.setdefault((seed, METHODS[method].curriculum), folder) if learns else None
    cores = max(1, (os.cpu_count() or 1) // jobs)

    def one(method: str, seed: int, folder: Path) -> int:
        _prepare(start, folder, dataclasses.replace(config, method=method, seed=seed, out=str(folder)), first[folder])
        return _run("train", folder, None, tell, cores=cores)

    codes: dict[Path, int] = {}
    following = [run for run in runs if first[run[2]] not in (None, run[2])]
    for some in ([run for run in runs if run not in following], following):
        with ThreadPoolExecutor(jobs) as pool:
            codes |= dict(zip([folder for *_, folder in some], pool.map(lambda run: one(*run), some), strict=True))
    folders: dict[str, dict[int, Path]] = {}
    for method, seed, folder in runs:
        folders.setdefault(method, {})[seed] = folder
    found = report.ablation_table(folders)
    (root / "ablation.md").write_text(found.markdown + "\n", encoding="utf-8")
    (root / "ablation.csv").write_text(found.csv, encoding="utf-8")
    tell(f"\n{found.markdown.strip()}")
    for *_, folder in runs:
        if code := codes[folder]:
            tell(f"{folder} ended with status {code}: see {folder / LOG}. Run the same command again to go on.")
    return int(any(codes.values()))


def _check(methods: Sequence[str], seeds: Sequence[int], jobs: int) -> None:
    for method in methods:
        if method not in METHODS:
            raise ConfigError(f"`--methods` must be rows of {', '.join(METHODS)}, got {method!r}.")
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ConfigError(f"`--seeds` must be different numbers of at least 0, got {list(seeds)}. Use e.g. 0 1 2.")
    if jobs < 1:
        raise ConfigError(f"`--jobs` must be at least 1, got {jobs}.")


def _prepare(start: Path, folder: Path, config: Config, first: Path | None) -> None:
    """Copy the start, and what the first run of its kind has made, to a run's folder.

    The folder appears with its settings or not at all. What a first run that failed has not made is made again.
    """
    if (folder / CONFIG).exists():
        RunFolder(folder).begin(config, resume=True)
        return
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    _take_over(start, partial, SHARED)
    if first is not None and (first / "phase_01" / "labelled.jsonl").exists():
        (partial / "phase_01").mkdir()
        _take_over(first, partial, FIRST)
    write_json(partial / CONFIG, to_dict(config))
    os.replace(partial, folder)


def _take_over(source: Path, target: Path, names: Sequence[str]) -> None:
    """Copy files and folders; what a run's settings leave out, such as the ORM where graders label, is not there."""
    for name in names:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name)
        elif (source / name).exists():
            shutil.copy2(source / name, target / name)


def _run(command: str, folder: Path, config: Config | None, tell: Callable[[str], None], *, cores: int) -> int:
    """Run one command in a process of its own, its output in the folder's log; returns its exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        RunFolder(folder).begin(dataclasses.replace(config, out=str(folder)), resume=(folder / CONFIG).exists())
    tell(f"{folder.name}: {command}")
    threads = {"OMP_NUM_THREADS": str(cores), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with open(folder / LOG, "a", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "webrl_lite.run", command, "--resume", str(folder)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **threads},
        )
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    tell(f"{folder.name}: {'done' if not code else f'status {code}'}")
    return code
