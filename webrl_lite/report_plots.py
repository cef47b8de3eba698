"""The report's plots: a figure from numbers, as PNG for a slide and as SVG that takes the page's own colours.

Takes a ``Run``'s numbers (``report_numbers``); gives matplotlib figures, drawn without a screen and without touching
the settings or the backend of a notebook that calls it. No equation of the paper.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from webrl_lite import report_numbers as numbers
from webrl_lite.curriculum_report import REASONS
from webrl_lite.report_run import Run, phase_name

INK, LINE = "#1b1f24", "#d8dde3"
"""Text and grid; in an SVG they become the page's own, so that a dark page has light text."""
COLORS = (
    *("#2f74d0", "#e0802b", "#2a9d74", "#c2467a", "#8a63d2", "#a08a2c"),
    *("#4aa5b8", "#c0553f", "#7d8a97", "#d98fb4", "#86b558", "#54639c"),
)
"""Legible on light and dark; the first ones are told apart without red against green."""
STYLE = {
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": LINE,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "axes.prop_cycle": matplotlib.cycler(color=COLORS),
    "text.parse_math": False,  # a name with two dollar signs is a name
    "svg.fonttype": "none",
    "svg.hashsalt": "webrl_lite",  # equal runs give equal files
}
ACROSS = 3
"""Small plots side by side."""


def draw(run: Run) -> dict[str, tuple[bytes, str]]:
    """Return the plots of a run by name, in the page's order; one without numbers is left out.

    Returns:
        PNG and SVG, the latter to stand inside an HTML page.
    """
    with matplotlib.rc_context(STYLE):
        figures = {name: make(run) for name, make in PLOTS.items()}
        return {name: (_png(figure), _svg(figure)) for name, figure in figures.items() if figure is not None}


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150, facecolor="white", metadata={"Software": None})
    return file.getvalue()


def _svg(figure: Figure) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    # its own size would not shrink on a phone; the view box keeps the shape
    text = re.sub(r'^(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'^(<svg[^>]*?) height="[^"]*"', r"\1", text))
    return text.replace(INK, "currentColor").replace(LINE, "var(--line)")


# Frames -------------------------------------------------------------------------------------------------------------


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _panels(names: Sequence[str], **shared: bool) -> tuple[Figure, list[Axes]]:
    """Return a figure with a small plot for each name."""
    across = min(ACROSS, len(names))
    down = -(-len(names) // across)
    figure = _figure(8, 2.5 * down)
    axes = figure.subplots(down, across, squeeze=False, **shared).flatten().tolist()
    for spare in axes[len(names) :]:
        spare.set_axis_off()
    for one, name in zip(axes, names, strict=False):
        one.set_title(name, loc="left")
    return figure, axes[: len(names)]


def _phases(axes: Axes, phases: Sequence[int]) -> None:
    """Name the phases on the x axis."""
    axes.set_xticks(range(len(phases)), ["start" if number == 0 else str(number) for number in phases])
    axes.set_xlim(-0.4, len(phases) - 0.6)


def _rate(
    axes: Axes, frame: pd.DataFrame, order: Sequence[int], color: str, label: str = "", shift: float = 0.0
) -> None:
    """Draw a success rate with its interval by phase, shifted so that two intervals do not lie on each other."""
    rows = frame[frame["n"] > 0]
    place = [order.index(phase) + shift for phase in rows["phase"]]
    share, low, high = (100 * rows[name].astype(float) for name in ("share", "low", "high"))
    whiskers = [(share - low).clip(lower=0), (high - share).clip(lower=0)]
    axes.errorbar(place, share, yerr=whiskers, color=color, marker="o", markersize=5, capsize=3, label=label)
    axes.set_ylim(0, 100)


def _diagonal(axes: Axes, what: str, happened: str) -> None:
    axes.plot([0, 1], [0, 1], color=LINE, linestyle="--", linewidth=1.2, zorder=0)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=what, ylabel=happened)


# Plots --------------------------------------------------------------------------------------------------------------


def _success(run: Run) -> Figure | None:
    evaluation, rollouts = numbers.success(run), numbers.success(run, "rollouts")
    if evaluation.empty and rollouts.empty:
        return None
    order = sorted({*evaluation.get("phase", ()), *rollouts.get("phase", ())})
    figure = _figure(8, 3.2)
    axes = figure.subplots()
    for place, (frame, label) in enumerate(((evaluation, "test tasks"), (rollouts, "rollouts"))):
        if not frame.empty:
            _rate(axes, frame, order, COLORS[place], label, shift=0.05 * place)
    _phases(axes, order)
    axes.set(xlabel="phase", ylabel="success, %")
    axes.legend(loc="upper left", ncols=2)
    return figure


def _sites(run: Run) -> Figure | None:
    frame = numbers.success(run, by="site")
    if frame.empty:
        return None
    order = sorted(set(frame["phase"]))
    names = sorted(set(frame["site"]))
    figure, panels = _panels(names, sharey=True)
    for place, (axes, name) in enumerate(zip(panels, names, strict=True)):
        _rate(axes, frame[frame["site"] == name], order, COLORS[place % len(COLORS)])
        _phases(axes, order)
        if place % ACROSS == 0:
            axes.set_ylabel("success, %")
    return figure


def _orm(run: Run) -> Figure | None:
    frame = numbers.orm_calibration(run)
    if frame.empty:
        return None
    names = [stage for stage in numbers.STAGES if stage in set(frame["stage"])]
    figure, panels = _panels(names, sharey=True)
    for axes, stage in zip(panels, names, strict=True):
        _curves(axes, frame[frame["stage"] == stage])
        _diagonal(axes, "P(YES)", "graded a success" if axes is panels[0] else "")
    return figure


def _values(run: Run) -> Figure | None:
    frame = numbers.value_calibration(run)
    if frame.empty:
        return None
    figure, (axes,) = _panels(["steps of a phase's rollouts"])
    _curves(axes, frame)
    _diagonal(axes, "V", "from a success")
    return figure


def _curves(axes: Axes, frame: pd.DataFrame) -> None:
    for number, group in frame.groupby("phase"):
        color = COLORS[number % len(COLORS)]
        axes.plot(group["mean"], group["share"], color=color, marker="o", markersize=4, label=phase_name(number))
    axes.legend()


def _curriculum(run: Run) -> Figure | None:
    frame = numbers.curriculum(run)
    if frame.empty:
        return None
    figure = _figure(8, 0.9 + 0.45 * len(frame))
    axes = figure.subplots()
    names = ["accepted", *(reason for reason in REASONS if frame[reason].any())]
    _bars(axes, frame[names].fillna(0).astype(float), [phase_name(number) for number in frame["phase"]])
    axes.set_xlabel("proposals")
    return figure


def _timings(run: Run) -> Figure | None:
    frame = numbers.timings(run)
    if frame.empty:
        return None
    wide = frame.pivot_table(index="part", columns="stage", values="seconds", aggfunc="sum", sort=False).fillna(0) / 60
    wide = wide.loc[sorted(wide.index, key=lambda part: (part != "setup", part))]
    figure = _figure(8, 1.3 + 0.45 * len(wide))
    axes = figure.subplots()
    _bars(axes, wide, [part.replace("_", " ") for part in wide.index])
    axes.set_xlabel("minutes")
    return figure


def _bars(axes: Axes, parts: pd.DataFrame, names: Sequence[str]) -> None:
    """Draw a bar a row, top to bottom, its columns one after the other."""
    left = pd.Series(0.0, index=parts.index)
    for place, column in enumerate(parts.columns):
        color = COLORS[place % len(COLORS)]
        hatch = "//" if place >= len(COLORS) else None  # there are more stages than colours
        axes.barh(range(len(parts)), parts[column], left=left, color=color, height=0.62, label=column, hatch=hatch)
        left = left + parts[column]
    axes.set_yticks(range(len(parts)), names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.35 / max(1, len(parts) / 2)), ncols=5)


def _replay(run: Run) -> Figure | None:
    found = numbers.perplexities(run)
    if not found:
        return None
    low, high = (numbers.finite(run.setting(f"replay.{name}")) for name in ("ppl_min", "ppl_max"))
    figure, panels = _panels([phase_name(number) for number in found], sharex=True)
    for axes, several in zip(panels, found.values(), strict=True):
        axes.hist([min(max(one, 1.0), 4.0) for one in several], bins=30, range=(1, 4), color=COLORS[0])
        if low is not None:
            axes.axvspan(low, 4 if high is None else min(high, 4), color=COLORS[2], alpha=0.2, linewidth=0)
        axes.set_xlim(1, 4)
        axes.set_xticks([1, 2, 3, 4], ["1", "2", "3", "4+"])
        axes.set_xlabel("perplexity")
    panels[0].set_ylabel("steps of the buffer")
    return figure


def _losses(run: Run) -> Figure | None:
    frame = numbers.losses(run)
    if frame.empty or "loss" not in frame:
        return None
    names = list(dict.fromkeys(frame["trainer"]))
    figure, panels = _panels(names)
    for axes, name in zip(panels, names, strict=True):
        mine = frame[frame["trainer"] == name]
        for place, (phase, lines) in enumerate(mine.groupby("phase", dropna=False)):
            label = "" if pd.isna(phase) else phase_name(phase)
            axes.plot(lines["step"], lines["loss"], color=COLORS[place % len(COLORS)], linewidth=1.3, label=label)
        axes.set_xlabel("update")
        if mine["phase"].notna().any():
            axes.legend()
    panels[0].set_ylabel("loss")
    return figure


PLOTS: dict[str, Callable[[Run], Figure | None]] = {
    "success": _success,
    "sites": _sites,
    "orm": _orm,
    "values": _values,
    "curriculum": _curriculum,
    "replay": _replay,
    "losses": _losses,
    "timings": _timings,
}
