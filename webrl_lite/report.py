"""What came of a run: a table for its end, a folder with one offline page, plots and CSVs, and a table over many runs.

Reads a run's folder, finished or not; writes ``report/`` in it. No torch, so it runs where nothing is trained. Parts:
``report_run`` reads, ``report_numbers`` counts, ``report_plots`` draws, ``report_page`` shows.

No equation of the paper. Every rate comes with the number of episodes behind it and a 95 % interval.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from webrl_lite import report_numbers as numbers
from webrl_lite import report_page, report_plots
from webrl_lite.report_numbers import interval, percent
from webrl_lite.report_run import ReportError, Run, phase_name, read

__all__ = ["AblationTable", "ReportError", "ablation_table", "mean_interval", "table", "write"]

T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Quantile 0.975 of Student's t with 1, 2, ..., 30 degrees of freedom; any standard table has it."""

CSVS = {
    "success": numbers.success,
    "success_by_site": lambda run: numbers.success(run, by="site"),
    "success_by_family": lambda run: numbers.success(run, by="family"),
    "success_by_split": lambda run: numbers.success(run, by="split"),
    "rollouts": lambda run: numbers.success(run, "rollouts"),
    "orm": numbers.orm,
    "orm_calibration": numbers.orm_calibration,
    "values": numbers.values,
    "value_calibration": numbers.value_calibration,
    "curriculum": numbers.curriculum,
    "replay": numbers.replay,
    "losses": numbers.losses,
    "timings": numbers.timings,
}
"""Files of ``report/`` by name; one without rows is not written."""


def table(folder: str | Path) -> str:
    """Return the table that a run prints at its end: Markdown, a row for the start and one for each phase.

    A row has n, success with its 95 % interval, and successes of n by site. Episodes that the environment failed or
    that nobody could grade are not in n; a line under the table counts them. Further lines say what is missing.

    Raises:
        ReportError: the folder is no run's.
    """
    run = read(folder)
    frame, by_site = numbers.success(run), numbers.success(run, by="site")
    if frame.empty:
        return "\n".join(["No episode has been evaluated yet.", *run.notes]) + "\n"
    sites = sorted(set(by_site["site"]))
    rows = []
    for line in frame.to_dict("records"):
        mine = by_site[by_site["phase"] == line["phase"]].set_index("site")
        cells = [
            f"{mine.loc[site, 'successes']}/{mine.loc[site, 'n']}" if site in mine.index else "-" for site in sites
        ]
        rows.append([phase_name(line["phase"]), str(line["n"]), percent(line["share"]), interval(line), *cells])
    text = markdown(["", "n", "success", "95 % interval", *sites], rows)
    errors, ungraded = int(frame["env_errors"].sum()), int(frame["ungraded"].sum())
    if errors or ungraded:
        text += f"\nNot in n: episodes that the environment failed ({errors}), that could not be graded ({ungraded}).\n"
    return text + "".join(f"\n{note}\n" for note in run.notes)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns, the first to the left and the others to the right."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (head, *rows)]
    widths = [max(3, *(len(row[place]) for row in cells)) for place in range(len(head))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [
        [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        for row in cells
    ]
    return "".join("| " + " | ".join(line) + " |\n" for line in (lines[0], rule, *lines[1:]))


def write(folder: str | Path) -> Path:
    """Write ``report/`` into a run's folder, whole or not at all, in place of an earlier one.

    It holds ``index.html``, one file without anything from outside, and a PNG of each plot and a CSV of each table that
    the run has numbers for.

    Returns:
        The page.

    Raises:
        ReportError: the folder is no run's.
        OSError: the disk is full or the folder cannot be written; an earlier report is still there.
    """
    run = read(folder)
    target, partial, old = (run.folder / name for name in ("report", ".report.partial", ".report.old"))
    for rest in (partial, old):  # of a kill
        shutil.rmtree(rest, ignore_errors=True)
    try:
        partial.mkdir()
        _fill(partial, run)
        if target.exists():
            target.rename(old)
        partial.rename(target)
    finally:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return target / "index.html"


def _fill(folder: Path, run: Run) -> None:
    frames = {name: make(run) for name, make in CSVS.items()}
    for name, frame in frames.items():
        if not frame.empty:
            frame.to_csv(folder / f"{name}.csv", index=False, errors="backslashreplace", lineterminator="\n")
    plots = report_plots.draw(run)
    for name, (png, _) in plots.items():
        (folder / f"{name}.png").write_bytes(png)
    page = report_page.page(run, {name: svg for name, (_, svg) in plots.items()})
    # half of a surrogate pair, as a page's script can make, has no UTF-8
    (folder / "index.html").write_text(page, encoding="utf-8", errors="xmlcharrefreplace", newline="\n")


# Many runs ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AblationTable:
    """Methods against each other; one row a method in both forms."""

    markdown: str
    """For a terminal or a README, with what is left out and how to read it under the table."""
    csv: str
    """The numbers; an empty cell is one that does not exist, such as the interval of one seed."""


def ablation_table(folders: Mapping[str, Mapping[int, str | Path]]) -> AblationTable:
    """Compare methods over seeds, each by the test episodes of its last phase.

    Two intervals answer two questions. The one over seeds (Student's t) says how the next training would do; with one
    seed there is none. The pooled one (Wilson, all episodes of all seeds as one heap) says what these weights do on
    such tasks; it takes the same task under two seeds for two independent episodes, so it is too narrow.

    A seed without an evaluation of the phase that its method's other seeds have reached is left out, with a line.

    Args:
        folders: run folder by seed by method, in the order of the rows.

    Raises:
        ReportError: a folder is no run's.
    """
    rows, notes = [], []
    for method, by_seed in folders.items():
        reached = {seed: numbers.success(read(folder)) for seed, folder in by_seed.items()}
        last = max((frame["phase"].max() for frame in reached.values() if not frame.empty), default=None)
        whole = {}
        for seed, frame in reached.items():
            by_phase = {} if frame.empty else frame.set_index("phase").to_dict("index")
            if last in by_phase and by_phase[last]["n"]:
                whole[seed] = by_phase
            else:
                where = "an evaluation" if last is None else f"an evaluation of {phase_name(last)}"
                notes.append(f"{method}, seed {seed}, is left out: it has no graded episode in {where}.")
        rows.append(_ablation_row(method, last, list(whole.values())))
    frame = pd.DataFrame(rows).astype({"phase": "Int64", "n": "Int64", "successes": "Int64"}) if rows else None
    if frame is None:
        return AblationTable("No runs to compare.\n", "")
    head = ["method", "phase", "seeds", "success", "over its SFT start", "pooled", "pooled 95 % interval"]
    text = markdown(head, [_ablation_cells(row) for row in rows])
    text += "\nSuccess and gain: mean over seeds ± half of the 95 % t-interval; one seed has no interval. Pooled: all\n"
    text += "episodes of all seeds, Wilson's 95 % interval, too narrow since seeds share their tasks.\n"
    text += "".join(f"\n{note}\n" for note in notes)
    return AblationTable(text, frame.to_csv(index=False, lineterminator="\n"))


def mean_interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the mean of a few numbers and half of its 95 % t-interval.

    0.5, 0.6 and 0.7 have the standard error 0.1 / sqrt(3) = 0.0577, times 4.303 is 0.248. One number has no interval,
    none has no mean. Above 31 numbers the factor stays that of 31, which is slightly too wide.
    """
    if not values:
        return None, None
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, None
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, T_975[min(len(values) - 2, len(T_975) - 1)] * math.sqrt(variance / len(values))


def _ablation_row(method: str, last: int | None, runs: Sequence[Mapping[int, Mapping[str, float]]]) -> dict:
    """Return a method's numbers; ``runs`` hold success by phase, one for each seed that counts."""
    ends = [phases[last] for phases in runs]
    mean, half = mean_interval([end["share"] for end in ends])
    starts = [numbers.finite((phases.get(0) or {}).get("share")) for phases in runs]
    gains = [end["share"] - start for end, start in zip(ends, starts, strict=True) if start is not None]
    gain, gain_half = mean_interval(gains if last else [])
    successes, n = sum(end["successes"] for end in ends), sum(end["n"] for end in ends)
    low, high = numbers.wilson(successes, n) if n else (None, None)
    return {
        "method": method,
        "phase": last,
        "seeds": len(runs),
        "mean": mean,
        "half_interval": half,
        "gain": gain,
        "gain_half_interval": gain_half,
        "successes": successes,
        "n": n,
        "pooled_low": low,
        "pooled_high": high,
    }


def _ablation_cells(row: Mapping[str, float | str | None]) -> list[str]:
    def around(mean: float | None, half: float | None) -> str:
        if mean is None:
            return "-"
        return f"{100 * mean:.1f}" + (" (no interval)" if half is None else f" ± {100 * half:.1f}")

    gain = around(row["gain"], row["gain_half_interval"])
    pooled = f"{100 * row['pooled_low']:.1f} to {100 * row['pooled_high']:.1f}" if row["n"] else "-"
    return [
        row["method"],
        "-" if row["phase"] is None else phase_name(row["phase"]),
        str(row["seeds"]),
        around(row["mean"], row["half_interval"]),
        gain if gain.startswith("-") else f"+{gain}",
        f"{row['successes']}/{row['n']}",
        pooled,
    ]
