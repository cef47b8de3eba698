"""The forum's application: front page, forums, search, wiki; the rest hangs on it as blueprints.

``threads`` holds what is about one submission, ``members`` what is about users and messages.
"""

from __future__ import annotations

import re
import sqlite3

from flask import Response, abort, flash, redirect, render_template, request, url_for

from webrl_lite.envs.embedded.reddit.lists import (
    SORTS,
    SPANS,
    TIMED_SORTS,
    forum_row,
    forum_rows,
    in_order,
    member_id,
    slug,
    submissions,
)
from webrl_lite.envs.embedded.reddit.members import members
from webrl_lite.envs.embedded.reddit.threads import threads
from webrl_lite.envs.embedded.site import (
    NOW,
    login_required,
    make_site,
    one,
    paginate,
    paragraphs,
    query,
    user,
    write,
)

PER_PAGE = 10
FORUMS_PER_PAGE = 12
SUGGESTIONS = 4
"""Most forums and most users that a search shows above its submissions."""
FORUM_NAME = re.compile(r"[A-Za-z0-9_]{3,25}", re.ASCII)
MOST_TAGS = 5

app = make_site("reddit", "Commons", login_path="/login")
app.register_blueprint(threads)
app.register_blueprint(members)
app.jinja_env.globals.update(sorts=SORTS, spans=SPANS, timed_sorts=TIMED_SORTS)
app.jinja_env.filters.update(slug=slug, paragraphs=paragraphs)

FORUM_ORDERS = {"by_name": "f.name", "by_subscribers": "subscribers DESC, f.name", "subscribed": "f.name"}
"""Orders of the list of forums, as they stand in addresses; the first is the usual one."""


def _listing(rows: list[sqlite3.Row], sort: str, title: str, base: str, forum: sqlite3.Row | None = None) -> str:
    """Render a sorted list of submissions; ``base`` is its address without the sort."""
    if sort not in SORTS:
        abort(404)
    span = request.args.get("t", "all")
    page = paginate(in_order(rows, sort, span), PER_PAGE)
    return render_template(
        "listing.html",
        page=page,
        sort=sort,
        span=span if span in SPANS else "all",
        title=title,
        base=base,
        forum=forum,
    )


@app.get("/")
@app.get("/<any(hot, new, active, top, controversial):sort>")
def front(sort: str = SORTS[0]) -> str:
    """Show the submissions of the subscribed forums; without a log-in, of all forums."""
    if user() is None:
        return _listing(submissions(), sort, "All forums", "")
    own = "s.forum_id IN (SELECT forum_id FROM reddit_subscription WHERE user_id = ?)"
    return _listing(submissions(own, member_id()), sort, "Front page", "")


@app.get("/all")
@app.get("/all/<sort>")
def everything(sort: str = SORTS[0]) -> str:
    """Show the submissions of all forums."""
    return _listing(submissions(), sort, "All forums", "/all")


@app.get("/f/<name>")
@app.get("/f/<name>/<sort>")
def forum(name: str, sort: str = SORTS[0]) -> str:
    """Show one forum."""
    row = forum_row(name)
    return _listing(submissions("s.forum_id = ?", row["id"]), sort, f"Forum {row['name']}", f"/f/{row['name']}", row)


@app.post("/f/<name>/subscribe")
@login_required
def subscribe(name: str) -> Response:
    """Subscribe to a forum, or end the subscription."""
    row = forum_row(name)
    if row["subscribed"]:
        write("DELETE FROM reddit_subscription WHERE user_id = ? AND forum_id = ?", member_id(), row["id"])
        flash(f"You are no longer subscribed to {row['name']}.", "success")
    else:
        write("INSERT INTO reddit_subscription (user_id, forum_id) VALUES (?, ?)", member_id(), row["id"])
        flash(f"You are now subscribed to {row['name']}.", "success")
    return redirect(url_for("forum", name=row["name"]))


@app.get("/forums")
@app.get("/forums/<order>")
def forums(order: str = "by_name") -> Response | str:
    """Show the list of forums."""
    if order not in FORUM_ORDERS:
        abort(404)
    if order == "subscribed" and user() is None:
        return redirect(url_for("login", next=request.path))
    rows = forum_rows(f"1 ORDER BY {FORUM_ORDERS[order]}")
    if order == "subscribed":
        rows = [row for row in rows if row["subscribed"]]
    return render_template("forums.html", page=paginate(rows, FORUMS_PER_PAGE), order=order)


@app.route("/create_forum", methods=["GET", "POST"])
@login_required
def create_forum() -> Response | str:
    """Show and take the form for a new forum."""
    form = {name: request.form.get(name, "").strip() for name in ("name", "title", "description", "sidebar")}
    form["sidebar"] = form["sidebar"].replace("\r\n", "\n")
    tags = list(dict.fromkeys(tag.strip().lower() for tag in request.form.get("tags", "").split(",") if tag.strip()))
    errors = []
    if request.method == "POST":
        if not FORUM_NAME.fullmatch(form["name"]):
            errors.append("The name must have 3 to 25 letters, digits or underscores.")
        elif one("SELECT 1 FROM reddit_forum WHERE name = ?", form["name"]):
            errors.append("There is a forum of this name already.")
        errors += [
            f"The {field} must not be empty." for field in ("title", "description", "sidebar") if not form[field]
        ]
        if len(tags) > MOST_TAGS:
            errors.append(f"A forum may have {MOST_TAGS} tags at most.")
        if not errors:
            write(
                "INSERT INTO reddit_forum (name, title, description, sidebar, tags, subscribers, created_at)"
                " VALUES (?, ?, ?, ?, ?, 0, ?)",
                *form.values(),
                ", ".join(tags),
                NOW,
            )
            flash("The forum was created.", "success")
            return redirect(url_for("forum", name=form["name"]))
    return render_template("create_forum.html", form=form, tags=", ".join(tags), errors=errors)


@app.get("/search")
def search() -> str:
    """Find submissions by the words of their titles, and forums and users by a part of their names."""
    words = request.args.get("q", "").lower().split()
    found: list[sqlite3.Row] = []
    found_forums: list[sqlite3.Row] = []
    found_users: list[sqlite3.Row] = []
    if words:
        found = [row for row in submissions() if all(word in row["title"].lower() for word in words)]
        part = "_".join(words)
        found_forums = query(
            "SELECT name FROM reddit_forum WHERE instr(lower(name), ?) ORDER BY length(name) LIMIT ?",
            part,
            SUGGESTIONS,
        )
        found_users = query(
            "SELECT username FROM reddit_user WHERE instr(lower(username), ?) ORDER BY length(username) LIMIT ?",
            part,
            SUGGESTIONS,
        )
    return render_template(
        "search.html", page=paginate(found, PER_PAGE), words=words, forums=found_forums, users=found_users
    )


@app.get("/wiki")
def wiki() -> str:
    """Show the list of wiki pages."""
    rows = query(
        "SELECT w.title, f.name AS forum FROM reddit_wiki w JOIN reddit_forum f ON f.id = w.forum_id ORDER BY f.name"
    )
    return render_template("wiki.html", page=paginate(rows, PER_PAGE))


@app.get("/wiki/<name>")
def wiki_page(name: str) -> str:
    """Show the wiki page of a forum."""
    row = one(
        "SELECT w.title, w.body, f.name AS forum FROM reddit_wiki w JOIN reddit_forum f ON f.id = w.forum_id"
        " WHERE f.name = ?",
        name,
    )
    if row is None:
        abort(404)
    return render_template("wiki_page.html", wiki=row)
