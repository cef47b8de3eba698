"""The pages of one project in Forgeworks that are about its code, its members and its settings.

Also the form that creates a project.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from flask import Blueprint, abort, flash, redirect, render_template, request
from markupsafe import Markup, escape
from werkzeug import Response

from webrl_lite.envs.embedded.gitlab.access import (
    INVITED_ROLES,
    Project,
    find_project,
    is_day,
    members,
    projects,
    read_query,
    visitor_id,
)
from webrl_lite.envs.embedded.gitlab.data import slug
from webrl_lite.envs.embedded.site import NOW, login_required, one, paginate, query, user, write

pages = Blueprint("repository", __name__)

COMMITS_PER_PAGE = 8
VISIBILITIES = {
    "Private": "Only members see it.",
    "Internal": "Every signed-in user sees it.",
    "Public": "Everyone sees it.",
}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]*", re.ASCII)
"""What a project may be called."""


@pages.get("/<ns>/<path>")
def project_home(ns: str, path: str) -> str:
    """Show a project: description, addresses, files and README."""
    project = find_project(ns, path)
    files = query(
        "SELECT f.path, c.message FROM gitlab_file f LEFT JOIN gitlab_commit c ON c.id = f.commit_id "
        "WHERE f.project_id = ? ORDER BY f.path",
        project.id,
    )
    readme = one("SELECT content FROM gitlab_file WHERE project_id = ? AND path = 'README.md'", project.id)
    last = one(
        "SELECT c.*, u.name FROM gitlab_commit c JOIN gitlab_user u ON u.id = c.author_id "
        "WHERE c.project_id = ? ORDER BY c.created_at DESC, c.id DESC",
        project.id,
    )
    return render_template(
        "project.html",
        project=project,
        files=files,
        readme=plain_markdown(readme["content"]) if readme else None,
        last=last,
        starred=is_starred(project),
        ssh=f"git@forge.example:{ns}/{path}.git",
        https=f"https://forge.example/{ns}/{path}.git",
    )


def plain_markdown(text: str) -> Markup:
    """Render headings, list items and paragraphs, one a line; all else is text."""
    lines = []
    for line in filter(None, (line.strip() for line in text.split("\n"))):
        mark, _, rest = line.partition(" ")
        tag = {"#": "h2", "##": "h3", "-": "li"}.get(mark, "p")
        lines.append(Markup("<{0}>{1}</{0}>").format(Markup(tag), escape(line if tag == "p" else rest)))
    return Markup("").join(lines)


def is_starred(project: Project) -> bool:
    """Whether the signed-in user has starred a project."""
    return one("SELECT 1 FROM gitlab_star WHERE project_id = ? AND user_id = ?", project.id, visitor_id()) is not None


@pages.post("/<ns>/<path>/star")
@login_required
def star(ns: str, path: str) -> Response:
    """Star a project, or take the star back."""
    project = find_project(ns, path)
    if is_starred(project):
        write("DELETE FROM gitlab_star WHERE project_id = ? AND user_id = ?", project.id, visitor_id())
    else:
        write("INSERT INTO gitlab_star (project_id, user_id) VALUES (?, ?)", project.id, visitor_id())
    return redirect(project.url)


@pages.get("/<ns>/<path>/-/blob/main/<path:file>")
def show_file(ns: str, path: str, file: str) -> str:
    """Show a file's text."""
    project = find_project(ns, path)
    row = one("SELECT * FROM gitlab_file WHERE project_id = ? AND path = ?", project.id, file)
    if row is None:
        abort(404)
    return render_template("file.html", project=project, file=row)


@pages.get("/<ns>/<path>/-/commits/main")
def commits(ns: str, path: str) -> str:
    """List the commits, newest first, by author and between two days."""
    project = find_project(ns, path)
    shown = read_query({"author": "", "since": "", "until": "", "p": ""}, {})
    errors = []
    for name in ("since", "until"):
        if shown[name] and not is_day(shown[name]):
            errors.append(f"The date of {name} must look like 2025-05-31.")
    rows = query(
        "SELECT c.*, u.username, u.name FROM gitlab_commit c JOIN gitlab_user u ON u.id = c.author_id "
        "WHERE c.project_id = ? ORDER BY c.created_at DESC, c.id DESC",
        project.id,
    )
    authors = sorted({(row["name"], row["username"]) for row in rows})
    first, last = shown["since"] or "0", shown["until"] or "9"
    if errors:
        rows = []
    rows = [r for r in rows if shown["author"] in ("", r["username"]) and first <= r["created_at"][:10] <= last]
    listed = paginate(rows, COMMITS_PER_PAGE)
    return render_template("commits.html", project=project, shown=shown, authors=authors, listed=listed, errors=errors)


@pages.get("/<ns>/<path>/-/commit/<sha>")
def commit(ns: str, path: str, sha: str) -> str:
    """Show one commit."""
    project = find_project(ns, path)
    row = one(
        "SELECT c.*, u.username, u.name FROM gitlab_commit c JOIN gitlab_user u ON u.id = c.author_id "
        "WHERE c.project_id = ? AND c.sha = ?",
        project.id,
        sha,
    )
    if row is None:
        abort(404)
    files = query("SELECT path FROM gitlab_file WHERE commit_id = ? ORDER BY path", row["id"])
    return render_template("commit.html", project=project, commit=row, files=files)


@pages.get("/<ns>/<path>/-/graphs/main")
def contributors(ns: str, path: str) -> str:
    """List the authors by their number of commits."""
    project = find_project(ns, path)
    rows = query(
        "SELECT u.username, u.name, COUNT(*) AS commits, MAX(c.created_at) AS last FROM gitlab_commit c "
        "JOIN gitlab_user u ON u.id = c.author_id WHERE c.project_id = ? "
        "GROUP BY u.id ORDER BY commits DESC, u.name",
        project.id,
    )
    return render_template(
        "contributors.html", project=project, rows=rows, most=max((r["commits"] for r in rows), default=1)
    )


@pages.get("/<ns>/<path>/-/branches")
def branches(ns: str, path: str) -> str:
    """List the branches."""
    project = find_project(ns, path)
    rows = query(
        "SELECT b.name, c.message, c.created_at, u.name AS author FROM gitlab_branch b "
        "LEFT JOIN gitlab_commit c ON c.id = b.commit_id LEFT JOIN gitlab_user u ON u.id = c.author_id "
        "WHERE b.project_id = ? ORDER BY b.name <> 'main', b.name",
        project.id,
    )
    return render_template("branches.html", project=project, listed=paginate(rows, COMMITS_PER_PAGE))


# New project and settings -----------------------------------------------------------------------------------


@pages.route("/projects/new", methods=["GET", "POST"])
@login_required
def new_project() -> Response | str:
    """Show and take the form of a new project in the user's own namespace."""
    values = {"name": "", "description": "", "visibility": "Private", "readme": ""}
    errors: list[str] = []
    if request.method == "POST":
        values = {name: request.form.get(name, "").strip() for name in values}
        errors = project_errors(values)
        if not errors:
            flash(f"The project {values['name']} was created.", "success")
            return redirect(create_project(values))
    return render_template("new_project.html", values=values, visibilities=VISIBILITIES, errors=errors)


def project_errors(values: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the form of a new project."""
    errors = []
    if not values["name"]:
        errors.append("The project name must not be empty.")
    elif not NAME.fullmatch(values["name"]) or len(values["name"]) > 60:
        errors.append("A project name starts with a letter or a digit and has letters, digits, spaces, dots or dashes.")
    elif projects("AND n.path = ?2 AND p.path = ?3", user().username, slug(values["name"])):
        errors.append("You already have a project of this name.")
    if values["visibility"] not in VISIBILITIES:
        errors.append("Choose a visibility level.")
    if len(values["description"]) > 200:
        errors.append("The description must not be longer than 200 characters.")
    return errors


def create_project(values: Mapping[str, str]) -> str:
    """Write a new project with its owner and, if wanted, its README; return its path."""
    path = slug(values["name"])
    space = one("SELECT id FROM gitlab_namespace WHERE user_id = ?", visitor_id())
    project = write(
        "INSERT INTO gitlab_project (namespace_id, path, name, description, visibility, stars_before, forks, "
        "created_at, updated_at) VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?)",
        space["id"],
        path,
        values["name"],
        values["description"],
        values["visibility"],
        NOW,
        NOW,
    )
    add_member(project, visitor_id(), "Owner")
    if values["readme"]:
        commit = write(
            "INSERT INTO gitlab_commit (project_id, sha, author_id, message, created_at) VALUES (?, ?, ?, ?, ?)",
            project,
            hashlib.sha256(f"{project}:README.md".encode()).hexdigest()[:8],
            visitor_id(),
            "Add README.md",
            NOW,
        )
        write("INSERT INTO gitlab_branch (project_id, name, commit_id) VALUES (?, 'main', ?)", project, commit)
        write(
            "INSERT INTO gitlab_file (project_id, path, content, commit_id) VALUES (?, 'README.md', ?, ?)",
            project,
            f"# {values['name']}\n\n{values['description']}\n",
            commit,
        )
    return f"/{user().username}/{path}"


def add_member(project: int, person: int, role: str) -> None:
    """Make a user a member; the feed key needs to be new, not secret, on a site of invented data."""
    write(
        "INSERT INTO gitlab_member (project_id, user_id, role, since, feed_key) VALUES (?, ?, ?, ?, ?)",
        project,
        person,
        role,
        NOW,
        f"fk-{1000 + project}-{1000 + person}",
    )


@pages.route("/<ns>/<path>/edit", methods=["GET", "POST"])
@login_required
def settings(ns: str, path: str) -> Response | str:
    """Show and take the form of a project's description and visibility."""
    project = find_project(ns, path, "Maintainer")
    values = {"description": project.description, "visibility": project.visibility}
    errors = []
    if request.method == "POST":
        values = {name: request.form.get(name, "").strip() for name in values}
        if len(values["description"]) > 200:
            errors.append("The description must not be longer than 200 characters.")
        if values["visibility"] not in VISIBILITIES:
            errors.append("Choose a visibility level.")
        if not errors:
            write(
                "UPDATE gitlab_project SET description = ?, visibility = ? WHERE id = ?",
                *values.values(),
                project.id,
            )
            flash("The project was updated.", "success")
            return redirect(f"{project.url}/edit")
    return render_template("settings.html", project=project, values=values, visibilities=VISIBILITIES, errors=errors)


# Members ----------------------------------------------------------------------------------------------------


@pages.get("/<ns>/<path>/-/project_members")
def project_members(ns: str, path: str) -> str:
    """List the members with their roles."""
    project = find_project(ns, path)
    return render_template(
        "members.html",
        project=project,
        members=members(project),
        options=[(role, role) for role in INVITED_ROLES],
    )


@pages.route("/<ns>/<path>/-/project_members/invite", methods=["GET", "POST"])
@login_required
def invite(ns: str, path: str) -> Response | str:
    """Show and take the form that adds a member."""
    project = find_project(ns, path, "Maintainer")
    values = {"username": "", "role": "Guest"}
    errors = []
    if request.method == "POST":
        values = {name: request.form.get(name, "").strip() for name in values}
        wanted = values["username"].removeprefix("@")
        found = query("SELECT id, name FROM gitlab_user WHERE username = ?1 OR lower(name) = lower(?1)", wanted)
        if len(found) != 1:
            errors.append("There is no user of this name.")
        elif found[0]["id"] in [row["id"] for row in members(project)]:
            errors.append(f"{found[0]['name']} is already a member.")
        if values["role"] not in INVITED_ROLES:
            errors.append("Choose a role.")
        if not errors:
            add_member(project.id, found[0]["id"], values["role"])
            flash(f"{found[0]['name']} is a member now.", "success")
            return redirect(f"{project.url}/-/project_members")
    return render_template("invite.html", project=project, values=values, roles=INVITED_ROLES, errors=errors)


@pages.post("/<ns>/<path>/-/project_members/<int:person>/role")
@login_required
def change_role(ns: str, path: str, person: int) -> Response:
    """Give a member another role."""
    project = find_project(ns, path, "Maintainer")
    role = request.form.get("value", "")
    if role not in INVITED_ROLES:
        abort(404)
    name = changeable_member(members(project), person)
    write("UPDATE gitlab_member SET role = ? WHERE project_id = ? AND user_id = ?", role, project.id, person)
    flash(f"The role of {name} is {role} now.", "success")
    return redirect(f"{project.url}/-/project_members")


@pages.post("/<ns>/<path>/-/project_members/<int:person>/remove")
@login_required
def remove_member(ns: str, path: str, person: int) -> Response:
    """Take a member out of the project."""
    project = find_project(ns, path, "Maintainer")
    name = changeable_member(members(project), person)
    write("DELETE FROM gitlab_member WHERE project_id = ? AND user_id = ?", project.id, person)
    flash(f"{name} is no longer a member.", "success")
    return redirect(f"{project.url}/-/project_members")


def changeable_member(rows: Sequence[Mapping[str, object]], person: int) -> str:
    """Return the name of a member who is not the owner, or end the request."""
    for row in rows:
        if row["id"] == person and row["role"] != "Owner":
            return str(row["name"])
    abort(404)
