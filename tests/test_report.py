"""A run's folder as numbers, table, page and ablation; every expected number can be counted in ``make_run``."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from webrl_lite import report, report_numbers, report_page, report_plots, report_run, report_viewer
from webrl_lite.chromium import find_chromium, is_root
from webrl_lite.config import Config, to_dict
from webrl_lite.curriculum_report import CurriculumReport, Rejected, write_rejected
from webrl_lite.trajectory import Step, StopReason, Task, Trajectory, Verdict, write_jsonl

ATTACK = '</script><script>alert("page")</script><!-- <img src=x onerror=alert(1)>'


def task(name, *sites, family="", intent="Do it."):
    return Task(name, sites or ("shopping",), intent, "__SHOPPING__/", split="test", family=family)


def episode(made, success=None, *, steps=2, name="", env_error=False, orm=None, grader="unset", mode="strict", page=""):
    """One episode; without ``success`` nobody could grade it."""
    evidence = {} if orm is None else {"orm": {"score": orm, "mass": 0.9}}
    return Trajectory(
        made,
        tuple(Step(i, page or f"page {i}", f"http://shop/{i}", f"reply {i}") for i in range(steps)),
        StopReason.ENV_ERROR if env_error else StopReason.EXIT,
        verdict=None if env_error else Verdict(None if success is None else float(success), mode),
        evidence=evidence if grader == "unset" else evidence | {"grader": grader},
        env_error="the site was gone" if env_error else "",
        trajectory_id=name or made.task_id,
    )


SHOP = [task(f"s{i}", family="shopping.price") for i in range(4)]
MAP = [task(f"m{i}", "map", family="map.route") for i in range(2)]
BOTH = task("b0", "gitlab", "reddit", family="cross.post")
WIKI = task("w0", "wikipedia", "map", family="map.route")
TESTS = [*SHOP, *MAP, BOTH, WIKI]

SFT_EVALUATION = [
    *(episode(one, success) for one, success in zip(SHOP, (True, False, False, None), strict=True)),
    *(episode(one, False, steps=5) for one in MAP),
    episode(BOTH, True),
    episode(WIKI, env_error=True, steps=9),
]
"""2 successes of 6 graded; 1 ungraded, 1 environment error; 4 episodes of 2 steps and 2 of 5."""

EVALUATION = [
    *(episode(one, True, orm=0.9) for one in SHOP),
    episode(MAP[0], True, orm=0.5),
    episode(MAP[1], False, orm=0.7),
    episode(BOTH, False, orm=0.2),
    episode(WIKI, True, orm=0.95),
]
"""6 successes of 8; the ORM says yes to 6, five of them right, and no to 2, one of them right."""

ROLLOUTS = [
    episode(task("g0"), True, name="r0", orm=0.91, grader=1.0, mode="orm"),
    episode(task("g1"), True, name="r1", orm=0.61, grader=0.0, mode="orm"),
    episode(task("g2"), False, name="r2", orm=0.12, grader=0.0, mode="orm"),
    episode(task("g3"), False, name="r3", orm=0.14, grader=None, mode="orm"),
    episode(task("g4"), name="r4", env_error=True, orm=0.99, grader=1.0, mode="orm"),
]
"""The ORM calls 2 of 4 a success; the grader knows three, and agrees on two."""


def experience(trajectory, step, reward, value, advantage, source="current"):
    row = {"trajectory_id": trajectory, "step": step, "reward": reward, "value": value, "advantage": advantage}
    return row | {"source": source, "prompt": [1, 2], "action": [3], "phase": 1}


EXPERIENCE = [
    experience("r0", 0, 1.0, 0.25, 0.75),
    experience("r0", 1, 1.0, 0.85, 0.15),
    experience("r2", 0, 0.0, 0.25, -0.25),
    experience("r2", 1, 0.0, 0.05, -0.05),
    experience("old", 0, 1.0, 0.45, 0.55, source="replay"),
]
REPLAY = {"current": 4, "buffer": 10, "failed": 3, "same_task": 1, "duplicate": 0, "below_band": 2, "above_band": 1}
REPLAY |= {"over_cap": 1, "replayed": 2, "perplexities": [1.01, 1.02, 1.2, 1.5, 1.9, 2.5]}
REJECTED = (Rejected(task("x0", intent="Buy it again."), "duplicate", "of s0"),)
REJECTED += (Rejected(task("x1"), "below_band", value=0.01), Rejected(task("x2"), "below_band", value=0.02))


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def make_run(folder, *, method="webrl", rollouts=ROLLOUTS, tests=TESTS):
    """A run that has done phase 1 of 2 and has begun phase 2."""
    folder.mkdir(parents=True)
    settings = to_dict(Config())
    settings = settings | {"method": method, "curriculum": settings["curriculum"] | {"phases": 2}}
    (folder / "config.json").write_text(json.dumps(settings))
    write_jsonl(folder / "tasks_test.jsonl", tests)
    lines(folder / "sft/metrics.jsonl", [{"step": 1, "epoch": 0.5, "sft/loss": 2.0}, {"step": 2, "sft/loss": 1.0}])
    held_out = {"rollouts": 20, "accuracy": 0.85}
    (folder / "orm").mkdir()
    (folder / "orm/report.json").write_text(json.dumps({"trained_on": 60, "held_out": held_out}))
    write_jsonl(folder / "phase_00/evaluation.jsonl", SFT_EVALUATION)
    write_jsonl(folder / "phase_00/rollouts.jsonl", [episode(one, i == 0) for i, one in enumerate(SHOP)])
    first = folder / "phase_01"
    curriculum = CurriculumReport(1, "offline", 6, 5, 8, 3, 9, {}, "max_requests", (0.3, 0.4, 0.5, 0.6, 0.7), REJECTED)
    write_jsonl(first / "tasks.jsonl", [one.task for one in ROLLOUTS])
    write_rejected(first / "rejected.jsonl", curriculum)
    errors = {"passed": 5, "passed_wrongly": 1, "stopped": 3, "stopped_wrongly": 1, "rate": 0.25}
    (first / "curriculum.json").write_text(json.dumps(curriculum.to_json() | {"filter": errors}))
    write_jsonl(first / "labelled.jsonl", rollouts)
    (first / "replay.json").write_text(json.dumps(REPLAY))
    lines(first / "experience.jsonl", EXPERIENCE)
    lines(first / "critic/metrics.jsonl", [{"step": 1, "critic/loss": 0.7, "critic/accuracy": 0.5}])
    lines(first / "actor/metrics.jsonl", [{"step": 1, "actor/loss": 0.2, "actor/log_ratio": -0.1}])
    write_jsonl(first / "evaluation.jsonl", EVALUATION)
    (folder / "phase_02").mkdir()
    stages = [("sft", 60.0), ("phase_01/rollout", 30.0), ("phase_01/rollout", 45.0), ("phase_01/actor", 15.0)]
    lines(folder / "stages.jsonl", [{"stage": name, "seconds": s, "peak_bytes": 2**30} for name, s in stages])
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("report") / "run")


@pytest.fixture(scope="module")
def run(folder):
    return report_run.read(folder)


@pytest.fixture(scope="module")
def page(folder):
    return report.write(folder).read_text(encoding="utf-8")


def records(frame):
    return frame.to_dict("records")


# Intervals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (75, 150, 0.4210, 0.5790), (0, 0, 0.0, 1.0)],
)
def test_wilson_gives_the_interval_of_the_textbooks(successes, n, low, high):
    assert report_numbers.wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2)])
def test_wilson_refuses_more_successes_than_trials(successes, n):
    with pytest.raises(ValueError, match=r"`successes` must be in \[0, n\] \(2\)"):
        report_numbers.wilson(successes, n)


def test_mean_interval_is_students():
    """0.5, 0.6, 0.7: s = 0.1, error 0.1 / sqrt(3) = 0.05774, times 4.303 = 0.2484."""
    assert report.mean_interval([0.5, 0.6, 0.7]) == pytest.approx((0.6, 0.2484), abs=5e-5)


def test_mean_interval_of_two_seeds_has_one_degree_of_freedom():
    """0.4 and 0.6: s = 0.14142, error 0.1, times 12.706 = 1.2706."""
    assert report.mean_interval([0.4, 0.6]) == pytest.approx((0.5, 1.2706))


def test_one_seed_has_no_interval_and_none_has_no_mean():
    assert report.mean_interval([0.4]) == (0.4, None)
    assert report.mean_interval([]) == (None, None)


# Success ------------------------------------------------------------------------------------------------------------


def test_env_errors_and_ungraded_episodes_are_counted_beside_n(run):
    """EVA-10: the rate is over the graded ones. 2 of 6; (4 * 2 + 2 * 5) / 6 = 3 steps."""
    sft, first = records(report_numbers.success(run))
    low, high = sft.pop("low"), sft.pop("high")
    assert sft == {
        "phase": 0,
        "n": 6,
        "successes": 2,
        "share": pytest.approx(1 / 3),
        "env_errors": 1,
        "ungraded": 1,
        "mean_steps": 3.0,
    }
    assert (low, high) == pytest.approx((0.0968, 0.7000), abs=5e-5)
    assert (first["phase"], first["n"], first["successes"], first["env_errors"]) == (1, 8, 6, 0)


@pytest.mark.parametrize(("score", "counts"), [(0.999, (1, 0, 0)), (float("nan"), (0, 0, 1)), (1.0, (1, 1, 0))])
def test_only_a_score_of_one_is_a_success_and_no_number_is_no_grade(tmp_path, score, counts):
    """EVA-16."""
    folder = make_run(tmp_path / "run")
    found = episode(SHOP[0], True)
    record = found.to_json() | {"verdict": {"score": score, "mode": "strict", "version": "", "reasons": []}}
    lines(folder / "phase_01/evaluation.jsonl", [record])
    row = records(report_numbers.success(report_run.read(folder)))[1]
    assert (row["n"], row["successes"], row["ungraded"]) == counts


def test_every_task_counts_under_one_site(run):
    rows = records(report_numbers.success(run, by="site"))
    found = {(row["phase"], row["site"]): (row["successes"], row["n"]) for row in rows}
    assert found == {
        (0, "map"): (0, 2),
        (0, "several sites"): (1, 1),
        (0, "shopping"): (1, 3),
        (1, "map"): (2, 3),
        (1, "several sites"): (0, 1),
        (1, "shopping"): (4, 4),
    }


def test_success_by_family(run):
    rows = records(report_numbers.success(run, by="family"))
    assert [(row["family"], row["successes"], row["n"]) for row in rows if row["phase"] == 1] == [
        ("cross.post", 0, 1),
        ("map.route", 2, 3),
        ("shopping.price", 4, 4),
    ]


def test_rollouts_are_counted_by_the_label_that_was_learned_from(run):
    sft, first = records(report_numbers.success(run, "rollouts"))
    assert (sft["successes"], sft["n"]) == (1, 4)
    assert (first["successes"], first["n"], first["env_errors"]) == (2, 4, 1)


def test_rollouts_without_labels_are_said_to_be_open(tmp_path):
    folder = make_run(tmp_path / "run")
    write_jsonl(folder / "phase_02/rollouts.jsonl", [episode(SHOP[0]), episode(SHOP[1], env_error=True)])
    assert "phase 2: 1 of 2 rollouts have no label." in report_run.read(folder).notes


# The other numbers --------------------------------------------------------------------------------------------------


def test_orm_against_the_grader(run):
    """A score of exactly 0.5 says no; a rollout without a grade, and one that the environment failed, do not count."""
    rollouts, evaluation = records(report_numbers.orm(run))
    confusion = ("n", "yes_right", "yes_wrong", "no_right", "no_wrong")
    assert (rollouts["stage"], *(rollouts[name] for name in confusion)) == ("rollouts", 3, 1, 1, 1, 0)
    assert (evaluation["stage"], *(evaluation[name] for name in confusion)) == ("evaluation", 8, 5, 1, 1, 1)
    assert rollouts["accuracy"] == pytest.approx(2 / 3)
    assert evaluation["accuracy"] == 0.75


def test_orm_calibration_error_is_worked_by_hand(run):
    """Three bins of one: |0.91 - 1|, |0.61 - 0| and |0.12 - 0| have the mean 0.82 / 3 = 0.2733."""
    assert records(report_numbers.orm(run))[0]["ece"] == pytest.approx(0.27333, abs=1e-5)


def test_a_judgement_without_mass_is_counted(tmp_path):
    """ORM-07: the ratio alone hides that the model says neither word."""
    doubtful = episode(task("g9"), True, orm=0.6, grader=1.0, mode="orm")
    doubtful.evidence["orm"]["mass"] = 0.01
    folder = make_run(tmp_path / "run", rollouts=[*ROLLOUTS, doubtful])
    assert records(report_numbers.orm(report_run.read(folder)))[0]["untrusted"] == 0.25


def test_low_mass_is_what_the_orm_calls_it():
    """Compared in the source, for ``orm`` needs torch."""
    source = Path(report.__file__).with_name("orm.py").read_text(encoding="utf-8")
    assert f"\nLOW_MASS = {report_numbers.LOW_MASS}\n" in source


def test_bins_hold_their_lower_end_and_the_last_one_both():
    found = report_numbers.bins([(0.0, False), (0.2, True), (0.29, False), (1.0, True), (0.95, True)])
    assert [(one["from"], one["n"], one["share"]) for one in found] == [(0.0, 1, 0.0), (0.2, 2, 0.5), (0.9, 2, 1.0)]
    assert [one["mean"] for one in found] == pytest.approx([0.0, 0.245, 0.975])


def test_values_against_outcomes_leave_replayed_steps_out(run):
    """Bins 0.0: (0.05, fail); 0.2: two of 0.25, one right; 0.8: (0.85, right). (0.05 + 2 * 0.25 + 0.15) / 4 = 0.175."""
    (row,) = records(report_numbers.values(run))
    assert row == {
        "phase": 1,
        "n": 4,
        "on_success": pytest.approx(0.55),
        "on_failure": pytest.approx(0.15),
        "ece": pytest.approx(0.175),
    }
    assert [(one["from"], one["n"]) for one in records(report_numbers.value_calibration(run))] == [
        (0.0, 1),
        (0.2, 2),
        (0.8, 1),
    ]


def test_curriculum_counts_every_reason(run):
    (row,) = records(report_numbers.curriculum(run))
    assert (row["wanted"], row["accepted"], row["proposals"], row["filter_errors"]) == (6, 5, 8, 0.25)
    assert (row["duplicate"], row["below_band"], row["above_band"], row["surplus"]) == (1, 2, 0, 0)


def test_examples_show_each_reason(run):
    shown = report_numbers.examples(run.phases[1], each=1)
    assert [(reason, one.task_id, why) for reason, one, why in shown] == [
        ("accepted", "g0", "V = 0.30"),
        ("duplicate", "x0", "of s0"),
        ("below_band", "x1", "V = 0.01"),
    ]


def test_replay_shares(run):
    """2 of 10 in the buffer are kept, and are 2 of the 6 that is trained on."""
    (row,) = records(report_numbers.replay(run))
    assert (row["below_band"], row["replayed"], row["kept"], row["share"]) == (2, 2, 0.2, pytest.approx(1 / 3))
    assert report_numbers.perplexities(run) == {1: [1.01, 1.02, 1.2, 1.5, 1.9, 2.5]}


def test_replay_of_nothing_has_no_share(tmp_path):
    folder = make_run(tmp_path / "run")
    nothing = dict.fromkeys(REPLAY, 0) | {"perplexities": []}
    (folder / "phase_01/replay.json").write_text(json.dumps(nothing))
    (row,) = records(report_numbers.replay(report_run.read(folder)))
    assert (row["kept"], row["share"]) == (None, None)


def test_losses_keep_trainer_phase_and_step(run):
    rows = records(report_numbers.losses(run)[["trainer", "phase", "step", "loss"]].astype(object))
    assert [(row["trainer"], row["step"], row["loss"]) for row in rows] == [
        ("sft", 1, 2.0),
        ("sft", 2, 1.0),
        ("critic", 1, 0.7),
        ("actor", 1, 0.2),
    ]
    assert [row["phase"] for row in rows[2:]] == [1, 1]


def test_a_stage_that_ran_twice_counts_with_its_last_time(run):
    rows = [tuple(row.values()) for row in records(report_numbers.timings(run))]
    assert rows == [
        ("setup", "sft", 60.0, 1.0),
        ("phase_01", "rollout", 45.0, 1.0),
        ("phase_01", "actor", 15.0, 1.0),
    ]


# The table ----------------------------------------------------------------------------------------------------------


def test_table_has_a_row_for_sft_and_for_every_phase(folder):
    assert report.table(folder) == (
        "|         |   n | success | 95 % interval | map | several sites | shopping |\n"
        "| ------- | --: | ------: | ------------: | --: | ------------: | -------: |\n"
        "| start   |   6 |  33.3 % |   9.7 to 70.0 | 0/2 |           1/1 |      1/3 |\n"
        "| phase 1 |   8 |  75.0 % |  40.9 to 92.9 | 2/3 |           0/1 |      4/4 |\n"
        "\nNot in n: episodes that the environment failed (1), that could not be graded (1).\n"
        "\nphase 2 has no evaluation.\n"
        "\nPhases with an evaluation: 1 of 2.\n"
    )


def test_table_of_an_evaluation_alone_does_not_wait_for_phases(tmp_path):
    """`eval` plays an actor that is there; its folder has the stage `actor` and the preset's number of phases."""
    (tmp_path / "config.json").write_text('{"method": "webrl", "curriculum": {"phases": 2}}')
    (tmp_path / "stages.jsonl").write_text('{"stage": "actor", "seconds": 0.1}\n')
    write_jsonl(tmp_path / "phase_00/evaluation.jsonl", [episode(task("t0"), True)])
    found = report.table(tmp_path)
    assert "| start |" in found
    assert "Phases with an evaluation" not in found


def test_table_of_a_run_that_has_just_begun_says_so(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert report.table(tmp_path) == "No episode has been evaluated yet.\n"


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_is_no_runs_is_refused_and_stays_as_it_is(tmp_path, there):
    """CLI-06: a wrong folder."""
    folder = tmp_path / "photos"
    if there:
        folder.mkdir()
    for call in (report.table, report.write):
        with pytest.raises(report.ReportError, match=r"`folder` must be a run's folder, .*photos"):
            call(folder)
    assert not there or not list(folder.iterdir())


def test_tasks_that_were_not_played_are_named(tmp_path):
    folder = make_run(tmp_path / "run")
    write_jsonl(folder / "phase_01/evaluation.jsonl", EVALUATION[:6])
    assert "phase 1: 2 of 8 test tasks were not played." in report.table(folder)


def test_a_cell_cannot_break_the_table():
    assert report.markdown(["a", "b"], [["x|y\nz", "1"]]).splitlines()[2] == "| x\\|y z |   1 |"


# Unfinished and broken runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        "config.json",
        "phase_01/evaluation.jsonl",
        "phase_01/labelled.jsonl",
        "phase_01/experience.jsonl",
        "phase_01/tasks.jsonl",
        "phase_01/rejected.jsonl",
        "phase_01/replay.json",
        "phase_01/curriculum.json",
        "orm/report.json",
    ],
)
def test_a_half_written_file_is_left_out_by_name(tmp_path, broken):
    """CKP: a file that was cut."""
    path = make_run(tmp_path / "run") / broken
    path.write_bytes(path.read_bytes()[:-20])
    notes = report_run.read(tmp_path / "run").notes
    assert any(note.startswith(f"`{broken}` is left out, for it is broken: ") for note in notes), notes


def test_a_log_loses_only_the_line_that_a_kill_has_cut(tmp_path):
    folder = make_run(tmp_path / "run")
    with (folder / "sft/metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "sft/lo')
    run = report_run.read(folder)
    assert "Line 3 of `sft/metrics.jsonl` is left out, for it is no JSON object." in run.notes
    assert list(report_numbers.losses(run)["loss"][:2]) == [2.0, 1.0]


def test_a_run_that_has_only_settings_has_a_page(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    text = report.write(tmp_path).read_text()
    assert text.count("Nothing yet: ") == 8
    assert [path.name for path in (tmp_path / "report").iterdir()] == ["index.html"]


# The page -----------------------------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Collects what a browser would load, run or show as a section."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.sections, self.outside, self.tags = [], [], [], []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")
        if tag == "section":
            self.sections.append(attributes["id"])
        for name in ("src", "href", "xlink:href", "srcset", "action"):
            if not attributes.get(name, "#").startswith("#"):
                self.outside.append((tag, attributes[name]))

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data

    def handle_endtag(self, tag):
        self.inside = False


def test_the_page_has_every_part_and_asks_for_nothing(page):
    read = Reader(page)
    assert read.sections == "success orm values curriculum replay losses timings episodes".split()
    assert read.outside == []
    assert not {"link", "iframe", "object", "img"} & set(read.tags)
    assert "@import" not in page and "url(" not in page.replace("url(#", "")
    assert "default-src 'none'" in page


def test_what_the_script_looks_for_is_there_once(page):
    """A section of the same name would be taken for its data."""
    wanted = re.findall(r'getElementById\("([^"]+)"\)', page)
    assert wanted == ["episode-data", "episode", "back", "on"]
    for name in (*wanted, "pick-phase", "pick-stage", "pick-task"):
        assert page.count(f'id="{name}"') == 1, name


def test_the_viewer_shows_an_episode_and_goes_to_the_next_one(page, folder):
    with sync_playwright() as playwright:
        flags = ["--no-sandbox"] if is_root() else []
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=flags)
        tab, errors = browser.new_page(), []
        tab.on("pageerror", lambda error: errors.append(error))
        tab.goto((folder / "report" / "index.html").as_uri())
        first = tab.locator("#pick-task").input_value()
        assert tab.locator("#episode .step").count() == 2
        assert tab.locator("#episode pre").all_inner_texts() == ["page 0", "reply 0", "page 1", "reply 1"]
        tab.locator("#on").click()
        assert (first, tab.locator("#pick-task").input_value()) == ("0", "1")
        browser.close()
    assert errors == []


def test_plots_and_tables_lie_beside_the_page(page, folder):
    names = {path.name for path in (folder / "report").iterdir()}
    plots = {"success", "sites", "orm", "values", "curriculum", "replay", "losses", "timings"}
    assert {name for name in names if name.endswith(".png")} == {f"{name}.png" for name in plots}
    assert {name for name in names if name.endswith(".csv")} == {f"{name}.csv" for name in report.CSVS}
    assert (folder / "report/success.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "report/success_by_site.csv").open(newline="") as file:
        row = list(csv.DictReader(file))[2]
    assert (row["phase"], row["site"], row["successes"], row["n"]) == ("0", "shopping", "1", "3")


def test_plots_take_the_pages_colours(run):
    _, svg = report_plots.draw(run)["sites"]
    assert "currentColor" in svg and report_plots.INK not in svg
    assert "several sites" in svg and " width=" not in svg[: svg.index(">")]


def test_nothing_of_a_page_can_become_markup(tmp_path):
    """Page text, replies, instructions, family and reason come from strangers."""
    bad = Task("t", ("shopping",), ATTACK, "__SHOPPING__/", family=ATTACK)
    folder = make_run(tmp_path / "run", rollouts=[episode(bad, True, page=ATTACK + "\u2028\ud800")], tests=[bad])
    write_jsonl(folder / "phase_01/evaluation.jsonl", [episode(bad, True, page=ATTACK)])
    write_jsonl(folder / "phase_01/tasks.jsonl", [bad])
    lines(folder / "stages.jsonl", [{"stage": ATTACK, "seconds": 1.0}])
    text = report.write(folder).read_text(encoding="utf-8")
    read = Reader(text)
    assert len(read.scripts) == 2 and "img" not in read.tags
    assert "alert(" not in read.scripts[1] and "innerHTML" not in read.scripts[1]
    shown = [one for one in json.loads(read.scripts[0]) if one["phase"] == "phase 1"]
    assert [one["steps"][0]["page"] for one in shown] == [ATTACK + "\u2028\ud800", ATTACK]


def test_text_that_names_a_part_of_the_template_stays_text(tmp_path):
    folder = make_run(tmp_path / "run")
    write_jsonl(folder / "phase_01/tasks.jsonl", [task("t", intent="Say {{episodes}} and {{nothing}}.")])
    assert "Say {{episodes}} and {{nothing}}." in report.write(folder).read_text()


def test_a_second_report_takes_the_place_of_the_first(tmp_path):
    folder = make_run(tmp_path / "run")
    (folder / "report").mkdir()
    (folder / "report/old.csv").write_text("1")
    report.write(folder)
    assert not (folder / "report/old.csv").exists()
    assert not list(folder.glob(".report*"))


def test_a_full_disk_leaves_the_earlier_report(tmp_path, monkeypatch):
    """CKP-05."""
    folder = make_run(tmp_path / "run")
    (folder / "report").mkdir()
    (folder / "report/index.html").write_text("earlier")

    def full(run, plots):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report_page, "page", full)
    monkeypatch.setattr(report_plots, "draw", lambda run: {})
    with pytest.raises(OSError, match="No space left"):
        report.write(folder)
    assert (folder / "report/index.html").read_text() == "earlier"
    assert not list(folder.glob(".report*"))


# The viewer ---------------------------------------------------------------------------------------------------------


def test_the_viewer_shows_value_and_advantage_of_a_phases_own_steps(run):
    shown = report_viewer.episodes(run)
    by_name = {(one["phase"], one["stage"], one["task"]): one for one in shown}
    assert [step["scores"] for step in by_name["phase 1", "rollouts", "g0"]["steps"]] == [
        ["V 0.25", "A +0.75"],
        ["V 0.85", "A +0.15"],
    ]
    assert [step["scores"] for step in by_name["phase 1", "rollouts", "g1"]["steps"]] == [[], []]
    assert by_name["phase 1", "rollouts", "g0"]["outcome"] == "success, says the ORM"
    assert by_name["phase 1", "rollouts", "g4"]["outcome"] == "environment error"
    assert by_name["start", "evaluation", "s3"]["outcome"] == "not graded"


def test_a_step_without_an_action_does_not_shift_the_values(tmp_path):
    """Experience counts actions: the reply behind an empty one is its second."""
    steps = tuple(Step(i, f"page {i}", "http://shop", reply) for i, reply in enumerate(("a", "", "b")))
    trajectory = Trajectory(task("g0"), steps, StopReason.EXIT, verdict=Verdict(1.0, "orm"), trajectory_id="r0")
    run = report_run.read(make_run(tmp_path / "run", rollouts=[trajectory]))
    (one,) = [one for one in report_viewer.episodes(run) if (one["phase"], one["stage"]) == ("phase 1", "rollouts")]
    assert [step["scores"] for step in one["steps"]] == [["V 0.25", "A +0.75"], [], ["V 0.85", "A +0.15"]]


def test_the_viewer_holds_at_most_its_number_of_episodes_spread_evenly(run):
    """4 groups of 4, 8, 5 and 8 share 12 places as 3 each; of 8 they are numbers 0, 2 and 5."""
    shown = report_viewer.episodes(run, most=12)
    assert len(shown) == 12
    for phase in ("start", "phase 1"):
        names = [one["task"] for one in shown if (one["phase"], one["stage"]) == (phase, "evaluation")]
        assert names == ["s0", "s2", "m1"]


def test_what_a_small_group_leaves_goes_to_the_others():
    sizes = {(0, "rollouts"): 2, (0, "evaluation"): 10, (1, "evaluation"): 10}
    assert sorted(report_viewer.shares(sizes, 12).values()) == [2, 5, 5]
    assert sum(report_viewer.shares(sizes, 100).values()) == 22


def test_the_page_says_that_episodes_are_left_out(run, monkeypatch):
    monkeypatch.setattr(report_viewer, "episodes", lambda run: [{"phase": "start"}])
    assert "This page holds 1 of 25 episodes, spread evenly" in report_page.page(run, {})


def test_a_long_page_is_cut_and_says_so(tmp_path):
    long = episode(task("g0"), True, steps=1, page="x" * 7234, mode="orm")
    run = report_run.read(make_run(tmp_path / "run", rollouts=[long]))
    (one,) = [one for one in report_viewer.episodes(run) if (one["phase"], one["stage"]) == ("phase 1", "rollouts")]
    assert one["steps"][0]["page"] == "x" * 6000 + "\n[1,234 more characters]"


# Many runs ----------------------------------------------------------------------------------------------------------


def evaluated(folder, *successes_of_10):
    """A run with 10 test episodes after SFT and each phase."""
    for phase, successes in enumerate(successes_of_10):
        found = [episode(task(f"t{i}"), i < successes) for i in range(10)]
        write_jsonl(folder / f"phase_{phase:02d}/evaluation.jsonl", found)
    return folder


def test_ablation_has_both_intervals(tmp_path):
    """webrl: 0.5, 0.6, 0.7 is 60.0 ± 24.8; gains 0.2, 0.3, 0.4 are 30.0 ± 24.8; 18 of 30 is 42.3 to 75.4 (Wilson)."""
    webrl = {seed: evaluated(tmp_path / f"w{seed}", 3, 4, 5 + seed) for seed in range(3)}
    found = report.ablation_table({"webrl": webrl, "sft": {0: evaluated(tmp_path / "s0", 3)}})
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in found.markdown.splitlines()[2:4]]
    assert rows == [
        ["webrl", "phase 2", "3", "60.0 ± 24.8", "+30.0 ± 24.8", "18/30", "42.3 to 75.4"],
        ["sft", "start", "1", "30.0 (no interval)", "-", "3/10", "10.8 to 60.3"],
    ]
    webrl, sft = csv.DictReader(io.StringIO(found.csv))
    assert (webrl["method"], webrl["phase"], webrl["seeds"], webrl["successes"], webrl["n"]) == (
        *("webrl", "2", "3"),
        *("18", "30"),
    )
    assert float(webrl["half_interval"]) == pytest.approx(0.2484, abs=5e-5)
    assert sft["half_interval"] == ""


def test_ablation_leaves_an_unfinished_seed_out_and_names_it(tmp_path):
    runs = {0: evaluated(tmp_path / "a", 3, 6), 1: evaluated(tmp_path / "b", 3)}
    text = report.ablation_table({"webrl": runs}).markdown
    assert "60.0 (no interval)" in text
    assert "webrl, seed 1, is left out: it has no graded episode in an evaluation of phase 1." in text


def test_ablation_of_a_method_without_any_evaluation_keeps_its_row(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    found = report.ablation_table({"awr": {0: tmp_path}})
    assert re.search(r"\| awr +\| +- \| +0 \| +- \| +- \| +0/0 \| +- \|", found.markdown)


def test_a_gain_may_be_negative(tmp_path):
    text = report.ablation_table({"awr": {0: evaluated(tmp_path / "a", 5, 3)}}).markdown
    assert "| -20.0 (no interval) |" in text
