"""What is asked of a served model between phases: new tasks from failed ones, and whether a task can be done at all.

Gives messages for an OpenAI-style chat client and reads its answers; ``curriculum`` sends them, counts and decides.
Standard library only. Prompts of the models that are trained here are in ``prompts``.

Source: WebRL Section 2.1 and Appendix C; the released ``scripts/gen_task.py:16-74``, whose structure is kept (one user
message; tasks in backticks; a reason, then [YES] or [NO]) in words of our own.

# differs from release: it says how many tasks are wanted; a task is a whole line in backticks, so a word in backticks
inside a sentence is none; JSON is read as well; the feasibility prompt has a caller.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

SITES = {
    "shopping": "an online shop, as a customer",
    "shopping_admin": "the back office of an online shop, as its manager",
    "reddit": "a forum site like Reddit",
    "gitlab": "a GitLab server",
    "map": "a street map with search and directions",
}
"""What a site is called in a prompt, by its key."""

CANNOT = {
    "shopping": "filtering by discount, changing an address, payment data, tracking a parcel, customer service, "
    "after-sales requests",
    "shopping_admin": "sending order information by e-mail, electronic invoices, returns and refunds, changing "
    "customers' profiles, recommendations from customers' behaviour",
    "reddit": "",
    "gitlab": "",
    "map": "traffic and road closures, weather, saved favourites, the user's own location, bookings, flights and "
    "trains, events",
}
"""What no task can ask of a site. (released gen_task.py:32-74)"""

_TASK_LINE = re.compile(r"^\s*(?:[-*+]|\d+[.)])?\s*`([^`\n]+)`[.;,]?\s*$", re.MULTILINE)
_VERDICT = re.compile(r"\[\s*(YES|NO)\s*\]", re.IGNORECASE)


def generation_messages(site: str, failed: Sequence[str], count: int) -> list[dict[str, str]]:
    """Ask for new tasks on a site, like those that failed there.

    Args:
        site: key of ``SITES``; another name is used as it is.
        failed: instructions of failed tasks, shown as examples.
        count: how many new tasks to ask for.
    """
    examples = "\n".join(f"- `{task.strip()}`" for task in failed)
    return _user(
        f"You invent tasks for an assistant that uses websites for people. The website is {SITES.get(site, site)}.\n\n"
        f"Take the tasks under #Given Task# as inspiration and write {count} new ones under #Created Task#. They "
        "belong to the same domain and are about as hard, some a little easier, some a little harder, but they vary "
        "more in what they ask and how. Each must be clear, reasonable and something a person would want.\n\n"
        "Rules:\n"
        "- One task a line, the whole task in backticks (`), nothing else on the line.\n"
        "- Use names that occur in the given tasks (places, users, products, projects); do not invent any.\n"
        "- Do not speak of given or created tasks inside a task.\n\n"
        f"#Given Task#\n{examples}\n\n#Created Task#\n"
    )


def parse_tasks(answer: str | None) -> list[str]:
    """Return the tasks in an answer, in order, white space joined; none if there are none or it is empty.

    Read are lines that are one text in backticks, with or without a bullet or number, and otherwise JSON anywhere in
    the answer: a list of texts or of objects with ``task``, wherever it stands. A list that breaks off yields nothing;
    complete lines before a break do.
    """
    answer = answer or ""
    tasks = _TASK_LINE.findall(answer) or _json_tasks(answer)
    return [" ".join(task.split()) for task in tasks if task.strip()]


def feasibility_messages(site: str, task: str) -> list[dict[str, str]]:
    """Ask whether a task can be done on a site.

    Args:
        site: key of ``SITES``; another name is used as it is.
        task: the instruction.
    """
    cannot = CANNOT.get(site, "")
    rule = f"It does not offer: {cannot}." if cannot else "It offers everything that such a site usually does."
    return _user(
        f"A task is to be done on a website: {SITES.get(site, site)}. {rule}\n\n"
        f"Task: {task.strip()}\n\n"
        "Can it be done there, by someone who sees only this website, with what the task says? Give your reason in one "
        "sentence, then [YES] or [NO]."
    )


def parse_feasible(answer: str | None) -> bool | None:
    """Return the last [YES] or [NO] of an answer, None without one: neither a yes nor a no."""
    found = _VERDICT.findall(answer or "")
    return found[-1].upper() == "YES" if found else None


def _user(content: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content}]


def _json_tasks(answer: str) -> list[str]:
    """Return the tasks of the first JSON list that holds any."""
    decoder = json.JSONDecoder()
    for start in (match.start() for match in re.finditer(r"\[", answer)):
        try:
            items, _ = decoder.raw_decode(answer, start)
        except (ValueError, RecursionError):
            continue
        tasks = [item.get("task") if isinstance(item, dict) else item for item in items]
        if tasks and all(isinstance(task, str) for task in tasks):
            return tasks
    return []
