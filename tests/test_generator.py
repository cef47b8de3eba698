"""The generator without a model, its feasibility filter, and the truth that both are measured with."""

import dataclasses
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from webrl_lite.curriculum_report import Rejected, filter_errors
from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.families import entity_split
from webrl_lite.envs.embedded.generator import (
    HOWS,
    Catalogue,
    GeneratorError,
    OfflineGenerator,
    SiteCheck,
    Truth,
    Truths,
)
from webrl_lite.trajectory import Task, read_jsonl, write_jsonl

MAP = ("map",)
SHOP = ("shopping",)
MEADOW = "Meadow Lantern"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("world") / world.PRISTINE
    world.build(path)
    return path


@pytest.fixture(scope="module")
def catalogue(pristine: Path) -> Catalogue:
    return Catalogue.open(pristine)


def failed(catalogue: Catalogue, *families: str, each: int = 2) -> list[Task]:
    """Train tasks of some families, as they fail."""
    tasks = []
    for name in families:
        family = catalogue.families[name]
        for number, instance in enumerate(catalogue.train(name)[:each]):
            tasks.append(
                Task(
                    task_id=f"{name}.train.{number}",
                    sites=family.sites,
                    intent=family.wordings[0].format_map(instance.values),
                    start_url=f"__{family.sites[0].upper()}__/",
                    eval=instance.eval,
                    split="train",
                    family=name,
                    entities=instance.entities,
                    requirements=instance.requirements,
                    intent_template=family.wordings[0],
                    instantiation_dict=dict(instance.values),
                )
            )
    return tasks


SHOPPING = (
    "shopping.price",
    "shopping.weight",
    "shopping.reviewers",
    "shopping.product_page",
    "shopping.sign_in_and_wish",
)


@pytest.fixture(scope="module")
def proposals(catalogue: Catalogue) -> list[Task]:
    """400 proposals about the shop and the map, a fifth of them spoiled."""
    generator = OfflineGenerator(catalogue)
    shop = generator.propose(SHOP, failed(catalogue, *SHOPPING), 250, "1")
    places = ("map.phone", "map.closing_time", "map.count")
    return shop + generator.propose(MAP, failed(catalogue, *places), 150, "1")


def test_no_proposal_has_a_grader_or_says_more_than_its_words(proposals):
    """The ORM labels them; an entity that the instruction does not name could be the answer."""
    for task in proposals:
        assert task.eval is None and task.required_steps is None and task.split == ""
        assert set(task.extra) <= {"evolved", "sessions"} and set(task.extra["evolved"]) == {"from", "how"}
        for entity in task.entities:
            name = entity.partition(":")[2].split(", ")[0].lower()
            assert any(name == value.lower() for value in task.instantiation_dict.values()), task


def test_no_proposal_is_about_a_test_entity_or_of_a_held_out_family(proposals, catalogue):
    assert {entity_split(entity) for task in proposals for entity in task.entities} == {"train"}
    assert not [task.family for task in proposals if catalogue.families[task.family].held_out]


def test_a_family_whose_entity_is_its_answer_keeps_it_out_of_the_task(catalogue):
    """The best-selling product is not named in the question for it."""
    generator = OfflineGenerator(catalogue, 0)
    seeds = failed(catalogue, "shopping_admin.bestseller")
    tasks = generator.propose(("shopping_admin",), seeds, 10, "1")
    assert {task.entities for task in tasks} == {()}
    assert {task.family for task in tasks} == {"shopping_admin.bestseller"}


def test_they_follow_in_every_way_and_say_what_from(proposals, catalogue):
    hows = Counter(task.extra["evolved"]["how"] for task in proposals)
    assert set(hows) == set(HOWS)
    sources = {task.task_id: task for task in failed(catalogue, *SHOPPING)}
    for task in proposals:
        source = sources.get(task.extra["evolved"]["from"])
        if source is None:
            continue
        how = task.extra["evolved"]["how"]
        if how == "added":
            assert task.requirements > source.requirements and task.family != source.family
        if how == "dropped":
            assert task.requirements < source.requirements and task.family != source.family
        if how in ("entity", "values", "wording"):
            assert task.family == source.family
        if how == "wording":
            assert task.intent != source.intent


def test_without_spoiling_every_proposal_can_be_done(catalogue):
    """Feasible and with the grader of the very instance, for measuring."""
    tasks = OfflineGenerator(catalogue, 0).propose(SHOP, failed(catalogue, *SHOPPING), 60, "2")
    truths = Truths(catalogue)
    assert all(truths(task).feasible and truths(task).eval["eval_types"] for task in tasks)


def test_with_spoiling_none_can_be_done(catalogue):
    tasks = OfflineGenerator(catalogue, 1).propose(SHOP, failed(catalogue, *SHOPPING), 60, "2")
    truths = Truths(catalogue)
    assert {truths(task) for task in tasks if task.intent} == {Truth(False, None)}
    assert len({task.intent for task in tasks}) > 30


def test_a_spoiled_proposal_reads_differently(pristine):
    """A name that a wording does not show is no name to spoil."""
    catalogue = Catalogue.open(pristine)
    seeds = failed(catalogue, "shopping.weight")
    family = catalogue.families["shopping.weight"]
    catalogue.families["shopping.weight"] = dataclasses.replace(family, wordings=("Weigh the first product.",) * 3)
    tasks = OfflineGenerator(catalogue, 1).propose(SHOP, seeds, 20, "1")
    assert "Weigh the first product." not in {task.intent for task in tasks}


def test_about_the_stated_share_is_spoiled(proposals, catalogue):
    """400 draws at 0.2 are 80, give or take 8; 48 to 112 is four times that."""
    truths = Truths(catalogue)
    assert 48 <= sum(not truths(task).feasible for task in proposals) <= 112


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_between_0_and_1(catalogue, share):
    with pytest.raises(ValueError, match=r"`wrong_share` must be in \[0, 1\]"):
        OfflineGenerator(catalogue, share)


def test_nothing_tells_a_spoiled_proposal_but_its_words(catalogue):
    """What the loop reads of a task has the same fields, spoiled or not."""
    seeds = failed(catalogue, *SHOPPING)
    good, bad = (OfflineGenerator(catalogue, share).propose(SHOP, seeds, 20, "3") for share in (0, 1))
    fields = {field.name for field in dataclasses.fields(Task)}
    empty = [
        {name for name in fields if not getattr(task, name)} - {"entities", "instantiation_dict"}
        for task in (*good, *bad)
    ]
    assert {frozenset(names) for names in empty} == {frozenset({"task_id", "eval", "split", "required_steps"})}


def test_tasks_that_sign_in_again_start_signed_out(catalogue):
    tasks = OfflineGenerator(catalogue, 0).propose(SHOP, failed(catalogue, "shopping.sign_in_and_wish"), 5, "1")
    for task in tasks:
        if task.family == "shopping.sign_in_and_wish":
            assert task.extra["sessions"]


def test_two_sites_give_two_tabs(catalogue):
    seeds = failed(catalogue, "cross.customer_population")
    [task] = OfflineGenerator(catalogue, 0).propose(("shopping_admin", "map"), seeds, 1, "1")
    assert task.sites == ("shopping_admin", "map")
    assert task.start_url == "__SHOPPING_ADMIN__/ |AND| __MAP__/"


def test_the_same_seed_gives_the_same_tasks_in_another_process(catalogue, pristine, tmp_path):
    seeds = failed(catalogue, "shopping.price", "map.phone", each=3)[:3]
    write_jsonl(tmp_path / "failed.jsonl", seeds)
    script = (
        "import sys, json; from pathlib import Path\n"
        "from webrl_lite.envs.embedded.generator import Catalogue, OfflineGenerator\n"
        "from webrl_lite.trajectory import Task, read_jsonl\n"
        "seeds = list(read_jsonl(sys.argv[2], Task))\n"
        "generator = OfflineGenerator(Catalogue.open(Path(sys.argv[1])))\n"
        "print(json.dumps([t.to_json() for t in generator.propose(('shopping',), seeds, 12, '7')]))\n"
    )
    there = subprocess.run(
        [sys.executable, "-c", script, str(pristine), str(tmp_path / "failed.jsonl")],
        env={**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    here = OfflineGenerator(catalogue).propose(SHOP, list(read_jsonl(tmp_path / "failed.jsonl", Task)), 12, "7")
    assert json.loads(there.stdout) == json.loads(json.dumps([task.to_json() for task in here]))
    other = OfflineGenerator(catalogue).propose(SHOP, seeds, 12, "8")
    assert [task.intent for task in other] != [task.intent for task in here]


def test_a_proposal_survives_its_file(proposals, tmp_path):
    named = [dataclasses.replace(task, task_id=str(number)) for number, task in enumerate(proposals)]
    write_jsonl(tmp_path / "tasks.jsonl", named)
    assert list(read_jsonl(tmp_path / "tasks.jsonl", Task)) == named


def test_generated_tasks_that_failed_are_evolved_again(catalogue, proposals):
    named = [dataclasses.replace(task, task_id=f"gen.01.{n}") for n, task in enumerate(proposals) if task.sites == SHOP]
    assert len(OfflineGenerator(catalogue).propose(SHOP, named, 30, "4")) == 30


def test_seeds_of_no_known_family_give_nothing(catalogue):
    task = Task("7", SHOP, "Buy tea.", "__SHOPPING__/")
    assert OfflineGenerator(catalogue).propose(SHOP, [task], 5, "1") == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"split": "test"}, "the split test"),
        ({"split": "test_families"}, "the split test_families"),
        ({"split": "", "family": "shopping.review_says"}, "the split test_families"),
        ({"split": "", "entities": ("product:Ember Teapot",)}, "the test entity product:Ember Teapot"),
    ],
)
def test_test_tasks_are_refused_as_seeds(catalogue, change, named):
    [task] = failed(catalogue, "shopping.price", each=1)
    with pytest.raises(GeneratorError, match=named):
        OfflineGenerator(catalogue).propose(SHOP, [dataclasses.replace(task, **change)], 1, "1")


# The filter and the truth -------------------------------------------------------------------------------------------


def about(intent: str, family: str = "shopping.weight", kind: str = "product", **values: str) -> Task:
    entities = tuple(f"{kind}:{value}" for value in values.values())
    return Task("1", (family.split(".")[0],), intent, "__SHOPPING__/", family=family, entities=entities,
                instantiation_dict=values)  # fmt: skip


@pytest.mark.parametrize(
    ("task", "verdict"),
    [
        (about("What is the weight of the Breeze Teapot in grams?", product="Breeze Teapot"), (True, "")),
        (
            about("What is the weight of the Breeze Walrus in grams?", product="Breeze Walrus"),
            (False, "nothing is called 'Breeze Walrus' there"),
        ),
        (  # part of a name is no name
            about("What is the weight of the Breeze Tea in grams?", product="Breeze Tea"),
            (False, "nothing is called 'Breeze Tea' there"),
        ),
        (
            about("Tell me in the live chat the weight of the Breeze Teapot.", product="Breeze Teapot"),
            (False, "nothing there speaks of 'chat'"),
        ),
        (  # it knows names, not what is left out
            about("What is the weight of the product in grams?"),
            (True, ""),
        ),
        (
            about("What is the phone number of Breeze Teapot?", "map.phone", "place", place="Breeze Teapot"),
            (False, "nothing is called 'Breeze Teapot' there"),
        ),
    ],
)
def test_the_filter_knows_names_and_words_of_the_sites(catalogue, task, verdict):
    assert SiteCheck(catalogue)(task) == verdict


@pytest.mark.parametrize(
    ("task", "feasible"),
    [
        (about("What is the weight of the Breeze Teapot in grams?", product="Breeze Teapot"), True),
        (about("What is the weight of the Breeze Teapot?", product="Breeze Teapot"), False),
        (about("What is the weight of the Breeze Walrus in grams?", product="Breeze Walrus"), False),
        (about("What is the weight of the product in grams?"), False),
    ],
)
def test_the_truth_is_an_instance_in_one_of_its_wordings(catalogue, task, feasible):
    truth = Truths(catalogue)(task)
    assert truth.feasible is feasible
    assert (truth.eval is not None) is feasible


def test_nobody_knows_the_truth_about_a_models_task(catalogue):
    assert Truths(catalogue)(Task("1", SHOP, "Buy tea.", "__SHOPPING__/")) is None


def test_the_filter_stops_most_of_what_cannot_be_done_and_little_else(catalogue, proposals):
    """Over 1200 proposals of all sites: 69 % of what cannot be done (159 of 232) and 2 % of what can (16 of 968)."""
    check, truths = SiteCheck(catalogue), Truths(catalogue)
    passed = [task for task in proposals if check(task)[0]]
    stopped = [Rejected(task, "infeasible") for task in proposals if not check(task)[0]]
    errors = filter_errors(passed, stopped, lambda task: truths(task).feasible)
    bad = errors.passed_wrongly + errors.stopped - errors.stopped_wrongly
    assert errors.passed + errors.stopped == 400
    assert 0 < errors.passed_wrongly < bad / 2
    assert errors.stopped_wrongly <= 12
    assert errors.rate < 0.15
