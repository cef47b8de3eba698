"""The embedded sites as a whole: state, server, tasks and splits; the proof that every task can be solved."""

import collections
import http.client
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from importlib import import_module

import psutil
import pytest
import tokenizers
from flask import Flask
from flask.sessions import SecureCookieSessionInterface

from webrl_lite.envs.embedded import site, world
from webrl_lite.envs.embedded.backend import EmbeddedSites
from webrl_lite.envs.embedded.families import PRETRAINING, all_families, entity_split
from webrl_lite.envs.embedded.play import play_all, play_oracle
from webrl_lite.envs.embedded.server import SiteServer
from webrl_lite.envs.embedded.site import mint_cookie
from webrl_lite.envs.web_env import WebEnv

SMALL = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INTEGER); CREATE TABLE u (id INTEGER PRIMARY KEY);"


def get(server: SiteServer, host: str, path: str = "/", method: str = "GET", body: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    headers = {"Host": f"{host}:{server.port}", "Content-Type": "application/x-www-form-urlencoded"}
    connection.request(method, path, body=body, headers=headers)
    response = connection.getresponse()
    text = response.read().decode("utf-8", "replace")
    connection.close()
    return response.status, text


# State ----------------------------------------------------------------------------------------------------------


def test_the_data_are_the_same_every_time(tmp_path):
    for name in ("a.db", "b.db"):
        world.build(tmp_path / name)
    assert world.changes(tmp_path / "a.db", tmp_path / "b.db") == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "b.db"]


def test_the_data_are_the_same_in_every_process(tmp_path):
    """The order of a set of texts differs from process to process; no data may hang on it."""
    code = "import sys, pathlib; from webrl_lite.envs.embedded import world; world.build(pathlib.Path(sys.argv[1]))"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / f"{seed}.db")], env=environment, check=True)
    assert world.changes(tmp_path / "1.db", tmp_path / "2.db") == []


def test_the_data_are_large_enough_that_reading_everything_fails(sites):
    db = sqlite3.connect(sites.folder / world.PRISTINE)
    least = {
        "shop_product": 200,
        "shop_order": 150,
        "shop_customer": 60,
        "reddit_forum": 40,
        "gitlab_project": 60,
        "gitlab_issue": 300,
        "reddit_comment": 1000,
    }
    counts = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in least}
    assert all(counts[table] >= number for table, number in least.items()), counts


def test_changes_lists_inserted_updated_and_deleted_rows(tmp_path):
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    for path in (old, new):
        db = sqlite3.connect(path)
        db.executescript(SMALL + "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3);")
        db.close()
    db = sqlite3.connect(new)
    db.executescript(
        "UPDATE t SET n = 9 WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (4, 'd', NULL);"
    )
    db.close()
    assert world.changes(old, new) == [
        {
            "table": "t",
            "op": "update",
            "key": {"id": 1},
            "before": {"id": 1, "name": "a", "n": 1},
            "after": {"id": 1, "name": "a", "n": 9},
        },
        {"table": "t", "op": "delete", "key": {"id": 2}, "before": {"id": 2, "name": "b", "n": 2}, "after": None},
        {"table": "t", "op": "insert", "key": {"id": 4}, "before": None, "after": {"id": 4, "name": "d", "n": None}},
    ]


def test_a_reset_gives_the_pristine_state_back(sites):
    path = world.reset(sites.folder, "w90")
    db = sqlite3.connect(path)
    db.execute("DELETE FROM shop_product")
    db.commit()
    db.close()
    assert sites.changes(90)
    world.reset(sites.folder, "w90")
    assert sites.changes(90) == []


# Server ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["shopping.w7.localhost", "shopping.localhost", "evil.w0.localhost", "localhost", "x"])
def test_a_host_without_a_world_has_no_site(sites, host):
    world.reset(sites.folder, "w0")
    assert get(sites.server, host)[0] == 404


def test_the_state_before_is_read_only_and_all_its_pages_are_served(sites):
    """A GET that wrote would fail on the read-only database; a POST cannot change it."""
    for name in world.SITES:
        status, _ = get(sites.server, f"{name}.w0-before.localhost")
        assert status in (200, 302), name
    get(sites.server, "shopping.w0-before.localhost", "/newsletter", "POST", "email=a@example.com")
    assert world.changes(sites.folder / world.PRISTINE, sites.folder / world.PRISTINE) == []


def test_no_address_shows_or_sets_the_state(sites):
    """What grades an episode is a file; the server has no end-point for it."""
    for path in ("/state", "/reset", "/admin/state", "/pristine.db", "/w0.db", "/static/../w0.db", "/api/state"):
        assert get(sites.server, "shopping.w0.localhost", path)[0] in (302, 404), path


def test_the_server_listens_on_the_loopback_only(sites):
    connections = psutil.Process(sites.server.process.pid).net_connections(kind="inet")
    assert {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


def test_the_server_ends_when_its_parent_is_killed(tmp_path):
    """MPR-01: nothing of a killed run goes on."""
    code = (
        "import sys, time; from pathlib import Path; from webrl_lite.envs.embedded.server import SiteServer;"
        "s = SiteServer(Path(sys.argv[1])); print(s.process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    for _ in range(100):
        if not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the site server outlived its parent by 10 s")


def test_two_servers_at_once_take_two_ports(tmp_path):
    """MPR-02: the system chooses the port, so nobody else's server can be taken for ours."""
    servers = [SiteServer(tmp_path) for _ in range(2)]
    assert servers[0].port != servers[1].port
    for server in servers:
        server.close()
        server.close()
        assert not server.alive()


def test_a_run_leaves_no_file_outside_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    backend = EmbeddedSites(tmp_path / "run")
    backend.start(backend.tasks[0], 0)
    backend.close()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert {path.name for path in (tmp_path / "run").iterdir()} == {world.PRISTINE, "w0.db"}


# What the sites share -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cents", "text"), [(0, "$0.00"), (5, "$0.05"), (123450, "$1,234.50"), (-250, "-$2.50")])
def test_money(cents, text):
    assert site.money(cents) == text


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        ("2025-06-15 12:00:00", "today"),
        ("2025-06-14", "1 day ago"),
        ("2025-06-01", "2 weeks ago"),
        ("2025-05-10", "1 month ago"),
        ("2023-06-01", "2 years ago"),
    ],
)
def test_ago_counts_from_the_sites_own_day(stamp, text):
    """The sites stand on June 15, 2025."""
    assert site.ago(stamp) == text
    assert site.day("2025-06-03 10:15:00") == "Jun 3, 2025"


@pytest.mark.parametrize("target", ["//evil.example", "/\\evil.example", "http://evil.example", "", "javascript:x"])
def test_a_sign_in_never_leads_to_another_host(target):
    assert site.local_path(target) == "/"
    assert site.local_path("/cart?a=1") == "/cart?a=1"


@pytest.mark.parametrize("name", [name for name in world.SITES if name != "map"])
def test_signing_in(sites, name):
    """Right and wrong password, a form without its token, an expired session, signing out."""
    world.reset(sites.folder, "w91")
    pages = import_module(f"webrl_lite.envs.embedded.{name}.pages")
    account = import_module(f"webrl_lite.envs.embedded.{name}.data").ACCOUNT
    pages.app.secret_key = "test"
    client = pages.app.test_client()
    environ = {site.DATABASE: str(sites.folder / "w91.db"), "HTTP_HOST": "x.localhost"}
    path = pages.app.extensions["login_path"]

    def key() -> str:
        client.get(path, environ_overrides=environ)
        with client.session_transaction(environ_overrides=environ) as session:
            return session["form_key"]

    def post(password: str, form_key: str) -> int:
        form = {"username": account, "password": password, "form_key": form_key}
        return client.post(path, data=form, environ_overrides=environ).status_code

    right = sites.password(name, account)
    assert post(right, "") == 400
    assert post("wrong", key()) == 200
    assert post(right, key()) == 302
    with client.session_transaction(environ_overrides=environ) as session:
        assert session["user"]
        session["at"] = 0.0
    assert client.post("/logout", environ_overrides=environ).location == path  # a form sent too late leads there too
    page = client.get("/", environ_overrides=environ, follow_redirects=True).get_data(as_text=True)
    assert "Your session has expired. Please sign in again." in page
    with client.session_transaction(environ_overrides=environ) as session:
        assert "user" not in session
    assert sites.changes(91) == []


# Tasks ----------------------------------------------------------------------------------------------------------


def test_the_splits_are_large_enough(sites):
    count = collections.Counter(task.split for task in sites.tasks)
    assert count["train"] >= 400
    assert count["test"] >= 150
    assert count["test_families"] >= 60


def test_families_are_many_and_held_out_ones_occur_in_their_split_only(sites):
    families = collections.defaultdict(set)
    for task in sites.tasks:
        families[task.split].add(task.family)
    assert len(families["train"]) >= 45
    assert families["train"] == families["test"]
    assert not families["train"] & families["test_families"]
    assert families["train"] | families["test_families"] == {family.name for family in all_families()} - PRETRAINING


def test_no_entity_of_test_occurs_in_train(sites):
    entities = collections.defaultdict(set)
    for task in sites.tasks:
        assert task.entities, task.task_id
        entities[task.split].update(task.entities)
    assert not entities["train"] & entities["test"]
    assert entity_split("product:Kestrel Kettle") in ("train", "test")


def test_every_family_has_three_wordings_that_use_all_values():
    for family in all_families():
        assert len(set(family.wordings)) >= 3, family.name
        assert family.kind in ("retrieve", "navigate", "change")


def test_ids_and_instructions_are_unique(sites):
    assert len({task.task_id for task in sites.tasks}) == len(sites.tasks)
    repeated = [i for i, n in collections.Counter((t.intent, t.start_url) for t in sites.tasks).items() if n > 1]
    assert not repeated


def test_difficulty_is_stored_and_spread(sites):
    """Required steps 1 to 12 as measured, requirements 1 to 5."""
    missing = [task.task_id for task in sites.tasks if task.required_steps is None]
    assert not missing, "run `python -m webrl_lite.envs.embedded measure`"
    steps = collections.Counter(task.required_steps for task in sites.tasks)
    assert min(steps) >= 1
    assert max(steps) <= 12
    assert sum(steps[n] for n in (1, 2, 3)) >= 0.1 * len(sites.tasks)
    assert sum(steps[n] for n in range(8, 13)) >= 0.1 * len(sites.tasks)
    assert {task.requirements for task in sites.tasks} == {1, 2, 3, 4, 5}


def test_at_most_one_task_in_twenty_is_impossible(sites):
    impossible = [t for t in sites.tasks if "N/A" in json.dumps(t.eval.get("reference_answers"))]
    assert 0 < len(impossible) <= 0.05 * len(sites.tasks)


def test_tasks_are_the_same_every_time(sites, tmp_path):
    again = EmbeddedSites(tmp_path)
    again.close()
    assert again.tasks == sites.tasks


# Proof ----------------------------------------------------------------------------------------------------------


def prove(sites, tasks):
    tally = play_all(sites, tasks, workers=2)
    assert tally.failures == []
    assert tally.env_errors == 0
    assert tally.null == 0, "an agent that stops at once must not solve anything"
    assert tally.wrong == 0, "a wrong answer must not solve anything"
    assert tally.na == sum("N/A" in json.dumps(t.eval.get("reference_answers")) for t in tasks)
    more = {
        t.task_id: tally.steps[t.task_id] - t.required_steps
        for t in tasks
        if tally.steps[t.task_id] != t.required_steps
    }
    assert len(more) <= 0.03 * len(tasks), more  # a busy machine may cost an oracle one more look at a page
    assert all(abs(number) == 1 for number in more.values()), more
    print(f"oracle {tally.oracle}/{tally.tried}, always N/A {tally.na}/{tally.tried}")


@pytest.mark.timeout(600)
def test_a_page_is_usually_under_350_tokens_and_never_over_900(sites, shared_browser):
    """By a byte-level BPE of 4,096 pieces learned on other pages: a third of the families, one task each."""
    first = {task.family: task for task in reversed(sites.tasks)}
    env = WebEnv(sites, browser=shared_browser, budget=None)
    pages = []
    for task in list(first.values())[::3]:
        pages += [step.observation for step in play_oracle(env, task).steps]
    env.close()
    learner = tokenizers.ByteLevelBPETokenizer()
    learner.train_from_iterator(pages[::2], vocab_size=4096, show_progress=False)
    lengths = sorted(len(learner.encode(page).ids) for page in pages[1::2])
    print(f"{len(lengths)} pages: median {lengths[len(lengths) // 2]}, longest {lengths[-1]} tokens")
    assert len(lengths) > 80
    assert lengths[len(lengths) // 2] < 350
    assert lengths[-1] <= 900


@pytest.mark.timeout(1200)
def test_forty_tasks_drawn_with_a_seed_are_solved_by_their_oracles_and_by_nobody_else(sites):
    prove(sites, random.Random(0).sample(list(sites.tasks), 40))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_task_is_solved_by_its_oracle_and_by_nobody_else(sites):
    prove(sites, list(sites.tasks))


def test_a_log_in_is_signed_as_flask_does_and_without_making_an_application(monkeypatch):
    """Episodes start in threads, and CPython 3.11 compiles no two applications' routes at once: SystemError."""
    app = Flask("reader")
    app.secret_key = "key"
    monkeypatch.setattr(site, "Flask", lambda name: pytest.fail("an application was made"))
    cookie = mint_cookie("key", 7)
    assert SecureCookieSessionInterface().get_signing_serializer(app).loads(cookie)["user"] == 7
