"""The forum's pages: what they show, what they refuse, and what they write."""

import re
import shutil
import sqlite3
import time
from collections import Counter

import pytest

from webrl_lite.envs.embedded import world
from webrl_lite.envs.embedded.families import PER_SPLIT, entity_split
from webrl_lite.envs.embedded.reddit.lists import heat, slug
from webrl_lite.envs.embedded.reddit.pages import app
from webrl_lite.envs.embedded.reddit.tasks import FAMILIES
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
    """A browser without a screen: follows one database, keeps its cookie."""

    def __init__(self, path, pristine, read_only=False):
        self.client = app.test_client()
        self.path, self.pristine = path, pristine
        self.client.environ_base.update({DATABASE: str(path), READ_ONLY: read_only})

    def sign_in(self, age=0.0):
        with self.client.session_transaction() as session:
            account = sqlite3.connect(self.path).execute(
                "SELECT id FROM account WHERE site = 'reddit' AND username = 'quiet_harbor'"
            )
            session.update(user=account.fetchone()[0], at=time.time() - age, form_key="key")
        return self

    def get(self, path):
        return self.client.get(path)

    def read(self, path):
        response = self.get(path)
        assert response.status_code == 200, path
        return response.get_data(as_text=True)

    def post(self, path, follow=False, **form):
        data = {"form_key": "key", **form}
        return self.client.post(path, data=data, follow_redirects=follow)

    def changes(self):
        return [(change["table"], change["op"]) for change in world.changes(self.pristine, self.path)]


@pytest.fixture
def visitor(pristine, tmp_path):
    copy = tmp_path / "w0.db"
    shutil.copyfile(pristine, copy)
    return Visitor(copy, pristine).sign_in()


@pytest.fixture
def reader(pristine):
    return Visitor(pristine, pristine, read_only=True).sign_in()


def a_post(db, condition, *values):
    """Return the first submission of a condition and its path."""
    row = db.execute(
        "SELECT s.*, f.name AS forum FROM reddit_submission s JOIN reddit_forum f ON f.id = s.forum_id"
        f" WHERE {condition} ORDER BY s.id",
        values,
    ).fetchone()
    return row, f"/f/{row['forum']}/{row['id']}/{slug(row['title'])}"


FOREIGN = "s.author_id <> 1 AND s.id NOT IN (SELECT submission_id FROM reddit_submission_vote)"


def titles(page):
    return re.findall(r'class="title"[^>]*>([^<]+)<', page)


# Reading ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    (
        "/ /top /all /all/new?p=3 /forums /forums/by_subscribers?p=2 /forums/subscribed /f/chess"
        " /f/chess/active /f/chess/controversial?t=year /search /search?q=guide /wiki /user/quiet_harbor"
        " /user/quiet_harbor/comments /user/quiet_harbor/edit_biography /inbox /inbox/sent /inbox/1"
        " /user/amber_fox/compose /submit/chess /create_forum"
    ).split(),
)
def test_a_page_can_be_read_from_a_read_only_database(reader, path):
    assert "Commons" in reader.read(path)


@pytest.mark.parametrize("path", ("/f/nowhere", "/f/chess/9999/x", "/f/chess/sideways", "/user/nobody", "/inbox/999"))
def test_an_unknown_address_is_a_page_of_its_own(reader, path):
    assert reader.get(path).status_code == 404


def test_the_generated_content_has_the_promised_size(db):
    counts = {
        table: db.execute(f"SELECT COUNT(*) FROM reddit_{table}").fetchone()[0]
        for table in ("forum", "user", "submission", "comment", "subscription")
    }
    least = {"forum": 44, "user": 60, "submission": 420, "comment": 1600, "subscription": 8}
    assert all(counts[table] >= number for table, number in least.items()), counts


def test_a_reply_is_younger_than_what_it_answers(db):
    wrong = db.execute(
        "SELECT COUNT(*) FROM reddit_comment c JOIN reddit_comment p ON p.id = c.parent_id"
        " WHERE c.created_at < p.created_at OR c.submission_id <> p.submission_id"
    )
    assert wrong.fetchone()[0] == 0


def test_new_shows_the_latest_first_and_top_the_best_first(reader, db):
    rows = db.execute(
        "SELECT s.title, s.created_at, s.up - s.down + COALESCE(v.value, 0) AS score FROM reddit_submission s"
        " JOIN reddit_forum f ON f.id = s.forum_id"
        " LEFT JOIN reddit_submission_vote v ON v.submission_id = s.id WHERE f.name = 'chess'"
    ).fetchall()
    assert titles(reader.read("/f/chess/new"))[0] == max(rows, key=lambda row: row["created_at"])["title"]
    assert titles(reader.read("/f/chess/top"))[0] == max(rows, key=lambda row: row["score"])["title"]


def test_ten_times_the_score_is_worth_ten_days():
    """100 points, 5 days old: 2 * 10 - 5 = 15; 10 points, 1 day old: 10 - 1 = 9; -10 points today: -10."""
    assert heat({"score": 100, "created_at": "2025-06-10 08:00:00"}) == 15.0
    assert heat({"score": 10, "created_at": "2025-06-14 23:00:00"}) == 9.0
    assert heat({"score": -10, "created_at": "2025-06-15 00:00:00"}) == -10.0


def test_a_time_span_leaves_older_submissions_out(reader):
    dates = set(re.findall(r"on (\w+) \d+, (\d+)", reader.read("/all/top?t=month")))
    assert dates == {("May", "2025"), ("Jun", "2025")}


def test_a_page_holds_ten_submissions_and_the_next_one_goes_on(reader):
    first, second = titles(reader.read("/all/new")), titles(reader.read("/all/new?p=2"))
    assert len(first) == len(second) == 10
    assert first != second


def test_the_search_shows_same_titles_of_two_forums(reader, db):
    rows = db.execute(
        "SELECT f.name FROM reddit_submission s JOIN reddit_forum f ON f.id = s.forum_id"
        " WHERE s.title = 'Free to a good home'"
    ).fetchall()
    page = reader.read("/search?q=free+to+a+good+home")
    assert len(rows) == 2 and titles(page) == ["Free to a good home"] * 2
    assert all(f'href="/f/{row["name"]}"' in page for row in rows)


def test_the_search_finds_a_forum_and_users_of_similar_names(reader):
    assert 'href="/f/chess"' in reader.read("/search?q=chess")
    page = reader.read("/search?q=amber_fox")
    assert 'href="/user/amber_fox"' in page and 'href="/user/amber_fox_2"' in page


def test_a_list_without_rows_says_so(reader):
    assert "There are no messages here." in reader.read("/inbox/sent")
    assert "No submission has a title" in reader.read("/search?q=zzzz")


def test_the_menu_under_the_name_is_hidden_until_the_mouse_is_there(reader):
    style = reader.read("/static/reddit.css")
    assert re.search(r"\.menu ul \{ display: none", style) and ".menu:hover ul" in style


def test_a_handbook_opens_in_a_new_tab(reader, db):
    name = db.execute("SELECT f.name FROM reddit_wiki w JOIN reddit_forum f ON f.id = w.forum_id").fetchone()[0]
    assert f'<a href="/wiki/{name}" target="_blank">' in reader.read(f"/f/{name}")


# Log-in and tokens ------------------------------------------------------------------------------------------


def test_a_visitor_is_led_to_the_log_in_and_back(pristine):
    visitor = Visitor(pristine, pristine, read_only=True)
    response = visitor.get("/user/amber_fox/compose")
    assert response.headers["Location"] == "/login?next=/user/amber_fox/compose"
    token = re.search(r'name="form_key" value="(\w+)"', visitor.read(response.headers["Location"]))[1]
    form = {"form_key": token, "username": "quiet_harbor", "password": "lantern-7"}
    assert visitor.post(response.headers["Location"], **form).headers["Location"] == "/user/amber_fox/compose"


def test_an_old_log_in_has_expired(pristine):
    visitor = Visitor(pristine, pristine, read_only=True).sign_in(age=SESSION_SECONDS + 1)
    page = visitor.read("/")
    assert "Your session has expired" in page and ">Sign in</a>" in page


def test_a_form_without_its_token_changes_nothing(visitor):
    assert visitor.post("/f/chess/subscribe", form_key="other").status_code == 400
    assert visitor.changes() == []


# Votes and subscriptions ------------------------------------------------------------------------------------


def test_a_vote_is_one_row_and_the_same_vote_takes_it_back(visitor, db):
    row, _path = a_post(db, FOREIGN)
    response = visitor.post(f"/vote/submission/{row['id']}", choice="up", next="/all")
    assert response.headers["Location"] == f"/all#submission-{row['id']}"
    assert visitor.changes() == [("reddit_submission_vote", "insert")]
    visitor.post(f"/vote/submission/{row['id']}", choice="up", next="/all")
    assert visitor.changes() == []


def test_a_vote_changes_the_score_by_one_and_the_button_says_how_to_undo_it(visitor, db):
    row, path = a_post(db, FOREIGN)
    visitor.post(f"/vote/submission/{row['id']}", choice="down", next="/")
    head = visitor.read(path).split("Your comment")[0]
    assert f">{row['up'] - row['down'] - 1} point" in head
    assert "Retract downvote" in head and "Retract upvote" not in head


def test_the_other_vote_turns_a_vote_round(visitor, db):
    vote = db.execute("SELECT * FROM reddit_submission_vote WHERE value = 1").fetchone()
    visitor.post(f"/vote/submission/{vote['submission_id']}", choice="down", next="/")
    (change,) = world.changes(visitor.pristine, visitor.path)
    assert (change["op"], change["key"], change["after"]["value"]) == ("update", {"id": vote["id"]}, -1)


def test_a_vote_never_leads_to_another_site(visitor, db):
    row, _path = a_post(db, FOREIGN)
    response = visitor.post(f"/vote/submission/{row['id']}", choice="up", next="//evil.example/")
    assert response.headers["Location"] == f"/#submission-{row['id']}"


def test_a_comment_takes_votes_too(visitor, db):
    number = db.execute(
        "SELECT id FROM reddit_comment WHERE author_id <> 1 AND id NOT IN (SELECT comment_id FROM reddit_comment_vote)"
    ).fetchone()[0]
    visitor.post(f"/vote/comment/{number}", choice="up", next="/")
    assert visitor.changes() == [("reddit_comment_vote", "insert")]


def test_a_subscription_adds_one_subscriber_and_the_button_then_ends_it(visitor, db):
    name, number = db.execute(
        "SELECT name, subscribers FROM reddit_forum WHERE id NOT IN (SELECT forum_id FROM reddit_subscription)"
    ).fetchone()
    page = visitor.post(f"/f/{name}/subscribe", follow=True).get_data(as_text=True)
    assert f"{number + 1} subscribers" in page and ">Unsubscribe<" in page
    assert visitor.changes() == [("reddit_subscription", "insert")]
    visitor.post(f"/f/{name}/subscribe")
    assert visitor.changes() == []


# Writing ----------------------------------------------------------------------------------------------------


def test_a_new_submission_is_one_row_and_leads_to_its_page(visitor):
    form = {"title": "A very new title", "url": "", "body": "First.\r\nSecond.", "forum": "chess"}
    response = visitor.post("/submit", **form)
    assert re.fullmatch(r"/f/chess/\d+/a-very-new-title", response.headers["Location"])
    (change,) = world.changes(visitor.pristine, visitor.path)
    kept = {name: change["after"][name] for name in ("title", "body", "url", "author_id", "created_at")}
    assert kept == {
        "title": "A very new title",
        "body": "First.\nSecond.",
        "url": "",
        "author_id": 1,
        "created_at": "2025-06-15 12:00:00",
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    (
        ({"forum": "chesss"}, "There is no forum named chesss."),
        ({"forum": ""}, "Choose a forum."),
        ({"title": " "}, "The title must not be empty."),
        ({"title": "x" * 201}, "The title may have 200 characters at most."),
        ({"body": ""}, "Write a body or give a URL."),
        ({"url": "daily-lantern"}, "The URL must be a web address"),
        ({"url": "ftp://a.example/b"}, "The URL must be a web address"),
    ),
)
def test_a_wrong_submission_is_refused_and_what_was_typed_stays(visitor, wrong, message):
    form = {"title": "A title", "url": "", "body": "Kept text", "forum": "chess", **wrong}
    page = visitor.post("/submit", **form).get_data(as_text=True)
    assert message in page
    kept = next(text for text in (form["body"], form["title"]) if text.strip())
    assert kept in page
    assert visitor.changes() == []


def test_the_form_on_a_forum_names_this_forum(reader):
    assert 'href="/submit/chess"' in reader.read("/f/chess")
    assert 'name="forum" value="chess"' in reader.read("/submit/chess")


def test_markup_in_a_title_is_shown_as_text(visitor):
    form = {"title": "<b>x</b><script>1</script>", "body": "<i>y</i>", "url": "", "forum": "chess"}
    for page in (visitor.post("/submit", follow=True, **form).get_data(as_text=True), visitor.read("/f/chess/new")):
        assert "&lt;script&gt;" in page and "<script>1" not in page and "<i>y" not in page


def test_a_comment_is_one_row_and_is_shown(visitor, db):
    _row, path = a_post(db, FOREIGN)
    page = visitor.post(f"{path}/comment", follow=True, comment=" Well said. ").get_data(as_text=True)
    assert "Your comment was posted." in page and "<p>Well said.</p>" in page
    assert visitor.changes() == [("reddit_comment", "insert")]


def test_an_empty_comment_is_refused(visitor, db):
    _row, path = a_post(db, FOREIGN)
    assert b"The comment must not be empty." in visitor.post(f"{path}/comment", comment=" ").data
    assert visitor.changes() == []


def test_a_reply_hangs_on_the_comment_it_answers(visitor, db):
    comment = db.execute("SELECT id, submission_id FROM reddit_comment WHERE author_id <> 1").fetchone()
    _row, path = a_post(db, "s.id = ?", comment["submission_id"])
    visitor.post(f"{path}/comment/{comment['id']}", reply="So it is.")
    (change,) = world.changes(visitor.pristine, visitor.path)
    assert (change["after"]["parent_id"], change["after"]["body"]) == (comment["id"], "So it is.")


def test_an_own_submission_can_be_changed(visitor, db):
    row, path = a_post(db, "s.author_id = 1")
    assert ">Edit</a>" in visitor.read(path)
    form = {"title": row["title"], "url": "", "body": "Another text."}
    page = visitor.post(f"{path}/edit", follow=True, **form).get_data(as_text=True)
    assert "Another text." in page and "changed on Jun 15, 2025" in page
    assert visitor.changes() == [("reddit_submission", "update")]


def test_deleting_asks_first_and_takes_the_submission_off_all_lists(visitor, db):
    row, path = a_post(db, "s.author_id = 1")
    assert "return confirm(&#39;Delete this submission?&#39;)" in visitor.read(path).replace("'", "&#39;")
    visitor.post(f"{path}/delete")
    assert visitor.get(path).status_code == 404
    assert row["title"] not in titles(visitor.read("/search?q=" + row["title"]))
    assert visitor.changes() == [("reddit_submission", "update")]


@pytest.mark.parametrize("what", ("edit", "delete"))
def test_nobody_changes_what_another_wrote(visitor, db, what):
    _row, path = a_post(db, FOREIGN)
    assert ">Edit</a>" not in visitor.read(path)
    response = visitor.post(f"{path}/{what}", title="Mine now", body="x", url="")
    assert response.status_code == 403
    assert visitor.changes() == []


def test_a_new_forum_is_one_row_with_trimmed_tags(visitor):
    form = {"name": "tall_trees", "title": "Tall trees", "description": "About trees.", "sidebar": "Be kind."}
    response = visitor.post("/create_forum", tags=" Oak,elm,, oak ", **form)
    assert response.headers["Location"] == "/f/tall_trees"
    (change,) = world.changes(visitor.pristine, visitor.path)
    assert change["after"]["tags"] == "oak, elm"


@pytest.mark.parametrize(
    ("wrong", "message"),
    (
        ({"name": "no"}, "3 to 25 letters"),
        ({"name": "two words"}, "3 to 25 letters"),
        ({"name": "bäume"}, "3 to 25 letters"),
        ({"name": "CHESS"}, "There is a forum of this name already."),
        ({"title": ""}, "The title must not be empty."),
        ({"sidebar": " "}, "The sidebar must not be empty."),
        ({"tags": "a,b,c,d,e,f"}, "5 tags at most"),
    ),
)
def test_a_wrong_forum_is_refused_and_what_was_typed_stays(visitor, wrong, message):
    form = {"name": "tall_trees", "title": "Tall", "description": "Kept text", "sidebar": "s", "tags": ""}
    page = visitor.post("/create_forum", **{**form, **wrong}).get_data(as_text=True)
    assert message in page and "Kept text" in page
    assert visitor.changes() == []


def test_the_own_biography_can_be_changed_and_no_other(visitor):
    page = visitor.post("/user/quiet_harbor/edit_biography", follow=True, bio="Sails at night.")
    assert "Sails at night." in page.get_data(as_text=True)
    assert visitor.changes() == [("reddit_user", "update")]
    assert visitor.post("/user/amber_fox/edit_biography", bio="x").status_code == 403


def test_an_answer_goes_to_the_sender(visitor, db):
    message = db.execute("SELECT * FROM reddit_message WHERE id = 1").fetchone()
    visitor.post("/inbox/1", message="Yes, gladly.")
    (change,) = world.changes(visitor.pristine, visitor.path)
    sent = change["after"]
    assert (sent["recipient_id"], sent["reply_to"]) == (message["sender_id"], 1)
    assert (sent["subject"], sent["body"]) == (f"Re: {message['subject']}", "Yes, gladly.")


def test_a_message_needs_a_subject_and_keeps_its_text(visitor):
    page = visitor.post("/user/amber_fox/compose", subject="", message="Kept text").get_data(as_text=True)
    assert "The subject must not be empty." in page and "Kept text" in page
    assert visitor.changes() == []


def test_nobody_reads_the_messages_of_others(visitor):
    with sqlite3.connect(visitor.path) as connection:
        connection.execute(
            "INSERT INTO reddit_message (id, sender_id, recipient_id, subject, body, created_at)"
            " VALUES (500, 2, 3, 's', 'b', '2025-06-01 10:00:00')"
        )
    assert visitor.get("/inbox/500").status_code == 404


# Tasks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_fills_its_splits(db, family):
    counts = Counter()
    for instance in family.instances(db):
        splits = {entity_split(entity) for entity in instance.entities}
        counts[splits.pop() if len(splits) == 1 else "mixed"] += 1
        assert all(wording.format(**instance.values) for wording in family.wordings)
        assert 1 <= instance.requirements <= 5
    if family.held_out:
        assert sum(counts.values()) >= PER_SPLIT["test_families"]
    elif family.name == "reddit.user_email":  # the impossible tasks are few on purpose
        assert (counts["train"], counts["test"]) == (4, 2)
    else:
        assert counts["train"] >= PER_SPLIT["train"] and counts["test"] >= PER_SPLIT["test"], counts
