"""The merge requests of one project in Forgeworks."""

from __future__ import annotations

from sqlite3 import Row

from flask import Blueprint, abort, flash, redirect, render_template, request
from werkzeug import Response

from webrl_lite.envs.embedded.gitlab.access import Project, find_project, members, read_query, visitor_id
from webrl_lite.envs.embedded.gitlab.planning import (
    PER_PAGE,
    add_note,
    count_states,
    in_order,
    is_shown,
    notes,
    people_of,
    people_options,
)
from webrl_lite.envs.embedded.site import NOW, login_required, paginate, query, write

pages = Blueprint("merging", __name__)

STATES = {"opened": "Open", "merged": "Merged", "closed": "Closed", "all": "All"}
SORTS = {"": "Created date", "updated": "Updated date"}


def merge_rows(condition: str = "1", *values: object) -> list[Row]:
    """Return merge requests with the names of their people, the newest first."""
    return query(
        "SELECT r.*, a.name AS author, a.username AS author_username, s.name AS assignee, "
        "s.username AS assignee_username, v.name AS reviewer, v.username AS reviewer_username, "
        "b.name AS merger FROM gitlab_merge r JOIN gitlab_user a ON a.id = r.author_id "
        "LEFT JOIN gitlab_user s ON s.id = r.assignee_id LEFT JOIN gitlab_user v ON v.id = r.reviewer_id "
        f"LEFT JOIN gitlab_user b ON b.id = r.merged_by WHERE {condition} "
        "ORDER BY r.created_at DESC, r.id DESC",
        *values,
    )


@pages.get("/<ns>/<path>/-/merge_requests")
def merges(ns: str, path: str) -> str:
    """List a project's merge requests by state, people and words."""
    project = find_project(ns, path)
    defaults = {
        "state": "opened",
        "assignee": "",
        "author": "",
        "reviewer": "",
        "search": "",
        "sort": "",
        "p": "",
    }
    shown = read_query(defaults, {"state": tuple(STATES), "sort": tuple(SORTS)})
    every = merge_rows("r.project_id = ?", project.id)
    passed = [row for row in every if is_shown(row, shown)]
    rows = in_order([row for row in passed if shown["state"] in ("all", row["state"])], shown["sort"])
    return render_template(
        "merges.html",
        project=project,
        shown=shown,
        states=STATES,
        sorts=SORTS,
        counts=count_states(passed, STATES),
        filters={who: people_of(every, who) for who in ("assignee", "author", "reviewer")},
        listed=paginate(rows, PER_PAGE),
    )


def find_merge(project: Project, iid: int) -> Row:
    """Return a merge request by its number in the project, or end the request."""
    rows = merge_rows("r.project_id = ? AND r.iid = ?", project.id, iid)
    return rows[0] if rows else abort(404)


@pages.get("/<ns>/<path>/-/merge_requests/<int:iid>")
def merge(ns: str, path: str, iid: int) -> str:
    """Show a merge request with its comments."""
    return merge_page(find_project(ns, path), iid)


def merge_page(project: Project, iid: int, comment: str = "", errors: tuple[str, ...] = ()) -> str:
    """Return a merge request's page, with a comment that was refused."""
    row = find_merge(project, iid)
    return render_template(
        "merge.html",
        project=project,
        merge=row,
        people=people_options(project),
        notes=notes("merge", row["id"]),
        comment=comment,
        errors=errors,
    )


@pages.post("/<ns>/<path>/-/merge_requests/<int:iid>/<what>")
@login_required
def change_merge(ns: str, path: str, iid: int, what: str) -> Response | str:
    """Take a comment, merge, or change one thing of a merge request: state, assignee or reviewer."""
    project = find_project(ns, path)
    row = find_merge(project, iid)
    address = f"{project.url}/-/merge_requests/{iid}"
    if what == "comment":
        body = request.form.get("body", "").strip().replace("\r\n", "\n")
        if not body:
            return merge_page(project, iid, body, ("The comment must not be empty.",))
        add_note("merge", row["id"], body)
        return redirect(address)
    if not project.allows("Developer"):
        abort(404)
    value = request.form.get("value", "")
    chosen = int(value) if value.isdecimal() and len(value) < 9 else None
    if what == "merge" and row["state"] == "opened":
        write(
            "UPDATE gitlab_merge SET state = 'merged', merged_by = ?, updated_at = ? WHERE id = ?",
            visitor_id(),
            NOW,
            row["id"],
        )
        flash(f"{row['source_branch']} was merged into {row['target_branch']}.", "success")
    elif what == "state" and value in ("opened", "closed") and row["state"] != "merged":
        write("UPDATE gitlab_merge SET state = ?, updated_at = ? WHERE id = ?", value, NOW, row["id"])
    elif what in ("assignee", "reviewer") and (value == "" or chosen in [m["id"] for m in members(project)]):
        write(f"UPDATE gitlab_merge SET {what}_id = ?, updated_at = ? WHERE id = ?", chosen, NOW, row["id"])
    else:
        abort(404)
    return redirect(address)
