"""Recorded episodes as grounding: how tasks go on real pages, about things that exist nowhere else.

What the tiny base reads beside random pages: episodes of scripted oracles in *other worlds* (the same sites with other
data) and of *other families* than the kit's tasks. So that it learns how a site is used and not what stands on it, the
names are drawn anew every time an episode is read: each word of the world's data becomes another word, the same one on
the page, in the instruction and in the reply.

Reads trajectories and the words of their worlds; gives the documents of ``grounding``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from webrl_lite.actions import parse
from webrl_lite.grounding import Document, Judgement, Query, leave, queries
from webrl_lite.grounding_pages import Draw, Element, Line, Row, Section, View
from webrl_lite.trajectory import Trajectory

WORD = re.compile(r"[A-Za-z]{3,}")
ELEMENT = re.compile(
    r"(?P<name>.*?) \[(?P<id>\d+)\](?: (?P<role>[a-z]+))?(?: \"(?P<value>[^\"]*)\")?"
    r"(?: (?P<state>(?!of )[^|]*?))?(?: of (?P<options>.+))?"
)
HEAD = re.compile(
    r"@ (?P<url>\S*) \| tab (?P<tab>\d+)/(?P<tabs>\d+) \| (?P<top>\d+)-(?P<bottom>\d+) of (?P<height>\d+)"
)


@dataclass(frozen=True)
class Episodes:
    """The episodes of some worlds."""

    solved: Sequence[Trajectory]
    """Each a success."""
    words: Collection[str]
    """Words of the worlds' data in lower case: what is renamed."""


def renaming(d: Draw, words: Collection[str]) -> Callable[[str], str]:
    """Return a function that puts other words for the data's: one-to-one, capitals and all else kept."""
    new: dict[str, str] = {}
    taken: set[str] = set()

    def other(match: re.Match[str]) -> str:
        old = match[0].lower()
        if old not in words:
            return match[0]
        if old not in new:
            word = (d.word() if d.chance(0.5) else d.made_up()).lower()
            while word in taken or word in words:
                word = d.made_up().lower()
            taken.add(word)
            new[old] = word
        word = new[old]
        return word.upper() if match[0].isupper() else word.capitalize() if match[0][0].isupper() else word

    return lambda text: WORD.sub(other, text)


def page_view(text: str) -> View | None:
    """Read a page's text back as a view, so that instructions can be made about it; None if it is of another form."""
    first, *rest = text.split("\n")
    head = HEAD.fullmatch(first)
    if head is None:
        return None
    ids: list[str] = []
    lines: list[Line] = []
    error = rest.pop(0)[2:] if rest and rest[0].startswith("! ") else ""
    for line in rest:
        parts: Line = []
        for part in line.split(" | "):
            match = ELEMENT.fullmatch(part)
            if match is None:
                last = parts[-1] if parts else ""
                if isinstance(last, Element) and last.options:  # a list's options are written like parts of the line
                    last.options += (part,)
                else:
                    parts.append(part)
                continue
            ids.append(match["id"])
            options = (match["options"],) if match["options"] else ()
            parts.append(
                Element(match["name"], match["role"] or "link", match["value"] or "", match["state"] or "", options)
            )
        lines.append(parts)
    numbers = {name: int(head[name]) for name in ("top", "bottom", "height", "tab", "tabs")}
    view = View(lines, head["url"], error=error, **numbers)
    for element, number in zip(view.elements, ids, strict=True):
        element.id = number
    if view.text() != text:
        return None
    _read_tables(view)
    return view


def _read_tables(view: View) -> None:
    """Find the page's facts (``key | value`` lines) and its longest list of equal lines."""
    plain = [line if all(isinstance(part, str) for part in line) else None for line in view.lines]
    for line in plain:
        if line and len(line) == 2 and all(line) and len(line[0].split()) < 4:
            view.facts.setdefault(line[0], line[1])
    keys = [line[0] for line in plain if line and len(line) == 2]
    for key in {key for key in keys if keys.count(key) > 1}:
        del view.facts[key]
    best: list[int] = []
    current: list[int] = []
    for number, line in enumerate(view.lines):
        listed = len(line) > 1 and isinstance(line[0], Element) and all(isinstance(part, str) for part in line[1:])
        if listed and current and len(view.lines[current[-1]]) == len(line):
            current.append(number)
        else:
            current = [number] if listed else []
        best = max(best, current, key=len)
    if len(best) < 2:
        return
    columns = [part.name if isinstance(part, Element) else part for part in view.lines[best[0] - 1]]
    view.rows = [Row([line[0].name, *line[1:]], {}) for line in (view.lines[number] for number in best)]
    if len(columns) == len(view.rows[0].cells):
        view.section = Section("", "", columns, [], view.rows, [], "", "", -1)
    else:  # without heads nothing can be asked for by column
        view.section = Section("", "", [""], [], view.rows, [], "", "", -1)


def episode_documents(
    rng: random.Random, episodes: Episodes, count: int = 2, more: int = 3, pieces: Sequence[str] = ()
) -> list[Document]:
    """Return some steps of an episode, its names drawn anew, each with instructions about its page.

    Args:
        rng: draws the episode, the steps and the names.
        episodes: what was recorded.
        count: most steps.
        more: most instructions about each page.
        pieces: as ``Draw`` takes them.
    """
    d = Draw(rng, pieces)
    trajectory = rng.choice(episodes.solved)
    rename = renaming(d, episodes.words)
    task = rename(trajectory.task.intent)
    replies = tuple(rename(step.reply) for step in trajectory.steps)
    documents = []
    for index in sorted(rng.sample(range(len(replies)), min(count, len(replies)))):
        page = rename(trajectory.steps[index].observation)
        view = page_view(page)
        asked = queries(d, view, more) if view else []
        documents.append(Document(page, (Query("episode", task, replies[index], replies[:index]), *asked)))
    return documents


def episode_judgement(rng: random.Random, episodes: Episodes, pieces: Sequence[str] = ()) -> Judgement:
    """Return an episode that was right, or that is made wrong: another instruction, another answer, an early end."""
    d = Draw(rng, pieces)
    trajectory = rng.choice(episodes.solved)
    rename = renaming(d, episodes.words)
    task, page = rename(trajectory.task.intent), rename(trajectory.steps[-1].observation)
    replies = tuple(rename(step.reply) for step in trajectory.steps)
    if d.chance(0.5):
        return Judgement(task, replies, page, True)
    alike = [
        other
        for other in episodes.solved
        if other.task.family == trajectory.task.family and other.task.intent != trajectory.task.intent
    ]
    way = rng.randrange(3)
    if way == 0 and len(replies) > 2:
        cut = rng.randint(1, len(replies) - 2)
        view = page_view(rename(trajectory.steps[cut].observation))
        end = leave("done")
        action = parse(replies[-1]).action
        if action is not None and action.argument != "done" and view is not None:
            texts = [part for line in view.lines for part in line if isinstance(part, str) and len(part) < 40]
            end = leave(d.choice(texts), view) if texts else end
        return Judgement(task, (*replies[:cut], end), rename(trajectory.steps[cut].observation), False)
    if way == 1 and alike:
        end = parse(replies[-1]).action
        answer = parse(rename(d.choice(alike).steps[-1].reply)).action
        if end is not None and answer is not None and answer.argument not in (end.argument, "done"):
            return Judgement(task, (*replies[:-1], leave(answer.argument, page_view(page))), page, False)
    if alike:
        return Judgement(rename(d.choice(alike).task.intent), replies, page, False)
    cut = rng.randint(0, len(replies) - 1)
    return Judgement(task, (*replies[:cut], leave("done")), rename(trajectory.steps[cut].observation), False)
