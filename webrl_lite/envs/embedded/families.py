"""Families of tasks: how instances become tasks, and which of them are train, test and unseen-family tasks.

A family is a template with its wordings, a function that lists its instances from the pristine database, and a
scripted oracle. An entity (a product, an order, a forum, ...) belongs to train or to test for every family alike,
by a hash of its name, so no test task is about something that a train task was about; values such as months,
statuses or sort orders are conditions and occur in both. Held-out families occur in ``test_families`` only. The
families of ``PRETRAINING`` occur in no split: the tiny base has read their episodes, in worlds of other data.

Reads the pristine database; writes nothing.
"""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, resources

from webrl_lite import evaluators
from webrl_lite.envs.embedded.oracle import Moves, Page
from webrl_lite.trajectory import JSON, Task

SPLITS = ("train", "test", "test_families")
TRAIN_SHARE = 65
"""Percent of the entities that belong to train."""
PER_SPLIT = {"train": 6, "test": 5, "test_families": 5}
"""Most tasks a family gives to a split."""
SEED = 2411
"""Seed of the choice of instances and wordings."""
PRETRAINING = frozenset(
    """
    gitlab.assigned_issues gitlab.comment_merge gitlab.commits_by gitlab.describe gitlab.feed_key gitlab.invite
    gitlab.label_count gitlab.new_milestone gitlab.remove_member gitlab.source_branch gitlab.stars
    map.branch_time map.coordinates map.note_nearest map.population map.remove_saved map.show_place
    map.travel_distance
    reddit.comment_score reddit.edit_post reddit.forum_span reddit.goto_post reddit.lead_comments reddit.post_author
    reddit.user_comments reddit.vote_lead reddit.withdraw_vote
    shopping.advanced_search shopping.cheapest shopping.contact shopping.month_spend
    shopping.rating shopping.reorder shopping.tracking
    shopping_admin.category_sorted shopping_admin.customer_by_phone shopping_admin.customer_orders
    shopping_admin.order_cancel shopping_admin.order_comment shopping_admin.order_customer shopping_admin.page_title
    shopping_admin.product_disable shopping_admin.sales_total shopping_admin.stock_by_sku
    """.split()
)
"""Families that the tiny base is pre-trained on, in other worlds: no task of these sites is of such a family."""


@dataclass(frozen=True)
class Instance:
    """One way to fill a family's wordings in."""

    values: dict[str, str]
    """What the wording and the oracle get; the oracle knows nothing else."""
    entities: tuple[str, ...]
    """The named rows it is about, as ``kind:name``; at least one."""
    eval: dict[str, JSON]
    """The grader, in WebArena's schema (see ``evaluators``)."""
    requirements: int
    """Conditions the instruction states, 1 to 5."""
    start: tuple[str, ...] = ("/",)
    """Path of the start page on each of the family's sites that opens a tab; one path opens the first site."""
    sessions: dict[str, str] = field(default_factory=dict)
    """Sites whose log-in is not the usual one: ``out`` (signed out) or ``expired``."""


@dataclass(frozen=True)
class Family:
    """A kind of task."""

    name: str
    """``<site>.<what>``; for two sites ``cross.<what>``."""
    sites: tuple[str, ...]
    """The sites it needs, the start page's first."""
    kind: str
    """``retrieve``, ``navigate`` or ``change``."""
    wordings: tuple[str, ...]
    """At least three templates with ``{value}`` fields."""
    instances: Callable[[sqlite3.Connection], Iterable[Instance]]
    """All ways to fill it in, in any fixed order."""
    oracle: Callable[[Page, Mapping[str, str]], Moves[str]]
    """Scripted solution; see ``oracle``."""
    held_out: bool = False
    """Whether the family is kept for ``test_families``."""
    wrong: str = "a wrong answer 0"
    """An answer that must fail, of the right form where the family can say one."""

    @property
    def trained_on(self) -> bool:
        """Whether it has train tasks."""
        return not (self.held_out or self.pretraining)

    @property
    def pretraining(self) -> bool:
        """Whether the tiny base knows the family, so that it occurs in no split."""
        return self.name in PRETRAINING


def entity_split(entity: str) -> str:
    """Return the split, ``train`` or ``test``, that an entity such as ``product:Kestrel Kettle`` belongs to."""
    digest = hashlib.sha256(entity.encode()).digest()
    return "train" if int.from_bytes(digest[:4], "big") % 100 < TRAIN_SHARE else "test"


def all_families() -> tuple[Family, ...]:
    """Return the families of all sites, in a fixed order."""
    names = ("shopping", "shopping_admin", "reddit", "gitlab", "map", "cross")
    modules = (import_module(f"webrl_lite.envs.embedded.{name}.tasks") for name in names)
    return tuple(family for module in modules for family in module.FAMILIES)


@cache
def required_steps() -> Mapping[str, int]:
    """Return the oracle's number of replies for each task, as the command ``measure`` stored it."""
    file = resources.files("webrl_lite.envs.embedded") / "required_steps.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def make_tasks(db: sqlite3.Connection) -> tuple[Task, ...]:
    """Write all tasks of the embedded sites.

    Args:
        db: the pristine database, rows by name.

    Returns:
        The tasks, by family and split; the same for the same database.
    """
    tasks: list[Task] = []
    for family in all_families():
        if family.pretraining:
            continue
        random_ = random.Random(f"{SEED}:{family.name}")
        pools: dict[str, list[Instance]] = {split: [] for split in SPLITS}
        for instance in family.instances(db):
            splits = {entity_split(entity) for entity in instance.entities}
            if family.held_out:
                pools["test_families"].append(instance)
            elif len(splits) == 1:  # an instance between the splits would leak one into the other
                pools[splits.pop()].append(instance)
        for split, pool in pools.items():
            random_.shuffle(pool)
            for number, instance in enumerate(pool[: PER_SPLIT[split]]):
                tasks.append(_task(family, instance, split, number))
    return tuple(tasks)


def pretraining_tasks(db: sqlite3.Connection, seed: int) -> tuple[Task, ...]:
    """Write tasks of the families of ``PRETRAINING``, split ``pretraining``, for a world of other data.

    Args:
        db: that world's pristine database, rows by name.
        seed: seed of the choice of instances, and part of the ids.
    """
    tasks: list[Task] = []
    for family in all_families():
        if family.pretraining:
            pool = list(family.instances(db))
            random.Random(f"{seed}:{family.name}").shuffle(pool)
            for number, instance in enumerate(pool[: PER_SPLIT["train"]]):
                tasks.append(_task(family, instance, f"pretraining.{seed}", number))
    return tuple(tasks)


def _task(family: Family, instance: Instance, split: str, number: int) -> Task:
    task_id = f"{family.name}.{split}.{number}"
    wording = family.wordings[number % len(family.wordings)]
    if len(instance.start) == 1:
        starts = [f"__{family.sites[0].upper()}__{instance.start[0]}"]
    else:
        starts = [f"__{site.upper()}__{path}" for site, path in zip(family.sites, instance.start, strict=True)]
    task = Task(
        task_id=task_id,
        sites=family.sites,
        intent=wording.format(**instance.values),
        start_url=" |AND| ".join(starts),
        eval=instance.eval,
        split=split,
        family=family.name,
        kind=family.kind,
        entities=instance.entities,
        required_steps=required_steps().get(task_id),
        requirements=instance.requirements,
        intent_template=wording,
        instantiation_dict=dict(instance.values),
        extra={"sessions": dict(instance.sessions)} if instance.sessions else {},
    )
    evaluators.check(task)
    return task


# Graders in short ---------------------------------------------------------------------------------------------------


def answer(*must_include: str, exact: str | None = None) -> dict[str, JSON]:
    """Return the ``eval`` object of a question: phrases that the answer must hold, or the answer itself."""
    reference: dict[str, JSON] = {"exact_match": exact} if exact is not None else {"must_include": list(must_include)}
    return _eval(["string_match"], reference_answers=reference)


def final_page(url: str, note: str = "EXACT") -> dict[str, JSON]:
    """Return the ``eval`` object of a navigation: the address, as ``__SHOPPING__/path?query``, to end on."""
    return _eval(["url_match"], reference_url=url, url_note=note)


def state(*expected: dict[str, JSON], allow: Iterable[dict[str, JSON]] = ()) -> dict[str, JSON]:
    """Return the ``eval`` object of a change: the rows that must have changed, and nothing else but ``allow``."""
    return _eval(["database"], database={"changes": list(expected), "allow": list(allow)})


def _eval(eval_types: list[JSON], **rules: JSON) -> dict[str, JSON]:
    empty: dict[str, JSON] = {"reference_answers": None, "reference_url": "", "program_html": []}
    return {"eval_types": eval_types, **empty, **rules}
