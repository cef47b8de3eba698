"""Scripted solutions of Forgeworks' tasks, written as a person would go: search, project, list, page, button.

Each oracle gets the first page and the values of its instruction and knows nothing else; see ``oracle``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from webrl_lite.envs.embedded.oracle import (
    Moves,
    OracleLost,
    Page,
    click,
    hover,
    look_for,
    read_line,
    reply,
    select,
    type_in,
)

Values = Mapping[str, str]

MENU = "Marta Lindqvist"
"""Name of the account menu: the signed-in user's own."""


# Ways -----------------------------------------------------------------------------------------------


def open_project(page: Page, project: str) -> Moves[Page]:
    """Go to a project, by the list on the screen or by search."""
    if page.find(project, "link") is None:
        page = yield from type_in(page, "Search", project.split(" / ")[1], submit=True)
    return (yield from click(page, project, "link"))


def open_menu_page(page: Page, menu: str, name: str) -> Moves[Page]:
    """Hover over a menu of the page's top and follow one of its links."""
    page = yield from hover(page, menu, "button")
    return (yield from click(page, name, "link"))


def open_row(page: Page, title: str, search: str) -> Moves[Page]:
    """Open a row of a project's list; search the list if the row is not on the screen."""
    if page.find(title, "link") is None:
        page = yield from type_in(page, search, title, submit=True)
    return (yield from click(page, title, "link"))


def open_issue(page: Page, values: Values) -> Moves[Page]:
    """Go to the issue ``issue`` of ``project``."""
    page = yield from open_project(page, values["project"])
    page = yield from click(page, "Issues", "link")
    return (yield from open_row(page, values["issue"], "Search issues"))


def open_merge(page: Page, values: Values) -> Moves[Page]:
    """Go to the merge request ``merge`` of ``project``."""
    page = yield from open_project(page, values["project"])
    page = yield from click(page, "Merge requests", "link")
    return (yield from open_row(page, values["merge"], "Search merge requests"))


def find_issue(page: Page, title: str) -> Moves[Page]:
    """Search all projects for an issue; the page that follows lists it."""
    page = yield from type_in(page, "Search", title, submit=True)
    return (yield from click(page, "Issues", "link"))


def turn_to(page: Page, *parts: str) -> Moves[Page]:
    """Turn the pages of a list until one of the screen's lines holds all the parts."""
    while not page.line(*parts):
        if page.find("Next", "link") is None and page.more:
            page = yield reply("Scroll Down")
        else:
            page = yield from click(page, "Next", "link")
    return page


def filter_by(page: Page, kind: str, value: str) -> Moves[Page]:
    """Filter a list by its two-step menu."""
    page = yield from click(page, "Filter", "button")
    page = yield from click(page, kind, "menuitem")
    return (yield from click(page, value, "menuitem"))


def choose(page: Page, button: str, option: str) -> Moves[Page]:
    """Open a drop-down by its button and click one of its options."""
    page = yield from click(page, button, "button", part=True)
    return (yield from click(page, option, "option"))


def part_of(line: str, pattern: str) -> str:
    """Return the first group of a pattern in a line.

    Raises:
        OracleLost: the line does not match.
    """
    found = re.search(pattern, line)
    if found is None:
        raise OracleLost(f"{pattern!r} does not match the line {line!r}")
    return found[1].strip()


# Questions ------------------------------------------------------------------------------------------


def stars(page: Page, values: Values) -> Moves[str]:
    """Read the stars in the search result."""
    page = yield from type_in(page, "Search", values["project"].split(" / ")[1], submit=True)
    page, _ = yield from look_for(page, values["project"], "link")
    rows = page.text.split(values["project"], 1)[1]
    return part_of(rows, r"(\d+) stars")


def clone_address(page: Page, values: Values) -> Moves[str]:
    """Read the address in the project's clone box."""
    page = yield from open_project(page, values["project"])
    page, line = yield from read_line(page, f"Clone with {values['protocol']}")
    return part_of(line, r'"([^"]+)"')


def setting(page: Page, values: Values) -> Moves[str]:
    """Read a value in the project's settings file."""
    page = yield from open_project(page, values["project"])
    page = yield from click(page, "settings.cfg", "link")
    page, line = yield from read_line(page, f"{values['key']} =")
    return part_of(line, rf"{values['key']} = (\w+)")


def issue_author(page: Page, values: Values) -> Moves[str]:
    """Read the author in the list of issues found."""
    page = yield from find_issue(page, values["issue"])
    rows = page.text.split(values["issue"], 1)[1]
    return part_of(rows, r"#\d+ by ([^,\n]+)")


def issue_assignee(page: Page, values: Values) -> Moves[str]:
    """Read the assignee beside the issue."""
    page = yield from open_issue(page, values)
    page, line = yield from read_line(page, "Assignee: ")
    return part_of(line, r"Assignee: ([^|\[]+)")


def source_branch(page: Page, values: Values) -> Moves[str]:
    """Read the branch on the merge request's page."""
    page = yield from open_merge(page, values)
    page, line = yield from read_line(page, "Merge ", " into ")
    return part_of(line, r"Merge\W+([a-z-]+)")


def label_count(page: Page, values: Values) -> Moves[str]:
    """Filter the project's open issues by the label and read the number at the tab."""
    page = yield from open_project(page, values["project"])
    page = yield from click(page, "Issues", "link")
    page = yield from filter_by(page, "Label", values["label"])
    return part_of(page.text, r"Open \[\d+\][^|]*\|\s*(\d+)")


def commit_count(page: Page, values: Values) -> Moves[str]:
    """Filter the project's commits by author, and by days if the instruction has them; read their number."""
    page = yield from open_project(page, values["project"])
    page = yield from open_menu_page(page, "Code", "Commits")
    page = yield from select(page, "Author", values["person"])
    for name in ("since", "until"):
        if name in values:
            page = yield from fill_date(page, name.capitalize(), values[name])
    page = yield from click(page, "Apply", "button")
    page, line = yield from read_line(page, "Commits ", " of ")
    return part_of(line, r" of (\d+)")


def fill_date(page: Page, name: str, day: str) -> Moves[Page]:
    """Type a day into a date field."""
    page, element = yield from look_for(page, name, "date")
    return (yield reply("Type", element, day))


def top_contributor(page: Page, values: Values) -> Moves[str]:
    """Read the first name of the project's contributors, who are listed by their commits."""
    page = yield from open_project(page, values["project"])
    page = yield from open_menu_page(page, "Code", "Contributors")
    page, line = yield from read_line(page, " commits")
    return part_of(line, r"^([^\[]+) \[")


def feed_key(page: Page, values: Values) -> Moves[str]:
    """Read the project's row in the table of feed keys."""
    page = yield from open_menu_page(page, MENU, "Feed keys")
    page = yield from turn_to(page, values["project"])
    return part_of(page.line(values["project"]), r"(fk-[\d-]+)")


def milestone_due(page: Page, values: Values) -> Moves[str]:
    """Read the milestone's day in the project's list."""
    page = yield from open_project(page, values["project"])
    page = yield from open_menu_page(page, "Manage", "Milestones")
    page, line = yield from read_line(page, values["milestone"])
    return part_of(line, r"due (\w+ \d+, \d+)")


# Pages ----------------------------------------------------------------------------------------------


def open_file(page: Page, values: Values) -> Moves[str]:
    """Open a file of the project."""
    page = yield from open_project(page, values["project"])
    yield from click(page, values["file"], "link")
    return "done"


def open_todo(page: Page, values: Values) -> Moves[str]:
    """Follow a to-do to what it is about."""
    page = yield from click(page, "To-do list", "link")
    page = yield from turn_to(page, values["title"])
    yield from click(page, values["title"], "link")
    return "done"


def assigned_issues(page: Page, values: Values) -> Moves[str]:
    """Filter the project's issues by assignee."""
    person = MENU if values["person"] == "me" else values["person"]
    page = yield from open_project(page, values["project"])
    page = yield from click(page, "Issues", "link")
    yield from filter_by(page, "Assignee", person)
    return "done"


def filtered_issues(page: Page, values: Values) -> Moves[str]:
    """Filter the project's open issues by label and assignee, and sort them."""
    page = yield from open_project(page, values["project"])
    page = yield from click(page, "Issues", "link")
    page = yield from filter_by(page, "Label", values["label"])
    page = yield from filter_by(page, "Assignee", values["person"])
    page = yield from click(page, "Sort", "button")
    yield from click(page, values["order"], "menuitem")
    return "done"


def closed_issues(page: Page, values: Values) -> Moves[str]:
    """Filter the project's closed issues by label."""
    page = yield from open_project(page, values["project"])
    page = yield from click(page, "Issues", "link")
    page = yield from click(page, "Closed", "link")
    yield from filter_by(page, "Label", values["label"])
    return "done"


def review_request(page: Page, values: Values) -> Moves[str]:
    """Open the project's merge request among those the user is asked to review."""
    page = yield from click(page, "My merges", "link")
    page = yield from click(page, "Review requests", "link")
    row = (f"{values['project']} !", f"by {values['person']}")
    page = yield from turn_to(page, *row)
    title = part_of(page.lines[page.lines.index(page.line(*row)) - 1], r"^([^\[]+) \[")
    yield from click(page, title, "link")
    return "done"


# Changes --------------------------------------------------------------------------------------------


def star(page: Page, values: Values) -> Moves[str]:
    """Star the project."""
    page = yield from open_project(page, values["project"])
    yield from click(page, "Star", "button")
    return "done"


def follow(page: Page, values: Values) -> Moves[str]:
    """Find the user and follow."""
    page = yield from type_in(page, "Search", values["person"], submit=True)
    page = yield from click(page, "Users", "link")
    page = yield from click(page, values["person"], "link")
    yield from click(page, "Follow", "button")
    return "done"


def set_status(page: Page, values: Values) -> Moves[str]:
    """Write the user's status."""
    page = yield from open_menu_page(page, MENU, "Edit profile")
    page = yield from type_in(page, "Status", values["status"])
    yield from click(page, "Update profile", "button")
    return "done"


def new_issue(page: Page, values: Values) -> Moves[str]:
    """Fill the form of a new issue: title, assignee and label."""
    page = yield from open_project(page, values["project"])
    page = yield from click(page, "Issues", "link")
    page = yield from click(page, "New issue", "link")
    page = yield from type_in(page, "Title", values["title"])
    page = yield from choose(page, "Assignee:", values["person"])
    page = yield from choose(page, "Labels:", values["label"])
    yield from click(page, "Create issue", "button")
    return "done"


def comment_merge(page: Page, values: Values) -> Moves[str]:
    """Comment on the merge request."""
    page = yield from open_merge(page, values)
    page = yield from type_in(page, "Write a comment", values["comment"])
    yield from click(page, "Comment", "button")
    return "done"


def close_issue(page: Page, values: Values) -> Moves[str]:
    """Close the issue."""
    page = yield from open_issue(page, values)
    yield from click(page, "Close issue", "button")
    return "done"


def new_project(page: Page, values: Values) -> Moves[str]:
    """Fill the form of a new project."""
    page = yield from click(page, "New project", "link")
    page = yield from type_in(page, "Project name", values["name"])
    visibility = page.find(values["visibility"], "radio")
    if visibility is None or " on" not in visibility.line.split("]")[1]:
        page = yield from click(page, values["visibility"], "radio")
    if values["readme"] == "with a README":
        page = yield from click(page, "Start with a README", "checkbox")
    yield from click(page, "Create project", "button")
    return "done"


def invite(page: Page, values: Values) -> Moves[str]:
    """Invite the user with the role."""
    page = yield from open_project(page, values["project"])
    page = yield from open_menu_page(page, "Manage", "Members")
    page = yield from click(page, "Invite a member", "link")
    page = yield from type_in(page, "Username", values["username"])
    page = yield from select(page, "Role", values["role"])
    yield from click(page, "Invite", "button")
    return "done"


def change_role(page: Page, values: Values) -> Moves[str]:
    """Choose another role in the member's row."""
    page = yield from open_project(page, values["project"])
    page = yield from open_menu_page(page, "Manage", "Members")
    yield from choose(page, f"Role of {values['person']}:", values["role"])
    return "done"


def remove_member(page: Page, values: Values) -> Moves[str]:
    """Remove the member; the browser confirms the question."""
    page = yield from open_project(page, values["project"])
    page = yield from open_menu_page(page, "Manage", "Members")
    yield from click(page, "Remove", "button", near=values["person"])
    return "done"


def new_milestone(page: Page, values: Values) -> Moves[str]:
    """Fill the form of a new milestone."""
    page = yield from open_project(page, values["project"])
    page = yield from open_menu_page(page, "Manage", "Milestones")
    page = yield from click(page, "New milestone", "link")
    page = yield from type_in(page, "Title", values["title"])
    page = yield from fill_date(page, "Due date", values["due"])
    yield from click(page, "Create milestone", "button")
    return "done"


def add_label(page: Page, values: Values) -> Moves[str]:
    """Choose the label in the issue's drop-down."""
    page = yield from open_issue(page, values)
    yield from choose(page, "Edit labels", values["label"])
    return "done"


def describe(page: Page, values: Values) -> Moves[str]:
    """Write the project's description anew."""
    page = yield from open_project(page, values["project"])
    page = yield from open_menu_page(page, "Manage", "Settings")
    page = yield from type_in(page, "Project description", values["text"])
    yield from click(page, "Save changes", "button")
    return "done"


def merge(page: Page, values: Values) -> Moves[str]:
    """Merge; the browser confirms the question."""
    page = yield from open_merge(page, values)
    yield from click(page, "Merge", "button")
    return "done"


def sign_in_todo(page: Page, values: Values) -> Moves[str]:
    """Sign in again and mark the to-do as done."""
    page = yield from type_in(page, "Username", values["username"])
    page = yield from type_in(page, "Password", values["password"])
    page = yield from click(page, "Sign in", "button")
    page = yield from turn_to(page, values["title"])
    yield from click(page, "Mark as done", "button", near=values["title"])
    return "done"


def assign_reviewer(page: Page, values: Values) -> Moves[str]:
    """Choose the reviewer in the merge request's drop-down."""
    page = yield from open_merge(page, values)
    yield from choose(page, "Edit reviewer", values["person"])
    return "done"
