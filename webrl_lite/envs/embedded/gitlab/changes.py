"""The instances of Forgeworks' families that ask for a change; wordings are in ``tasks``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import timedelta

from webrl_lite.envs.embedded.families import Instance, state
from webrl_lite.envs.embedded.gitlab import words
from webrl_lite.envs.embedded.gitlab.access import INVITED_ROLES
from webrl_lite.envs.embedded.gitlab.data import ACCOUNT, PASSWORD, slug
from webrl_lite.envs.embedded.gitlab.facts import (
    fitting,
    issue_labels,
    my_id,
    names,
    page_text,
    places,
    rows,
    todo_rows,
)
from webrl_lite.envs.embedded.site import TODAY
from webrl_lite.trajectory import JSON

EDITORS = ("Reporter", "Developer", "Maintainer", "Owner")
"""Roles that may change issues and add milestones."""
MERGERS = ("Developer", "Maintainer", "Owner")
"""Roles that may merge and choose reviewers."""
MANAGERS = ("Maintainer", "Owner")
"""Roles that may change members and settings."""


def inserted(table: str, **values: JSON) -> dict[str, JSON]:
    """Return the expected change: a new row with these values."""
    return {"table": f"gitlab_{table}", "op": "insert", "values": values}


def updated(table: str, number: int, **values: JSON) -> dict[str, JSON]:
    """Return the expected change: the row of this id has these values now; its time of change is free."""
    return {
        "table": f"gitlab_{table}",
        "op": "update",
        "key": {"id": number},
        "values": values,
        "free": ["updated_at"],
    }


# On the whole site ----------------------------------------------------------------------------------


def star(db: sqlite3.Connection) -> Iterator[Instance]:
    """Projects that the user has not starred."""
    me = my_id(db)
    starred = [row[0] for row in db.execute("SELECT project_id FROM gitlab_star WHERE user_id = ?", (me,))]
    for place in places(db):
        if place.id not in starred:
            wanted = state(inserted("star", project_id=place.id, user_id=me))
            yield Instance({"project": place.full_name}, (place.entity,), wanted, 1)


def follow(db: sqlite3.Connection) -> Iterator[Instance]:
    """People whom the user does not follow."""
    me = my_id(db)
    followed = [row[0] for row in db.execute("SELECT target_id FROM gitlab_follow WHERE user_id = ?", (me,))]
    for person, name in names(db).items():
        if person != me and person not in followed:
            wanted = state(inserted("follow", user_id=me, target_id=person))
            yield Instance({"person": name}, (f"user:{name}",), wanted, 1)


def set_status(db: sqlite3.Connection) -> Iterator[Instance]:
    """Statuses that an instruction gives."""
    for status in words.STATUSES:
        page = page_text(f"__GITLAB__/{ACCOUNT}", "document.querySelector('.status').innerText", status)
        yield Instance({"status": status}, (f"text:{status}",), page, 1)


def new_project(db: sqlite3.Connection) -> Iterator[Instance]:
    """New names, each with one visibility, half of them with a README."""
    me = my_id(db)
    space = db.execute("SELECT id FROM gitlab_namespace WHERE user_id = ?", (me,)).fetchone()["id"]
    for number, name in enumerate(words.NEW_PROJECTS):
        visibility = ("Private", "Internal", "Public")[number % 3]
        readme = number // 3 % 2 == 0
        values = {"name": name, "path": slug(name), "namespace_id": space, "visibility": visibility}
        changes = [inserted("project", **values), inserted("member", user_id=me, role="Owner")]
        if readme:
            changes += [
                inserted("file", path="README.md"),
                inserted("commit", author_id=me),
                inserted("branch", name="main"),
            ]
        yield Instance(
            {
                "name": name,
                "visibility": visibility,
                "readme": "with a README" if readme else "without a README",
            },
            (f"project:{name}",),
            state(*changes),
            3,
        )


def sign_in_todo(db: sqlite3.Connection) -> Iterator[Instance]:
    """The user's to-dos, after the log-in has expired."""
    for row in todo_rows(db):
        yield Instance(
            {"username": ACCOUNT, "password": PASSWORD, "title": row["title"]},
            (f"{row['target']}:{row['title']}",),
            state(updated("todo", row["id"], state="done")),
            2,
            start=("/dashboard/todos?state=pending",),
            sessions={"gitlab": "expired"},
        )


# Issues and milestones ------------------------------------------------------------------------------


def new_issue(db: sqlite3.Connection) -> Iterator[Instance]:
    """New titles in the user's projects, each with an assignee and a label."""
    people, me = names(db), my_id(db)
    next_issue = db.execute("SELECT MAX(id) + 1 FROM gitlab_issue").fetchone()[0]
    for place in places(db, EDITORS):
        labels = rows(db, "label", place)
        for number, member in enumerate(rows(db, "member", place)):
            if member["user_id"] == me:
                continue
            title = fitting(words.NEW_ISSUES, 7 * place.id + number, place.entity)
            label = labels[(place.id + number) % len(labels)]
            issue = {
                "project_id": place.id,
                "title": title,
                "assignee_id": member["user_id"],
                "author_id": me,
            }
            yield Instance(
                {
                    "project": place.full_name,
                    "title": title,
                    "person": people[member["user_id"]],
                    "label": label["name"],
                },
                (place.entity, f"user:{people[member['user_id']]}", f"text:{title}"),
                state(
                    inserted("issue", **issue, milestone_id=None, state="opened"),
                    inserted("issue_label", issue_id=next_issue, label_id=label["id"]),
                ),
                4,
            )


def close_issue(db: sqlite3.Connection) -> Iterator[Instance]:
    """Open issues of the user's projects."""
    for place in places(db, EDITORS):
        for row in rows(db, "issue", place):
            if row["state"] == "opened":
                yield Instance(
                    {"project": place.full_name, "issue": row["title"]},
                    (place.entity, f"issue:{row['title']}"),
                    state(updated("issue", row["id"], state="closed")),
                    2,
                )


def add_label(db: sqlite3.Connection) -> Iterator[Instance]:
    """Open issues of the user's projects, by a label that they do not have."""
    labels = issue_labels(db)
    for place in places(db, EDITORS):
        for row in rows(db, "issue", place):
            free = [r for r in rows(db, "label", place) if r["name"] not in labels.get(row["id"], [])]
            if row["state"] == "opened" and free:
                label = free[row["id"] % len(free)]
                yield Instance(
                    {"project": place.full_name, "issue": row["title"], "label": label["name"]},
                    (place.entity, f"issue:{row['title']}"),
                    state(inserted("issue_label", issue_id=row["id"], label_id=label["id"])),
                    3,
                )


def new_milestone(db: sqlite3.Connection) -> Iterator[Instance]:
    """New titles and days in the user's projects."""
    for place in places(db, EDITORS):
        for number in range(3):
            title = fitting(words.NEW_MILESTONES, 5 * place.id + number, place.entity)
            due = str(TODAY + timedelta(days=10 + 7 * (place.id + number) % 180))
            wanted = inserted("milestone", project_id=place.id, title=title, due_date=due, start_date="")
            yield Instance(
                {"project": place.full_name, "title": title, "due": due},
                (place.entity, f"text:{title}"),
                state(wanted),
                3,
            )


# Merge requests -------------------------------------------------------------------------------------


def comment_merge(db: sqlite3.Connection) -> Iterator[Instance]:
    """Open merge requests of all projects, with a text to write."""
    title, note = (f"document.querySelector('{where}').innerText" for where in ("h1", ".notes .note:last-child .body"))
    for place in places(db):
        for row in rows(db, "merge", place):
            if row["state"] == "opened":
                comment = fitting(words.NEW_COMMENTS, row["id"], place.entity)
                yield Instance(
                    {"project": place.full_name, "merge": row["title"], "comment": comment},
                    (place.entity, f"merge:{row['title']}", f"text:{comment}"),
                    page_text("last", f"{title} + ': ' + {note}", f"{row['title']}: {comment}"),
                    3,
                )


def merge(db: sqlite3.Connection) -> Iterator[Instance]:
    """Open merge requests of projects in which the user may merge."""
    me = my_id(db)
    for place in places(db, MERGERS):
        for row in rows(db, "merge", place):
            if row["state"] == "opened":
                yield Instance(
                    {"project": place.full_name, "merge": row["title"]},
                    (place.entity, f"merge:{row['title']}"),
                    state(updated("merge", row["id"], state="merged", merged_by=me)),
                    2,
                )


def assign_reviewer(db: sqlite3.Connection) -> Iterator[Instance]:
    """Open merge requests of projects in which the user may choose reviewers, by another member."""
    people = names(db)
    for place in places(db, MERGERS):
        members = [row["user_id"] for row in rows(db, "member", place)]
        for row in rows(db, "merge", place):
            free = [m for m in members if m not in (row["author_id"], row["reviewer_id"], my_id(db))]
            if row["state"] == "opened":
                person = free[row["id"] % len(free)]
                yield Instance(
                    {"project": place.full_name, "merge": row["title"], "person": people[person]},
                    (place.entity, f"merge:{row['title']}", f"user:{people[person]}"),
                    state(updated("merge", row["id"], reviewer_id=person)),
                    3,
                )


# Members and settings -------------------------------------------------------------------------------


def invite(db: sqlite3.Connection) -> Iterator[Instance]:
    """People who are not in a project that the user manages, each with a role."""
    everyone = db.execute("SELECT id, username, name FROM gitlab_user ORDER BY id").fetchall()
    for place in places(db, MANAGERS):
        members = [row["user_id"] for row in rows(db, "member", place)]
        for person in everyone:
            if person["id"] not in members:
                role = INVITED_ROLES[(place.id + person["id"]) % len(INVITED_ROLES)]
                yield Instance(
                    {
                        "project": place.full_name,
                        "person": person["name"],
                        "username": person["username"],
                        "role": role,
                    },
                    (place.entity, f"user:{person['name']}"),
                    state(inserted("member", project_id=place.id, user_id=person["id"], role=role)),
                    3,
                )


def change_role(db: sqlite3.Connection) -> Iterator[Instance]:
    """Members of projects that the user manages, each with another role."""
    people, me = names(db), my_id(db)
    for place in places(db, MANAGERS):
        for row in rows(db, "member", place):
            if row["role"] == "Owner" or row["user_id"] == me:
                continue
            others = [role for role in INVITED_ROLES if role != row["role"]]
            role = others[row["id"] % len(others)]
            yield Instance(
                {"project": place.full_name, "person": people[row["user_id"]], "role": role},
                (place.entity, f"user:{people[row['user_id']]}"),
                state(updated("member", row["id"], role=role)),
                3,
            )


def remove_member(db: sqlite3.Connection) -> Iterator[Instance]:
    """Members of projects that the user manages."""
    people, me = names(db), my_id(db)
    for place in places(db, MANAGERS):
        for row in rows(db, "member", place):
            if row["role"] != "Owner" and row["user_id"] != me:
                yield Instance(
                    {"project": place.full_name, "person": people[row["user_id"]]},
                    (place.entity, f"user:{people[row['user_id']]}"),
                    state({"table": "gitlab_member", "op": "delete", "key": {"id": row["id"]}}),
                    2,
                )


def describe(db: sqlite3.Connection) -> Iterator[Instance]:
    """New descriptions of the projects that the user manages."""
    locator = "document.querySelector('.project-description').innerText"
    for place in places(db, MANAGERS):
        for number in range(3):
            text = fitting(words.NEW_DESCRIPTIONS, 4 * place.id + number, place.entity)
            yield Instance(
                {"project": place.full_name, "text": text},
                (place.entity, f"text:{text}"),
                page_text(f"__GITLAB__{place.url}", locator, text),
                2,
            )
