"""What a task's ``eval`` object may hold, checked when a task file is loaded and not in the middle of a run.

Reads the ``eval`` object in WebArena's schema (and our eval type ``database``, see ``change_rules.py``);
refuses whatever ``evaluators.py`` could not grade. Helper functions in ``func:`` strings are looked up by
name and their arguments are read as literals; no string of a task is ever evaluated. A ``lambda:`` locator
of VisualAgentBench is accepted: what follows is a JavaScript function for the page.

Source: the schema of WebArena's ``config_files/test.raw.json`` and of VisualAgentBench's
``test_webarena_lite.raw.json``. Differs from both: they find such faults in the middle of a run, or never.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

EVAL_TYPES = ("string_match", "url_match", "program_html", "database", "page")
ANSWER_RULES = ("exact_match", "must_include", "must_exclude", "required_values", "fuzzy_match")
"""Rules for texts, of an answer (``reference_answers``) or of a page (``required_contents``)."""
URL_NOTES = ("EXACT", "GOLD in PRED")
"""Values of ``url_note``: the whole address, or a part of it."""
INEQUALITY = re.compile(r"\s*(<=|>=|==|<|>)\s*(-?[0-9]+(?:\.[0-9]+)?)\s*")
"""One alternative of ``required_values``, for example ``>= 300``."""

HELPERS: dict[str, int] = {
    "get_query_text": 2,
    "get_query_text_lowercase": 2,
    "gitlab_get_project_memeber_role": 2,  # spelled so in the task files
    "reddit_get_latest_comment_content_by_username": 2,
    "reddit_get_parent_comment_username_of_latest_comment_by_username": 2,
    "reddit_get_post_url": 1,
    "shopping_get_latest_order_url": 0,
    "shopping_get_num_reviews": 1,
    "shopping_get_order_product_name_list": 1,
    "shopping_get_order_product_option": 3,
    "shopping_get_order_product_quantity": 2,
    "shopping_get_product_attributes": 2,
    "shopping_get_product_price": 1,
    "shopping_get_rating_as_percentage": 1,
    "shopping_get_sku_latest_review_author": 1,
    "shopping_get_sku_latest_review_rating": 1,
    "shopping_get_sku_latest_review_text": 1,
    "shopping_get_sku_latest_review_title": 1,
    "shopping_get_sku_product_page_url": 1,
}
"""The helper functions that a task may name, with their number of arguments (``__page__`` counts as one)."""


class TaskError(ValueError):
    """A task that cannot be graded as it stands; the message names the task and the field."""


@dataclass(frozen=True)
class Call:
    """A call of a named helper, as data."""

    name: str
    """A key of ``HELPERS``."""
    args: tuple[str | int | float, ...]
    """Literals; "__page__" stands for the page and "__last_url__" for the final address."""


def check_eval(task_id: str, evaluation: object) -> None:
    """Refuse an ``eval`` object that could not be graded.

    Raises:
        TaskError: naming the task, the field, the rule and the value got.
    """
    _Checker(task_id).evaluation(evaluation)


def parse_call(text: str) -> Call:
    """Read ``NAME(literal, ...)``, the part of a ``func:`` string behind the colon.

    Raises:
        ValueError: it is not one call of a name in ``HELPERS`` with that many literal arguments.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        node = None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        raise ValueError("must be one call NAME(arguments) with literal arguments")
    if node.func.id not in HELPERS:
        raise ValueError(f"must name a registered helper ({', '.join(HELPERS)})")
    args: list[str | int | float] = []
    for argument in node.args:
        if isinstance(argument, ast.Name) and argument.id == "__page__":
            args.append("__page__")
        elif isinstance(argument, ast.Constant) and isinstance(argument.value, str | int | float):
            args.append(argument.value)
        else:
            raise ValueError("must have literal arguments only")
    if len(args) != HELPERS[node.func.id]:
        raise ValueError(f"must give {node.func.id} {HELPERS[node.func.id]} arguments")
    return Call(node.func.id, tuple(args))


def is_empty(text: str) -> bool:
    """Whether nothing is left of a text without quotes and white space; such a reference would match anything."""
    return not text.strip(" \t\r\n\xa0\u200b\ufeff\"'“”‘’")


def alternatives(reference: str) -> list[str]:
    """Return the alternatives of a reference that joins them by ``|OR|``."""
    return [part.strip() for part in reference.split("|OR|")]


class _Checker:
    """Walks one ``eval`` object; ``where`` is the path of the field at hand."""

    def __init__(self, task_id: str):
        self.task_id = task_id

    def refuse(self, where: str, rule: str, value: object) -> NoReturn:
        shown = repr(value)
        shown = shown if len(shown) <= 120 else shown[:119] + "…"
        raise TaskError(f"task {self.task_id}: `{where}` {rule}, got {shown}.")

    def mapping(self, where: str, value: object, known: Sequence[str], needed: Sequence[str] = ()) -> None:
        if not isinstance(value, Mapping):
            self.refuse(where, "must be an object", value)
        for key in value:
            if key not in known:
                self.refuse(where, f"must have no key but {', '.join(known)}", key)
        for key in needed:
            if key not in value:
                self.refuse(where, f"must have the key `{key}`", dict(value))

    def text(self, where: str, value: object) -> None:
        if not isinstance(value, str) or is_empty(value):
            self.refuse(where, "must be a non-empty text", value)
        if any(is_empty(part) for part in alternatives(value)):
            self.refuse(where, "must have no empty alternative", value)

    def texts(self, where: str, value: object) -> None:
        if not isinstance(value, list | tuple) or not value:
            self.refuse(where, "must be a non-empty list of texts", value)
        for n, item in enumerate(value):
            self.text(f"{where}[{n}]", item)

    def evaluation(self, value: object) -> None:
        if not isinstance(value, Mapping):
            self.refuse("eval", "must be an object", value)
        types = value.get("eval_types")
        if not isinstance(types, list | tuple) or not types:
            self.refuse("eval.eval_types", f"must be a non-empty list of {', '.join(EVAL_TYPES)}", types)
        for name in types:
            if name not in EVAL_TYPES:
                self.refuse("eval.eval_types", f"must hold only {', '.join(EVAL_TYPES)}", name)
        if len(set(types)) != len(types):
            self.refuse("eval.eval_types", "must name each type once", list(types))
        if "page" in types and len(types) > 1:
            self.refuse("eval.eval_types", "must hold page alone, since that page is the only judge", list(types))
        if "string_match" in types:
            answers = value.get("reference_answers")
            self.rules("eval.reference_answers", answers, unreachable_is_text=True)
        if "url_match" in types:
            self.url_match(value)
        if "program_html" in types:
            self.pages(value.get("program_html"))
        if "database" in types:
            self.database(value.get("database"), alone=len(types) == 1)

    def rules(self, where: str, value: object, *, unreachable_is_text: bool) -> None:
        """Check ``reference_answers`` or ``required_contents``."""
        self.mapping(where, value, ANSWER_RULES)
        if not value:
            self.refuse(where, f"must have one of {', '.join(ANSWER_RULES)}", value)
        for rule, reference in value.items():
            field = f"{where}.{rule}"
            if rule == "exact_match" or (rule, reference) == ("fuzzy_match", "N/A") and unreachable_is_text:
                self.text(field, reference)
                continue
            self.texts(field, reference)
            if rule == "required_values":
                for item in reference:
                    if not all(INEQUALITY.fullmatch(part) for part in alternatives(item)):
                        self.refuse(field, "must hold inequalities such as '>= 300'", item)

    def url_match(self, value: Mapping[str, object]) -> None:
        self.text("eval.reference_url", value.get("reference_url"))
        for part in alternatives(value["reference_url"]):
            if not re.match(r"__[A-Z_]+__|https?://|/", part):
                self.refuse("eval.reference_url", "must begin with a placeholder, http(s):// or /", part)
        if value.get("url_note") not in (None, *URL_NOTES):
            self.refuse("eval.url_note", f"must be one of {', '.join(URL_NOTES)}", value["url_note"])

    def pages(self, value: object) -> None:
        if not isinstance(value, list | tuple) or not value:
            self.refuse("eval.program_html", "must be a non-empty list of objects", value)
        for n, item in enumerate(value):
            where = f"eval.program_html[{n}]"
            keys = ("url", "locator", "required_contents", "prep_actions")
            self.mapping(where, item, keys, keys[:3])
            url, locator, actions = item["url"], item["locator"], item.get("prep_actions", [])
            if not isinstance(url, str) or not re.match(r"last\Z|func:|__[A-Z_]+__|https?://", url):
                self.refuse(f"{where}.url", 'must be "last", an address, or func:NAME(...)', url)
            if not isinstance(locator, str) or not re.match(
                r"\s*\Z|document\.|\[\.\.\.document\.|func:|lambda:", locator
            ):
                rule = 'must be empty, or begin with "document.", "[...document.", "func:" or "lambda:"'
                self.refuse(f"{where}.locator", rule, locator)
            for field, text in (("url", url), ("locator", locator)):
                if text.startswith("func:"):
                    try:
                        parse_call(text.removeprefix("func:"))
                    except ValueError as error:
                        self.refuse(f"{where}.{field}", str(error), text)
            if not isinstance(actions, list | tuple) or not all(isinstance(text, str) for text in actions):
                self.refuse(f"{where}.prep_actions", "must be a list of JavaScript texts", actions)
            contents = item["required_contents"]
            self.rules(f"{where}.required_contents", contents, unreachable_is_text=False)

    def database(self, value: object, *, alone: bool) -> None:
        self.mapping("eval.database", value, ("changes", "allow"), ("changes",))
        changes, allowed = value["changes"], value.get("allow", [])
        if not isinstance(changes, list | tuple) or (alone and not changes):
            self.refuse("eval.database.changes", "must be a list of objects, not empty if it is all", changes)
        if not isinstance(allowed, list | tuple):
            self.refuse("eval.database.allow", "must be a list of objects", allowed)
        for n, item in enumerate(allowed):
            self.mapping(f"eval.database.allow[{n}]", item, ("table", "op"), ("table", "op"))
            self.operation(f"eval.database.allow[{n}]", item)
        for n, item in enumerate(changes):
            where = f"eval.database.changes[{n}]"
            self.mapping(where, item, ("table", "op", "key", "values", "free", "count"), ("table", "op"))
            self.operation(where, item)
            op, count, free = item["op"], item.get("count", 1), item.get("free", [])
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                self.refuse(f"{where}.count", "must be a whole number from 1", count)
            if op != "delete" and not item.get("values"):
                self.refuse(f"{where}.values", "must name a column and its value", item.get("values"))
            if op == "insert" and "key" in item or op != "update" and "free" in item:
                self.refuse(where, "may have `key` for update and delete, `free` for update only", dict(item))
            if not isinstance(free, list | tuple) or not all(isinstance(name, str) for name in free):
                self.refuse(f"{where}.free", "must be a list of columns", free)
            for part in ("key", "values"):
                self.columns(f"{where}.{part}", item.get(part, {}))

    def operation(self, where: str, item: Mapping[str, object]) -> None:
        if not isinstance(item["table"], str) or item["op"] not in ("insert", "update", "delete"):
            self.refuse(where, "must name a table and insert, update or delete", dict(item))

    def columns(self, where: str, value: object) -> None:
        if not isinstance(value, Mapping):
            self.refuse(where, "must be an object of columns", value)
        for column, wanted in value.items():
            field = f"{where}.{column}"
            if isinstance(wanted, Mapping):
                if set(wanted) == {"must_include"}:
                    self.texts(field, wanted["must_include"])
                elif set(wanted) != {"one_of"} or not isinstance(wanted["one_of"], list | tuple):
                    self.refuse(field, "must be a value, a must_include list or a one_of list", wanted)
                elif not wanted["one_of"] or not all(_is_scalar(choice) for choice in wanted["one_of"]):
                    self.refuse(field, "must list plain values in one_of", wanted)
            elif not _is_scalar(wanted):
                self.refuse(field, "must be a value, a must_include list or a one_of list", wanted)


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
