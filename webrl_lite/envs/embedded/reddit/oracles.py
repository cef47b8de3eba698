"""Scripted solutions of the forum's tasks; see ``oracle`` for how they see and act."""

from __future__ import annotations

import re
from collections.abc import Mapping

from webrl_lite.envs.embedded.oracle import (
    MAX_SCROLLS,
    Moves,
    OracleLost,
    Page,
    Seen,
    click,
    hover,
    look_for,
    read_line,
    reply,
    type_in,
)

Values = Mapping[str, str]

POST = re.compile(r"by (?P<author>\S+) on .*?\| (?P<comments>\d+) comments?\b.*?(?P<score>-?\d+) points?\b")
"""A line of a list of submissions, behind its title."""
HANDBOOK = {
    "the day of the weekly thread": r"The weekly thread opens on (\w+)",
    "the color of the badge of new members": r"New members get the (\w+) badge",
    "the greatest number of photos in a post": r"A post may have at most (\d+) photos",
}
"""What the instructions ask about a handbook, and how it is written there."""
SORTS = {"newest": "New", "top": "Top"}
"""What the instructions say, and the sort that puts such a submission first."""


def open_forum(page: Page, forum: str) -> Moves[Page]:
    """Go to a forum by the search, unless the page is its own."""
    if page.line(f"= Forum {forum}"):
        return page
    page = yield from type_in(page, "Search", forum, submit=True)
    return (yield from click(page, forum, "link"))


def open_user(page: Page, user: str) -> Moves[Page]:
    """Go to a user's profile by the search."""
    page = yield from type_in(page, "Search", user, submit=True)
    return (yield from click(page, user, "link"))


def find_post(page: Page, title: str, forum: str = "") -> Moves[tuple[Page, str]]:
    """Search a submission by its title; returns the results and its line. Decoys differ in the forum."""
    page = yield from type_in(page, "Search", title, submit=True)
    return (yield from read_line(page, f"{title} [", f"in | {forum} [" if forum else "in | "))


def open_post(page: Page, title: str, forum: str = "") -> Moves[Page]:
    """Search a submission and go to its page."""
    page, line = yield from find_post(page, title, forum)
    return (yield reply("Click", on_line(page, line, title)))


def on_line(page: Page, line: str, name: str) -> Seen:
    """Return the element of a name that stands on a line."""
    for element in page.elements:
        if element.line == line and element.name.lower() == name.lower():
            return element
    raise OracleLost(f"no element {name!r} on the line {line!r}")


def fact(line: str, pattern: re.Pattern[str], group: str) -> str:
    """Return what a line says by a pattern."""
    match = pattern.search(line)
    if match is None:
        raise OracleLost(f"the line {line!r} does not fit {pattern.pattern!r}")
    return match[group]


def first_post(page: Page, values: Values) -> Moves[tuple[Page, str]]:
    """Go to a forum, sort it, and return the line of its first submission."""
    page = yield from open_forum(page, values["forum"])
    page = yield from click(page, SORTS[values["order"]], "link")
    return (yield from read_line(page, "by ", "vote [", "point"))


# Questions --------------------------------------------------------------------------------------------------


def lead_author(page: Page, values: Values) -> Moves[str]:
    """Read who wrote the newest or top submission."""
    _page, line = yield from first_post(page, values)
    return fact(line, POST, "author")


def lead_score(page: Page, values: Values) -> Moves[str]:
    """Read its score."""
    _page, line = yield from first_post(page, values)
    return fact(line, POST, "score")


def lead_comments(page: Page, values: Values) -> Moves[str]:
    """Read how many comments it has."""
    _page, line = yield from first_post(page, values)
    return fact(line, POST, "comments")


def post_author(page: Page, values: Values) -> Moves[str]:
    """Read who wrote a named submission."""
    _page, line = yield from find_post(page, values["title"], values["forum"])
    return fact(line, re.compile(r"by (?P<author>\S+) on "), "author")


def comment_score(page: Page, values: Values) -> Moves[str]:
    """Read the score of a user's only comment in a thread."""
    page = yield from open_post(page, values["title"])
    _page, line = yield from read_line(page, f"{values['user']} [", "Reply to", "point")
    return fact(line, re.compile(r"(?P<score>-?\d+) points?\b"), "score")


def negative_comments(page: Page, values: Values) -> Moves[str]:
    """Count the comments of a thread that have a score below zero."""
    page = yield from open_post(page, values["title"])
    number = re.compile(r"\[\d+\]")
    found: set[str] = set()
    for _ in range(MAX_SCROLLS):
        for line in page.lines:
            if "Reply to" in line and re.search(r"\| -\d+ points?\b", line) and re.match(r"\w+ \[\d+\] \| on ", line):
                found.add(number.sub("", line))
        if not page.more:
            return str(len(found))
        page = yield reply("Scroll Down")
    raise OracleLost("the thread has no end")


def user_likes(page: Page, values: Values) -> Moves[str]:
    """Read what a user likes."""
    page = yield from open_user(page, values["user"])
    _page, line = yield from read_line(page, "Likes ")
    return fact(line, re.compile(r"Likes (?P<likes>.+?)\.$"), "likes")


def newest_of_user(page: Page, values: Values) -> Moves[str]:
    """Read the title of a user's newest submission."""
    page = yield from open_user(page, values["user"])
    _page, line = yield from read_line(page, f"by {values['user']} on ")
    return fact(line, re.compile(r"^(?P<title>.+?) \[\d+\]"), "title")


def forum_subscribers(page: Page, values: Values) -> Moves[str]:
    """Read how many subscribers a forum has."""
    page = yield from open_forum(page, values["forum"])
    _page, line = yield from read_line(page, " subscribers")
    return fact(line, re.compile(r"(?P<number>\d+) subscribers"), "number")


def forum_rank(page: Page, values: Values) -> Moves[str]:
    """Count down the list of forums by subscribers."""
    page = yield from click(page, "Forums", "link")
    page = yield from click(page, "By subscribers", "link")
    rank, row = int(values["number"]), re.compile(r"^(?P<name>\w+) \[\d+\] \| [^|]+ \| \d+ \| \d+$")
    while True:
        rows = [match["name"] for match in map(row.match, page.lines) if match]
        if rank <= len(rows):
            return rows[rank - 1]
        rank -= len(rows)
        page = yield from click(page, "Next", "link")


def handbook_fact(page: Page, values: Values) -> Moves[str]:
    """Read a fact in a forum's handbook, which opens in a tab of its own."""
    page = yield from open_forum(page, values["forum"])
    page = yield from click(page, "Handbook", "link")
    pattern = HANDBOOK[values["what"]]
    for _ in range(MAX_SCROLLS):
        match = re.search(pattern, page.text)
        if match:
            return match[1]
        page = yield reply("Scroll Down")
    raise OracleLost(f"no {pattern!r} on:\n{page.text}")


def user_email(page: Page, values: Values) -> Moves[str]:
    """Look at the profile, which shows no e-mail address."""
    page = yield from open_user(page, values["user"])
    if any("@" in line for line in page.lines[1:]):  # the first line is the observation's own
        raise OracleLost("the profile shows an address")
    return "N/A"


# Pages ------------------------------------------------------------------------------------------------------


def forum_sorted(page: Page, values: Values) -> Moves[str]:
    """Go to a forum and sort it."""
    page = yield from open_forum(page, values["forum"])
    yield from click(page, values["sort"], "link")
    return "done"


def forum_span(page: Page, values: Values) -> Moves[str]:
    """Go to a forum, sort it, and choose a time span."""
    page = yield from open_forum(page, values["forum"])
    page = yield from click(page, values["sort"], "link")
    yield from click(page, values["span"], "link")
    return "done"


def goto_post(page: Page, values: Values) -> Moves[str]:
    """Go to a submission."""
    yield from open_post(page, values["title"], values["forum"])
    return "done"


def user_comments(page: Page, values: Values) -> Moves[str]:
    """Go to the list of a user's comments."""
    page = yield from open_user(page, values["user"])
    yield from click(page, "Comments", "link")
    return "done"


# Changes ----------------------------------------------------------------------------------------------------


def vote_lead(page: Page, values: Values) -> Moves[str]:
    """Vote on the newest or top submission of a forum."""
    page, line = yield from first_post(page, values)
    yield reply("Click", on_line(page, line, values["vote"]))
    return "done"


def vote_named(page: Page, values: Values) -> Moves[str]:
    """Vote on a named submission, from the search results."""
    page, line = yield from find_post(page, values["title"], values["forum"])
    yield reply("Click", on_line(page, line, values["vote"]))
    return "done"


def withdraw_vote(page: Page, values: Values) -> Moves[str]:
    """Click an own vote again, which takes it back."""
    page, line = yield from find_post(page, values["title"])
    name = "Retract upvote" if page.line(line, "Retract upvote") else "Retract downvote"
    yield reply("Click", on_line(page, line, name))
    return "done"


def comment_on(page: Page, values: Values) -> Moves[str]:
    """Comment on a submission."""
    page = yield from open_post(page, values["title"], values["forum"])
    page = yield from type_in(page, "Your comment", values["text"])
    yield from click(page, "Post comment", "button")
    return "done"


def reply_to(page: Page, values: Values) -> Moves[str]:
    """Reply to a user's comment."""
    page = yield from open_post(page, values["title"])
    page = yield from click(page, f"Reply to {values['user']}", "link")
    page = yield from type_in(page, "Your reply", values["text"])
    yield from click(page, "Post reply", "button")
    return "done"


def post_text(page: Page, values: Values) -> Moves[str]:
    """Write a submission; on a forum's own page the form knows the forum."""
    here = page.line(f"= Forum {values['forum']}")
    page = yield from click(page, "Submit", "link")
    page = yield from type_in(page, "Title", values["title"])
    page = yield from type_in(page, "Body", values["body"])
    if not here:
        page = yield from type_in(page, "Forum", values["forum"])
    yield from click(page, "Create submission", "button")
    return "done"


def repost(page: Page, values: Values) -> Moves[str]:
    """Post a submission's link in another forum; the form names the first forum until it is changed."""
    page = yield from open_post(page, values["title"])
    page, link = yield from look_for(page, "https://", "link", part=True)
    url = link.name
    page = yield from click(page, "Submit", "link")
    page = yield from type_in(page, "Title", values["title"])
    page = yield from type_in(page, "URL", url)
    page = yield from type_in(page, "Forum", values["forum"])
    yield from click(page, "Create submission", "button")
    return "done"


def edit_post(page: Page, values: Values) -> Moves[str]:
    """Change the body of an own submission."""
    page = yield from open_post(page, values["title"])
    page = yield from click(page, "Edit", "link")
    page = yield from type_in(page, "Body", values["body"])
    yield from click(page, "Save changes", "button")
    return "done"


def delete_post(page: Page, values: Values) -> Moves[str]:
    """Delete an own submission; the browser says yes to the question."""
    page = yield from open_post(page, values["title"])
    yield from click(page, "Delete", "button")
    return "done"


def subscribe(page: Page, values: Values) -> Moves[str]:
    """Subscribe to a forum, or end the subscription."""
    page = yield from open_forum(page, values["forum"])
    yield from click(page, values["verb"].split()[0], "button")
    return "done"


def change_bio(page: Page, values: Values) -> Moves[str]:
    """Write an own biography, from the menu under the user's name."""
    page = yield from hover(page, "quiet_harbor", "button")
    page = yield from click(page, "Edit biography", "link")
    page = yield from type_in(page, "Biography", values["bio"])
    yield from click(page, "Save", "button")
    return "done"


def create_forum(page: Page, values: Values) -> Moves[str]:
    """Open a new forum, from the menu under the user's name."""
    page = yield from hover(page, "quiet_harbor", "button")
    page = yield from click(page, "Create forum", "link")
    for field in ("Name", "Title", "Description", "Sidebar", "Tags"):
        page = yield from type_in(page, field, values[field.lower()])
    yield from click(page, "Create forum", "button")
    return "done"


def send_message(page: Page, values: Values) -> Moves[str]:
    """Write a message to a user."""
    page = yield from open_user(page, values["user"])
    page = yield from click(page, "Send message", "link")
    page = yield from type_in(page, "Subject", values["subject"])
    page = yield from type_in(page, "Message", values["text"])
    yield from click(page, "Send message", "button")
    return "done"


def answer_message(page: Page, values: Values) -> Moves[str]:
    """Answer the message of a user."""
    page = yield from click(page, "Inbox", "link")
    if not page.line(f"{values['user']} | "):
        page = yield from click(page, "Next", "link")
    page, line = yield from read_line(page, f"{values['user']} | ")
    subject = line.split(" | ")[1].rsplit(" [", 1)[0]
    page = yield reply("Click", on_line(page, line, subject))
    page = yield from type_in(page, "Your answer", values["text"])
    yield from click(page, "Send answer", "button")
    return "done"


def sign_in_again(page: Page, values: Values) -> Moves[str]:
    """Sign in after the session has expired, then subscribe to a forum."""
    if page.find("Password") is None:
        page = yield from click(page, "Sign in", "link")
    page = yield from type_in(page, "Username", values["username"])
    page = yield from type_in(page, "Password", values["password"])
    page = yield from click(page, "Sign in", "button")
    page = yield from open_forum(page, values["forum"])
    yield from click(page, "Subscribe", "button")
    return "done"
