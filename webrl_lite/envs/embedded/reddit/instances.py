"""All ways to fill in the forum's families: the values of the instruction, its entities and its grader.

Reads the pristine database. An instance is left out where its answer would not be unique on the page, where a
constant answer would often be right (no comments, score 0), or where the change has been made already.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from webrl_lite.envs.embedded.families import Instance, answer, entity_split, final_page
from webrl_lite.envs.embedded.reddit.data import ACCOUNT
from webrl_lite.envs.embedded.reddit.lists import COMMENTS, SUBMISSIONS, in_order, slug

Instances = Callable[[sqlite3.Connection], Iterable[Instance]]

ME = 1
"""User id of the usual account."""
ORDERS = {"newest": "new", "top": "top"}
"""Which submission an instruction means, and the sort that puts it first."""
BADGE, DAY, PHOTOS = (
    "the color of the badge of new members",
    "the day of the weekly thread",
    "the greatest number of photos in a post",
)
"""What the handbooks say."""
SAME_COUNTS = 4
"""Most instances of the family `negative_comments` that have the same answer."""
NO_EMAIL = {"train": 4, "test": 2}
"""Impossible tasks in each split."""


def posts(db: sqlite3.Connection, condition: str = "1", *values: object) -> list[sqlite3.Row]:
    """Return submissions as the signed-in account sees them, newest first."""
    return db.execute(f"{SUBMISSIONS} AND {condition} ORDER BY s.created_at DESC, s.id DESC", (ME, *values)).fetchall()


def unique_posts(db: sqlite3.Connection, condition: str = "1") -> list[sqlite3.Row]:
    """Return the submissions whose title stands in one forum only."""
    rows = posts(db)
    times = Counter(row["title"] for row in rows)
    kept = {row["id"] for row in posts(db, condition)}
    return [row for row in rows if times[row["title"]] == 1 and row["id"] in kept]


def named_posts(db: sqlite3.Connection, condition: str = "1") -> list[sqlite3.Row]:
    """Return every sixth submission and all decoys, which share their title with another one."""
    unique = {row["id"] for row in unique_posts(db)}
    return [row for row in posts(db, condition) if row["id"] not in unique or row["id"] % 6 == 0]


def forums(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return the forums by name."""
    return db.execute("SELECT * FROM reddit_forum ORDER BY name").fetchall()


def others(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return the users but the usual account, by name."""
    return db.execute("SELECT * FROM reddit_user WHERE id <> ? ORDER BY username", (ME,)).fetchall()


def leads(db: sqlite3.Connection) -> Iterator[tuple[str, str, sqlite3.Row]]:
    """Yield each forum's newest and top submission: the forum's name, which of the two, the row."""
    for forum in forums(db):
        rows = posts(db, "f.id = ?", forum["id"])
        for order, sort in ORDERS.items():
            yield forum["name"], order, in_order(rows, sort)[0]


def page_of(row: sqlite3.Row) -> str:
    """Return the path of a submission's page."""
    return f"/f/{row['forum']}/{row['id']}/{slug(row['title'])}"


def start(name: str) -> tuple[str, ...]:
    """Start every other forum's tasks on its own page, the others on the front page."""
    return (f"/f/{name}",) if len(name) % 2 else ("/",)


# Questions --------------------------------------------------------------------------------------------------


def lead_fact(column: str) -> Instances:
    """Return the instances that ask for a column of a forum's newest or top submission."""

    def instances(db: sqlite3.Connection) -> Iterator[Instance]:
        for forum, order, row in leads(db):
            if row[column] not in (0, ACCOUNT):
                values = {"forum": forum, "order": order}
                yield Instance(values, (f"forum:{forum}",), answer(str(row[column])), 3, start(forum))

    return instances


def post_author(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for the author of a named submission."""
    for row in named_posts(db, f"u.id <> {ME}"):
        values = {"title": row["title"], "forum": row["forum"]}
        entities = (f"submission:{row['title']}", f"forum:{row['forum']}")
        yield Instance(values, entities, answer(row["author"]), 2)


def comment_score(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for the score of a user's only comment in a thread."""
    for row, comment in lone_comments(db):
        if comment["score"] != 0:
            values = {"title": row["title"], "user": comment["author"]}
            entities = (f"submission:{row['title']}", f"user:{comment['author']}")
            yield Instance(values, entities, answer(str(comment["score"])), 2)


def lone_comments(db: sqlite3.Connection) -> Iterator[tuple[sqlite3.Row, sqlite3.Row]]:
    """Yield the comments whose author, not the usual account, has no other in the thread."""
    for row in unique_posts(db):
        thread = db.execute(f"{COMMENTS} AND c.submission_id = ?", (ME, row["id"])).fetchall()
        times = Counter(comment["author"] for comment in thread)
        for comment in thread:
            if times[comment["author"]] == 1 and comment["author"] != ACCOUNT:
                yield row, comment


def negative_comments(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask how many comments of a thread have a score below zero; no number is the answer too often."""
    times: Counter[int] = Counter()
    for row in unique_posts(db):
        thread = db.execute(f"{COMMENTS} AND c.submission_id = ?", (ME, row["id"])).fetchall()
        number = sum(comment["score"] < 0 for comment in thread)
        if len(thread) >= 5 and number and times[number] < SAME_COUNTS:
            times[number] += 1
            yield Instance({"title": row["title"]}, (f"submission:{row['title']}",), answer(str(number)), 2)


def user_likes(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for the two things that a user's biography likes."""
    for user in others(db):
        likes = user["bio"].split("Likes ")[1].rstrip(".").split(" and ")
        yield Instance({"user": user["username"]}, (f"user:{user['username']}",), answer(*likes), 2)


def newest_of_user(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for the title of a user's newest submission."""
    for user in others(db):
        rows = posts(db, "u.id = ?", user["id"])
        if rows:
            yield Instance({"user": user["username"]}, (f"user:{user['username']}",), answer(rows[0]["title"]), 2)


def _subscribers(db: sqlite3.Connection) -> list[tuple[str, int]]:
    """Return forums with their shown number of subscribers, most first."""
    sql = (
        "SELECT name, subscribers + (SELECT COUNT(*) FROM reddit_subscription WHERE forum_id = f.id)"
        " FROM reddit_forum f"
        " ORDER BY 2 DESC, 1"
    )
    return [(name, number) for name, number in db.execute(sql)]


def forum_subscribers(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a forum's number of subscribers."""
    for name, number in sorted(_subscribers(db)):
        yield Instance({"forum": name}, (f"forum:{name}",), answer(str(number)), 1)


def forum_rank(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask which forum stands at a place of the list by subscribers."""
    for rank, (name, _number) in enumerate(_subscribers(db), 1):
        if 2 <= rank <= 36:
            yield Instance({"number": str(rank)}, (f"forum:{name}",), answer(name), 2)


def handbook_fact(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a fact of a forum's handbook."""
    sql = "SELECT f.name, w.body FROM reddit_wiki w JOIN reddit_forum f ON f.id = w.forum_id ORDER BY f.name"
    for name, body in db.execute(sql):
        day, badge, photos = body.rstrip(".").split("\n")
        facts = {DAY: day.split()[-1].rstrip("."), BADGE: badge.split()[-2], PHOTOS: photos.split()[-2]}
        for what, fact in facts.items():
            yield Instance({"forum": name, "what": what}, (f"forum:{name}",), answer(fact), 2)


def user_email(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a user's e-mail address, which the site shows nowhere."""
    left = dict(NO_EMAIL)
    for user in others(db):
        entity = f"user:{user['username']}"
        if left[entity_split(entity)]:
            left[entity_split(entity)] -= 1
            yield Instance({"user": user["username"]}, (entity,), answer(exact="N/A"), 1)


# Pages ------------------------------------------------------------------------------------------------------


def forum_sorted(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a forum in one of its sorts."""
    for forum in forums(db):
        name = forum["name"]
        for sort in ("New", "Active", "Top", "Controversial"):
            url = f"__REDDIT__/f/{name}/{sort.lower()}"
            yield Instance({"forum": name, "sort": sort}, (f"forum:{name}",), final_page(url), 2, start(name))


def forum_span(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a forum in a sort, limited to a time span."""
    for forum in forums(db):
        name = forum["name"]
        for sort in ("Top", "Controversial"):
            for span in ("year", "month", "week"):
                values = {"forum": name, "sort": sort, "span": f"Past {span}"}
                url = f"__REDDIT__/f/{name}/{sort.lower()}?t={span}"
                yield Instance(values, (f"forum:{name}",), final_page(url), 3)


def goto_post(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a submission's page."""
    for row in named_posts(db):
        values = {"title": row["title"], "forum": row["forum"]}
        entities = (f"submission:{row['title']}", f"forum:{row['forum']}")
        yield Instance(values, entities, final_page(f"__REDDIT__{page_of(row)}"), 2)


def user_comments(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for the list of a user's comments."""
    for user in others(db):
        name = user["username"]
        yield Instance({"user": name}, (f"user:{name}",), final_page(f"__REDDIT__/user/{name}/comments"), 2)
