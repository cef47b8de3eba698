"""All ways to fill in the forum's families that change something, with the rows that must have changed.

Reads the pristine database. An instance is left out where the change has been made already.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from webrl_lite.envs.embedded.families import Instance, state
from webrl_lite.envs.embedded.reddit import words
from webrl_lite.envs.embedded.reddit.data import ACCOUNT, PASSWORD
from webrl_lite.envs.embedded.reddit.instances import (
    ME,
    forums,
    leads,
    lone_comments,
    named_posts,
    others,
    start,
    unique_posts,
)
from webrl_lite.trajectory import JSON

VOTES = {"Upvote": 1, "Downvote": -1}

TEXTS = (
    "Thank you, this helped me a lot.",
    "I would try it with cold water first.",
    "Please show us a photo next time.",
    "My brother had the same idea last year.",
    "That is a fair price for a good one.",
    "Let us talk about it at the next meeting.",
    "I have a spare one, you can have it.",
    "This is exactly what I was looking for.",
    "The small shop near the bridge sells them.",
    "Wait for the weekend, then try again.",
)
"""What instructions ask to write."""
NEW_TITLES = (
    "Second hand {thing} wanted",
    "How I repaired the {thing}",
    "Does the {thing} need a cover?",
    "The {thing} of my grandmother",
    "Good news about the {thing}",
)


def _insert(table: str, **values: JSON) -> dict[str, JSON]:
    return {"table": f"reddit_{table}", "op": "insert", "values": values}


def _update(table: str, key: int, **values: JSON) -> dict[str, JSON]:
    return {"table": f"reddit_{table}", "op": "update", "key": {"id": key}, "values": values}


def _delete(table: str, key: int) -> dict[str, JSON]:
    return {"table": f"reddit_{table}", "op": "delete", "key": {"id": key}}


def _vote_made(row: sqlite3.Row, value: int) -> dict[str, JSON]:
    return state(_insert("submission_vote", user_id=ME, submission_id=row["id"], value=value))


def vote_lead(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a vote on a forum's newest or top submission."""
    for forum, order, row in leads(db):
        if not row["own_vote"]:
            for vote, value in VOTES.items():
                values = {"forum": forum, "order": order, "vote": vote}
                yield Instance(values, (f"forum:{forum}",), _vote_made(row, value), 3, start(forum))


def vote_named(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a vote on a named submission."""
    for row in named_posts(db, "v.value IS NULL"):
        vote = "Upvote" if row["id"] // 6 % 2 else "Downvote"
        values = {"title": row["title"], "forum": row["forum"], "vote": vote}
        entities = (f"submission:{row['title']}", f"forum:{row['forum']}")
        yield Instance(values, entities, _vote_made(row, VOTES[vote]), 3)


def withdraw_vote(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask to take an own vote back."""
    kept = {row["id"]: row for row in unique_posts(db, "v.value IS NOT NULL")}
    sql = "SELECT id, submission_id FROM reddit_submission_vote WHERE user_id = ? ORDER BY id"
    for vote, submission in db.execute(sql, (ME,)).fetchall():
        if submission in kept:
            title = kept[submission]["title"]
            grader = state(_delete("submission_vote", vote))
            yield Instance({"title": title}, (f"submission:{title}",), grader, 2)


def comment_on(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a comment on a named submission."""
    for row in named_posts(db):
        text = TEXTS[row["id"] % len(TEXTS)]
        values = {"title": row["title"], "forum": row["forum"], "text": text}
        entities = (f"submission:{row['title']}", f"forum:{row['forum']}")
        made = _insert("comment", submission_id=row["id"], parent_id=None, author_id=ME, body=text)
        yield Instance(values, entities, state(made), 3)


def reply_to(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a reply to a user's only comment in a thread."""
    for row, comment in lone_comments(db):
        text = TEXTS[comment["id"] % len(TEXTS)]
        values = {"title": row["title"], "user": comment["author"], "text": text}
        entities = (f"submission:{row['title']}", f"user:{comment['author']}")
        made = _insert("comment", submission_id=row["id"], parent_id=comment["id"], author_id=ME, body=text)
        yield Instance(values, entities, state(made), 3)


def post_text(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a new submission with a text."""
    things = {topic.name: topic.things for topic in words.TOPICS}
    for forum in forums(db):
        name = forum["name"]
        for number in range(2):
            thing = things[name][number]
            title = NEW_TITLES[(forum["id"] + number) % len(NEW_TITLES)].format(thing=thing)
            body = TEXTS[(forum["id"] * 3 + number) % len(TEXTS)]
            values = {"forum": name, "title": title, "body": body}
            made = _insert("submission", forum_id=forum["id"], author_id=ME, title=title, url="", body=body)
            yield Instance(values, (f"forum:{name}",), state(made), 3, start(name))


def repost(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask to post a submission's link in another forum under the same title."""
    names = [(forum["id"], forum["name"]) for forum in forums(db)]
    for row in unique_posts(db, "s.url <> ''"):
        number, name = names[row["id"] * 7 % len(names)]
        if name != row["forum"]:
            values = {"title": row["title"], "forum": name}
            made = {"forum_id": number, "author_id": ME, "title": row["title"], "url": row["url"], "body": ""}
            entities = (f"submission:{row['title']}", f"forum:{name}")
            yield Instance(values, entities, state(_insert("submission", **made)), 3)


def edit_post(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask to replace the text of an own submission."""
    for row in unique_posts(db, f"u.id = {ME} AND s.url = ''"):
        for number in range(2):
            body = TEXTS[(row["id"] + 4 * number) % len(TEXTS)]
            values = {"title": row["title"], "body": body}
            made = _update("submission", row["id"], body=body) | {"free": ["edited_at"]}
            yield Instance(values, (f"submission:{row['title']}",), state(made), 2)


def delete_post(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask to delete an own submission."""
    for row in unique_posts(db, f"u.id = {ME}"):
        made = _update("submission", row["id"], deleted=1)
        yield Instance({"title": row["title"]}, (f"submission:{row['title']}",), state(made), 1)


def subscribe(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask to subscribe to a forum, or to end the subscription."""
    own = dict(db.execute("SELECT forum_id, id FROM reddit_subscription WHERE user_id = ?", (ME,)).fetchall())
    for forum in forums(db):
        name = forum["name"]
        if forum["id"] in own:
            verb, made = "Unsubscribe from", _delete("subscription", own[forum["id"]])
        else:
            verb, made = "Subscribe to", _insert("subscription", user_id=ME, forum_id=forum["id"])
        yield Instance({"forum": name, "verb": verb}, (f"forum:{name}",), state(made), 2, start(name))


def change_bio(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a new biography, which names a forum; the page that shows it is checked too."""
    for forum in forums(db):
        name = forum["name"]
        job, love = (texts[forum["id"] % len(texts)] for texts in (words.JOBS, words.LOVES))
        bio = f"{job} and friend of {love}. You find me in {name}."
        grader = state(_update("user", ME, bio=bio))
        look = "document.querySelector('.bio').innerText"
        page: dict[str, JSON] = {"url": f"__REDDIT__/user/{ACCOUNT}", "locator": look}
        grader["eval_types"] = ["database", "program_html"]
        grader["program_html"] = [{**page, "required_contents": {"exact_match": bio}}]
        yield Instance({"bio": bio}, (f"forum:{name}",), grader, 1)


def create_forum(_db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a new forum with all its fields."""
    for number, topic in enumerate(words.TOPICS):
        first, second, third = topic.things[:3]
        kind = ("friends", "market", "help")[number % 3]
        values = {
            "name": f"{topic.name[:15]}_{kind}",
            "title": f"The {first} {kind}",
            "description": f"All about the {first} and the {second}.",
            "sidebar": f"No talk about the {third}, please.",
            "tags": f"{first}, {kind}",
        }
        yield Instance(values, (f"forum:{values['name']}",), state(_insert("forum", **values)), 5)


def send_message(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask for a message to a user."""
    for user in others(db):
        subject = ("Your last post", "Meeting on Friday", "A small favor", "Thank you")[user["id"] % 4]
        text = TEXTS[user["id"] % len(TEXTS)]
        values = {"user": user["username"], "subject": subject, "text": text}
        made = {
            "sender_id": ME,
            "recipient_id": user["id"],
            "reply_to": None,
            "subject": subject,
            "body": text,
        }
        yield Instance(values, (f"user:{user['username']}",), state(_insert("message", **made)), 3)


def answer_message(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask to answer the message of a user."""
    sql = (
        "SELECT m.id, m.sender_id, m.subject, u.username FROM reddit_message m"
        " JOIN reddit_user u ON u.id = m.sender_id"
        " WHERE m.recipient_id = ? ORDER BY m.id"
    )
    for message in db.execute(sql, (ME,)).fetchall():
        text = TEXTS[message["id"] % len(TEXTS)]
        subject = f"Re: {message['subject']}"
        made = {
            "sender_id": ME,
            "recipient_id": message["sender_id"],
            "reply_to": message["id"],
            "subject": subject,
        }
        grader = state(_insert("message", **made, body=text))
        yield Instance({"user": message["username"], "text": text}, (f"user:{message['username']}",), grader, 2)


def sign_in_again(db: sqlite3.Connection) -> Iterator[Instance]:
    """Ask to sign in, the session having expired, and to subscribe to a forum."""
    own = {row[0] for row in db.execute("SELECT forum_id FROM reddit_subscription WHERE user_id = ?", (ME,))}
    for forum in forums(db):
        if forum["id"] not in own:
            values = {"forum": forum["name"], "username": ACCOUNT, "password": PASSWORD}
            made = _insert("subscription", user_id=ME, forum_id=forum["id"])
            begin = ("/inbox",) if len(forum["name"]) % 2 else ("/",)
            entities = (f"forum:{forum['name']}",)
            yield Instance(values, entities, state(made), 3, begin, sessions={"reddit": "expired"})
