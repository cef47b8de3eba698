"""The data of Forgeworks: people, groups, projects, issues, merge requests, commits and files.

``world.build`` runs ``SCHEMA`` and then ``fill``. Everything is drawn from ``words`` by one seeded generator. Wanted
look-alikes: six project names exist in two namespaces, some people share a last name, and a few issue titles occur
in two projects.
"""

from __future__ import annotations

import random
import re
import sqlite3
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from webrl_lite.envs.embedded.gitlab import words
from webrl_lite.envs.embedded.gitlab.schema import SCHEMA as SCHEMA  # ``world.build`` looks for it here
from webrl_lite.envs.embedded.names import TOWNS

ACCOUNT = "mlindqvist"
"""The usual signed-in user."""
PASSWORD = "anvil-19"
"""Password of the usual account."""

FIRST_DAY, LAST_DAY = date(2024, 9, 2), date(2025, 6, 13)
DECOYS = (0, 1, 2, 9, 14, 21)
"""Numbers of the projects whose names the last projects, those of other people, have too."""


@dataclass
class _Project:
    """A project while its parts are made."""

    id: int
    owner: int
    members: dict[int, str]
    """Role by user id."""
    committers: list[int] = field(default_factory=list)
    """User ids, the busiest first."""
    labels: list[int] = field(default_factory=list)
    milestones: list[int] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)


def slug(name: str) -> str:
    """Return the path of a name: ``Amber Queue`` becomes ``amber-queue``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def fill(db: sqlite3.Connection, rng: random.Random) -> None:
    """Write the generated rows.

    Args:
        db: the database, with ``SCHEMA`` and the table ``account``.
        rng: the site's generator; the same state gives the same rows.
    """
    users = _people(db, rng)
    projects = _projects(db, rng, users)
    _plans(db, rng, projects)
    for project in projects:
        _commits(db, rng, project)
        _branches_and_files(db, rng, project)
    _issues(db, rng, projects, users)
    _merges(db, rng, projects, users[0])
    _notes(db, rng, users)
    _todos(db, rng, users)


def _insert(db: sqlite3.Connection, table: str, **values: object) -> int:
    names = ", ".join(values)
    marks = ", ".join("?" * len(values))
    return db.execute(f"INSERT INTO gitlab_{table} ({names}) VALUES ({marks})", tuple(values.values())).lastrowid or 0


def _moments(rng: random.Random, count: int, start: date = FIRST_DAY, end: date = LAST_DAY) -> list[str]:
    """Return times, mostly of work days, between two days, in order and all different."""
    found: set[str] = set()
    while len(found) < count:
        on = start + timedelta(days=rng.randint(0, (end - start).days))
        at = datetime(on.year, on.month, on.day, rng.randint(8, 18), rng.randint(0, 59))
        if at.weekday() < 5 or rng.random() < 0.2:
            found.add(f"{at:%Y-%m-%d %H:%M:%S}")
    return sorted(found)


def _people(db: sqlite3.Connection, rng: random.Random) -> list[int]:
    ids = []
    for username, name in words.PEOPLE:
        password = PASSWORD if username == ACCOUNT else f"{rng.choice(words.FIRST).lower()}-{rng.randint(10, 99)}"
        ids.append(
            db.execute(
                "INSERT INTO account (site, username, password, name) VALUES ('gitlab', ?, ?, ?)",
                (username, password, name),
            ).lastrowid
        )
        _insert(
            db,
            "user",
            id=ids[-1],
            username=username,
            name=name,
            status=rng.choice(words.STATUS_LINES),
            bio=rng.choice(words.BIOS),
            location=rng.choice(TOWNS).name,
            website=f"https://{username}.example" if rng.random() < 0.4 else "",
            feed_key=_feed_key(rng),
            joined=f"{rng.randint(2019, 2024)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        )
        _insert(db, "namespace", path=username, name=name, description="", user_id=ids[-1])
    for path, name, description in words.GROUPS:
        _insert(db, "namespace", path=path, name=name, description=description, user_id=None)
    for user in ids:
        for target in rng.sample([other for other in ids if other != user], rng.randint(2, 7)):
            _insert(db, "follow", user_id=user, target_id=target)
    return ids


def _feed_key(rng: random.Random) -> str:
    return f"fk-{rng.randint(1000, 9999)}-{rng.randint(1000, 9999)}"


def _projects(db: sqlite3.Connection, rng: random.Random, users: list[int]) -> list[_Project]:
    """Make 72 projects: 8 of the usual account, 4 in each group, 2 of each of twelve people."""
    me = users[0]
    namespaces = {row["path"]: row["id"] for row in db.execute("SELECT path, id FROM gitlab_namespace")}
    groups = [path for path, _, _ in words.GROUPS]
    owners = dict(zip(groups, rng.sample(users[1:], len(groups)), strict=True))
    people = rng.sample(range(1, len(users)), 12)
    owners |= {words.PEOPLE[number][0]: users[number] for number in people} | {ACCOUNT: me}
    places = [ACCOUNT] * 8 + [group for group in groups for _ in range(4)]
    places += [words.PEOPLE[number][0] for number in people for _ in range(2)]
    names = [f"{first} {second}" for first in words.FIRST for second in words.PURPOSE]
    names = rng.sample(names, len(places) - len(DECOYS))
    names += [names[number] for number in DECOYS]
    joined = _joined_by_account(rng, places)
    projects = []
    created = _moments(rng, len(places), start=date(2022, 1, 3), end=FIRST_DAY)
    for number, (place, name) in enumerate(zip(places, names, strict=True)):
        role = joined.get(number, "")
        project = _insert(
            db,
            "project",
            namespace_id=namespaces[place],
            path=slug(name),
            name=name,
            description=f"{rng.choice(words.QUALITY)} {words.PURPOSE[name.split()[1]]}",
            visibility=rng.choice(["Private", "Internal"]) if role and rng.random() < 0.4 else "Public",
            stars_before=rng.randint(2, 480),
            forks=rng.randint(0, 90),
            created_at=created[number],
            updated_at=created[number],
        )
        members = {owners[place]: "Owner"}
        if role:
            members.setdefault(me, role)
        others = [user for user in users if user not in members and user != me]
        for user in rng.sample(others, rng.randint(4, 6)):
            members[user] = rng.choice(["Maintainer", "Developer", "Developer", "Developer", "Reporter", "Guest"])
        for user, held in members.items():
            since = _moments(rng, 1)[0]
            _insert(
                db,
                "member",
                project_id=project,
                user_id=user,
                role=held,
                since=since,
                feed_key=_feed_key(rng),
            )
        projects.append(_Project(project, owners[place], members))
    for project in projects:
        for user in rng.sample(users, rng.randint(2, 9)):
            _insert(db, "star", project_id=project.id, user_id=user)
    return projects


def _joined_by_account(rng: random.Random, places: list[str]) -> dict[int, str]:
    """Return the roles that the usual account has in ten projects of others, by the project's number."""
    numbers = rng.sample([number for number, place in enumerate(places) if place != ACCOUNT], 10)
    return dict(zip(numbers, ["Maintainer"] * 4 + ["Developer"] * 4 + ["Reporter", "Guest"], strict=True))


def _plans(db: sqlite3.Connection, rng: random.Random, projects: list[_Project]) -> None:
    """Make labels and milestones."""
    for project in projects:
        for name in sorted(rng.sample(words.LABELS, 5)):
            project.labels.append(_insert(db, "label", project_id=project.id, name=name))
        for title in rng.sample(words.MILESTONES, rng.randint(2, 4)):
            start = date(2025, rng.randint(1, 7), rng.randint(1, 28))
            due = start + timedelta(days=rng.randint(20, 90))
            project.milestones.append(
                _insert(
                    db,
                    "milestone",
                    project_id=project.id,
                    title=title,
                    start_date=str(start),
                    due_date=str(due),
                )
            )


def _commits(db: sqlite3.Connection, rng: random.Random, project: _Project) -> None:
    able = [user for user, role in project.members.items() if role in ("Owner", "Maintainer", "Developer")]
    project.committers = rng.sample(able, min(len(able), rng.randint(3, 5)))
    weights = [8, 5, 3, 2, 2][: len(project.committers)]
    count = rng.randint(14, 30)
    authors = rng.choices(project.committers, weights, k=count)
    while len(project.committers) > 1 and authors.count(project.committers[0]) <= max(
        authors.count(user) for user in project.committers[1:]
    ):  # one person has the most commits
        authors = rng.choices(project.committers, weights, k=count)
    moments = _moments(rng, count, start=date(2025, 2, 3))
    for at, author in zip(moments, authors, strict=True):
        message = f"{rng.choice(words.COMMIT_VERBS)} the {rng.choice(words.COMMIT_THINGS)}"
        sha = f"{rng.getrandbits(32):08x}"
        project.commits.append(
            _insert(db, "commit", project_id=project.id, sha=sha, author_id=author, message=message, created_at=at)
        )
    db.execute("UPDATE gitlab_project SET updated_at = ? WHERE id = ?", (moments[-1], project.id))


def _branches_and_files(db: sqlite3.Connection, rng: random.Random, project: _Project) -> None:
    for name in ("main", "develop"):
        commit = project.commits[-1] if name == "main" else rng.choice(project.commits)
        _insert(db, "branch", project_id=project.id, name=name, commit_id=commit)
    name, description = db.execute(
        "SELECT name, description FROM gitlab_project WHERE id = ?", (project.id,)
    ).fetchone()
    files = _files(rng, name, description)
    for number, (path, content) in enumerate(files.items()):
        commit = project.commits[-1] if number == 0 else rng.choice(project.commits)
        _insert(db, "file", project_id=project.id, path=path, content=content, commit_id=commit)


def _files(rng: random.Random, name: str, description: str) -> dict[str, str]:
    """Return the content of a project's files by path; README.md is among them."""
    command = slug(name).split("-")[1]
    files = {
        "README.md": (
            f"# {name}\n\n{description}.\n\n## Install\n\n- Get the code.\n- Run `make {command}`.\n\n"
            f"## Use\n\nStart it with `{command} --port` and read docs/guide.md.\n"
        ),
        "settings.cfg": (
            f"# Settings of {name}\nport = {rng.randint(2000, 9800)}\nworkers = {rng.randint(2, 48)}\n"
            f"timeout = {rng.randint(5, 95)}\nregion = {rng.choice(['north', 'south', 'east', 'west'])}\n"
        ),
        "docs/guide.md": f"# Guide\n\n{name} reads settings.cfg first.\nThen it starts {command}.\n",
    }
    more = {
        "CHANGES.md": f"# Changes\n\n1.{rng.randint(1, 9)}: faster start\n1.0: first version\n",
        "Makefile": f"{command}:\n\tpython src/{command}.py\n",
        "LICENSE": "Free to use, copy and change.\nNo warranty.\n",
        f"src/{command}.py": f'"""{description}."""\n\n\ndef main():\n    run("{command}")\n',
    }
    for path in rng.sample(sorted(more), rng.randint(1, 3)):
        files[path] = more[path]
    return dict(sorted(files.items()))


def _issues(db: sqlite3.Connection, rng: random.Random, projects: list[_Project], users: list[int]) -> None:
    me = users[0]
    titles = words.issue_titles()
    rng.shuffle(titles)
    used: list[str] = []
    for project in projects:
        mine = me in project.members
        count = rng.randint(13, 17) if mine else rng.randint(7, 11)
        people = list(project.members)
        first = len(used)
        for iid, at in enumerate(_moments(rng, count), start=1):
            old = first and iid == 3 and rng.random() < 0.25  # a title that another project has too
            title = used[rng.randrange(first)] if old else titles.pop()
            used.append(title)
            assignee = rng.choice(people) if rng.random() < 0.75 else None
            if mine and rng.random() < 0.2:
                assignee = me
            issue = _insert(
                db,
                "issue",
                project_id=project.id,
                iid=iid,
                title=title,
                body=f"{title}. {rng.choice(['Seen', 'Reported'])} in version 1.{rng.randint(0, 9)}.",
                author_id=rng.choice(people if rng.random() < 0.6 else users),
                assignee_id=assignee,
                milestone_id=rng.choice(project.milestones) if rng.random() < 0.5 else None,
                state="opened" if rng.random() < 0.65 else "closed",
                due_date=str(date(2025, 6, 16) + timedelta(days=rng.randint(0, 90))) if rng.random() < 0.4 else "",
                created_at=at,
                updated_at=at,
            )
            labels = rng.choices(project.labels, [5, 4, 3, 2, 1], k=rng.randint(0, 3))
            for label in sorted(set(labels)):
                _insert(db, "issue_label", issue_id=issue, label_id=label)


def _merges(db: sqlite3.Connection, rng: random.Random, projects: list[_Project], me: int) -> None:
    titles = words.merge_titles()
    rng.shuffle(titles)
    for project in projects:
        mine = me in project.members
        count = rng.randint(6, 9) if mine else rng.randint(2, 4)
        people = list(project.members)
        for iid, at in enumerate(_moments(rng, count, start=date(2024, 12, 2)), start=1):
            title = titles.pop()
            verb, _, part, _, _, place, _ = title.split()
            source = f"{verb.lower()}-{place}-{part}"
            author = rng.choice(project.committers)
            reviewers = [user for user in people if user != author]
            reviewer = rng.choice(reviewers) if rng.random() < 0.6 else None
            if mine and author != me and rng.random() < 0.3:
                reviewer = me
            state = rng.choices(["opened", "merged", "closed"], [60, 28, 12])[0]
            _insert(
                db,
                "merge",
                project_id=project.id,
                iid=iid,
                title=title,
                body=f"{title}, as agreed.",
                author_id=author,
                assignee_id=rng.choice(people) if rng.random() < 0.7 else None,
                reviewer_id=reviewer,
                source_branch=source,
                target_branch="main" if rng.random() < 0.8 else "develop",
                state=state,
                created_at=at,
                updated_at=at,
                merged_by=project.owner if state == "merged" else None,
            )
            if state == "opened":
                commit = rng.choice(project.commits)
                db.execute(
                    "INSERT OR IGNORE INTO gitlab_branch (project_id, name, commit_id) VALUES (?, ?, ?)",
                    (project.id, source, commit),
                )


def _notes(db: sqlite3.Connection, rng: random.Random, users: list[int]) -> None:
    for target in ("issue", "merge"):
        for row in db.execute(f"SELECT id, created_at FROM gitlab_{target} ORDER BY id").fetchall():
            for _ in range(rng.choice([0, 0, 1, 1, 2])):
                body = rng.choice(words.COMMENTS)
                _insert(
                    db,
                    "note",
                    target=target,
                    target_id=row["id"],
                    author_id=rng.choice(users),
                    body=body,
                    created_at=row["created_at"],
                )


def _todos(db: sqlite3.Connection, rng: random.Random, users: list[int]) -> None:
    """Give the usual account to-dos about open issues it is assigned to and reviews it was asked for."""
    me = users[0]
    rows = db.execute(
        "SELECT 'issue' AS target, id, author_id, created_at FROM gitlab_issue "
        "WHERE assignee_id = ?1 AND author_id <> ?1 AND state = 'opened' "
        "UNION ALL SELECT 'merge', id, author_id, created_at FROM gitlab_merge "
        "WHERE reviewer_id = ?1 AND state = 'opened'",
        (me,),
    ).fetchall()
    for row in sorted(rng.sample(rows, 44), key=lambda row: (row["created_at"], row["id"])):
        _insert(
            db,
            "todo",
            user_id=me,
            author_id=row["author_id"],
            target=row["target"],
            target_id=row["id"],
            state="pending" if rng.random() < 0.85 else "done",
            created_at=row["created_at"],
        )
