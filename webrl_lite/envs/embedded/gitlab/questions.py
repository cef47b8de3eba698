"""The instances of Forgeworks' families that ask for an answer or for a page; wordings are in ``tasks``."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlencode

from webrl_lite.envs.embedded.families import Instance, answer, final_page
from webrl_lite.envs.embedded.gitlab.data import ACCOUNT
from webrl_lite.envs.embedded.gitlab.facts import (
    Place,
    issue_labels,
    my_id,
    names,
    places,
    rows,
    todo_rows,
    unique_titles,
)
from webrl_lite.envs.embedded.site import day

PERIODS = (
    ("2025-02-01", "2025-03-31"),
    ("2025-03-01", "2025-04-30"),
    ("2025-04-01", "2025-05-31"),
    ("2025-05-01", "2025-06-15"),
)
"""First and last day of the periods that questions about commits name."""


# Answers --------------------------------------------------------------------------------------------


def stars(db: sqlite3.Connection) -> Iterator[Instance]:
    """Projects of others; the user's own stand on the start page with their stars."""
    for place in places(db):
        found = db.execute(
            "SELECT stars_before + (SELECT COUNT(*) FROM gitlab_star s WHERE s.project_id = p.id) AS stars "
            "FROM gitlab_project p WHERE id = ?",
            (place.id,),
        ).fetchone()
        if not place.role:
            yield Instance({"project": place.full_name}, (place.entity,), answer(str(found["stars"])), 1)


def clone_address(db: sqlite3.Connection) -> Iterator[Instance]:
    """Every project, by one of its two addresses."""
    for place in places(db):
        protocol = ("SSH", "HTTPS")[place.id % 3 == 0]
        address = {
            "SSH": f"git@forge.example:{place.url[1:]}.git",
            "HTTPS": f"https://forge.example{place.url}.git",
        }[protocol]
        values = {"project": place.full_name, "protocol": protocol}
        yield Instance(values, (place.entity,), answer(address), 2)


def setting(db: sqlite3.Connection) -> Iterator[Instance]:
    """Every project, by one of the numbers in its settings file."""
    for place in places(db):
        content = next(row["content"] for row in rows(db, "file", place) if row["path"] == "settings.cfg")
        key = ("port", "workers", "timeout")[place.id % 3]
        value = re.search(rf"^{key} = (\d+)$", content, re.MULTILINE)[1]
        yield Instance({"project": place.full_name, "key": key}, (place.entity,), answer(value), 2)


def issue_author(db: sqlite3.Connection) -> Iterator[Instance]:
    """Issues with a title of their own."""
    people, unique = names(db), unique_titles(db)
    for place in places(db):
        for row in rows(db, "issue", place):
            if row["title"] in unique:
                entities = (f"issue:{row['title']}",)
                yield Instance({"issue": row["title"]}, entities, answer(people[row["author_id"]]), 1)


def issue_assignee(db: sqlite3.Connection) -> Iterator[Instance]:
    """Open issues that somebody is assigned to."""
    people = names(db)
    for place in places(db):
        for row in rows(db, "issue", place):
            if row["state"] == "opened" and row["assignee_id"] and row["assignee_id"] != row["author_id"]:
                yield Instance(
                    {"project": place.full_name, "issue": row["title"]},
                    (place.entity, f"issue:{row['title']}"),
                    answer(people[row["assignee_id"]]),
                    2,
                )


def source_branch(db: sqlite3.Connection) -> Iterator[Instance]:
    """Open merge requests."""
    for place in places(db):
        for row in rows(db, "merge", place):
            if row["state"] == "opened":
                yield Instance(
                    {"project": place.full_name, "merge": row["title"]},
                    (place.entity, f"merge:{row['title']}"),
                    answer(row["source_branch"]),
                    2,
                )


def label_count(db: sqlite3.Connection) -> Iterator[Instance]:
    """Projects by a label of two or more open issues."""
    labels = issue_labels(db)
    for place in places(db):
        found = Counter(
            label for row in rows(db, "issue", place) if row["state"] == "opened" for label in labels.get(row["id"], [])
        )
        for label, count in sorted(found.items()):
            if count > 1:
                values = {"project": place.full_name, "label": label}
                yield Instance(values, (place.entity,), answer(str(count)), 3)


def commits_by(db: sqlite3.Connection) -> Iterator[Instance]:
    """Projects by one of their authors."""
    people = names(db)
    for place in places(db):
        for author, count in Counter(row["author_id"] for row in rows(db, "commit", place)).items():
            yield Instance(
                {"project": place.full_name, "person": people[author]},
                (place.entity, f"user:{people[author]}"),
                answer(str(count)),
                2,
            )


def commits_between(db: sqlite3.Connection) -> Iterator[Instance]:
    """Projects by one of their authors and a period with some of the author's commits, not all."""
    people = names(db)
    for place in places(db):
        commits = rows(db, "commit", place)
        for author, every in Counter(row["author_id"] for row in commits).items():
            for since, until in PERIODS:
                count = sum(r["author_id"] == author and since <= r["created_at"][:10] <= until for r in commits)
                if 1 < count < every:
                    yield Instance(
                        {
                            "project": place.full_name,
                            "person": people[author],
                            "since": since,
                            "until": until,
                        },
                        (place.entity, f"user:{people[author]}"),
                        answer(str(count)),
                        4,
                    )


def top_contributor(db: sqlite3.Connection) -> Iterator[Instance]:
    """Projects in which one person has the most commits."""
    people = names(db)
    for place in places(db):
        ranks = Counter(row["author_id"] for row in rows(db, "commit", place)).most_common(2)
        if len(ranks) == 2 and ranks[0][1] > ranks[1][1]:
            yield Instance({"project": place.full_name}, (place.entity,), answer(people[ranks[0][0]]), 2)


def feed_key(db: sqlite3.Connection) -> Iterator[Instance]:
    """The user's projects."""
    for place in places(db):
        key = db.execute(
            "SELECT feed_key FROM gitlab_member WHERE project_id = ? AND user_id = ?", (place.id, my_id(db))
        ).fetchone()
        if key:
            yield Instance({"project": place.full_name}, (place.entity,), answer(key["feed_key"]), 1)


def milestone_due(db: sqlite3.Connection) -> Iterator[Instance]:
    """Milestones of all projects."""
    for place in places(db):
        for row in rows(db, "milestone", place):
            values = {"project": place.full_name, "milestone": row["title"]}
            yield Instance(values, (place.entity,), answer(day(row["due_date"])), 2)


# Pages ----------------------------------------------------------------------------------------------


def open_file(db: sqlite3.Connection) -> Iterator[Instance]:
    """One file of every project."""
    for place in places(db):
        files = [row["path"] for row in rows(db, "file", place)]
        file = files[place.id % len(files)]
        page = final_page(f"__GITLAB__{place.url}/-/blob/main/{file}")
        yield Instance({"project": place.full_name, "file": file}, (place.entity,), page, 2)


def open_todo(db: sqlite3.Connection) -> Iterator[Instance]:
    """The user's to-dos."""
    for row in todo_rows(db):
        kind = "issue" if row["target"] == "issue" else "merge request"
        part = "issues" if row["target"] == "issue" else "merge_requests"
        page = final_page(f"__GITLAB__{row['url']}/-/{part}/{row['iid']}")
        yield Instance({"title": row["title"], "kind": kind}, (f"{row['target']}:{row['title']}",), page, 2)


def issues_page(place: Place, **query: str) -> str:
    """Return the address of a project's list of issues."""
    return f"__GITLAB__{place.url}/-/issues?{urlencode(query)}"


def assigned_issues(db: sqlite3.Connection) -> Iterator[Instance]:
    """Projects by somebody who is assigned to an open issue; the user is ``me``."""
    people = names(db)
    usernames = {row["id"]: row["username"] for row in db.execute("SELECT id, username FROM gitlab_user")}
    for place in places(db):
        issues = rows(db, "issue", place)
        for person in sorted({r["assignee_id"] for r in issues if r["assignee_id"] and r["state"] == "opened"}):
            mine = usernames[person] == ACCOUNT
            yield Instance(
                {"project": place.full_name, "person": "me" if mine else people[person]},
                (place.entity,) if mine else (place.entity, f"user:{people[person]}"),
                final_page(issues_page(place, state="opened", assignee=usernames[person])),
                3,
            )


def filtered_issues(db: sqlite3.Connection) -> Iterator[Instance]:
    """Projects by label and assignee of an open issue, and an order."""
    people, labels = names(db), issue_labels(db)
    usernames = {row["id"]: row["username"] for row in db.execute("SELECT id, username FROM gitlab_user")}
    orders = (("Due date", "due"), ("Updated date", "updated"))
    for place in places(db):
        found = {
            (row["assignee_id"], label)
            for row in rows(db, "issue", place)
            if row["state"] == "opened" and row["assignee_id"] and usernames[row["assignee_id"]] != ACCOUNT
            for label in labels.get(row["id"], [])
        }
        for person, label in sorted(found):
            order, sort = orders[(place.id + person) % 2]
            page = issues_page(place, state="opened", label=label, assignee=usernames[person], sort=sort)
            yield Instance(
                {"project": place.full_name, "label": label, "person": people[person], "order": order},
                (place.entity, f"user:{people[person]}"),
                final_page(page),
                5,
            )


def closed_issues(db: sqlite3.Connection) -> Iterator[Instance]:
    """Projects by a label of a closed issue."""
    labels = issue_labels(db)
    for place in places(db):
        closed = [row["id"] for row in rows(db, "issue", place) if row["state"] == "closed"]
        for label in sorted({label for issue in closed for label in labels.get(issue, [])}):
            page = final_page(issues_page(place, state="closed", label=label))
            yield Instance({"project": place.full_name, "label": label}, (place.entity,), page, 3)


def review_request(db: sqlite3.Connection) -> Iterator[Instance]:
    """Projects by the author of the one open merge request that waits for the user's review."""
    people, me = names(db), my_id(db)
    for place in places(db):
        waiting = [r for r in rows(db, "merge", place) if r["reviewer_id"] == me and r["state"] == "opened"]
        for row in waiting:
            if [other["author_id"] for other in waiting].count(row["author_id"]) == 1:
                person = people[row["author_id"]]
                yield Instance(
                    {"project": place.full_name, "person": person},
                    (place.entity, f"user:{person}"),
                    final_page(f"__GITLAB__{place.url}/-/merge_requests/{row['iid']}"),
                    3,
                )
