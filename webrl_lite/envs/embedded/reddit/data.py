"""The forum's tables and its generated content.

``fill`` writes everything from one random generator; ``words`` holds what the texts are made of. Votes and
subscriptions of the crowd are stored as numbers, those of the signed-in account as rows, so that a vote
changes one row and nothing else.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from webrl_lite.envs.embedded.names import TOWNS
from webrl_lite.envs.embedded.reddit import words
from webrl_lite.envs.embedded.reddit.words import TOPICS, Topic

ACCOUNT = "quiet_harbor"
"""The account that is usually signed in."""
PASSWORD = "lantern-7"
"""Its password."""

SCHEMA = """
CREATE TABLE reddit_user (
  id INTEGER PRIMARY KEY, username TEXT NOT NULL UNIQUE COLLATE NOCASE, bio TEXT NOT NULL,
  created_at TEXT NOT NULL
);
CREATE TABLE reddit_forum (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE COLLATE NOCASE, title TEXT NOT NULL,
  description TEXT NOT NULL, sidebar TEXT NOT NULL,
  tags TEXT NOT NULL, subscribers INTEGER NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE reddit_submission (
  id INTEGER PRIMARY KEY, forum_id INTEGER NOT NULL REFERENCES reddit_forum, author_id INTEGER NOT NULL
  REFERENCES reddit_user, title TEXT NOT NULL, url TEXT NOT NULL, body TEXT NOT NULL, up INTEGER NOT NULL,
  down INTEGER NOT NULL, created_at TEXT NOT NULL, edited_at TEXT, deleted INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE reddit_comment (
  id INTEGER PRIMARY KEY, submission_id INTEGER NOT NULL REFERENCES reddit_submission, parent_id INTEGER
  REFERENCES reddit_comment, author_id INTEGER NOT NULL REFERENCES reddit_user, body TEXT NOT NULL,
  up INTEGER NOT NULL, down INTEGER NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE reddit_submission_vote (
  id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES reddit_user, submission_id INTEGER NOT NULL
  REFERENCES reddit_submission, value INTEGER NOT NULL CHECK (value IN (-1, 1)),
  UNIQUE (user_id, submission_id)
);
CREATE TABLE reddit_comment_vote (
  id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES reddit_user, comment_id INTEGER NOT NULL
  REFERENCES reddit_comment, value INTEGER NOT NULL CHECK (value IN (-1, 1)), UNIQUE (user_id, comment_id)
);
CREATE TABLE reddit_subscription (
  id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES reddit_user, forum_id INTEGER NOT NULL
  REFERENCES reddit_forum, UNIQUE (user_id, forum_id)
);
CREATE TABLE reddit_message (
  id INTEGER PRIMARY KEY, sender_id INTEGER NOT NULL REFERENCES reddit_user, recipient_id INTEGER NOT NULL
  REFERENCES reddit_user, reply_to INTEGER REFERENCES reddit_message, subject TEXT NOT NULL,
  body TEXT NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE reddit_wiki (
  id INTEGER PRIMARY KEY, forum_id INTEGER NOT NULL UNIQUE REFERENCES reddit_forum, title TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX reddit_submission_forum ON reddit_submission (forum_id);
CREATE INDEX reddit_comment_submission ON reddit_comment (submission_id);
CREATE INDEX reddit_comment_author ON reddit_comment (author_id);
"""

FIRST_MINUTE = datetime(2024, 1, 1, 6)
LAST_MINUTE = datetime(2025, 6, 13, 21)
USERS = 58
OWN_SUBMISSIONS = 26
OWN_COMMENTS = 22
OWN_SUBSCRIPTIONS = 8
OWN_VOTES = 40
WIKIS = 14
MESSAGES = 14
FIRST_SUBMISSION_ID = 1001
DEEPEST = 3
"""Replies may stand this many levels below a comment on the submission itself."""

SIMILAR_USERS = ("quiet_harbour", "quiet_lantern", "amber_fox_2", "tiny_otters", "rusty_wagon7")
SHARED_TITLES = (
    "Introduce yourself here",
    "Rules for new members",
    "Monthly meeting on Sunday",
    "Best of last year",
    "Looking for a partner",
    "Question from a beginner",
    "Is it too late to start?",
    "Who comes to the summer fair?",
    "Free to a good home",
    "What are you working on?",
    "Photos from the last meeting",
    "Small budget and big plans",
)
"""Titles that stand in two forums each."""


@dataclass
class _Submission:
    topic: int
    author: int
    title: str
    thing: str
    url: str
    body: str
    up: int
    down: int
    created: datetime


@dataclass
class _Comment:
    submission: int
    parent: _Comment | None
    author: int
    body: str
    up: int
    down: int
    created: datetime
    depth: int
    id: int = field(default=0)


def fill(db: sqlite3.Connection, rng: random.Random) -> None:
    """Write the forum's content.

    Args:
        db: a connection to a database that holds ``SCHEMA`` and the table ``account``.
        rng: the only source of chance.
    """
    db.execute(
        "INSERT INTO account (site, username, password, name) VALUES ('reddit', ?, ?, ?)",
        (ACCOUNT, PASSWORD, ACCOUNT),
    )
    names = _fill_users(db, rng)
    _fill_forums(db, rng)
    submissions = _submissions(rng, len(names))
    db.executemany(
        "INSERT INTO reddit_submission (id, forum_id, author_id, title, url, body, up, down, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                FIRST_SUBMISSION_ID + n,
                s.topic + 1,
                s.author,
                s.title,
                s.url,
                s.body,
                s.up,
                s.down,
                _stamp(s.created),
            )
            for n, s in enumerate(submissions)
        ],
    )
    comments = _comments(rng, submissions, len(names))
    db.executemany(
        "INSERT INTO reddit_comment (id, submission_id, parent_id, author_id, body, up, down, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (c.id, c.submission, c.parent and c.parent.id, c.author, c.body, c.up, c.down, _stamp(c.created))
            for c in comments
        ],
    )
    _fill_votes(db, rng, submissions, comments)
    _fill_messages(db, rng, len(names))


def _stamp(moment: datetime) -> str:
    return moment.isoformat(sep=" ")


def _moment(rng: random.Random, first: datetime, last: datetime) -> datetime:
    """Draw a full minute between two moments."""
    return first + timedelta(minutes=rng.randrange(max(1, int((last - first).total_seconds() // 60))))


def _fill_users(db: sqlite3.Connection, rng: random.Random) -> list[str]:
    """Write the users, the usual account first; returns their names in the order of their ids from 1."""
    pairs = [f"{adjective}_{noun}" for adjective in words.ADJECTIVES for noun in words.NOUNS]
    kept = ["amber_fox", "tiny_otter", "rusty_wagon"]
    names = kept + rng.sample([pair for pair in pairs if pair not in kept], USERS - len(kept)) + list(SIMILAR_USERS)
    rng.shuffle(names)
    bios: dict[str, None] = {}  # in the order of making; a set's order differs from process to process
    while len(bios) < len(names):
        loves = " and ".join(rng.sample(words.LOVES, 2))
        bios[f"{rng.choice(words.JOBS)} from {rng.choice(TOWNS).name}. Likes {loves}."] = None
    people = [(ACCOUNT, words.OWN_BIO), *zip(names, rng.sample(list(bios), len(names)), strict=True)]
    opened = datetime(2023, 12, 1)
    db.executemany(
        "INSERT INTO reddit_user (username, bio, created_at) VALUES (?, ?, ?)",
        [(name, bio, _stamp(_moment(rng, datetime(2022, 3, 1), opened))) for name, bio in people],
    )
    return [name for name, _bio in people]


def _fill_forums(db: sqlite3.Connection, rng: random.Random) -> None:
    sizes = rng.sample(range(40, 9900), len(TOPICS))
    for topic, size in zip(TOPICS, sizes, strict=True):
        first, second, third = rng.sample(topic.things, 3)
        description = f"A forum about {topic.title[0].lower()}{topic.title[1:]}."
        sidebar = f"Ask about the {first}, the {second} or the {third}. Be kind and stay on topic."
        created = _stamp(_moment(rng, datetime(2022, 3, 1), datetime(2023, 12, 1)))
        db.execute(
            "INSERT INTO reddit_forum (name, title, description, sidebar, tags, subscribers, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (topic.name, topic.title, description, sidebar, f"{first}, {second}", size, created),
        )
    for forum in sorted(rng.sample(range(len(TOPICS)), WIKIS)):
        body = (
            f"The weekly thread opens on {rng.choice(words.DAYS)}.\n"
            f"New members get the {rng.choice(words.COLORS)} badge.\n"
            f"A post may have at most {rng.randrange(3, 30)} photos."
        )
        db.execute(
            "INSERT INTO reddit_wiki (forum_id, title, body) VALUES (?, ?, ?)",
            (forum + 1, f"Handbook of {TOPICS[forum].name}", body),
        )
    for forum in sorted(rng.sample(range(len(TOPICS)), OWN_SUBSCRIPTIONS)):
        db.execute("INSERT INTO reddit_subscription (user_id, forum_id) VALUES (1, ?)", (forum + 1,))


def _submissions(rng: random.Random, users: int) -> list[_Submission]:
    """Return all submissions, oldest first."""
    titles: list[tuple[int, str, str, bool]] = []  # forum, title, thing, whether it is a link
    for number, topic in enumerate(TOPICS):
        titles += [(number, *chosen) for chosen in _titles(rng, topic, rng.randrange(7, 13))]
    for title in SHARED_TITLES:
        for number in rng.sample(range(len(TOPICS)), 2):
            titles.append((number, title, rng.choice(TOPICS[number].things), False))
    texts = [n for n, (_topic, title, _thing, link) in enumerate(titles) if not link and title not in SHARED_TITLES]
    own = set(rng.sample(texts, OWN_SUBMISSIONS))
    minutes = rng.sample(range(int((LAST_MINUTE - FIRST_MINUTE).total_seconds() // 60)), len(titles))
    scores: dict[int, set[int]] = {}
    made = []
    for number, ((forum, title, thing, link), minute) in enumerate(zip(titles, minutes, strict=True)):
        up, down = _score(rng, scores.setdefault(forum, set()))
        site = rng.choice(words.SITES)
        made.append(
            _Submission(
                topic=forum,
                author=1 if number in own else rng.randrange(2, users + 1),
                title=title,
                thing=thing,
                url=f"https://{site}.example/{thing.replace(' ', '-')}-{rng.randrange(10, 100)}" if link else "",
                body="" if link else _body(rng, thing),
                up=up,
                down=down,
                created=FIRST_MINUTE + timedelta(minutes=minute),
            )
        )
    return sorted(made, key=lambda submission: submission.created)


def _titles(rng: random.Random, topic: Topic, count: int) -> list[tuple[str, str, bool]]:
    """Choose titles for a forum, no pattern twice; each with its thing and whether it is a link."""
    patterns = [(text, False) for text in words.TEXT_TITLES] + [(text, True) for text in words.LINK_TITLES]
    chosen = []
    for pattern, link in rng.sample(patterns, count):
        thing = rng.choice(topic.things)
        chosen.append((pattern.format(thing=thing), thing, link))
    return chosen


def _score(rng: random.Random, taken: set[int]) -> tuple[int, int]:
    """Draw counts of votes up and down whose difference is new in this forum."""
    while True:
        up = int(rng.lognormvariate(3.3, 1.1)) + 1
        down = int(up * rng.betavariate(1.2, 3.5) * 1.6)
        if up - down not in taken:
            taken.add(up - down)
            return up, down


def _body(rng: random.Random, thing: str) -> str:
    said = [text.format(thing=thing, number=rng.randrange(2, 30)) for text in rng.sample(words.BODIES, 2)]
    return " ".join([*said, rng.choice(words.QUESTIONS)])


def _comments(rng: random.Random, submissions: Sequence[_Submission], users: int) -> list[_Comment]:
    """Return all comments, oldest first, with their ids."""
    made: list[_Comment] = []
    last = LAST_MINUTE + timedelta(hours=20)
    for number, submission in enumerate(submissions):
        thread: list[_Comment] = []
        for _ in range(min(12, int(rng.expovariate(1 / 4.4)))):
            open_ = [comment for comment in thread if comment.depth < DEEPEST]
            parent = rng.choice(open_) if open_ and rng.random() < 0.45 else None
            since = parent.created if parent else submission.created
            text = f"{rng.choice(words.OPENINGS)} {rng.choice(words.REMARKS)}"
            up, down = rng.randrange(1, 30), rng.randrange(0, 6)
            if rng.random() < 0.2:
                up, down = rng.randrange(1, 6), rng.randrange(7, 24)
            thread.append(
                _Comment(
                    submission=FIRST_SUBMISSION_ID + number,
                    parent=parent,
                    author=rng.randrange(2, users + 1),
                    body=text.format(thing=submission.thing, number=rng.randrange(2, 20)),
                    up=up,
                    down=down,
                    created=min(_moment(rng, since, since + timedelta(days=9)), last),
                    depth=parent.depth + 1 if parent else 0,
                )
            )
        made += thread
    made.sort(key=lambda comment: comment.created)  # stable: a reply at the last minute stays behind its parent
    for number, comment in enumerate(made, 1):
        comment.id = number
    foreign = [comment for comment in made if submissions[comment.submission - FIRST_SUBMISSION_ID].author != 1]
    for comment in rng.sample(foreign, OWN_COMMENTS):
        comment.author = 1
    return made


def _fill_votes(
    db: sqlite3.Connection,
    rng: random.Random,
    submissions: Sequence[_Submission],
    comments: Sequence[_Comment],
) -> None:
    """Write the usual account's own votes, on what others wrote."""
    foreign = [FIRST_SUBMISSION_ID + n for n, submission in enumerate(submissions) if submission.author != 1]
    db.executemany(
        "INSERT INTO reddit_submission_vote (user_id, submission_id, value) VALUES (1, ?, ?)",
        [(chosen, rng.choice((1, 1, 1, -1))) for chosen in rng.sample(foreign, OWN_VOTES)],
    )
    spoken = [comment.id for comment in comments if comment.author != 1]
    db.executemany(
        "INSERT INTO reddit_comment_vote (user_id, comment_id, value) VALUES (1, ?, ?)",
        [(chosen, rng.choice((1, 1, 1, -1))) for chosen in rng.sample(spoken, OWN_VOTES)],
    )


def _fill_messages(db: sqlite3.Connection, rng: random.Random, users: int) -> None:
    """Write the usual account's inbox, one message from each of some users."""
    moments = sorted(_moment(rng, datetime(2025, 3, 1), LAST_MINUTE) for _ in range(MESSAGES))
    for moment, sender in zip(moments, rng.sample(range(2, users + 1), MESSAGES), strict=True):
        subject, body = rng.choice(words.MESSAGES)
        thing = rng.choice(rng.choice(TOPICS).things)
        text = body.format(thing=thing, day=rng.choice(words.DAYS), color=rng.choice(words.COLORS))
        db.execute(
            "INSERT INTO reddit_message (sender_id, recipient_id, subject, body, created_at) VALUES (?, 1, ?, ?, ?)",
            (sender, subject, text, _stamp(moment)),
        )
