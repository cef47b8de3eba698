"""Forgeworks' pages: what they show, what they refuse, and what they write."""

import re
import shutil
import sqlite3
import time

import pytest

from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.families import PER_SPLIT, entity_split
from webrl_lite.envs.embedded.gitlab.data import ACCOUNT, PASSWORD, slug
from webrl_lite.envs.embedded.gitlab.pages import app
from webrl_lite.envs.embedded.gitlab.tasks import FAMILIES
from webrl_lite.envs.embedded.site import DATABASE, READ_ONLY, SESSION_SECONDS

app.secret_key = "test"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    path = tmp_path_factory.mktemp("world") / "pristine.db"
    world.build(path)
    return path


@pytest.fixture(scope="module")
def db(pristine):
    connection = sqlite3.connect(f"file:{pristine}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


class Visitor:
    """A browser without a screen: reads one database and keeps its cookie."""

    def __init__(self, path, pristine, read_only=False):
        self.client = app.test_client()
        self.path, self.pristine = path, pristine
        self.client.environ_base.update({DATABASE: str(path), READ_ONLY: read_only})

    def sign_in(self, username=ACCOUNT, age=0.0):
        with sqlite3.connect(self.path) as db:
            number = db.execute(
                "SELECT id FROM account WHERE site = 'gitlab' AND username = ?", (username,)
            ).fetchone()[0]
        with self.client.session_transaction() as session:
            session.update(user=number, at=time.time() - age, form_key="key")
        return self

    def get(self, path):
        return self.client.get(path)

    def read(self, path):
        response = self.client.get(path, follow_redirects=True)
        assert response.status_code == 200, path
        return response.get_data(as_text=True)

    def post(self, path, **form):
        return self.client.post(path, data={"form_key": "key", **form})

    def changes(self):
        return [(change["table"], change["op"], change) for change in world.changes(self.pristine, self.path)]


@pytest.fixture
def visitor(pristine, tmp_path):
    path = tmp_path / "w0.db"
    shutil.copyfile(pristine, path)
    return Visitor(path, pristine)


@pytest.fixture
def me(visitor):
    return visitor.sign_in()


def project_of(db, role):
    """Return address and id of a project in which the usual account has a role."""
    return db.execute(
        "SELECT '/' || n.path || '/' || p.path AS url, p.id FROM gitlab_member m "
        "JOIN gitlab_user u ON u.id = m.user_id JOIN gitlab_project p ON p.id = m.project_id "
        "JOIN gitlab_namespace n ON n.id = p.namespace_id WHERE u.username = ? AND m.role = ? ORDER BY p.id",
        (ACCOUNT, role),
    ).fetchone()


def titles(page):
    return re.findall(r'<a class="name" href="[^"]*">([^<]+)</a>', page.split("<main>")[1])


# Data ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "least"),
    [("project", 64), ("user", 45), ("issue", 700), ("merge", 260), ("commit", 1500), ("milestone", 100), ("todo", 40)],
)
def test_there_is_enough_of_everything(db, table, least):
    assert db.execute(f"SELECT COUNT(*) FROM gitlab_{table}").fetchone()[0] >= least


def test_some_projects_share_their_name_with_one_of_another_namespace(db):
    names = [row["name"] for row in db.execute("SELECT name FROM gitlab_project")]
    assert sum(names.count(name) == 2 for name in set(names)) == 6


def test_each_project_has_one_top_contributor(db):
    for (project,) in db.execute("SELECT id FROM gitlab_project").fetchall():
        counts = [
            row[0]
            for row in db.execute(
                "SELECT COUNT(*) FROM gitlab_commit WHERE project_id = ? GROUP BY author_id ORDER BY 1 DESC", (project,)
            )
        ]
        assert counts == [counts[0]] or counts[0] > counts[1]


def test_the_usual_account_owns_eight_projects_and_works_in_ten_more(db):
    roles = [
        row["role"]
        for row in db.execute(
            "SELECT role FROM gitlab_member m JOIN gitlab_user u ON u.id = m.user_id WHERE username = ?", (ACCOUNT,)
        )
    ]
    assert roles.count("Owner") == 8
    assert len(roles) == 18


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_has_enough_instances_for_each_of_its_splits(db, family):
    counts = {"train": 0, "test": 0, "test_families": 0}
    for instance in family.instances(db):
        splits = {entity_split(entity) for entity in instance.entities}
        split = "test_families" if family.held_out else splits.pop() if len(splits) == 1 else None
        if split:
            counts[split] += 1
    wanted = ("test_families",) if family.held_out else ("train", "test")
    assert all(counts[split] >= PER_SPLIT[split] for split in wanted), counts


# All pages -------------------------------------------------------------------------------------------


def test_every_linked_page_opens_on_a_read_only_database_and_writes_nothing(pristine, tmp_path):
    """Follows up to 12 addresses of each kind, from the start page on."""
    path = tmp_path / "w0.db"
    shutil.copyfile(pristine, path)
    reader = Visitor(path, pristine, read_only=True).sign_in()
    waiting, seen, kinds = ["/"], {"/"}, {}
    while waiting:
        page = reader.read(waiting.pop())
        assert page.count('method="post"') == page.count('name="form_key"')
        for link in re.findall(r'href="(/[^"]*)"', page):
            link = link.replace("&amp;", "&")
            kind = re.sub(r"^/[^/?]+/[^/?]+(?=/-/|$)", "/P", link)
            kind = re.sub(r"\d+|=[^&]*|/[0-9a-f]{8}$", "", kind)
            if link not in seen and not link.startswith("/static") and kinds.get(kind, 0) < 12:
                seen.add(link)
                kinds[kind] = kinds.get(kind, 0) + 1
                waiting.append(link)
    assert len(seen) > 150
    assert reader.changes() == []


def test_an_unknown_address_is_an_error_page(me):
    for path in ("/nobody", "/mlindqvist/nothing", "/mlindqvist/nothing/-/issues/1", "/a/b/c"):
        response = me.get(path)
        assert response.status_code == 404
        assert "no page at this address" in response.get_data(as_text=True)


# Log-in ----------------------------------------------------------------------------------------------


def test_an_expired_session_leads_to_the_log_in_form_and_back(visitor):
    visitor.sign_in(age=SESSION_SECONDS + 60)
    response = visitor.get("/dashboard/todos?state=pending")
    assert response.location == "/users/sign_in?next=/dashboard/todos?state%3Dpending"
    page = visitor.read(response.location)
    assert "Your session has expired" in page
    key = re.search(r'name="form_key" value="([^"]+)"', page)[1]
    form = {"username": ACCOUNT, "password": PASSWORD, "form_key": key}
    response = visitor.client.post(response.location, data=form)
    assert response.location == "/dashboard/todos?state=pending"
    assert "To-do list" in visitor.read(response.location)


def test_a_wrong_password_keeps_the_name(visitor):
    page = visitor.read("/users/sign_in")
    key = re.search(r'name="form_key" value="([^"]+)"', page)[1]
    response = visitor.client.post("/users/sign_in", data={"username": ACCOUNT, "password": "wrong", "form_key": key})
    page = response.get_data(as_text=True)
    assert "incorrect" in page
    assert f'value="{ACCOUNT}"' in page


def test_a_private_project_is_hidden_from_others_and_asks_visitors_to_sign_in(visitor, db):
    row = db.execute(
        "SELECT p.id, '/' || n.path || '/' || p.path AS url FROM gitlab_project p "
        "JOIN gitlab_namespace n ON n.id = p.namespace_id WHERE p.visibility = 'Private'"
    ).fetchone()
    stranger = db.execute(
        "SELECT username FROM gitlab_user WHERE id NOT IN (SELECT user_id FROM gitlab_member WHERE project_id = ?)",
        (row["id"],),
    ).fetchone()[0]
    assert visitor.get(row["url"]).location.startswith("/users/sign_in?next=")
    assert visitor.sign_in().get(row["url"]).status_code == 200
    assert visitor.sign_in(stranger).get(row["url"]).status_code == 404


def test_a_form_without_its_token_changes_nothing(me):
    response = me.client.post("/mlindqvist/silver-cache/star", data={"form_key": "other"})
    assert response.status_code == 400
    assert me.changes() == []


# Lists -----------------------------------------------------------------------------------------------


def test_a_list_has_one_address_for_what_it_shows(me, db):
    url = project_of(db, "Owner")["url"]
    assert me.get(f"{url}/-/issues").location == f"{url}/-/issues?state=opened"
    messy = f"{url}/-/issues?sort=&search=&p=1&assignee=tlaine&label=bug&state=opened&other=1"
    assert me.get(messy).location == f"{url}/-/issues?state=opened&label=bug&assignee=tlaine"
    assert me.get(f"{url}/-/issues?state=wrong").location == f"{url}/-/issues?state=opened"
    assert me.get(f"{url}/-/issues?state=closed&label=bug").status_code == 200


def test_the_issue_filters_show_the_issues_of_the_database(me, db):
    project = project_of(db, "Owner")
    wanted = [
        row["title"]
        for row in db.execute(
            "SELECT DISTINCT i.title FROM gitlab_issue i JOIN gitlab_issue_label il ON il.issue_id = i.id "
            "JOIN gitlab_label l ON l.id = il.label_id "
            "WHERE i.project_id = ? AND l.name = 'bug' AND i.state = 'closed'",
            (project["id"],),
        )
    ]
    page = me.read(f"{project['url']}/-/issues?state=closed&label=bug")
    assert sorted(titles(page)) == sorted(wanted)
    assert wanted


def test_issues_can_be_sorted_by_due_date_with_undated_ones_last(me, db):
    project = project_of(db, "Owner")
    page = me.read(f"{project['url']}/-/issues?state=all&sort=due")
    stored = dict(db.execute("SELECT title, due_date FROM gitlab_issue WHERE project_id = ?", (project["id"],)))
    days = [stored[title] or "9999" for title in titles(page)]
    assert len(days) == 10
    assert days == sorted(days)


def test_filters_that_leave_nothing_say_so(me, db):
    page = me.read(f"{project_of(db, 'Owner')['url']}/-/issues?state=opened&label=nothing")
    assert "No issues match." in page
    assert "Label = nothing" in page


def test_a_search_for_a_name_finds_both_projects_of_that_name(me, db):
    name = db.execute("SELECT name FROM gitlab_project GROUP BY name HAVING COUNT(*) = 2").fetchone()[0]
    found = titles(me.read(f"/search?search={name}"))
    assert len(found) == 2
    assert all(title.endswith(f" / {name}") for title in found)


def test_a_search_for_a_full_name_finds_one_project(me):
    assert titles(me.read("/search?search=Marta Lindqvist / Silver Cache")) == ["Marta Lindqvist / Silver Cache"]


def test_projects_are_sorted_as_the_address_says(me):
    by_name = titles(me.read("/dashboard/projects?sort=name"))
    names = [title.split(" / ")[1] for title in by_name]
    assert names == sorted(names)
    stars = [int(count) for count in re.findall(r"(\d+) stars", me.read("/explore/projects?sort=stars"))]
    assert stars == sorted(stars, reverse=True)


def test_commits_are_filtered_by_author_and_days_inclusive(me, db):
    project = project_of(db, "Owner")
    row = db.execute(
        "SELECT u.username, substr(c.created_at, 1, 10) AS day, c.message FROM gitlab_commit c "
        "JOIN gitlab_user u ON u.id = c.author_id WHERE project_id = ? ORDER BY c.id",
        (project["id"],),
    ).fetchone()
    page = me.read(f"{project['url']}/-/commits/main?author={row['username']}&since={row['day']}&until={row['day']}")
    assert titles(page) == [row["message"]]
    assert "Commits 1 to 1 of 1" in page


def test_a_date_that_is_no_day_is_refused_and_kept(me, db):
    page = me.read(f"{project_of(db, 'Owner')['url']}/-/commits/main?since=2025-02-31")
    assert "The date of since must look like" in page
    assert 'name="since" value="2025-02-31"' in page


# Changes ---------------------------------------------------------------------------------------------


def test_a_star_writes_one_row_and_a_second_click_takes_it_back(me, db):
    starred = db.execute(
        "SELECT project_id FROM gitlab_star s JOIN gitlab_user u ON u.id = s.user_id WHERE username = ?", (ACCOUNT,)
    ).fetchall()
    url = next(
        row["url"]
        for row in db.execute(
            "SELECT p.id, '/' || n.path || '/' || p.path AS url FROM gitlab_project p "
            "JOIN gitlab_namespace n ON n.id = p.namespace_id WHERE visibility = 'Public'"
        )
        if row["id"] not in [star["project_id"] for star in starred]
    )
    before = int(re.search(r"(\d+) stars", me.read(url))[1])
    me.post(f"{url}/star")
    assert [change[:2] for change in me.changes()] == [("gitlab_star", "insert")]
    assert int(re.search(r"(\d+) stars", me.read(url))[1]) == before + 1
    me.post(f"{url}/star")
    assert me.changes() == []


def test_an_issue_has_drop_downs_of_divs_and_no_selects(me, db):
    page = me.read(f"{project_of(db, 'Owner')['url']}/-/issues/1")
    assert "<select" not in page
    assert page.count('role="listbox" hidden') == 3
    assert '<div role="option" data-value="">Nobody</div>' in page


def test_a_label_is_added_and_removed_by_the_same_option(me, db):
    project = project_of(db, "Owner")
    issue, label = db.execute(
        "SELECT i.iid, l.id FROM gitlab_issue i JOIN gitlab_label l ON l.project_id = i.project_id "
        "WHERE i.project_id = ? AND NOT EXISTS (SELECT 1 FROM gitlab_issue_label x WHERE x.issue_id = i.id "
        "AND x.label_id = l.id)",
        (project["id"],),
    ).fetchone()
    me.post(f"{project['url']}/-/issues/{issue}/label", value=str(label))
    assert [change[:2] for change in me.changes()] == [("gitlab_issue_label", "insert")]
    me.post(f"{project['url']}/-/issues/{issue}/label", value=str(label))
    assert me.changes() == []


def test_a_comment_is_shown_as_text(me, db):
    url = project_of(db, "Owner")["url"] + "/-/issues/1"
    response = me.post(f"{url}/comment", body=" <b>bold</b> ")
    assert response.location == url
    assert "&lt;b&gt;bold&lt;/b&gt;" in me.read(url)
    (change,) = me.changes()
    assert change[2]["after"]["body"] == "<b>bold</b>"


def test_an_empty_comment_is_refused(me, db):
    response = me.post(project_of(db, "Owner")["url"] + "/-/issues/1/comment", body="  ")
    assert "The comment must not be empty." in response.get_data(as_text=True)
    assert me.changes() == []


def test_a_new_issue_keeps_what_was_typed_when_it_is_refused(me, db):
    url = project_of(db, "Owner")["url"] + "/-/issues/new"
    page = me.post(url, title=" ", body="Some words", assignee="", labels="", milestone="", due="soon").get_data(True)
    assert "The title must not be empty." in page
    assert "The due date must look like" in page
    assert "Some words" in page
    assert me.changes() == []


def test_a_guest_may_comment_but_not_change_an_issue(me, db):
    url = project_of(db, "Guest")["url"]
    other = db.execute(
        "SELECT iid FROM gitlab_issue i JOIN gitlab_user u ON u.id = i.author_id "
        "WHERE project_id = ? AND username <> ?",
        (project_of(db, "Guest")["id"], ACCOUNT),
    ).fetchone()[0]
    page = me.read(f"{url}/-/issues/{other}")
    assert "Edit assignee" not in page
    assert me.post(f"{url}/-/issues/{other}/state", value="closed").status_code == 404
    assert me.post(f"{url}/-/issues/{other}/assignee", value="").status_code == 404
    assert me.get(f"{url}/edit").status_code == 403
    assert me.changes() == []


def test_merging_asks_first_and_writes_one_row(me, db):
    project = project_of(db, "Owner")
    iid = db.execute(
        "SELECT iid FROM gitlab_merge WHERE project_id = ? AND state = 'opened'", (project["id"],)
    ).fetchone()[0]
    url = f"{project['url']}/-/merge_requests/{iid}"
    assert "return confirm(" in me.read(url)
    me.post(f"{url}/merge")
    (change,) = me.changes()
    assert change[:2] == ("gitlab_merge", "update")
    assert change[2]["after"]["state"] == "merged"
    assert me.post(f"{url}/merge").status_code == 404  # once is enough


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "must not be empty"),
        ("-dash", "starts with a letter"),
        ("Über", "starts with a letter"),
        ("silver cache", "already have a project"),
        ("x" * 61, "starts with a letter"),
    ],
)
def test_a_project_name_that_does_not_do_is_refused_and_kept(me, name, complaint):
    page = me.post("/projects/new", name=name, description="kept", visibility="Public").get_data(as_text=True)
    assert complaint in page
    assert f'name="name" value="{name}"' in page
    assert 'value="kept"' in page
    assert re.search(r'value="Public" checked', page)
    assert me.changes() == []


def test_a_new_project_with_a_readme_is_whole(me):
    response = me.post("/projects/new", name="Coral Wiki 2.0", description="", visibility="Private", readme="1")
    assert response.location == "/mlindqvist/coral-wiki-2-0"
    tables = sorted(change[0] for change in me.changes())
    assert tables == ["gitlab_branch", "gitlab_commit", "gitlab_file", "gitlab_member", "gitlab_project"]
    page = me.read("/mlindqvist/coral-wiki-2-0")
    assert "README.md" in page
    assert "git@forge.example:mlindqvist/coral-wiki-2-0.git" in page


def test_an_empty_project_says_so_on_each_of_its_pages(me):
    me.post("/projects/new", name="Hazel Timer", description="", visibility="Public")
    assert "repository of this project is empty" in me.read("/mlindqvist/hazel-timer")
    assert "No commits match." in me.read("/mlindqvist/hazel-timer/-/commits/main")
    assert "Nobody has committed yet." in me.read("/mlindqvist/hazel-timer/-/graphs/main")
    assert "has no milestones" in me.read("/mlindqvist/hazel-timer/-/milestones")
    assert "No merge requests match." in me.read("/mlindqvist/hazel-timer/-/merge_requests")


def test_a_member_is_invited_by_user_name_or_name_but_only_once(me, db):
    project = project_of(db, "Owner")
    username, name = db.execute(
        "SELECT username, name FROM gitlab_user WHERE id NOT IN "
        "(SELECT user_id FROM gitlab_member WHERE project_id = ?)",
        (project["id"],),
    ).fetchone()
    url = f"{project['url']}/-/project_members/invite"
    assert "There is no user" in me.post(url, username="nobody", role="Guest").get_data(as_text=True)
    assert "Choose a role." in me.post(url, username=username, role="Owner").get_data(as_text=True)
    assert me.changes() == []
    assert me.post(url, username=f"@{username}", role="Developer").status_code == 302
    assert "already a member" in me.post(url, username=name, role="Guest").get_data(as_text=True)
    (change,) = me.changes()
    assert change[2]["after"]["role"] == "Developer"


def test_the_owner_can_neither_be_removed_nor_get_another_role(me, db):
    project = project_of(db, "Owner")
    owner = db.execute(
        "SELECT user_id FROM gitlab_member WHERE project_id = ? AND role = 'Owner'", (project["id"],)
    ).fetchone()[0]
    url = f"{project['url']}/-/project_members/{owner}"
    assert me.post(f"{url}/remove").status_code == 404
    assert me.post(f"{url}/role", value="Guest").status_code == 404
    assert me.changes() == []


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        ({"title": "", "start": "", "due": ""}, "must not be empty"),
        ({"title": "New", "start": "2025-07-02", "due": "2025-07-01"}, "must not be before"),
        ({"title": "New", "start": "", "due": "July"}, "The due date must look like"),
    ],
)
def test_a_milestone_that_does_not_do_is_refused(me, db, form, complaint):
    page = me.post(f"{project_of(db, 'Owner')['url']}/-/milestones/new", **form).get_data(as_text=True)
    assert complaint in page
    assert me.changes() == []


def test_a_to_do_of_another_user_cannot_be_finished(visitor, db):
    number = db.execute("SELECT id FROM gitlab_todo WHERE state = 'pending'").fetchone()[0]
    assert visitor.sign_in("lhansen").post(f"/dashboard/todos/{number}/done").status_code == 404
    assert visitor.changes() == []
    visitor.sign_in().post(f"/dashboard/todos/{number}/done")
    assert [change[:2] for change in visitor.changes()] == [("gitlab_todo", "update")]


def test_nobody_follows_themselves(me):
    assert me.post(f"/users/{ACCOUNT}/follow").status_code == 404
    assert "Follow</button>" not in me.read(f"/{ACCOUNT}")


def test_a_profile_with_a_bad_website_is_refused_and_kept(me):
    form = {"status": "Away", "bio": "", "location": "Northam", "website": "example"}
    page = me.post("/-/profile", **form).get_data(as_text=True)
    assert "must start with http" in page
    assert 'value="Away"' in page
    assert me.changes() == []


@pytest.mark.parametrize(
    ("name", "path"), [("Amber Queue", "amber-queue"), ("Coral Wiki 2.0", "coral-wiki-2-0"), ("A_b.", "a-b")]
)
def test_the_path_of_a_name_has_small_letters_digits_and_dashes(name, path):
    assert slug(name) == path
