"""The pages of one project in Forgeworks that are about plans: issues, comments and milestones.

Its pieces for lists, filters and comments serve the merge requests too (see ``merging``).
"""

from __future__ import annotations

from collections.abc import Mapping
from sqlite3 import Row

from flask import Blueprint, abort, flash, redirect, render_template, request
from werkzeug import Response

from webrl_lite.envs.embedded.gitlab.access import (
    Project,
    find_project,
    is_day,
    matches,
    members,
    read_query,
    visitor_id,
)
from webrl_lite.envs.embedded.site import NOW, connection, login_required, one, paginate, query, write

pages = Blueprint("planning", __name__)

PER_PAGE = 10
ISSUE_STATES = {"opened": "Open", "closed": "Closed", "all": "All"}
ISSUE_SORTS = {"": "Created date", "updated": "Updated date", "due": "Due date"}


# Rows -------------------------------------------------------------------------------------------------------


def issue_rows(condition: str = "1", *values: object) -> list[Row]:
    """Return issues with the names of their people, milestone and labels, the newest first."""
    return query(
        "SELECT i.*, a.name AS author, a.username AS author_username, s.name AS assignee, "
        "s.username AS assignee_username, m.title AS milestone, (SELECT GROUP_CONCAT(l.name, ', ') FROM "
        "(SELECT l.name FROM gitlab_issue_label il JOIN gitlab_label l ON l.id = il.label_id "
        "WHERE il.issue_id = i.id ORDER BY l.name) l) AS labels FROM gitlab_issue i "
        "JOIN gitlab_user a ON a.id = i.author_id LEFT JOIN gitlab_user s ON s.id = i.assignee_id "
        f"LEFT JOIN gitlab_milestone m ON m.id = i.milestone_id WHERE {condition} "
        "ORDER BY i.created_at DESC, i.id DESC",
        *values,
    )


def label_names(row: Row) -> list[str]:
    """Return the labels of a row of ``issue_rows``."""
    return row["labels"].split(", ") if row["labels"] else []


def is_shown(row: Row, shown: Mapping[str, str]) -> bool:
    """Whether a row passes the filters of a list, its state left out."""
    people = ("author", "assignee", "reviewer")
    return (
        all(not shown.get(who) or row[f"{who}_username"] == shown[who] for who in people)
        and (not shown.get("label") or shown["label"] in label_names(row))
        and (not shown.get("milestone") or row["milestone"] == shown["milestone"])
        and (not shown["search"] or matches(shown["search"], row["title"]))
    )


def in_order(rows: list[Row], sort: str) -> list[Row]:
    """Return rows by one of the orders of a list; undated ones come last."""
    if sort == "due":
        return sorted(rows, key=lambda row: row["due_date"] or "9")
    return sorted(rows, key=lambda row: row["updated_at"], reverse=True) if sort == "updated" else rows


def people_of(rows: list[Row], who: str) -> list[tuple[str, str]]:
    """Return user name and name of everyone who is author, assignee or reviewer of a row, by name."""
    found = {(row[who], row[f"{who}_username"]) for row in rows if row[who]}
    return [(username, name) for name, username in sorted(found)]


def people_options(project: Project) -> list[tuple[int | str, str]]:
    """Return what a drop-down of members offers: nobody, or one of them."""
    return [("", "Nobody"), *((row["id"], row["name"]) for row in members(project))]


def count_states(rows: list[Row], states: Mapping[str, str]) -> dict[str, int]:
    """Return the number of rows in each state, and in ``all``."""
    return {state: sum(state in ("all", row["state"]) for row in rows) for state in states}


# Issues -----------------------------------------------------------------------------------------------------


@pages.get("/<ns>/<path>/-/issues")
def issues(ns: str, path: str) -> str:
    """List a project's issues by state, people, label, milestone and words."""
    project = find_project(ns, path)
    defaults = {
        "state": "opened",
        "label": "",
        "assignee": "",
        "author": "",
        "milestone": "",
        "search": "",
        "sort": "",
    }
    shown = read_query({**defaults, "p": ""}, {"state": tuple(ISSUE_STATES), "sort": tuple(ISSUE_SORTS)})
    every = issue_rows("i.project_id = ?", project.id)
    filters = {
        "label": [(name, name) for name in project_labels(project).values()],
        "assignee": people_of(every, "assignee"),
        "author": people_of(every, "author"),
        "milestone": [(row["title"], row["title"]) for row in project_milestones(project)],
    }
    passed = [row for row in every if is_shown(row, shown)]
    rows = in_order([row for row in passed if shown["state"] in ("all", row["state"])], shown["sort"])
    return render_template(
        "issues.html",
        project=project,
        shown=shown,
        states=ISSUE_STATES,
        sorts=ISSUE_SORTS,
        counts=count_states(passed, ISSUE_STATES),
        filters=filters,
        listed=paginate(rows, PER_PAGE),
    )


def project_labels(project: Project) -> dict[int, str]:
    """Return the project's labels by id, in the order of their names."""
    rows = query("SELECT id, name FROM gitlab_label WHERE project_id = ? ORDER BY name", project.id)
    return {row["id"]: row["name"] for row in rows}


def project_milestones(project: Project) -> list[Row]:
    """Return the project's milestones by due date, with their numbers of open issues."""
    return query(
        "SELECT m.*, (SELECT COUNT(*) FROM gitlab_issue i "
        "WHERE i.milestone_id = m.id AND i.state = 'opened') AS open "
        "FROM gitlab_milestone m WHERE m.project_id = ? ORDER BY m.due_date = '', m.due_date, m.title",
        project.id,
    )


def find_issue(project: Project, iid: int) -> Row:
    """Return an issue by its number in the project, or end the request."""
    rows = issue_rows("i.project_id = ? AND i.iid = ?", project.id, iid)
    return rows[0] if rows else abort(404)


@pages.get("/<ns>/<path>/-/issues/<int:iid>")
def issue(ns: str, path: str, iid: int) -> str:
    """Show an issue with its comments."""
    return issue_page(find_project(ns, path), iid)


def issue_page(project: Project, iid: int, comment: str = "", errors: tuple[str, ...] = ()) -> str:
    """Return an issue's page, with a comment that was refused."""
    row = find_issue(project, iid)
    chosen = label_names(row)
    return render_template(
        "issue.html",
        project=project,
        issue=row,
        chosen=chosen,
        labels=[(key, f"Remove {name}" if name in chosen else name) for key, name in project_labels(project).items()],
        people=people_options(project),
        milestones=[
            ("", "No milestone"),
            *((mile["id"], mile["title"]) for mile in project_milestones(project)),
        ],
        notes=notes("issue", row["id"]),
        comment=comment,
        errors=errors,
    )


@pages.route("/<ns>/<path>/-/issues/new", methods=["GET", "POST"])
@login_required
def new_issue(ns: str, path: str) -> Response | str:
    """Show and take the form of a new issue."""
    project = find_project(ns, path)
    values = {"title": "", "body": "", "assignee": "", "labels": "", "milestone": "", "due": ""}
    errors: list[str] = []
    if request.method == "POST":
        values = {name: request.form.get(name, "").strip() for name in values}
        errors = issue_errors(values)
        if not errors:
            iid = create_issue(project, values)
            flash("The issue was created.", "success")
            return redirect(f"{project.url}/-/issues/{iid}")
    return render_template(
        "new_issue.html",
        project=project,
        values=values,
        errors=errors,
        labels=project_labels(project),
        members={row["id"]: row["name"] for row in members(project)},
        milestones={row["id"]: row["title"] for row in project_milestones(project)},
    )


def issue_errors(values: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the form of a new issue."""
    errors = []
    if not values["title"]:
        errors.append("The title must not be empty.")
    if len(values["title"]) > 200:
        errors.append("The title must not be longer than 200 characters.")
    if values["due"] and not is_day(values["due"]):
        errors.append("The due date must look like 2025-06-30.")
    return errors


def create_issue(project: Project, values: Mapping[str, str]) -> int:
    """Write a new issue with its labels; return its number in the project."""
    people = {str(row["id"]): row["id"] for row in members(project)}
    milestones = {str(row["id"]): row["id"] for row in project_milestones(project)}
    iid = one("SELECT COALESCE(MAX(iid), 0) + 1 AS iid FROM gitlab_issue WHERE project_id = ?", project.id)["iid"]
    number = write(
        "INSERT INTO gitlab_issue (project_id, iid, title, body, author_id, assignee_id, milestone_id, "
        "state, due_date, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'opened', ?, ?, ?)",
        project.id,
        iid,
        values["title"],
        values["body"],
        visitor_id(),
        people.get(values["assignee"]),
        milestones.get(values["milestone"]),
        values["due"],
        NOW,
        NOW,
    )
    chosen = values["labels"].split(",")
    for label in project_labels(project):
        if str(label) in chosen:
            write("INSERT INTO gitlab_issue_label (issue_id, label_id) VALUES (?, ?)", number, label)
    return iid


@pages.post("/<ns>/<path>/-/issues/<int:iid>/<what>")
@login_required
def change_issue(ns: str, path: str, iid: int, what: str) -> Response | str:
    """Take a comment, or change one thing of an issue: state, assignee, milestone or a label."""
    project = find_project(ns, path)
    row = find_issue(project, iid)
    if what == "comment":
        body = request.form.get("body", "").strip().replace("\r\n", "\n")
        if not body:
            return issue_page(project, iid, body, ("The comment must not be empty.",))
        add_note("issue", row["id"], body)
        return redirect(f"{project.url}/-/issues/{iid}")
    if not project.allows("Reporter") and not (what == "state" and row["author_id"] == visitor_id()):
        abort(404)
    value = request.form.get("value", "")
    chosen = int(value) if value.isdecimal() and len(value) < 9 else None
    if what == "state" and value in ("opened", "closed"):
        write("UPDATE gitlab_issue SET state = ?, updated_at = ? WHERE id = ?", value, NOW, row["id"])
    elif what == "assignee" and (value == "" or chosen in [member["id"] for member in members(project)]):
        write("UPDATE gitlab_issue SET assignee_id = ?, updated_at = ? WHERE id = ?", chosen, NOW, row["id"])
    elif what == "milestone" and (value == "" or chosen in [mile["id"] for mile in project_milestones(project)]):
        write("UPDATE gitlab_issue SET milestone_id = ?, updated_at = ? WHERE id = ?", chosen, NOW, row["id"])
    elif what == "label" and chosen in project_labels(project):
        toggle_label(row["id"], chosen)
    else:
        abort(404)
    return redirect(f"{project.url}/-/issues/{iid}")


def toggle_label(issue_id: int, label_id: int) -> None:
    """Add a label to an issue, or take it away."""
    with connection() as db:
        removed = db.execute("DELETE FROM gitlab_issue_label WHERE issue_id = ? AND label_id = ?", (issue_id, label_id))
        if not removed.rowcount:
            db.execute("INSERT INTO gitlab_issue_label (issue_id, label_id) VALUES (?, ?)", (issue_id, label_id))


# Comments ---------------------------------------------------------------------------------------------------


def notes(target: str, number: int) -> list[Row]:
    """Return the comments on an issue or a merge request, the oldest first."""
    return query(
        "SELECT n.*, u.name, u.username FROM gitlab_note n JOIN gitlab_user u ON u.id = n.author_id "
        "WHERE n.target = ? AND n.target_id = ? ORDER BY n.id",
        target,
        number,
    )


def add_note(target: str, number: int, body: str) -> None:
    """Write a comment of the signed-in user."""
    write(
        "INSERT INTO gitlab_note (target, target_id, author_id, body, created_at) VALUES (?, ?, ?, ?, ?)",
        target,
        number,
        visitor_id(),
        body,
        NOW,
    )


# Milestones -------------------------------------------------------------------------------------------------


@pages.get("/<ns>/<path>/-/milestones")
def milestones(ns: str, path: str) -> str:
    """List the milestones by due date."""
    project = find_project(ns, path)
    return render_template("milestones.html", project=project, milestones=project_milestones(project))


@pages.route("/<ns>/<path>/-/milestones/new", methods=["GET", "POST"])
@login_required
def new_milestone(ns: str, path: str) -> Response | str:
    """Show and take the form of a new milestone."""
    project = find_project(ns, path, "Reporter")
    values = {"title": "", "start": "", "due": ""}
    errors = []
    if request.method == "POST":
        values = {name: request.form.get(name, "").strip() for name in values}
        if not values["title"]:
            errors.append("The title must not be empty.")
        if values["title"] in [row["title"] for row in project_milestones(project)]:
            errors.append("The project already has a milestone of this title.")
        for name in ("start", "due"):
            if values[name] and not is_day(values[name]):
                errors.append(f"The {name} date must look like 2025-06-30.")
        if values["start"] and values["due"] and values["due"] < values["start"]:
            errors.append("The due date must not be before the start date.")
        if not errors:
            write(
                "INSERT INTO gitlab_milestone (project_id, title, start_date, due_date) VALUES (?, ?, ?, ?)",
                project.id,
                *values.values(),
            )
            flash("The milestone was created.", "success")
            return redirect(f"{project.url}/-/milestones")
    return render_template("new_milestone.html", project=project, values=values, errors=errors)
