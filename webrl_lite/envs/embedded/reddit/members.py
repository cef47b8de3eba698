"""What is about users: profiles, the own biography, and private messages."""

from __future__ import annotations

import sqlite3

from flask import Blueprint, Response, abort, flash, redirect, render_template, request

from webrl_lite.envs.embedded.reddit.lists import comments, member_id, submissions
from webrl_lite.envs.embedded.reddit.threads import typed
from webrl_lite.envs.embedded.site import NOW, error_page, login_required, one, paginate, query, write

members = Blueprint("members", __name__)

PER_PAGE = 10
LONGEST_BIO = 300

_MESSAGES = """
SELECT m.*, a.username AS sender, b.username AS recipient FROM reddit_message m
JOIN reddit_user a ON a.id = m.sender_id JOIN reddit_user b ON b.id = m.recipient_id
"""


def _member(name: str) -> sqlite3.Row:
    """Return a user by name; ends the request with 404 if there is none."""
    row = one("SELECT * FROM reddit_user WHERE username = ?", name)
    if row is None:
        abort(404)
    return row


@members.get("/user/<name>")
def profile(name: str) -> str:
    """Show a user with the own submissions."""
    member = _member(name)
    page = paginate(submissions("s.author_id = ?", member["id"]), PER_PAGE)
    return render_template("profile.html", member=member, page=page, tab="submissions")


@members.get("/user/<name>/comments")
def profile_comments(name: str) -> str:
    """Show a user with the own comments."""
    member = _member(name)
    page = paginate(comments("c.author_id = ?", member["id"]), PER_PAGE)
    return render_template("profile.html", member=member, page=page, tab="comments")


@members.route("/user/<name>/edit_biography", methods=["GET", "POST"])
@login_required
def edit_biography(name: str) -> Response | str | tuple[str, int]:
    """Show and take the form for the own biography."""
    member = _member(name)
    if member["id"] != member_id():
        return error_page(403, "You can change your own biography only.")
    bio = typed("bio") if request.method == "POST" else member["bio"]
    errors = []
    if request.method == "POST":
        if len(bio) > LONGEST_BIO:
            errors.append(f"The biography may have {LONGEST_BIO} characters at most.")
        else:
            write("UPDATE reddit_user SET bio = ? WHERE id = ?", bio, member["id"])
            flash("Your biography was saved.", "success")
            return redirect(f"/user/{member['username']}")
    return render_template("edit_biography.html", member=member, bio=bio, errors=errors)


@members.get("/inbox")
@login_required
def inbox() -> str:
    """Show the messages that came."""
    rows = query(f"{_MESSAGES} WHERE m.recipient_id = ? ORDER BY m.created_at DESC, m.id DESC", member_id())
    return render_template("inbox.html", page=paginate(rows, PER_PAGE), tab="inbox")


@members.get("/inbox/sent")
@login_required
def sent() -> str:
    """Show the messages that were sent."""
    rows = query(f"{_MESSAGES} WHERE m.sender_id = ? ORDER BY m.created_at DESC, m.id DESC", member_id())
    return render_template("inbox.html", page=paginate(rows, PER_PAGE), tab="sent")


@members.route("/inbox/<int:number>", methods=["GET", "POST"])
@login_required
def message(number: int) -> Response | str:
    """Show a message that came or was sent; take the answer to one that came."""
    row = one(f"{_MESSAGES} WHERE m.id = ? AND ? IN (m.sender_id, m.recipient_id)", number, member_id())
    if row is None:
        abort(404)
    errors = []
    if request.method == "POST":
        subject = row["subject"] if row["subject"].startswith("Re: ") else f"Re: {row['subject']}"
        other = row["sender_id"] if row["recipient_id"] == member_id() else row["recipient_id"]
        errors = _send(other, subject, typed("message"), number)
        if not errors:
            return redirect("/inbox")
    return render_template("message.html", message=row, errors=errors)


@members.route("/user/<name>/compose", methods=["GET", "POST"])
@login_required
def compose(name: str) -> Response | str:
    """Show and take the form for a message to a user."""
    member = _member(name)
    errors = []
    if request.method == "POST":
        errors = _send(member["id"], typed("subject"), typed("message"), None)
        if not errors:
            return redirect("/inbox/sent")
    form = {field: typed(field) for field in ("subject", "message")}
    return render_template("compose.html", member=member, form=form, errors=errors)


def _send(recipient: int, subject: str, body: str, reply_to: int | None) -> list[str]:
    """Store a message and say so; returns what is wrong with it instead."""
    errors = [f"The {name} must not be empty." for name, text in (("subject", subject), ("message", body)) if not text]
    if not errors:
        write(
            "INSERT INTO reddit_message (sender_id, recipient_id, reply_to, subject, body, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            member_id(),
            recipient,
            reply_to,
            subject,
            body,
            NOW,
        )
        flash("Your message was sent.", "success")
    return errors
