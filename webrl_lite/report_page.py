"""The report's page: one HTML file that needs nothing from outside, for a desk, a phone, a light or a dark room.

Takes a ``Run``, its numbers and its plots; fills ``report_page.html``, which holds the style and the viewer's script.
All text that comes from pages, tasks or models is escaped here or carried as JSON and shown as text. A part without
numbers says in a line which file is not there. No equation of the paper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import pandas as pd

from webrl_lite import report_numbers as numbers
from webrl_lite import report_viewer
from webrl_lite.curriculum_report import REASONS
from webrl_lite.report_numbers import interval, percent
from webrl_lite.report_run import Run, phase_name

TEMPLATE = Path(__file__).with_name("report_page.html")
EXAMPLES = 4
"""Tasks shown of each kind in a phase."""


def page(run: Run, plots: Mapping[str, str]) -> str:
    """Return the page.

    Args:
        run: as read.
        plots: SVG by name, as ``report_plots.draw`` names them.
    """
    shown = report_viewer.episodes(run)
    sections = {
        "success": ("Success", _success(run, plots)),
        "orm": ("ORM against the grader", _orm(run, plots)),
        "values": ("Values against outcomes", _values(run, plots)),
        "curriculum": ("Curriculum", _curriculum(run, plots)),
        "replay": ("Replay", _replay(run, plots)),
        "losses": ("Losses", _plot(plots, "losses", "Loss by update.") or _nothing("a trainer's metrics.jsonl")),
        "timings": ("Time", _timings(run, plots)),
        "episodes": ("Episodes", _viewer(run, shown)),
    }
    method, preset, seed = (run.setting(name, "?") for name in ("method", "preset", "seed"))
    parts = {
        "title": escape(f"{method}, seed {seed}"),
        "subtitle": escape(f"Preset {preset}, model {run.setting('model.name', '?')}, folder {run.folder.name}"),
        "links": "".join(f'<a href="#{name}">{escape(title)}</a>' for name, (title, _) in sections.items()),
        "body": _tiles(run)
        + _notes(run)
        + "".join(
            f'<section id="{n}"><h2>{escape(title)}</h2>{body}</section>' for n, (title, body) in sections.items()
        ),
        "episodes": report_viewer.embedded(shown),
    }
    # one pass over the template alone, so that no text of a page can name a part
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], TEMPLATE.read_text(encoding="utf-8"))


# Pieces -------------------------------------------------------------------------------------------------------------


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """Return a table; every cell is escaped."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table class="{kind}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _plot(plots: Mapping[str, str], name: str, caption: str) -> str:
    if name not in plots:
        return ""
    return f'<figure role="img" aria-label="{name}">{plots[name]}<figcaption>{escape(caption)}</figcaption></figure>'


def _nothing(what: str) -> str:
    return f'<p class="none">Nothing yet: the run has no {escape(what)}.</p>'


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def _notes(run: Run) -> str:
    lines = "".join(f"<p>{escape(note)}</p>" for note in run.notes)
    return f'<div class="notes">{lines}</div>' if lines else ""


def _tiles(run: Run) -> str:
    """Return the first numbers that a reader wants: start, end, labels, faults."""
    tiles = []
    frame, judged = numbers.success(run), numbers.orm(run)
    ends = frame.iloc[sorted({0, len(frame) - 1})].to_dict("records") if len(frame) else []
    for row in ends:
        name = f"test tasks, {phase_name(row['phase'])}"
        tiles.append((percent(row["share"]), f"{name}: {interval(row)}, n = {row['n']}"))
    if len(judged):
        row = judged.iloc[-1]
        where = f"{row['stage']} of {phase_name(row['phase'])}"
        tiles.append((percent(row["accuracy"]), f"ORM agrees with the grader, {where}, n = {row['n']}"))
    played = [episode for phase in run.phases for episode in (*phase.rollouts, *phase.evaluation)]
    if played:
        failed = sum(episode.env_error for episode in played)
        tiles.append((str(failed), f"of {len(played):,} episodes ended by an environment error"))
    shown = "".join(f'<div class="tile"><b>{escape(big)}</b><span>{escape(text)}</span></div>' for big, text in tiles)
    return f'<div class="tiles">{shown}</div>'


# Sections -----------------------------------------------------------------------------------------------------------


def _counted(frame: pd.DataFrame) -> str:
    rows = [
        [phase_name(row["phase"]), str(row["n"]), str(row["successes"]), percent(row["share"]), interval(row)]
        + [_decimal(row["mean_steps"], 1), str(row["env_errors"]), str(row["ungraded"])]
        for row in frame.to_dict("records")
    ]
    return _rows(["", "n", "successes", "success", "95 % interval", "steps", "env errors", "ungraded"], rows)


def _success(run: Run, plots: Mapping[str, str]) -> str:
    frame, rollouts = numbers.success(run), numbers.success(run, "rollouts")
    if frame.empty and rollouts.empty:
        return _nothing("evaluation.jsonl")
    parts = [
        _plot(plots, "success", "Success by phase with 95 % Wilson intervals. Rollouts are other tasks in each phase."),
        _counted(frame) if len(frame) else _nothing("evaluation.jsonl"),
        '<p class="soft">Episodes that the environment failed, or that nobody could grade, are not in n.</p>',
    ]
    if len(rollouts):
        words = "Rollouts that the phase learned from, labelled by the ORM; those of the start by the grader."
        parts.append(_folded("Rollouts", f"<p>{words}</p>{_counted(rollouts)}"))
    if len(frame):
        parts += [
            "<h3>By site</h3>",
            _plot(plots, "sites", "Each site's own success; few tasks make wide intervals."),
            _folded("Sites as numbers", _grid(numbers.success(run, by="site"), "site")),
            _folded("Families", _grid(numbers.success(run, by="family"), "family")),
        ]
    return "".join(parts)


def _grid(frame: pd.DataFrame, by: str) -> str:
    """Return successes of n with a row for each group and a column for each phase; the shade is the share."""
    phases = sorted(set(frame["phase"]))
    cells = {(row[by], row["phase"]): row for row in frame.to_dict("records")}
    body = ""
    for group in sorted(set(frame[by])):
        body += f"<tr><td>{escape(group or '(none)')}</td>"
        for phase in phases:
            row = cells.get((group, phase))
            if row is None or not row["n"]:
                body += "<td>-</td>"
            else:
                body += f'<td class="heat" style="--share:{row["share"]:.3f}">{row["successes"]}/{row["n"]}</td>'
        body += "</tr>"
    head = "".join(f"<th>{phase_name(phase)}</th>" for phase in phases)
    return f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _orm(run: Run, plots: Mapping[str, str]) -> str:
    held_out = (run.orm or {}).get("held_out") or {}
    accuracy = numbers.finite(held_out.get("accuracy"))
    trained = ""
    if run.orm:
        trained = f"<p>Trained on {escape(str(run.orm.get('trained_on')))} lessons"
        trained += (
            f"; {percent(accuracy)} right on {escape(str(held_out.get('rollouts')))} held out" if held_out else ""
        )
        trained += ".</p>"
    frame = numbers.orm(run)
    if frame.empty:
        return trained + _nothing("episode that both the ORM and the grader have judged")
    head = ["", "stage", "n", "accuracy", "95 % interval", "YES, right", "YES, wrong", "NO, right", "NO, wrong"]
    rows = [
        [phase_name(row["phase"]), row["stage"], str(row["n"]), percent(row["accuracy"]), interval(row)]
        + [str(row[name]) for name in ("yes_right", "yes_wrong", "no_right", "no_wrong")]
        + [_decimal(row["ece"], 3), percent(row["untrusted"])]
        for row in frame.to_dict("records")
    ]
    caption = (
        "Calibration: of the rollouts with this P(YES), how many the grader calls a success. On the dashed line the "
    )
    caption += "score can be taken at its word."
    low_mass = f"Low mass: less than {numbers.LOW_MASS:g} of the probability on YES and NO together."
    return (
        trained
        + _plot(plots, "orm", caption)
        + _rows([*head, "calibration error", "low mass"], rows)
        + f'<p class="soft">{low_mass}</p>'
    )


def _values(run: Run, plots: Mapping[str, str]) -> str:
    frame = numbers.values(run)
    if frame.empty:
        return _nothing("experience.jsonl with values")
    rows = [
        [phase_name(row["phase"]), str(row["n"])]
        + [_decimal(row[name], 2) for name in ("on_success", "on_failure")]
        + [_decimal(row["ece"], 3)]
        for row in frame.to_dict("records")
    ]
    caption = (
        "Of the steps with this V, how many belong to a trajectory that counts as a success. The critic has learned "
    )
    caption += "from these steps, so this is its fit."
    head = ["", "steps", "mean V on successes", "on failures", "calibration error"]
    return _plot(plots, "values", caption) + _rows(head, rows)


def _curriculum(run: Run, plots: Mapping[str, str]) -> str:
    frame = numbers.curriculum(run)
    parts = [_nothing("curriculum.json")] if frame.empty else []
    if len(frame):
        names = [reason for reason in REASONS if frame[reason].any()]
        rows = [
            [phase_name(row["phase"]), f"{_count(row['accepted'])} of {_count(row['wanted'])}"]
            + [_count(row["proposals"])]
            + [str(row[name]) for name in names]
            + [percent(row["filter_errors"])]
            for row in frame.to_dict("records")
        ]
        head = ["", "accepted", "proposals", *(name.replace("_", " ") for name in names), "filter errs"]
        parts += [_plot(plots, "curriculum", "What became of the proposals."), _rows(head, rows)]
    for phase in run.phases:
        shown = numbers.examples(phase, EXAMPLES)
        if shown:
            rows = [[reason.replace("_", " "), ", ".join(task.sites), task.intent, why] for reason, task, why in shown]
            body = _rows(["", "site", "instruction", ""], rows, "text")
            parts.append(_folded(f"Examples of {phase.name}, at most {EXAMPLES} of a kind", body))
    return "".join(parts)


def _replay(run: Run, plots: Mapping[str, str]) -> str:
    frame = numbers.replay(run)
    if frame.empty:
        return _nothing("replay.json")
    head = ["", "current", "buffer", *(name.replace("_", " ") for name in numbers.DROPPED), "replayed", "kept", "share"]
    rows = [
        [phase_name(row["phase"])]
        + [_count(row[name]) for name in ("current", "buffer", *numbers.DROPPED, "replayed")]
        + [percent(row["kept"]), percent(row["share"])]
        for row in frame.to_dict("records")
    ]
    words = "All in steps. Kept: replayed of the buffer. Share: replayed of all that is trained on."
    caption = "Perplexity of the buffer's steps under the previous actor; the band that is kept is shaded."
    return _plot(plots, "replay", caption) + _rows(head, rows) + f'<p class="soft">{words}</p>'


def _timings(run: Run, plots: Mapping[str, str]) -> str:
    frame = numbers.timings(run)
    if frame.empty:
        return _nothing("stages.jsonl")
    rows = [
        [row["part"].replace("_", " "), row["stage"], _decimal(row["seconds"], 1), _decimal(row["peak_gib"], 2)]
        for row in frame.to_dict("records")
    ]
    total = frame["seconds"].sum() / 60
    return (
        f"<p>{total:.1f} minutes in all stages together.</p>"
        + _plot(plots, "timings", "Wall time by stage.")
        + _folded("Stages as numbers", _rows(["", "stage", "seconds", "peak GiB"], rows))
    )


def _viewer(run: Run, shown: Sequence[Mapping[str, object]]) -> str:
    total = sum(len(phase.rollouts) + len(phase.evaluation) for phase in run.phases)
    if not shown:
        return _nothing("rollouts.jsonl or evaluation.jsonl") + '<div id="episode"></div>'
    words = (
        "What the agent read, what it replied, and what came of it; V and A are the critic's value and the advantage."
    )
    if len(shown) < total:
        words += f" This page holds {len(shown)} of {total:,} episodes, spread evenly; the run's folder has all."
    fields = "".join(
        f'<label class="{name}">{name}<select id="pick-{name}"></select></label>' for name in ("phase", "stage", "task")
    )
    buttons = '<button id="back" title="previous task">←</button><button id="on" title="next task">→</button>'
    return f'<p>{escape(words)}</p><div class="choose">{fields}{buttons}</div><div id="episode"></div>'


def _decimal(value: float | None, digits: int) -> str:
    return "-" if value is None or pd.isna(value) else f"{value:.{digits}f}"


def _count(value: float | None) -> str:
    return "-" if value is None or pd.isna(value) else f"{int(value):,}"
