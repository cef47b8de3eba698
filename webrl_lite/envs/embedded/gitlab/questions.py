"""The families of Forgeworks that ask for an answer or for a page."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlencode

from webrl_lite.envs.embedded.families import Family, Instance, answer, final_page
from webrl_lite.envs.embedded.gitlab import oracles
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

SITE = ("gitlab",)
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


FAMILIES = (
    Family(
        "gitlab.stars",
        SITE,
        "retrieve",
        (
            "How many stars does the project {project} have?",
            "Tell me the number of stars of {project}.",
            "Look up the project {project}. How often was it starred?",
        ),
        stars,
        oracles.stars,
    ),
    Family(
        "gitlab.clone_address",
        SITE,
        "retrieve",
        (
            "What is the address for cloning {project} with {protocol}?",
            "I want to clone {project} with {protocol}. Give me the address.",
            "Find the {protocol} clone address of the project {project}.",
        ),
        clone_address,
        oracles.clone_address,
    ),
    Family(
        "gitlab.setting",
        SITE,
        "retrieve",
        (
            "Which {key} is set in the file settings.cfg of {project}?",
            "What value does {key} have in settings.cfg of the project {project}?",
            "Look into settings.cfg of {project} and tell me the {key}.",
        ),
        setting,
        oracles.setting,
    ),
    Family(
        "gitlab.issue_author",
        SITE,
        "retrieve",
        (
            'Who opened the issue "{issue}"?',
            'Tell me the name of the person who opened the issue "{issue}".',
            'Find the issue "{issue}" and name its author.',
        ),
        issue_author,
        oracles.issue_author,
    ),
    Family(
        "gitlab.issue_assignee",
        SITE,
        "retrieve",
        (
            'Who is assigned to the issue "{issue}" of {project}?',
            'Which person has to work on the issue "{issue}" in {project}?',
            'Tell me the assignee of "{issue}" in the project {project}.',
        ),
        issue_assignee,
        oracles.issue_assignee,
        held_out=True,
    ),
    Family(
        "gitlab.source_branch",
        SITE,
        "retrieve",
        (
            'What is the source branch of the merge request "{merge}" in {project}?',
            'Which branch would the merge request "{merge}" of {project} merge?',
            'In {project}, look at the merge request "{merge}". From which branch does it come?',
        ),
        source_branch,
        oracles.source_branch,
    ),
    Family(
        "gitlab.label_count",
        SITE,
        "retrieve",
        (
            'How many open issues of {project} have the label "{label}"?',
            'Count the open issues with the label "{label}" in {project}.',
            'Tell me the number of open "{label}" issues in the project {project}.',
        ),
        label_count,
        oracles.label_count,
    ),
    Family(
        "gitlab.commits_by",
        SITE,
        "retrieve",
        (
            "How many commits did {person} make in {project}?",
            "Count the commits by {person} in the project {project}.",
            "In {project}, what is the number of commits by {person}?",
        ),
        commits_by,
        oracles.commit_count,
    ),
    Family(
        "gitlab.commits_between",
        SITE,
        "retrieve",
        (
            "How many commits did {person} make in {project} from {since} until {until}?",
            "Count the commits by {person} in {project} since {since} and until {until}.",
            "In the time from {since} until {until}, how many commits of {project} are by {person}?",
        ),
        commits_between,
        oracles.commit_count,
    ),
    Family(
        "gitlab.top_contributor",
        SITE,
        "retrieve",
        (
            "Who has made the most commits in {project}?",
            "Name the top contributor of the project {project}.",
            "Which contributor of {project} has the most commits?",
        ),
        top_contributor,
        oracles.top_contributor,
    ),
    Family(
        "gitlab.feed_key",
        SITE,
        "retrieve",
        (
            "What is my feed key for {project}?",
            "I need the feed key of the project {project}.",
            "Look up the feed key with which my news reader can follow {project}.",
        ),
        feed_key,
        oracles.feed_key,
    ),
    Family(
        "gitlab.milestone_due",
        SITE,
        "retrieve",
        (
            'When is the milestone "{milestone}" of {project} due?',
            'What is the due date of the milestone "{milestone}" in {project}?',
            'Until which day shall {project} reach the milestone "{milestone}"?',
        ),
        milestone_due,
        oracles.milestone_due,
    ),
    Family(
        "gitlab.open_file",
        SITE,
        "navigate",
        (
            "Open the file {file} of {project}.",
            "Show me {file} in the project {project}.",
            "Go to the page of the file {file} in {project}.",
        ),
        open_file,
        oracles.open_file,
    ),
    Family(
        "gitlab.open_todo",
        SITE,
        "navigate",
        (
            'Open the {kind} of my to-do "{title}".',
            'My to-do list has the {kind} "{title}". Go to its page.',
            'Show me the {kind} "{title}" from my to-do list.',
        ),
        open_todo,
        oracles.open_todo,
    ),
    Family(
        "gitlab.assigned_issues",
        SITE,
        "navigate",
        (
            "Show the open issues of {project} that are assigned to {person}.",
            "List the open issues assigned to {person} in {project}.",
            "In {project}, filter the open issues so that only those assigned to {person} are left.",
        ),
        assigned_issues,
        oracles.assigned_issues,
    ),
    Family(
        "gitlab.filtered_issues",
        SITE,
        "navigate",
        (
            'List the open issues of {project} with the label "{label}" that are assigned to {person}, '
            'sorted by "{order}".',
            'Sort the issues of {project} by "{order}" and show only open ones with the label "{label}" '
            "and the assignee {person}.",
            'Show the open "{label}" issues in {project} assigned to {person}, in the order "{order}".',
        ),
        filtered_issues,
        oracles.filtered_issues,
    ),
    Family(
        "gitlab.closed_issues",
        SITE,
        "navigate",
        (
            'Show the closed issues of {project} with the label "{label}".',
            'List all issues labelled "{label}" that are closed in {project}.',
            'In {project}, which closed issues have the label "{label}"? Show me the list.',
        ),
        closed_issues,
        oracles.closed_issues,
    ),
    Family(
        "gitlab.review_request",
        SITE,
        "navigate",
        (
            "Open the merge request by {person} in {project} that waits for my review.",
            "{person} has asked me to review an open merge request in {project}. Go to it.",
            "In {project}, open my review request for the merge request by {person}.",
        ),
        review_request,
        oracles.review_request,
        held_out=True,
    ),
)
