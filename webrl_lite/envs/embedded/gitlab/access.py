"""Who may see and do what in Forgeworks, and the look-ups that all its pages share.

A visitor sees public projects, a signed-in user also internal ones, a member also private ones. Roles are
ordered; each page states the least role that it asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from sqlite3 import Row
from urllib.parse import urlencode

from flask import Response, abort, flash, make_response, redirect, request, url_for

from webrl_lite.envs.embedded.site import error_page, query, user

ROLES = ("Guest", "Reporter", "Developer", "Maintainer", "Owner")
"""Roles of a member, the weakest first."""
INVITED_ROLES = ROLES[:4]
"""Roles that a member can be given; a project has one owner from the start."""


@dataclass(frozen=True)
class Project:
    """A project as the visitor of this request may see it."""

    id: int
    ns_path: str
    ns_name: str
    path: str
    name: str
    description: str
    visibility: str
    created_at: str
    updated_at: str
    forks: int
    stars: int
    role: str
    """The visitor's role; empty for no member."""

    @property
    def url(self) -> str:
        """Path of the project's page."""
        return f"/{self.ns_path}/{self.path}"

    @property
    def full_name(self) -> str:
        """Namespace and name, such as ``Harbor Labs / Amber Queue``."""
        return f"{self.ns_name} / {self.name}"

    def allows(self, role: str) -> bool:
        """Whether the visitor has ``role`` or a stronger one."""
        return bool(self.role) and ROLES.index(self.role) >= ROLES.index(role)


def visitor_id() -> int:
    """Return the signed-in user's id; 0 for a visitor."""
    account = user()
    return account.id if account else 0


VISIBLE = """
SELECT p.id, n.path AS ns_path, n.name AS ns_name, p.path, p.name, p.description, p.visibility, p.created_at,
  p.updated_at, p.forks, COALESCE(m.role, '') AS role,
  p.stars_before + (SELECT COUNT(*) FROM gitlab_star s WHERE s.project_id = p.id) AS stars
FROM gitlab_project p
JOIN gitlab_namespace n ON n.id = p.namespace_id
LEFT JOIN gitlab_member m ON m.project_id = p.id AND m.user_id = ?1
WHERE (p.visibility = 'Public' OR m.role IS NOT NULL OR (p.visibility = 'Internal' AND ?1 <> 0))
"""
"""Statement that gives the projects the visitor may see; a condition and an order may follow it."""


def projects(more: str = "", *values: object) -> list[Project]:
    """Return the projects that the visitor may see.

    Args:
        more: SQL that follows ``VISIBLE``, such as ``AND p.name = ?2``; ``?1`` is the visitor's id.
        values: the values from ``?2`` on.
    """
    return [Project(**row) for row in query(VISIBLE + more, visitor_id(), *values)]


def find_project(ns: str, path: str, role: str = "") -> Project:
    """Return a project by its address, or end the request.

    Args:
        ns: the namespace's path.
        path: the project's path.
        role: the least role the visitor must have; empty for anyone who sees the project.
    """
    found = projects("AND n.path = ?2 AND p.path = ?3", ns, path)
    if not found:
        if not visitor_id():
            abort(to_sign_in())
        abort(404)
    if role and not found[0].allows(role):
        abort(make_response(error_page(403, "Your role in this project does not allow this.")))
    return found[0]


def to_sign_in() -> Response:
    """Return the redirection to the log-in form and back."""
    flash("Please sign in first.", "error")
    return redirect(url_for("login", next=request.full_path.rstrip("?")))


def members(project: Project) -> list[Row]:
    """Return a project's members with their roles, by role and name."""
    rows = query(
        "SELECT u.id, u.username, u.name, m.role FROM gitlab_member m JOIN gitlab_user u ON u.id = m.user_id "
        "WHERE m.project_id = ? ORDER BY u.name",
        project.id,
    )
    return sorted(rows, key=lambda row: -ROLES.index(row["role"]))


def matches(search: str, *texts: str) -> bool:
    """Whether each word of a search occurs in one of the texts; a slash between words does not count."""
    whole = " ".join(texts).lower()
    return all(word in whole for word in search.lower().replace("/", " ").split())


def read_query(defaults: Mapping[str, str], choices: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Read the query of a list page, or end the request by sending it to the address's one form.

    A list's address says what it shows in one way only: no empty or unknown parameters, a fixed order.

    Args:
        defaults: every parameter the page knows, in the address's order, with its value when it is not given;
            a default that is not empty stands in the address too.
        choices: the values that a parameter may have; any other becomes its default.
    """
    values = {}
    for name, default in defaults.items():
        value = request.args.get(name, "").strip()
        values[name] = value if value and value in choices.get(name, (value,)) else default
    if values.get("p") == "1":
        values["p"] = ""
    kept = [(name, value) for name, value in values.items() if value]
    if list(request.args.items(multi=True)) != kept:
        abort(redirect(request.path + ("?" + urlencode(kept) if kept else "")))
    return values


def is_day(text: str) -> bool:
    """Whether a text is a day as a date field sends it."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
