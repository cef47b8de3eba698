"""New tasks for the embedded sites without a served model: failed ones evolved in breadth, and sometimes wrongly.

Reads the pristine database and the families; writes nothing. Three parts that know different things:

* ``OfflineGenerator`` proposes. It draws on the train side alone: no entity of ``test``, no held-out family. A proposal
  has no grader, so the ORM must label it, and nothing in it says whether it went wrong.
* ``SiteCheck`` is the feasibility filter. It knows what the sites hold (names, words), not the families, so it errs.
* ``Truths`` knows whether a proposal can be done, and its grader. For measuring only: the filter's error rate and the
  ORM's accuracy. Nothing that is trained on may come from it.

A proposal follows a failed task by one of ``HOWS``. ``WRONG_SHARE`` of them are then spoiled by one of ``WRONGS``, so
that the filters have work, as a language model's tasks give them work.

Source: WebRL Section 2.1 and Appendix C (evolving in breadth), where GPT-4o does this.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path

from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.families import Family, Instance, all_families, entity_split
from webrl_lite.trajectory import JSON, Task

HOWS = {"entity": 0.4, "values": 0.2, "wording": 0.1, "added": 0.15, "dropped": 0.15}
"""How a failed task is followed, with the shares tried: about another entity, with other values for the same entity,
in other words, or about the same entity with more or with fewer conditions. What a task has no room for becomes
``entity``."""
WRONGS = ("missing", "mismatch", "beyond", "vague")
"""How a proposal is spoiled: it names something that the sites do not have; it puts two things together that do not
belong together; it wants what no site offers; a condition that it cannot do without is left out."""
WRONG_SHARE = 0.2
"""Share of proposals that are spoiled. (ours: language models are said to give about as many)"""
BEYOND = {
    "shopping": ("Then ask the live chat of the store about it.", "Do it with the voucher from my phone."),
    "shopping_admin": ("Then fax the result to the accountant.", "Then play the result as a voice message."),
    "reddit": ("Then give a gold medal to the author.", "Then watch the live stream of it."),
    "gitlab": ("Then start the pipeline of it.", "Then open it in the web terminal."),
    "map": ("Keep away from the traffic jams of today.", "Do it for the day with the better forecast."),
}
"""What the sites do not offer, as one more sentence."""
BELONGS = {
    ("product", "brand"): "SELECT name, brand FROM shop_product",
    ("place", "town"): "SELECT p.name, t.name FROM map_place p JOIN map_town t ON t.id = p.town_id",
    ("title", "forum"): "SELECT s.title, f.name FROM reddit_submission s JOIN reddit_forum f ON f.id = s.forum_id",
    ("issue", "project"): "SELECT i.title, n.name || ' / ' || p.name FROM gitlab_issue i"
    " JOIN gitlab_project p ON p.id = i.project_id JOIN gitlab_namespace n ON n.id = p.namespace_id",
    ("merge", "project"): "SELECT m.title, n.name || ' / ' || p.name FROM gitlab_merge m"
    " JOIN gitlab_project p ON p.id = m.project_id JOIN gitlab_namespace n ON n.id = p.namespace_id",
}
"""Values that belong together, by their names in the families, and all pairs that do."""
TRIES = 20
"""Draws before a way of evolving or spoiling counts as impossible for a task."""

NO_NAMES = ("text", "month", "range")
"""Kinds of entities that are no names of things on a site, but words to write and times."""

_WORD = re.compile(r"[^\W\d_]{3,}")


class GeneratorError(ValueError):
    """A seed that must not be evolved: names the task and the way out."""


class Catalogue:
    """The families and their instances, listed when they are first asked for, and the names that the sites hold."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Take a pristine database with rows by name; it must stay open."""
        self.db = db
        self.families = {family.name: family for family in all_families()}
        self._instances: dict[str, tuple[Instance, ...]] = {}
        self._train: dict[str, tuple[Instance, ...]] = {}
        self._held: dict[str, str] = {}
        self._pairs: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}

    @classmethod
    def open(cls, pristine: Path) -> Catalogue:
        """Open the database that ``world.build`` wrote.

        Args:
            pristine: its path, for example ``EmbeddedSites.folder / world.PRISTINE``.
        """
        db = sqlite3.connect(f"file:{pristine}?mode=ro&immutable=1", uri=True)
        db.row_factory = sqlite3.Row
        return cls(db)

    def instances(self, family: str) -> tuple[Instance, ...]:
        """Return all ways to fill a family in, of every split."""
        if family not in self._instances:
            self._instances[family] = tuple(self.families[family].instances(self.db))
        return self._instances[family]

    def train(self, family: str) -> tuple[Instance, ...]:
        """Return those whose every entity belongs to train; none for a family that no train task is of."""
        if not self.families[family].trained_on:
            return ()
        if family not in self._train:
            own = (i for i in self.instances(family) if {*map(entity_split, i.entities)} == {"train"})
            self._train[family] = tuple(own)
        return self._train[family]

    def held(self, site: str) -> str:
        """Return all text that a site's tables hold, in small letters, one cell a line."""
        if site not in self._held:
            schema = import_module(f"webrl_lite.envs.embedded.{site}.data").SCHEMA
            tables = ["account", *re.findall(r"CREATE TABLE (\w+)", schema)]
            cells: dict[str, None] = {}
            for table in tables:
                for row in self.db.execute(f"SELECT * FROM {table}"):
                    cells.update(dict.fromkeys(_plain(cell) for cell in row if isinstance(cell, str)))
            if site == "shopping_admin":  # it manages the shop's tables
                cells[self.held("shopping")] = None
            self._held[site] = "\n".join(cells)
        return self._held[site]

    def holds(self, sites: Sequence[str], name: str) -> bool:
        """Tell whether one of the sites holds a name; of ``owner / project`` every part must be there."""
        parts = [_plain(part) for part in name.split(" / ")]
        return any(all(_whole_words(part, self.held(site)) for part in parts) for site in sites)

    def pairs(self, names: tuple[str, str]) -> frozenset[tuple[str, str]]:
        """Return the pairs of a row of ``BELONGS``."""
        if names not in self._pairs:
            self._pairs[names] = frozenset((row[0], row[1]) for row in self.db.execute(BELONGS[names]))
        return self._pairs[names]


class OfflineGenerator:
    """Proposes tasks that follow failed ones."""

    name = "offline"
    at_once = 10
    """As many as a served model is asked for."""

    def __init__(self, catalogue: Catalogue, wrong_share: float = WRONG_SHARE) -> None:
        """Take what the sites hold.

        Args:
            catalogue: of the pristine database.
            wrong_share: share of proposals that are spoiled, in [0, 1].
        """
        if not 0 <= wrong_share <= 1:
            raise ValueError(f"`wrong_share` must be in [0, 1], got {wrong_share!r}. Use e.g. {WRONG_SHARE}.")
        self.catalogue = catalogue
        self.wrong_share = wrong_share

    def propose(self, sites: tuple[str, ...], failed: Sequence[Task], count: int, seed: str) -> list[Task]:
        """Propose tasks; the same for the same arguments in every process.

        Args:
            sites: of the failed tasks.
            failed: tasks of known families; others are passed over.
            count: how many to propose.
            seed: of all draws.

        Returns:
            ``count`` tasks without id, grader or split, or none if no seed is of a known family.

        Raises:
            GeneratorError: a seed of a test split, a held-out family or about a test entity.
        """
        seeds = [task for task in failed if task.family in self.catalogue.families]
        for task in seeds:
            self._refuse(task)
        random_ = random.Random(f"generator:{seed}")
        return [self._proposal(random_.choice(seeds), random_) for _ in range(count)] if seeds else []

    def _refuse(self, task: Task) -> None:
        held_out = not self.catalogue.families[task.family].trained_on
        tests = [entity for entity in task.entities if entity_split(entity) == "test"]
        if task.split.startswith("test") or held_out or tests:
            what = f"the test entity {tests[0]}" if tests else f"the split {task.split or 'test_families'}"
            raise GeneratorError(
                f"`failed` must hold train and generated tasks, got {task.task_id} of {what}. Leave test tasks out."
            )

    def _proposal(self, seed: Task, random_: random.Random) -> Task:
        how = random_.choices(list(HOWS), list(HOWS.values()))[0]
        family, instance, how = self._evolve(seed, how, random_)
        wording = random_.choice(family.wordings)
        if how == "wording":
            wording = random_.choice([w for w in family.wordings if w != seed.intent_template])
        draft = _Draft(family, instance.values, instance.entities, wording)
        if random_.random() < self.wrong_share:
            draft = self._spoil(draft, random_)
        return draft.task(instance, seed.task_id, how)

    # Evolving ----------------------------------------------------------------------------------------------------

    def _evolve(self, seed: Task, how: str, random_: random.Random) -> tuple[Family, Instance, str]:
        family = self.catalogue.families[seed.family]
        train = self.catalogue.train(seed.family)
        own = {*_shown(seed.instantiation_dict, seed.entities)}
        named = [i for i in train if {*_shown(i.values, i.entities)} == own] if own else []
        if how == "wording":
            same = [i for i in train if i.values == seed.instantiation_dict]
            if same:
                return family, same[0], how
        if how == "values":
            others = [i for i in named if i.values != seed.instantiation_dict]
            if others:
                return family, random_.choice(others), how
        if how in ("added", "dropped"):
            found = self._sibling(seed, own, how, random_)
            if found:
                return *found, how
        others = [i for i in train if not own & {*i.entities}] or list(train)
        return family, random_.choice(others), "entity"

    def _sibling(self, seed: Task, own: set[str], how: str, random_: random.Random) -> tuple[Family, Instance] | None:
        """Return an instance of another family about one of the same entities, with more or fewer conditions."""
        names = sorted(n for n, f in self.catalogue.families.items() if f.sites == seed.sites and n != seed.family)
        random_.shuffle(names)
        mine = seed.requirements or 1
        for name in names:
            fitting = [
                i
                for i in self.catalogue.train(name)
                if own & {*i.entities} and (i.requirements > mine if how == "added" else i.requirements < mine)
            ]
            if fitting:
                return self.catalogue.families[name], random_.choice(fitting)
        return None

    # Spoiling ----------------------------------------------------------------------------------------------------

    def _spoil(self, draft: _Draft, random_: random.Random) -> _Draft:
        ways = {"missing": self._missing, "mismatch": self._mismatch, "beyond": self._beyond, "vague": self._vague}
        for wrong in random_.sample(WRONGS, len(WRONGS)):
            spoiled = ways[wrong](draft, random_)
            if spoiled is not None and spoiled.intent != draft.intent:
                return spoiled
        return draft

    def _missing(self, draft: _Draft, random_: random.Random) -> _Draft | None:
        """Put a name made from two others, which no site holds, in the place of one that they hold."""
        named = draft.named()
        sites = draft.family.sites
        keys = [key for key in named if self.catalogue.holds(sites, draft.values[key])]
        if not keys:
            return None
        key = random_.choice(keys)
        old, entity = draft.values[key], named[key]
        others = [i.values[key] for i in self.catalogue.train(draft.family.name) if key in i.values]
        for _ in range(TRIES):
            new = _crossed(old, random_.choice(others), random_)
            other = re.sub(re.escape(old), lambda _, new=new: new, entity, flags=re.IGNORECASE)
            if not any(self.catalogue.holds([site], new) for site in world.SITES) and entity_split(other) == "train":
                values = {name: value.replace(old, new) for name, value in draft.values.items()}
                entities = tuple(other if one == entity else one for one in draft.entities)
                return _Draft(draft.family, values, entities, draft.wording)
        return None

    def _mismatch(self, draft: _Draft, random_: random.Random) -> _Draft | None:
        """Give the second of two values that belong together from another instance, so that they no longer do."""
        for names in BELONGS:
            first, second = (draft.values.get(name, "") for name in names)
            pairs = self.catalogue.pairs(names)
            if (first, second) not in pairs:
                continue
            others = [
                i
                for i in self.catalogue.train(draft.family.name)
                if names[1] in i.values and (first, i.values[names[1]]) not in pairs
            ]
            if others:
                other = random_.choice(others)
                named, theirs = draft.named(), _Draft(draft.family, other.values, other.entities, "").named()
                values = {**draft.values, names[1]: other.values[names[1]]}
                if "what" in values:  # product and brand in one phrase
                    values["what"] = values["what"].replace(second, other.values[names[1]])
                gone, come = named.get(names[1]), theirs.get(names[1])
                entities = tuple(one for one in draft.entities if one != gone) + ((come,) if come else ())
                return _Draft(draft.family, values, entities, draft.wording)
        return None

    def _beyond(self, draft: _Draft, random_: random.Random) -> _Draft:
        site = random_.choice(draft.family.sites)
        return _Draft(draft.family, draft.values, draft.entities, draft.wording, f" {random_.choice(BEYOND[site])}")

    def _vague(self, draft: _Draft, random_: random.Random) -> _Draft | None:
        """Leave a name out and say only what kind of thing it is."""
        named = {key: entity for key, entity in draft.named().items() if draft.wording.count(f"{{{key}}}") == 1}
        if not named:
            return None
        key = random_.choice(list(named))
        kind = named[key].partition(":")[0]
        before, after = draft.wording.split(f"{{{key}}}", 1)
        before = before.removesuffix('"')
        if not re.search(rf"\b{kind}\s*$", before, re.IGNORECASE):
            before += kind if re.search(r"\b(the|a|my)\s*$", before, re.IGNORECASE) else f"the {kind}"
        after = after.removeprefix('"')
        wording = re.sub(r"\s+([?.,:;])", r"\1", " ".join(f"{before.rstrip()} {after}".split()))
        values = {name: value for name, value in draft.values.items() if name != key}
        if any(f"{{{name}}}" in wording and draft.values[key] in value for name, value in values.items()):
            return None  # another value tells what was left out
        return _Draft(draft.family, values, tuple(e for e in draft.entities if e != named[key]), wording)


@dataclass(frozen=True)
class _Draft:
    """A task in the making."""

    family: Family
    values: dict[str, str]
    entities: tuple[str, ...]
    wording: str
    more: str = ""
    """Sentence behind the wording."""

    def named(self) -> dict[str, str]:
        """Return the entity that each value names, for those that name one."""
        return _names(self.values, self.entities)

    @property
    def intent(self) -> str:
        return self.wording.format_map(self.values) + self.more

    def task(self, instance: Instance, source: str, how: str) -> Task:
        sites, paths = self.family.sites, instance.start
        starts = zip(sites if len(paths) > 1 else sites[:1], paths, strict=True)
        extra: dict[str, JSON] = {"evolved": {"from": source, "how": how}}
        if instance.sessions:
            extra["sessions"] = dict(instance.sessions)
        return Task(
            task_id="",
            sites=sites,
            intent=self.intent,
            start_url=" |AND| ".join(f"__{site.upper()}__{path}" for site, path in starts),
            family=self.family.name,
            kind=self.family.kind,
            entities=_shown(self.values, self.entities),  # others would give the answer away
            requirements=instance.requirements,
            intent_template=self.wording + self.more,
            instantiation_dict=dict(self.values),
            extra=extra,
        )


# Feasibility --------------------------------------------------------------------------------------------------------


class SiteCheck:
    """The filter for offline proposals: is what they name and speak of on their sites?

    It knows names and words, so it lets pass what puts known names together wrongly or leaves one out, and it turns
    down a task about something that is to be made or is rightly missed. ``Truths`` says how often.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        """Take what the sites hold."""
        self._catalogue = catalogue
        self._words: dict[tuple[str, ...], frozenset[str]] = {}

    def __call__(self, task: Task) -> tuple[bool, str]:
        """Return whether a task can be done, and why not."""
        values = {name: str(value) for name, value in task.instantiation_dict.items()}
        for key in _names(values, task.entities):
            if not self._catalogue.holds(task.sites, values[key]):
                return False, f"nothing is called {values[key]!r} there"
        unknown = [word for word in _WORD.findall(_plain(task.intent)) if word not in self._known(task.sites)]
        quoted = " ".join(_plain(value) for value in values.values())
        for word in unknown:
            if not _whole_words(word, quoted):
                return False, f"nothing there speaks of {word!r}"
        return True, ""

    def _known(self, sites: tuple[str, ...]) -> frozenset[str]:
        """Return the words of the sites' tables and pages, and of the train families' wordings."""
        if sites not in self._words:
            words: set[str] = set()
            for site in sites:
                words.update(_WORD.findall(self._catalogue.held(site)))
                pages = resources.files("webrl_lite.envs.embedded") / site / "templates"
                for page in pages.iterdir() if pages.is_dir() else ():
                    words.update(_WORD.findall(_plain(page.read_text(encoding="utf-8"))))
            for family in self._catalogue.families.values():
                if family.trained_on:
                    words.update(word for wording in family.wordings for word in _WORD.findall(_plain(wording)))
            self._words[sites] = frozenset(words)
        return self._words[sites]


# The truth, for measuring -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """What is so about a proposal."""

    feasible: bool
    """Whether it is one of its family's instances in one of its wordings."""
    eval: dict[str, JSON] | None = None
    """The grader of a feasible one."""


class Truths:
    """Looks proposals up among all instances. For measuring only; see the module."""

    def __init__(self, catalogue: Catalogue) -> None:
        """Take what the sites hold."""
        self._catalogue = catalogue

    def __call__(self, task: Task) -> Truth | None:
        """Return the truth about a task; None if it is of no known family, as a language model's are."""
        family = self._catalogue.families.get(task.family)
        if family is None:
            return None
        for instance in self._catalogue.instances(family.name):
            if instance.values == task.instantiation_dict:
                if any(wording.format_map(instance.values) == task.intent for wording in family.wordings):
                    return Truth(True, instance.eval)
        return Truth(False)


# Names --------------------------------------------------------------------------------------------------------------


def _names(values: dict[str, str], entities: Sequence[str]) -> dict[str, str]:
    """Return the entity that each value is the name of, or the first part of it."""
    found = {}
    for key, value in values.items():
        for entity in entities:
            kind, _, name = entity.partition(":")
            whole = _plain(name) in (_plain(value), f"{_plain(value)}, {_plain(name).rpartition(', ')[2]}")
            if kind not in NO_NAMES and len(value) >= 3 and whole:
                found[key] = entity
                break
    return found


def _shown(values: dict[str, str], entities: Sequence[str]) -> tuple[str, ...]:
    """Return the entities that the values name."""
    named = {*_names(values, entities).values()}
    return tuple(entity for entity in entities if entity in named)


def _crossed(one: str, other: str, random_: random.Random) -> str:
    """Return a name from the beginning of one and the end of another; a number keeps its length."""
    if one.isdigit():
        return "".join(random_.choice("0123456789") for _ in one)
    for mark in (" ", "_"):
        first, second = one.split(mark), other.split(mark)
        if len(first) > 1 and len(second) > 1:
            return mark.join([*first[:-1], second[-1]])
    return one[: len(one) // 2 + 1] + other[len(other) // 2 :]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _whole_words(part: str, text: str) -> bool:
    """Tell whether a text holds a part that neither begins nor ends inside a word."""
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        if not (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum()):
            return True
        start = text.find(part, start + 1)
    return False
