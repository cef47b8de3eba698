"""Forgeworks, code hosting in the manner of GitLab: the user's lists, search, profiles and own settings.

A project's pages are in ``repository`` (code, members, settings), ``planning`` (issues, milestones) and
``merging`` (merge requests). Addresses follow GitLab's, so that tasks about addresses read alike.
"""

from __future__ import annotations

from sqlite3 import Row

from flask import abort, flash, redirect, render_template, request
from werkzeug import Response

from webrl_lite.envs.embedded.gitlab import merging, planning, repository
from webrl_lite.envs.embedded.gitlab.access import Project, matches, projects, read_query, visitor_id
from webrl_lite.envs.embedded.site import login_required, make_site, one, paginate, query, write

app = make_site("gitlab", "Forgeworks", login_path="/users/sign_in")
app.register_blueprint(repository.pages)
app.register_blueprint(planning.pages)
app.register_blueprint(merging.pages)
app.jinja_env.filters["hue"] = lambda name: sum(ord(letter) * number for number, letter in enumerate(name, 7)) % 360

PER_PAGE = 8
SORTS = {"updated": "Last updated", "name": "Name", "stars": "Stars"}
"""Orders of a project list."""


@app.get("/")
def home() -> Response:
    """Send everyone to the list of their projects."""
    return redirect("/dashboard/projects")


def sorted_projects(found: list[Project], sort: str) -> list[Project]:
    """Return projects in one of the orders of ``SORTS``."""
    by_name = sorted(found, key=lambda project: (project.name, project.ns_name))
    if sort == "name":
        return by_name
    return sorted(by_name, key=lambda project: project.stars if sort == "stars" else project.updated_at, reverse=True)


def project_list(tab: str, found: list[Project]) -> str:
    """Return a page of projects, with its tabs and orders."""
    shown = read_query({"sort": "", "p": ""}, {"sort": tuple(SORTS)})
    sort = shown["sort"] or "updated"
    listed = paginate(sorted_projects(found, sort), PER_PAGE)
    return render_template("projects.html", tab=tab, sorts=SORTS, sort=sort, listed=listed)


@app.get("/dashboard/projects")
@login_required
def my_projects() -> str:
    """List the projects that the user is a member of."""
    return project_list("yours", projects("AND m.role IS NOT NULL"))


@app.get("/dashboard/projects/starred")
@login_required
def starred_projects() -> str:
    """List the projects that the user has starred."""
    starred = "AND EXISTS (SELECT 1 FROM gitlab_star s WHERE s.project_id = p.id AND s.user_id = ?1)"
    return project_list("starred", projects(starred))


@app.get("/explore/projects")
def explore_projects() -> str:
    """List every project the visitor may see."""
    return project_list("explore", projects())


@app.get("/explore/groups")
def groups() -> str:
    """List the groups."""
    counts: dict[str, int] = {}
    for project in projects():
        counts[project.ns_path] = counts.get(project.ns_path, 0) + 1
    rows = query("SELECT path, name, description FROM gitlab_namespace WHERE user_id IS NULL ORDER BY name")
    return render_template("groups.html", groups=rows, counts=counts)


@app.get("/search")
def search() -> str:
    """Search projects, issues, merge requests and users by their names."""
    scopes = {"projects": "Projects", "issues": "Issues", "merges": "Merge requests", "users": "Users"}
    shown = read_query({"search": "", "scope": "projects", "p": ""}, {"scope": tuple(scopes)})
    wanted = shown["search"]
    visible = {project.id: project for project in projects()}
    found: dict[str, list[Project] | list[Row]] = {scope: [] for scope in scopes}
    if wanted:
        found["projects"] = [
            p for p in sorted_projects([*visible.values()], "stars") if matches(wanted, *search_names(p))
        ]
        found["issues"] = [
            r for r in planning.issue_rows() if r["project_id"] in visible and matches(wanted, r["title"])
        ]
        found["merges"] = [
            r for r in merging.merge_rows() if r["project_id"] in visible and matches(wanted, r["title"])
        ]
        people = query("SELECT username, name, bio FROM gitlab_user ORDER BY name, username")
        found["users"] = [row for row in people if matches(wanted, row["name"], row["username"])]
    counts = {scope: len(rows) for scope, rows in found.items()}
    listed = paginate(found[shown["scope"]], PER_PAGE)
    return render_template("search.html", shown=shown, scopes=scopes, counts=counts, listed=listed, visible=visible)


def search_names(project: Project) -> tuple[str, ...]:
    """Return the texts that a search for a project reads."""
    return project.full_name, f"{project.ns_path}/{project.path}"


@app.get("/dashboard/issues")
@login_required
def my_issues() -> str:
    """List the open issues that are assigned to the user."""
    rows = [row for row in planning.issue_rows() if row["assignee_id"] == visitor_id() and row["state"] == "opened"]
    visible = {project.id: project for project in projects()}
    return render_template("my_issues.html", listed=paginate(rows, PER_PAGE), visible=visible)


@app.get("/dashboard/merge_requests")
@login_required
def my_merges() -> str:
    """List the open merge requests that the user is assigned to or asked to review."""
    shown = read_query({"scope": "assigned", "p": ""}, {"scope": ("assigned", "reviews")})
    column = "assignee_id" if shown["scope"] == "assigned" else "reviewer_id"
    rows = [row for row in merging.merge_rows() if row[column] == visitor_id() and row["state"] == "opened"]
    visible = {project.id: project for project in projects()}
    listed = paginate(rows, PER_PAGE)
    return render_template("my_merges.html", scope=shown["scope"], listed=listed, visible=visible)


@app.get("/dashboard/todos")
@login_required
def todos() -> str:
    """List the user's to-dos."""
    shown = read_query({"state": "pending", "p": ""}, {"state": ("pending", "done")})
    rows = query(
        "SELECT t.id, t.target, t.created_at, u.name AS author, COALESCE(i.title, r.title) AS title, "
        "COALESCE(i.iid, r.iid) AS iid, COALESCE(i.project_id, r.project_id) AS project_id "
        "FROM gitlab_todo t JOIN gitlab_user u ON u.id = t.author_id "
        "LEFT JOIN gitlab_issue i ON t.target = 'issue' AND i.id = t.target_id "
        "LEFT JOIN gitlab_merge r ON t.target = 'merge' AND r.id = t.target_id "
        "WHERE t.user_id = ? AND t.state = ? ORDER BY t.created_at DESC, t.id DESC",
        visitor_id(),
        shown["state"],
    )
    visible = {project.id: project for project in projects()}
    return render_template("todos.html", state=shown["state"], listed=paginate(rows, PER_PAGE), visible=visible)


@app.post("/dashboard/todos/<int:number>/done")
@login_required
def finish_todo(number: int) -> Response:
    """Mark a to-do as done."""
    if one("SELECT 1 FROM gitlab_todo WHERE id = ? AND user_id = ?", number, visitor_id()) is None:
        abort(404)
    write("UPDATE gitlab_todo SET state = 'done' WHERE id = ?", number)
    flash("The to-do is done.", "success")
    return redirect("/dashboard/todos?state=pending")


@app.get("/<ns>")
def namespace(ns: str) -> str:
    """Show a group, or a user's profile."""
    space = one("SELECT * FROM gitlab_namespace WHERE path = ?", ns)
    if space is None:
        abort(404)
    owned = projects("AND n.path = ?2 ORDER BY p.name", ns)
    if space["user_id"] is None:
        return render_template("group.html", space=space, listed=paginate(owned, PER_PAGE))
    person = one("SELECT * FROM gitlab_user WHERE id = ?", space["user_id"])
    followers = query("SELECT user_id FROM gitlab_follow WHERE target_id = ?", person["id"])
    following = one("SELECT COUNT(*) AS n FROM gitlab_follow WHERE user_id = ?", person["id"])
    return render_template(
        "profile.html",
        person=person,
        listed=paginate(owned, PER_PAGE),
        followers=len(followers),
        following=following["n"],
        followed=any(row["user_id"] == visitor_id() for row in followers),
    )


@app.post("/users/<username>/follow")
@login_required
def follow(username: str) -> Response:
    """Follow a user, or stop following."""
    person = one("SELECT id, name FROM gitlab_user WHERE username = ?", username)
    if person is None or person["id"] == visitor_id():
        abort(404)
    pair = (visitor_id(), person["id"])
    if one("SELECT 1 FROM gitlab_follow WHERE user_id = ? AND target_id = ?", *pair):
        write("DELETE FROM gitlab_follow WHERE user_id = ? AND target_id = ?", *pair)
        flash(f"You no longer follow {person['name']}.", "info")
    else:
        write("INSERT INTO gitlab_follow (user_id, target_id) VALUES (?, ?)", *pair)
        flash(f"You follow {person['name']} now.", "success")
    return redirect(f"/{username}")


@app.route("/-/profile", methods=["GET", "POST"])
@login_required
def edit_profile() -> Response | str:
    """Show and take the form of the user's own profile."""
    fields = ("status", "bio", "location", "website")
    values = dict(one("SELECT * FROM gitlab_user WHERE id = ?", visitor_id()))
    errors = []
    if request.method == "POST":
        values |= {name: request.form.get(name, "").strip() for name in fields}
        errors = [f"The {name} must not be longer than 100 characters." for name in fields if len(values[name]) > 100]
        if values["website"] and not values["website"].startswith(("http://", "https://")):
            errors.append("The website must start with http:// or https://.")
        if not errors:
            write(
                "UPDATE gitlab_user SET status = ?, bio = ?, location = ?, website = ? WHERE id = ?",
                *(values[name] for name in fields),
                visitor_id(),
            )
            flash("The profile was updated.", "success")
            return redirect("/-/profile")
    return render_template("edit_profile.html", values=values, errors=errors)


@app.get("/-/profile/access")
@login_required
def access_keys() -> str:
    """Show the keys of the user's news feeds: one for the account, one for each project."""
    rows = query(
        "SELECT n.name || ' / ' || p.name AS name, n.path || '/' || p.path AS path, m.feed_key "
        "FROM gitlab_member m JOIN gitlab_project p ON p.id = m.project_id "
        "JOIN gitlab_namespace n ON n.id = p.namespace_id WHERE m.user_id = ? ORDER BY p.name, n.name",
        visitor_id(),
    )
    own = one("SELECT feed_key FROM gitlab_user WHERE id = ?", visitor_id())
    return render_template("access.html", own=own["feed_key"], listed=paginate(rows, PER_PAGE))


@app.get("/help")
def help_page() -> str:
    """Explain roles and visibility."""
    return render_template("help.html")
