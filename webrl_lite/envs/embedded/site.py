"""What the five sites share: database, log-in with expiry, form tokens, paging, layout.

A site is a Flask application made by ``make_site``; its routes read the worker's database through ``query`` and
``one`` and write through ``write``. The server process says which database a request belongs to (see ``server``).

Invariants: a GET never writes; every POST needs the session's form token and ends in a redirect or in the form with
its errors; nothing depends on the wall clock but the expiry of a log-in (``NOW`` is the sites' own time).
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import wraps
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import jinja2
from flask import Flask, Response, flash, g, redirect, render_template, request, session, url_for
from flask.sessions import SecureCookieSessionInterface
from itsdangerous import URLSafeTimedSerializer
from markupsafe import Markup, escape

HERE = Path(__file__).parent

TODAY = date(2025, 6, 15)
"""The day on which all sites stand still."""
NOW = "2025-06-15 12:00:00"
"""What a new row gets as its time."""
SESSION_SECONDS = 3600
"""A log-in older than this has expired."""
COOKIE = "site_session"
"""Name of the session cookie; each site has its own host name, hence its own cookie."""

DATABASE = "webrl_lite.database"
"""Key of the WSGI environment that holds the database's path."""
READ_ONLY = "webrl_lite.read_only"
"""Key of the WSGI environment that tells whether the database must not be written."""

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()

ACCOUNTS_SCHEMA = """
CREATE TABLE account (
  id INTEGER PRIMARY KEY, site TEXT NOT NULL, username TEXT NOT NULL, password TEXT NOT NULL, name TEXT NOT NULL,
  UNIQUE (site, username)
);
"""


@dataclass(frozen=True)
class User:
    """The account that is signed in."""

    id: int
    username: str
    name: str


def make_site(key: str, title: str, *, login_path: str, login_label: str = "Username") -> Flask:
    """Make the Flask application of one site, with its log-in and log-out.

    Args:
        key: the benchmark's site key; templates lie in ``<key>/templates``, the style in ``static/<key>.css``.
        title: the site's name as a visitor reads it.
        login_path: path of the log-in form, for example ``/login``.
        login_label: what the form calls the user's name.

    Returns:
        The application; ``layout.html`` is the page frame that its templates extend.
    """
    app = Flask(key, root_path=str(HERE), static_folder="static", template_folder=None)
    app.jinja_loader = jinja2.ChoiceLoader(
        [jinja2.FileSystemLoader(HERE / key / "templates"), jinja2.FileSystemLoader(HERE / "templates")]
    )
    app.config.update(
        SESSION_COOKIE_NAME=COOKIE,
        SESSION_COOKIE_SAMESITE="Lax",
        SEND_FILE_MAX_AGE_DEFAULT=86400,
        MAX_CONTENT_LENGTH=1_000_000,
    )
    app.jinja_env.filters.update(money=money, day=day, ago=ago)
    app.jinja_env.globals.update(form_token=form_token, with_query=with_query, site_key=key, site_title=title)
    app.extensions["login_path"] = login_path

    @app.before_request
    def guard() -> Response | tuple[str, int] | None:
        g.site = key
        if "user" in session and time.time() - session.get("at", 0) > SESSION_SECONDS:
            session.clear()
            flash("Your session has expired. Please sign in again.", "error")
            if request.method == "POST" and request.path != login_path:
                return redirect(login_path)
        if request.method == "POST" and not secrets.compare_digest(
            request.form.get("form_key", ""), session.get("form_key", "-")
        ):
            return error_page(400, "The form is out of date. Reload the page and send it again.")
        return None

    @app.context_processor
    def common() -> dict[str, object]:
        return {"user": user(), "login_path": login_path}

    @app.teardown_appcontext
    def close(_error: BaseException | None) -> None:
        connection = g.pop("db", None)
        if connection is not None:
            connection.close()

    def login() -> Response | str:
        errors = []
        username = request.form.get("username", "").strip()
        if request.method == "POST":
            account = one("SELECT * FROM account WHERE site = ? AND username = ?", key, username)
            if account and secrets.compare_digest(account["password"], request.form.get("password", "")):
                sign_in(account["id"])
                return redirect(local_path(request.args.get("next", "")))
            errors.append("The account sign-in was incorrect. Check the name and the password.")
        return render_template("login.html", label=login_label, username=username, errors=errors)

    def logout() -> Response:
        session.clear()
        flash("You have signed out.", "info")
        return redirect("/")

    app.add_url_rule(login_path, "login", login, methods=["GET", "POST"])
    app.add_url_rule("/logout", "logout", logout, methods=["POST"])
    app.register_error_handler(404, lambda _error: error_page(404, "There is no page at this address."))
    app.register_error_handler(405, lambda _error: error_page(405, "This address takes forms only."))
    return app


def error_page(status: int, message: str) -> tuple[str, int]:
    """Return the site's page for an HTTP error."""
    return render_template("error.html", status=status, message=message), status


# Database -----------------------------------------------------------------------------------------------------------


def connection() -> sqlite3.Connection:
    """Return this request's connection to its worker's database."""
    if "db" not in g:
        path = request.environ[DATABASE]
        mode = "ro&immutable=1" if request.environ.get(READ_ONLY) else "rw"
        g.db = sqlite3.connect(f"file:{path}?mode={mode}", uri=True, timeout=10)
        g.db.row_factory = sqlite3.Row
        g.db.execute("PRAGMA synchronous = OFF")  # a worker's database is thrown away after its episode
        g.db.execute("PRAGMA foreign_keys = ON")
    return g.db


def query(sql: str, *values: object) -> list[sqlite3.Row]:
    """Return all rows of a SELECT."""
    return connection().execute(sql, values).fetchall()


def one(sql: str, *values: object) -> sqlite3.Row | None:
    """Return the first row of a SELECT, or None."""
    return connection().execute(sql, values).fetchone()


def write(sql: str, *values: object) -> int:
    """Run one INSERT, UPDATE or DELETE and commit; return the new row's id (INSERT)."""
    with connection() as db:
        return db.execute(sql, values).lastrowid or 0


# Log-in -------------------------------------------------------------------------------------------------------------


def user() -> User | None:
    """Return the signed-in account of this request, or None."""
    if "user" not in session:
        return None
    if "user" not in g:
        row = one("SELECT id, username, name FROM account WHERE id = ? AND site = ?", session["user"], g.site)
        g.user = User(**row) if row else None
    return g.user


def sign_in(account_id: int) -> None:
    """Start a session for an account; the form token changes with it."""
    session.clear()
    session.update(user=account_id, at=time.time(), form_key=secrets.token_hex(8))


def login_required(view: Callable[..., object]) -> Callable[..., object]:
    """Send a visitor who is not signed in to the log-in form, and back afterwards."""

    @wraps(view)
    def guarded(*args: object, **kwargs: object) -> object:
        if user() is None:
            if not session.get("_flashes"):
                flash("Please sign in first.", "error")
            target = request.full_path.rstrip("?") if request.method == "GET" else "/"
            return redirect(url_for("login", next=target))
        return view(*args, **kwargs)

    return guarded


def form_token() -> Markup:
    """Return the hidden field that every POST form must hold."""
    if "form_key" not in session:
        session["form_key"] = secrets.token_hex(8)
    return Markup('<input type="hidden" name="form_key" value="{}">').format(session["form_key"])


def mint_cookie(secret: str, account_id: int | None, *, expired: bool = False) -> str:
    """Make the value of a session cookie, so that an episode can start signed in.

    Args:
        secret: the server process's signing key.
        account_id: the account to sign in; None gives an empty session.
        expired: make a log-in that the site will refuse as too old.

    Returns:
        The cookie's value for the name ``COOKIE``.
    """
    content: dict[str, object] = {"form_key": secrets.token_hex(8)}
    if account_id is not None:
        content.update(user=account_id, at=0.0 if expired else time.time())
    # As Flask signs its own. An application made for it would compile its routes, which CPython 3.11 does not bear in
    # several threads at once (SystemError: AST constructor recursion depth mismatch), and episodes start in threads.
    flask = SecureCookieSessionInterface
    how = {"key_derivation": flask.key_derivation, "digest_method": flask.digest_method}
    signer = URLSafeTimedSerializer(secret, salt=flask.salt, serializer=flask.serializer, signer_kwargs=how)
    return signer.dumps(content)


def local_path(target: str) -> str:
    """Return ``target`` if it is a path on this site, else the home page (no redirect to other hosts)."""
    parts = urlsplit(target)
    plain = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.netloc
    return target if plain else "/"


# Paging and formats -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pager:
    """One page of a longer list."""

    items: Sequence[object]
    """The rows of this page."""
    page: int
    """From 1; a number outside the range is moved into it."""
    pages: int
    """Number of pages, at least 1."""
    total: int
    """Number of rows in all."""
    first: int
    """Number of this page's first row, from 1; 0 if there is none."""
    last: int
    """Number of this page's last row."""


def paginate(rows: Sequence[object], per_page: int, name: str = "p") -> Pager:
    """Cut the rows of the page that the query parameter ``name`` asks for.

    Args:
        rows: all rows, in order.
        per_page: rows a page, at least 1.
        name: the query parameter that holds the page's number.
    """
    pages = max(1, -(-len(rows) // per_page))
    wanted = request.args.get(name, "1")
    page = min(max(int(wanted), 1), pages) if wanted.isdecimal() and len(wanted) < 9 else 1
    start = (page - 1) * per_page
    items = rows[start : start + per_page]
    return Pager(items, page, pages, len(rows), start + 1 if items else 0, start + len(items))


def with_query(**changes: object) -> str:
    """Return this page's path with some query parameters changed; None removes one."""
    query_values = {**request.args.to_dict(), **changes}
    kept = {name: value for name, value in query_values.items() if value is not None}
    return request.path + ("?" + urlencode(kept) if kept else "")


def money(cents: int) -> str:
    """Format cents: 123450 becomes ``$1,234.50``."""
    return f"-${-cents / 100:,.2f}" if cents < 0 else f"${cents / 100:,.2f}"


def day(stamp: str) -> str:
    """Format an ISO date or time: ``2025-06-03 10:15:00`` becomes ``Jun 3, 2025``."""
    year, month, number = stamp[:10].split("-")
    return f"{MONTHS[int(month) - 1]} {int(number)}, {year}"


def ago(stamp: str) -> str:
    """Format an ISO date or time as its distance from ``TODAY``: ``3 days ago``."""
    days = (TODAY - date.fromisoformat(stamp[:10])).days
    if days <= 0:
        return "today"
    for size, unit in ((365, "year"), (30, "month"), (7, "week"), (1, "day")):
        if days >= size:
            count = days // size
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    raise AssertionError(days)


def paragraphs(text: str) -> Markup:
    """Escape a text and make a paragraph of each of its lines."""
    return Markup("").join(Markup("<p>") + escape(line) + Markup("</p>") for line in text.split("\n") if line.strip())
