"""Submissions and comments as the pages show them: with score, own vote and names, in the order of a sort.

Reads the request's database through ``site.query``. The order "hot" is a fixed formula over score and age on
the sites' own day: every factor of ten in score is worth ten days.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from flask import abort

from webrl_lite.envs.embedded.site import TODAY, query, user

SORTS = ("hot", "new", "active", "top", "controversial")
"""The sorts, as they stand in addresses; the first is the usual one."""
SPANS = {
    "all": "All time",
    "year": "Past year",
    "month": "Past month",
    "week": "Past week",
    "day": "Past day",
}
"""Time spans of the sorts ``top`` and ``controversial``: value of the query parameter ``t`` and its label."""
SPAN_DAYS = {"year": 365, "month": 30, "week": 7, "day": 1}
TIMED_SORTS = ("top", "controversial")
DAYS_PER_TENFOLD = 10

SUBMISSIONS = """
SELECT s.*, f.name AS forum, u.username AS author, COALESCE(v.value, 0) AS own_vote,
  s.up - s.down
  + COALESCE((SELECT SUM(value) FROM reddit_submission_vote WHERE submission_id = s.id), 0) AS score,
  COALESCE(c.number, 0) AS comments, COALESCE(c.last, s.created_at) AS active_at
FROM reddit_submission s
JOIN reddit_forum f ON f.id = s.forum_id
JOIN reddit_user u ON u.id = s.author_id
LEFT JOIN reddit_submission_vote v ON v.submission_id = s.id AND v.user_id = ?
LEFT JOIN (
  SELECT submission_id, COUNT(*) AS number, MAX(created_at) AS last FROM reddit_comment
  GROUP BY submission_id
) c ON c.submission_id = s.id
WHERE s.deleted = 0
"""
"""SELECT of submissions as a reader sees them; its question mark is the reader's user id."""
COMMENTS = """
SELECT c.*, u.username AS author, COALESCE(v.value, 0) AS own_vote, s.title, f.name AS forum,
  c.up - c.down + COALESCE((SELECT SUM(value) FROM reddit_comment_vote WHERE comment_id = c.id), 0) AS score
FROM reddit_comment c
JOIN reddit_submission s ON s.id = c.submission_id
JOIN reddit_forum f ON f.id = s.forum_id
JOIN reddit_user u ON u.id = c.author_id
LEFT JOIN reddit_comment_vote v ON v.comment_id = c.id AND v.user_id = ?
WHERE s.deleted = 0
"""


_FORUMS = """
SELECT f.id, f.name, f.title, f.description, f.sidebar, f.tags,
  f.subscribers + (SELECT COUNT(*) FROM reddit_subscription WHERE forum_id = f.id) AS subscribers,
  (SELECT COUNT(*) FROM reddit_submission WHERE forum_id = f.id AND deleted = 0) AS submissions,
  EXISTS (SELECT 1 FROM reddit_subscription WHERE forum_id = f.id AND user_id = ?) AS subscribed,
  EXISTS (SELECT 1 FROM reddit_wiki WHERE forum_id = f.id) AS has_wiki
FROM reddit_forum f
"""


@dataclass(frozen=True)
class Node:
    """A comment with its replies."""

    row: sqlite3.Row
    replies: tuple[Node, ...]


def member_id() -> int:
    """Return the forum user's id of the signed-in account, 0 if nobody is signed in."""
    account = user()
    rows = query("SELECT id FROM reddit_user WHERE username = ?", account.username) if account else []
    return rows[0]["id"] if rows else 0


def submissions(condition: str = "1", *values: object) -> list[sqlite3.Row]:
    """Return the submissions that meet an SQL condition, newest first.

    Args:
        condition: SQL over ``s`` (reddit_submission), ``f`` (reddit_forum) and ``u`` (the author).
        values: what its question marks stand for.
    """
    sql = f"{SUBMISSIONS} AND {condition} ORDER BY s.created_at DESC, s.id DESC"
    return query(sql, member_id(), *values)


def comments(condition: str, *values: object) -> list[sqlite3.Row]:
    """Return the comments that meet an SQL condition over ``c``, ``s``, ``f`` and ``u``, newest first."""
    return query(f"{COMMENTS} AND {condition} ORDER BY c.created_at DESC, c.id DESC", member_id(), *values)


def thread(submission_id: int) -> tuple[Node, ...]:
    """Return a submission's comments as trees; on each level the best score first, then the oldest."""
    rows = comments("c.submission_id = ?", submission_id)
    children: dict[int | None, list[sqlite3.Row]] = {}
    for row in sorted(rows, key=lambda row: (-row["score"], row["id"])):
        children.setdefault(row["parent_id"], []).append(row)

    def nodes(parent: int | None) -> tuple[Node, ...]:
        return tuple(Node(row, nodes(row["id"])) for row in children.get(parent, ()))

    return nodes(None)


def find_node(nodes: Sequence[Node], comment_id: int) -> Node | None:
    """Return the comment of this id with its replies, or None."""
    for node in nodes:
        found = node if node.row["id"] == comment_id else find_node(node.replies, comment_id)
        if found is not None:
            return found
    return None


def forum_rows(condition: str, *values: object) -> list[sqlite3.Row]:
    """Return forums with their counts; the condition, over ``f`` (reddit_forum), may go on with an order."""
    return query(f"{_FORUMS} WHERE {condition}", member_id(), *values)


def forum_row(name: str) -> sqlite3.Row:
    """Return a forum by its name; ends the request with 404 if there is none."""
    rows = forum_rows("f.name = ?", name)
    if not rows:
        abort(404)
    return rows[0]


def in_order(rows: Sequence[sqlite3.Row], sort: str, span: str = "all") -> list[sqlite3.Row]:
    """Put submissions that come newest first into the order of a sort.

    Args:
        rows: as ``submissions`` returns them; equal ranks keep their order.
        sort: one of ``SORTS``.
        span: a key of ``SPANS``; it counts for the ``TIMED_SORTS`` only, and older submissions are left out.
    """
    if sort in TIMED_SORTS and span in SPAN_DAYS:
        first = (TODAY - timedelta(days=SPAN_DAYS[span])).isoformat()
        rows = [row for row in rows if row["created_at"] >= first]
    if sort == "new":
        return list(rows)
    rank = {"hot": heat, "active": _last_active, "top": _score, "controversial": _controversy}[sort]
    return sorted(rows, key=rank, reverse=True)


def heat(row: sqlite3.Row) -> float:
    """Return a submission's rank for the sort "hot"."""
    size = math.log10(max(1, abs(row["score"])))
    age = (TODAY - date.fromisoformat(row["created_at"][:10])).days
    return math.copysign(size, row["score"]) * DAYS_PER_TENFOLD - age


def _last_active(row: sqlite3.Row) -> str:
    return row["active_at"]


def _score(row: sqlite3.Row) -> int:
    return row["score"]


def _controversy(row: sqlite3.Row) -> float:
    """Many votes, evenly split, rank high."""
    low, high = sorted((row["up"], row["down"]))
    return (low + high) ** (low / high) if low else 0.0


def slug(title: str) -> str:
    """Return a title as it stands in addresses: ``Why is it so?`` becomes ``why-is-it-so``."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].rstrip("-") or "-"
