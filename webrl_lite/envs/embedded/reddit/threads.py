"""What is about one submission: its page with comments, votes, posting, changing and deleting it."""

from __future__ import annotations

import re
import sqlite3

from flask import Blueprint, Response, abort, flash, redirect, render_template, request

from webrl_lite.envs.embedded.reddit.lists import find_node, forum_row, member_id, slug, submissions, thread
from webrl_lite.envs.embedded.site import NOW, error_page, local_path, login_required, one, write

threads = Blueprint("threads", __name__)

LONGEST_TITLE = 200
URL = re.compile(r"https?://[^\s/]+\.[^\s]+")

VOTES = {
    "submission": ("reddit_submission_vote", "submission_id", "reddit_submission"),
    "comment": ("reddit_comment_vote", "comment_id", "reddit_comment"),
}
"""For each kind of thing that takes votes: the table of votes, its column, the table of the things."""


def address(row: sqlite3.Row) -> str:
    """Return the path of a submission's page."""
    return f"/f/{row['forum']}/{row['id']}/{slug(row['title'])}"


def _submission(forum: str, submission_id: int) -> sqlite3.Row:
    """Return a submission of a forum; ends the request with 404 if there is none."""
    rows = submissions("s.id = ? AND f.name = ?", submission_id, forum)
    if not rows:
        abort(404)
    return rows[0]


def typed(name: str) -> str:
    """Return a field of the form, trimmed, with plain line ends."""
    return request.form.get(name, "").replace("\r\n", "\n").strip()


@threads.get("/f/<forum>/<int:number>")
def short_address(forum: str, number: int) -> Response:
    """Lead to the submission's full address."""
    return redirect(address(_submission(forum, number)))


@threads.get("/f/<forum>/<int:number>/<name>")
def submission(forum: str, number: int, name: str) -> str:
    """Show a submission with its comments."""
    return _show(_submission(forum, number))


def _show(row: sqlite3.Row, errors: tuple[str, ...] = ()) -> str:
    return render_template(
        "submission.html",
        post=row,
        address=address(row),
        thread=thread(row["id"]),
        forum=forum_row(row["forum"]),
        errors=errors,
    )


@threads.post("/f/<forum>/<int:number>/<name>/comment")
@login_required
def add_comment(forum: str, number: int, name: str) -> Response | str:
    """Take a comment on a submission."""
    row = _submission(forum, number)
    body = typed("comment")
    if not body:
        return _show(row, ("The comment must not be empty.",))
    return _publish(row, None, body)


def _publish(row: sqlite3.Row, parent: int | None, body: str) -> Response:
    comment = write(
        "INSERT INTO reddit_comment (submission_id, parent_id, author_id, body, up, down, created_at)"
        " VALUES (?, ?, ?, ?, 1, 0, ?)",
        row["id"],
        parent,
        member_id(),
        body,
        NOW,
    )
    flash("Your comment was posted.", "success")
    return redirect(f"{address(row)}/comment/{comment}")


@threads.get("/f/<forum>/<int:number>/<name>/comment/<int:comment>")
def one_comment(forum: str, number: int, name: str, comment: int) -> str:
    """Show a comment with its replies and the form for a reply."""
    return _show_comment(_submission(forum, number), comment)


def _show_comment(row: sqlite3.Row, comment: int, errors: tuple[str, ...] = ()) -> str:
    node = find_node(thread(row["id"]), comment)
    if node is None:
        abort(404)
    return render_template("comment.html", post=row, address=address(row), node=node, errors=errors)


@threads.post("/f/<forum>/<int:number>/<name>/comment/<int:comment>")
@login_required
def reply(forum: str, number: int, name: str, comment: int) -> Response | str:
    """Take a reply to a comment."""
    row = _submission(forum, number)
    body = typed("reply")
    if not body or find_node(thread(row["id"]), comment) is None:
        return _show_comment(row, comment, ("The reply must not be empty.",))
    return _publish(row, comment, body)


@threads.post("/vote/<any(submission, comment):kind>/<int:number>")
@login_required
def vote(kind: str, number: int) -> Response:
    """Take a vote; the same vote again takes it back."""
    table, column, things = VOTES[kind]
    value = {"up": 1, "down": -1}.get(request.form.get("choice", ""))
    if value is None or one(f"SELECT 1 FROM {things} WHERE id = ?", number) is None:
        abort(404)
    own = one(f"SELECT id, value FROM {table} WHERE user_id = ? AND {column} = ?", member_id(), number)
    if own is None:
        write(f"INSERT INTO {table} (user_id, {column}, value) VALUES (?, ?, ?)", member_id(), number, value)
    elif own["value"] == value:
        write(f"DELETE FROM {table} WHERE id = ?", own["id"])
    else:
        write(f"UPDATE {table} SET value = ? WHERE id = ?", value, own["id"])
    return redirect(f"{local_path(request.form.get('next', ''))}#{kind}-{number}")


@threads.route("/submit", methods=["GET", "POST"])
@threads.route("/submit/<forum>", methods=["GET", "POST"])
@login_required
def submit(forum: str = "") -> Response | str:
    """Show and take the form for a new submission."""
    form = {field: typed(field) for field in ("title", "url", "body")}
    form["forum"] = typed("forum") if request.method == "POST" else forum
    errors = []
    if request.method == "POST":
        target = one("SELECT id, name FROM reddit_forum WHERE name = ?", form["forum"])
        errors = _problems(form)
        if target is None:
            errors.append(f"There is no forum named {form['forum']}." if form["forum"] else "Choose a forum.")
        if target is not None and not errors:
            number = write(
                "INSERT INTO reddit_submission (forum_id, author_id, title, url, body, up, down, created_at)"
                " VALUES (?, ?, ?, ?, ?, 1, 0, ?)",
                target["id"],
                member_id(),
                form["title"],
                form["url"],
                form["body"],
                NOW,
            )
            flash("Your submission was posted.", "success")
            return redirect(address(_submission(target["name"], number)))
    return render_template("submit.html", form=form, errors=errors)


def _problems(form: dict[str, str]) -> list[str]:
    """Return what is wrong with the title, the URL and the body of a submission."""
    errors = []
    if not form["title"]:
        errors.append("The title must not be empty.")
    elif len(form["title"]) > LONGEST_TITLE:
        errors.append(f"The title may have {LONGEST_TITLE} characters at most.")
    if form["url"] and not URL.fullmatch(form["url"]):
        errors.append("The URL must be a web address that begins with http:// or https://.")
    if not form["url"] and not form["body"]:
        errors.append("Write a body or give a URL.")
    return errors


@threads.route("/f/<forum>/<int:number>/<name>/edit", methods=["GET", "POST"])
@login_required
def edit(forum: str, number: int, name: str) -> Response | str | tuple[str, int]:
    """Show and take the form that changes an own submission."""
    row = _submission(forum, number)
    if row["author_id"] != member_id():
        return error_page(403, "You can change your own submissions only.")
    if request.method == "GET":
        form = {field: row[field] for field in ("title", "url", "body")}
        return render_template("edit.html", form=form, address=address(row), errors=[])
    form = {field: typed(field) for field in ("title", "url", "body")}
    errors = _problems(form)
    if errors:
        return render_template("edit.html", form=form, address=address(row), errors=errors)
    write(
        "UPDATE reddit_submission SET title = ?, url = ?, body = ?, edited_at = ? WHERE id = ?",
        *form.values(),
        NOW,
        number,
    )
    flash("Your changes were saved.", "success")
    return redirect(address(_submission(forum, number)))


@threads.post("/f/<forum>/<int:number>/<name>/delete")
@login_required
def delete(forum: str, number: int, name: str) -> Response | tuple[str, int]:
    """Take an own submission off the site."""
    row = _submission(forum, number)
    if row["author_id"] != member_id():
        return error_page(403, "You can delete your own submissions only.")
    write("UPDATE reddit_submission SET deleted = 1 WHERE id = ?", number)
    flash("Your submission was deleted.", "success")
    return redirect(f"/f/{row['forum']}")
