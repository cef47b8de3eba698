"""What the tasks of Forgeworks read from the pristine data: what the usual account sees, and entity names."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from webrl_lite.envs.embedded.families import entity_split
from webrl_lite.envs.embedded.gitlab.data import ACCOUNT
from webrl_lite.trajectory import JSON


@dataclass(frozen=True)
class Place:
    """A project that the usual account sees."""

    id: int
    full_name: str
    """Namespace and name, as pages and instructions write it."""
    url: str
    """Path of its page."""
    role: str
    """The account's role; empty for none."""

    @property
    def entity(self) -> str:
        """The project's name among the entities of tasks."""
        return f"project:{self.full_name}"


def my_id(db: sqlite3.Connection) -> int:
    """Return the usual account's id."""
    return db.execute("SELECT id FROM gitlab_user WHERE username = ?", (ACCOUNT,)).fetchone()["id"]


def places(db: sqlite3.Connection, roles: Sequence[str] = ()) -> list[Place]:
    """Return the projects that the usual account sees, or those where it has one of some roles."""
    rows = db.execute(
        "SELECT p.id, n.name || ' / ' || p.name AS full_name, '/' || n.path || '/' || p.path AS url, "
        "COALESCE(m.role, '') AS role FROM gitlab_project p JOIN gitlab_namespace n ON n.id = p.namespace_id "
        "LEFT JOIN gitlab_member m ON m.project_id = p.id AND m.user_id = ? "
        "WHERE p.visibility <> 'Private' OR m.role IS NOT NULL ORDER BY p.id",
        (my_id(db),),
    )
    found = [Place(**row) for row in rows]
    return [place for place in found if place.role in roles] if roles else found


def rows(db: sqlite3.Connection, table: str, place: Place) -> list[sqlite3.Row]:
    """Return the rows of a table that belong to a project, in order of their ids."""
    return db.execute(f"SELECT * FROM gitlab_{table} WHERE project_id = ? ORDER BY id", (place.id,)).fetchall()


def names(db: sqlite3.Connection) -> dict[int, str]:
    """Return the people's names by id."""
    return {row["id"]: row["name"] for row in db.execute("SELECT id, name FROM gitlab_user ORDER BY id")}


def issue_labels(db: sqlite3.Connection) -> dict[int, list[str]]:
    """Return the labels of each issue by its id."""
    found: dict[int, list[str]] = {}
    for row in db.execute(
        "SELECT il.issue_id, l.name FROM gitlab_issue_label il JOIN gitlab_label l ON l.id = il.label_id ORDER BY 1, 2"
    ):
        found.setdefault(row["issue_id"], []).append(row["name"])
    return found


def unique_titles(db: sqlite3.Connection) -> set[str]:
    """Return the titles that only one issue has."""
    return {row["title"] for row in db.execute("SELECT title FROM gitlab_issue GROUP BY title HAVING COUNT(*) = 1")}


def fitting(texts: Sequence[str], number: int, entity: str) -> str:
    """Choose a text to type that belongs to the same split as an entity.

    Args:
        texts: what to choose from.
        number: any number; equal numbers choose equal texts.
        entity: the named row that the instruction is about.
    """
    split = entity_split(entity)
    ours = [text for text in texts if entity_split(f"text:{text}") == split]
    return ours[number % len(ours)]


def page_text(url: str, locator: str, text: str) -> dict[str, JSON]:
    """Return the ``eval`` object of a change that a page shows: the text of one element, word for word.

    Args:
        url: address with the site's placeholder, or ``last`` for the page that the episode ends on.
        locator: JavaScript that reads the text.
        text: what it must be.
    """
    check = {"url": url, "locator": locator, "required_contents": {"exact_match": text}}
    return {
        "eval_types": ["program_html"],
        "reference_answers": None,
        "reference_url": "",
        "program_html": [check],
    }


def todo_rows(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """Return the usual account's open to-dos, those left out whose titles stand in the list twice.

    Each row has ``id``, ``target``, ``title``, ``iid`` and
    ``url`` (path of the project).
    """
    found = db.execute(
        "SELECT t.id, t.target, COALESCE(i.title, r.title) AS title, COALESCE(i.iid, r.iid) AS iid, "
        "'/' || n.path || '/' || p.path AS url FROM gitlab_todo t "
        "LEFT JOIN gitlab_issue i ON t.target = 'issue' AND i.id = t.target_id "
        "LEFT JOIN gitlab_merge r ON t.target = 'merge' AND r.id = t.target_id "
        "JOIN gitlab_project p ON p.id = COALESCE(i.project_id, r.project_id) "
        "JOIN gitlab_namespace n ON n.id = p.namespace_id "
        "WHERE t.user_id = ? AND t.state = 'pending' ORDER BY t.id",
        (my_id(db),),
    ).fetchall()
    titles = [row["title"] for row in found]
    return [row for row in found if titles.count(row["title"]) == 1]
