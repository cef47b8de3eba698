"""WebArena's graders: did the episode solve its task?

Reads a task, the agent's answer, the final address and the evidence that the environment collected (page
texts, database changes); gives a ``Verdict``. Grading is pure: ``reads`` says which texts are needed, the
environment reads them once, at exit, and ``grade`` decides from those texts alone, so that a stored
trajectory can be graded again offline and gives the same verdict.

The score is the product over the task's eval types, each 0 or 1. A type that cannot be decided (no judge, a
page that could not be read) makes the verdict *ungraded* (``score=None``), unless another type is
definitely 0, since 0 times anything is 0. An undecided verdict is never 0.

Three modes, one row each in ``RULES``:

- ``webarena``: the original evaluator, and ``vab``: VisualAgentBench's, which WebRL's numbers come from;
  both with their flaws (``released_rules.py``), so that scores can be compared.
- ``strict``: ours, by whole tokens and typed values (``answer_types.py``). Further, in ``strict``: ``|OR|``
  counts in every rule. All rules of a page item count, not only the first. A task that must be answered
  "N/A" is met by "N/A" or "n/a."; an answer that denies or explains instead ("There is no such order") goes
  to the judge, and any other answer is 0; "N/A" on any other task is 0. Text that stood on a page before
  the task earns nothing: an item with an explicit address counts only if it was not met on the state before
  the task (a page that did not exist, error 404, met nothing); for "last" this holds if the episode ends on
  the page where it began.

In all modes an empty answer never passes, and a page that does not exist (404) fails.

A task of type ``page`` is judged by its own page, as in MiniWoB++, whatever the mode; the verdict's mode is
``miniwob``. It is a success if the page ended the episode with a reward of exactly 1, and a failure if it gave less or
if the episode ended otherwise.

Evidence::

    {"reads": {key: text or {"error": "404 Not Found"}},
     "database": {"changes": [{"table", "op", "key", "before", "after"}]} or {"error": reason},
     "page": {"reward": number, "reason": text} where the page ended the episode}

Source: web-arena-x/webarena ``evaluation_harness/evaluators.py`` and VisualAgentBench's
``VAB-WebArena-Lite/new/evaluators.py``. Differs from both: they read pages while they grade, in the agent's
tab, evaluate strings of the task file as code, and turn an exception into a 0 or drop the task from the
mean.
"""

from __future__ import annotations

import dataclasses
import html
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol
from urllib.parse import urlsplit

from webrl_lite import answer_types, change_rules, released_rules
from webrl_lite.task_check import INEQUALITY, Call, TaskError, alternatives, check_eval, is_empty, parse_call
from webrl_lite.trajectory import JSON, StopReason, Task, Trajectory, Verdict

__all__ = [
    "MODES",
    "VERSION",
    "Call",
    "Judge",
    "OfflineJudge",
    "Rate",
    "Read",
    "TaskError",
    "Ungradable",
    "check",
    "grade",
    "reads",
    "repaired",
    "satisfied",
    "success_rate",
]

VERSION = "1"
"""Version of the rules below; scores of different versions are not comparable."""


class Ungradable(Exception):
    """A judge or a rule that cannot decide; the message is the reason."""


class Judge(Protocol):
    """Decides what no rule can; each method may raise ``Ungradable``."""

    name: str
    """Stands beside the evaluator's version: scores by different judges are not comparable."""

    def fuzzy_match(self, intent: str, reference: str, answer: str) -> bool:
        """Whether the answer means what the reference means."""

    def same_reason(self, intent: str, reference: str, answer: str) -> bool:
        """Whether the answer gives the reference's reason why the task is impossible."""


@dataclass(frozen=True)
class Rules:
    """How one mode compares; None stands for a rule that it does not have."""

    answer: Callable[[str], str]
    """Prepares the agent's answer."""
    page_texts: Callable[[str], Sequence[str]]
    """The readings of a page's text, one of which must obey a rule."""
    exact: Callable[[str, str], bool]
    """(reference, text)"""
    includes: Callable[[str, str, bool], bool]
    """(phrase, text, alone); ``alone``: it is the only phrase of an answer's list."""
    excludes: Callable[[str, str], bool] | None
    """(phrase, text)"""
    within: Callable[[str, Decimal, str], bool] | None
    """(sign, bound, text)"""
    url: Callable[[Sequence[str], str, bool], bool]
    """(references, address, contained)"""
    url_note: str
    """The value of ``url_note`` where a task has none."""
    answer_alternatives: bool
    """Whether ``|OR|`` counts in an answer's must_include; in page texts it always does."""
    page_rules: tuple[str, ...]
    """Rules for page texts, in the order in which they are looked for."""
    fuzzy_joined: bool
    """Whether several fuzzy references are judged as one text."""


_TEXT_RULES = ("exact_match", "must_include", "must_exclude", "required_values", "fuzzy_match")

RULES: dict[str, Rules] = {
    "strict": Rules(
        answer=lambda answer: answer,
        page_texts=lambda text: tuple(dict.fromkeys((text, html.unescape(text)))),
        exact=lambda reference, text: any(answer_types.same(part, text) for part in alternatives(reference)),
        includes=lambda phrase, text, alone: answer_types.includes(phrase, text),
        excludes=lambda phrase, text: not answer_types.includes(phrase, text),
        within=answer_types.within,
        url=lambda references, url, contained: any(
            (answer_types.contains_url if contained else answer_types.same_url)(part, url) for part in references
        ),
        url_note="EXACT",
        answer_alternatives=True,
        page_rules=_TEXT_RULES,
        fuzzy_joined=True,
    ),
    "webarena": Rules(
        answer=released_rules.clean_webarena,
        page_texts=lambda text: (html.unescape(text),),
        exact=released_rules.exact_webarena,
        includes=released_rules.includes_webarena,
        excludes=None,
        within=None,
        url=lambda references, url, contained: released_rules.url_webarena(references, url),
        url_note="GOLD in PRED",
        answer_alternatives=False,
        page_rules=_TEXT_RULES[:2],
        fuzzy_joined=False,
    ),
    "vab": Rules(
        answer=released_rules.clean_vab,
        page_texts=lambda text: (text,),
        exact=released_rules.exact_vab,
        includes=lambda phrase, text, alone: released_rules.includes_vab(phrase, text),
        excludes=released_rules.excludes_vab,
        within=released_rules.within_vab,
        url=released_rules.url_vab,
        url_note="EXACT",
        answer_alternatives=True,
        page_rules=_TEXT_RULES,
        fuzzy_joined=True,
    ),
}
"""The evaluators by mode."""

MODES = tuple(RULES)
"""Names of the evaluators."""


@dataclass(frozen=True)
class Read:
    """A text that a grader needs."""

    key: str
    """Its place in ``evidence["reads"]``."""
    url: str
    """Where to read: "last" (the page where the episode ended), an address, or "func:" with ``url_call`` set."""
    locator: str
    """What to read: "" (the page's visible text), a JavaScript expression, or "func:" with ``locator_call`` set."""
    prep: tuple[str, ...] = ()
    """JavaScript expressions to run on the page first."""
    before: bool = False
    """Whether to read it on the state before the task."""
    url_call: Call | None = None
    """The helper that gives the address."""
    locator_call: Call | None = None
    """The helper that gives the text."""


@dataclass(frozen=True)
class _Finding:
    """What one rule said: met, not met, or None for undecided; with one line that says why."""

    met: bool | None
    reason: str


@dataclass(frozen=True)
class _Case:
    """All that one grading knows."""

    task: Task
    answer: str
    final_url: str
    evidence: Mapping[str, JSON]
    mode: str
    judge: Judge | None
    addresses: Mapping[str, str]

    @property
    def rules(self) -> Rules:
        """The mode's comparisons."""
        return RULES[self.mode]

    @property
    def strict(self) -> bool:
        """Whether our own rules hold."""
        return self.mode == "strict"


# --- checking a task ---------------------------------------------------------------------------------------


def check(task: Task) -> None:
    """Refuse a task that could not be graded; call it when a file of graded tasks is loaded.

    Raises:
        TaskError: ``eval`` is missing or malformed; the message names the task and the field.
    """
    check_eval(task.task_id, task.eval)


def repaired(task: Task) -> Task:
    """Return the task with a bare string in ``must_include`` made a list.

    One task of WebArena-Lite (id 81) is so and can never be scored as released. The repair is off unless called,
    and a score with it is not the published one.
    """
    answers = (task.eval or {}).get("reference_answers")
    if not isinstance(answers, Mapping) or not isinstance(answers.get("must_include"), str):
        return task
    answers = {**answers, "must_include": [answers["must_include"]]}
    return dataclasses.replace(task, eval={**task.eval, "reference_answers": answers})


# --- what to read ------------------------------------------------------------------------------------------


def reads(task: Task, final_url: str, mode: str, addresses: Mapping[str, str] | None = None) -> tuple[Read, ...]:
    """Return the texts that ``grade`` will ask for.

    Args:
        task: a checked task.
        final_url: address of the active tab at the end; pasted into helper arguments as data.
        mode: one of ``MODES``.
        addresses: addresses of the placeholders, for example ``{"__SHOPPING__": "http://shop.localhost:80"}``.

    Raises:
        TaskError: the task is malformed.
    """
    check(task)
    if "program_html" not in task.eval["eval_types"]:
        return ()
    addresses = addresses or {}
    strict = mode == "strict"
    start_pages = [_resolve(url.strip(), addresses) for url in task.start_url.split("|AND|")]
    wanted = []
    for n, item in enumerate(task.eval["program_html"]):
        read = _read(f"program_html.{n}", item, final_url, addresses, markup=not strict)
        wanted.append(read)
        if strict and read.url != "last":
            wanted.append(dataclasses.replace(read, key=_before(read.key), before=True))
        elif strict:
            for page in start_pages:
                if answer_types.same_url(page, final_url):
                    wanted.append(dataclasses.replace(read, key=_before(read.key), url=page, before=True))
                    break
    return tuple(wanted)


def satisfied(
    task: Task,
    read: Read,
    text: str,
    mode: str,
    judge: Judge | None = None,
    addresses: Mapping[str, str] | None = None,
) -> bool:
    """Whether a text just read settles its rule, so that polling a page that still loads may stop.

    A fuzzy rule is settled by any text (the judge is asked once, by ``grade``), or at once without a judge. A text
    that must be absent is never settled early: it may still come.
    """
    if read.before:
        return True
    case = _Case(task, "", "", {}, mode, None, addresses or {})
    contents = dict(_contents(task, read.key))
    if "must_exclude" in contents:
        return False
    fuzzy = contents.pop("fuzzy_match", None)
    if fuzzy is not None and judge is not None and not text.strip():
        return False
    return not contents or _passes(_page_findings(case, contents, text)) is not False


def _read(key: str, item: Mapping[str, JSON], final_url: str, addresses: Mapping[str, str], *, markup: bool) -> Read:
    url, locator = item["url"], item["locator"].strip()
    url_call = locator_call = None
    if url.startswith("func:"):
        url_call = _with_last_url(parse_call(url.removeprefix("func:")), final_url)
        url = "func:"
        if url_call.name == "reddit_get_post_url":
            url, url_call = _post_url(str(url_call.args[0])), None
    elif url != "last":
        url = _resolve(url, addresses)
    if locator.startswith("func:"):
        locator_call = _with_last_url(parse_call(locator.removeprefix("func:")), final_url)
        locator = _page_expression(locator_call)
        locator_call = None if locator else locator_call
        locator = locator or "func:"
    elif locator.startswith("lambda:"):
        locator = f"({locator.removeprefix('lambda:').strip()})()"
    elif not locator and markup:
        locator = "document.documentElement.outerHTML"  # the released evaluators compare the page's source
    return Read(key, url, locator, tuple(item.get("prep_actions", ())), False, url_call, locator_call)


def _page_expression(call: Call) -> str:
    """Return a helper that looks at the page as a JavaScript expression, "" for the others."""
    arguments = ", ".join(json.dumps(argument) for argument in call.args[1:])
    source = _PAGE_HELPERS.get(call.name)
    return f"({source})({arguments})" if source else ""


_PAGE_HELPERS = {
    "get_query_text": "(selector) => document.querySelector(selector)?.outerText ?? ''",
    "get_query_text_lowercase": "(selector) => (document.querySelector(selector)?.outerText ?? '').toLowerCase()",
    "gitlab_get_project_memeber_role": """(name) => {
        const names = [...document.querySelectorAll("td[data-label='Account'] span.gl-avatar-labeled-sublabel")];
        const row = names.findIndex((one) => one.outerText === '@' + name);
        return document.querySelectorAll('td.col-max-role span')[row]?.outerText ?? '';
    }""",
}


def _with_last_url(call: Call, final_url: str) -> Call:
    args = (arg.replace("__last_url__", final_url) if isinstance(arg, str) else arg for arg in call.args)
    return Call(call.name, tuple(args))


def _post_url(url: str) -> str:
    """Cut an address below a forum post to the post's own, ``/f/<forum>/<id>/``; others stay as they are."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    segments = parts.path.split("/")
    if len(segments) < 4 or segments[1] != "f":
        return url
    return f"{parts.scheme}://{parts.netloc}/f/{segments[2]}/{segments[3]}/"


def _before(key: str) -> str:
    return f"{key}.before"


def _contents(task: Task, key: str) -> Mapping[str, JSON]:
    """Return the required contents of the page item that a read's key belongs to."""
    return task.eval["program_html"][int(key.split(".")[1])]["required_contents"]


def _resolve(text: str, addresses: Mapping[str, str]) -> str:
    """Put the sites' addresses for the placeholders; one without an address stays as it is."""

    def address(match: re.Match[str]) -> str:
        base = addresses.get(match[0])
        if base is None:
            return match[0]
        scheme, separator, rest = base.rstrip("/").partition("://")
        host, slash, path = rest.partition("/")
        return scheme.lower() + separator + host.lower() + slash + path

    return re.sub(r"__[A-Z]+(?:_[A-Z]+)*__", address, text)


# --- grading -----------------------------------------------------------------------------------------------


def grade(
    task: Task,
    *,
    answer: str,
    final_url: str,
    evidence: Mapping[str, JSON],
    mode: str,
    judge: Judge | None = None,
    addresses: Mapping[str, str] | None = None,
) -> Verdict:
    """Grade one episode.

    Args:
        task: the task; one without ``eval`` is ungraded.
        answer: text of ``exit``; empty if the agent did not exit.
        final_url: address of the active tab at the end.
        evidence: what was read, see the module's text.
        mode: one of ``MODES``.
        judge: decides fuzzy rules; without one they are ungraded.
        addresses: addresses of the placeholders ``__SHOPPING__`` and so on, in any spelling of the base.

    Returns:
        A verdict with score 1, 0 or None and one reason a rule; its version names the judge, if there is one.

    Raises:
        TaskError: the task is malformed.
        ValueError: the mode is unknown.
    """
    if mode not in RULES:
        raise ValueError(f"`mode` must be one of {', '.join(MODES)}, got {mode!r}.")
    version = VERSION if judge is None else f"{VERSION}, judge {judge.name}"
    if task.eval is None:
        return Verdict(None, mode, version, ("the task has no grader",))
    check(task)
    if "page" in task.eval["eval_types"]:
        return _page_verdict(evidence.get("page"))
    case = _Case(task, answer, final_url, evidence, mode, judge, addresses or {})
    graders = {
        "string_match": _string_match,
        "url_match": _url_match,
        "program_html": _program_html,
        "database": _database,
    }
    findings: list[_Finding] = []
    for eval_type in task.eval["eval_types"]:
        for finding in graders[eval_type](case):
            findings.append(_Finding(finding.met, f"{eval_type}: {finding.reason}"))
    passed = _passes(findings)
    return Verdict(None if passed is None else float(passed), mode, version, tuple(f.reason for f in findings))


def _passes(findings: Iterable[_Finding]) -> bool | None:
    """Return the product: False if a rule is not met, else None if one is undecided, else True."""
    met = [finding.met for finding in findings]
    return False if False in met else None if None in met else True


def _page_verdict(said: JSON) -> Verdict:
    """Return what the page of a task of type ``page`` said."""
    if said is None:
        return Verdict(0.0, "miniwob", VERSION, ("page: the episode ended before the page ended it",))
    reason = f": {_cut(said['reason'])}" if said["reason"] else ""
    return Verdict(float(said["reward"] == 1), "miniwob", VERSION, (f"page: raw reward {said['reward']:g}{reason}",))


def _string_match(case: _Case) -> list[_Finding]:
    references = case.task.eval["reference_answers"]
    if is_empty(case.answer):
        return [_Finding(False, "the answer is empty")]
    if case.strict:
        if _is_unreachable(references):
            return [_unreachable(case, references)]
        if _says_unreachable(case.answer):
            return [_Finding(False, "the answer is N/A, but the task can be done")]
    text = case.rules.answer(case.answer)
    findings = []
    for rule, reference in references.items():
        if (rule, reference) == ("fuzzy_match", "N/A"):
            if case.rules.exact("N/A", text):
                findings.append(_Finding(True, "N/A as expected"))
            else:
                findings.append(_judged(case, "same_reason", [_reason(case.task)], text))
        else:
            findings.append(_text_finding(case, rule, reference, text, of_answer=True))
    return findings


def _is_unreachable(references: Mapping[str, JSON]) -> bool:
    return any(reference in ("N/A", ["N/A"]) for reference in references.values())


def _says_unreachable(answer: str) -> bool:
    return answer_types.fold(answer).strip(" .,!;:'\"()[]") == "n/a"


# An answer with none of these is no explanation: it claims a result.
_DENIAL = re.compile(
    r"\b(?:no|not|none|never|nothing|nobody|cannot|without|unable|impossible|unavailable|unknown|missing|"
    r"lacks?|fail(?:s|ed)?|n/a)\b|n't\b"
)


def _unreachable(case: _Case, references: Mapping[str, JSON]) -> _Finding:
    """Grade an answer to a task that cannot be done (``strict``)."""
    if _says_unreachable(case.answer):
        return _Finding(True, "N/A as expected")
    if "must_include" in references and answer_types.includes("N/A", case.answer):
        return _Finding(True, "N/A stated as expected")
    if not _DENIAL.search(answer_types.fold(case.answer)):
        return _Finding(False, f"neither N/A nor a reason: {_cut(case.answer)}")
    return _judged(case, "same_reason", [_reason(case.task)], case.answer)


def _reason(task: Task) -> str:
    """Return why the task cannot be done, as its annotators wrote it."""
    note = task.eval.get("string_note") or task.eval.get("reference_answer_raw_annotation") or ""
    return "" if note == "N/A" else str(note)


def _text_finding(case: _Case, rule: str, reference: JSON, text: str, *, of_answer: bool) -> _Finding:
    """Apply one rule to an answer, or to one reading of a page."""
    rules = case.rules
    line = f"{rule} {_cut(str(reference))} against {_cut(text)}"
    if rule == "fuzzy_match":
        resolved = [_resolve(part, case.addresses) for part in reference]
        return _judged(case, rule, [", ".join(resolved)] if rules.fuzzy_joined else resolved, text)
    if rule == "exact_match":
        return _Finding(rules.exact(_resolve(reference, case.addresses), text), line)
    items = [_resolve(item, case.addresses) for item in reference]
    if rule == "must_include":
        split = rules.answer_alternatives or not of_answer
        choices = [alternatives(item) if split else [item] for item in items]
        alone = of_answer and len(items) == 1
        return _Finding(all(any(rules.includes(part, text, alone) for part in parts) for parts in choices), line)
    if rule == "must_exclude" and rules.excludes:
        return _Finding(all(rules.excludes(part, text) for item in items for part in alternatives(item)), line)
    if rule == "required_values" and rules.within:
        within = rules.within
        bounds = [[INEQUALITY.fullmatch(part).groups() for part in alternatives(item)] for item in items]
        met = all(any(within(sign, Decimal(bound), text) for sign, bound in choices) for choices in bounds)
        return _Finding(met, line)
    return _Finding(None, f"this evaluator has no rule {rule}")


def _judged(case: _Case, question: str, references: Sequence[str], text: str) -> _Finding:
    """Ask the judge; undecided without one."""
    line = f"{question} {_cut(', '.join(references))} against {_cut(text)}"
    if not any(references):
        return _Finding(None, f"{line}: the task does not say why it cannot be done")
    if case.judge is None:
        return _Finding(None, f"{line}: needs a judge, none is configured")
    ask = case.judge.same_reason if question == "same_reason" else case.judge.fuzzy_match
    try:
        return _Finding(all(ask(case.task.intent, reference, text) for reference in references), line)
    except Ungradable as error:
        return _Finding(None, f"{line}: {error}")


def _url_match(case: _Case) -> list[_Finding]:
    note = case.task.eval.get("url_note") or case.rules.url_note
    if note == "EXACT" and case.rules.url_note != "EXACT":
        return [_Finding(None, "this evaluator has no exact rule for addresses")]
    references = []
    for part in alternatives(case.task.eval["reference_url"]):
        reference = _resolve(_absolute(part, case), case.addresses)
        if reference.startswith("__"):
            return [_Finding(None, f"no address is given for {_cut(reference)}")]
        references.append(reference)
    met = case.rules.url(references, case.final_url, note != "EXACT")
    return [_Finding(met, f"{note} {_cut(' |OR| '.join(references))} against {_cut(case.final_url)}")]


def _absolute(reference: str, case: _Case) -> str:
    """Put the address of the task's first site before a reference that is a bare path."""
    if not reference.startswith("/"):
        return reference
    placeholder = f"__{case.task.sites[0].upper()}__"
    if placeholder in case.addresses:
        return placeholder + reference
    parts = urlsplit(case.task.start_url.split("|AND|")[0].strip())
    return f"{parts.scheme}://{parts.netloc}{reference}" if parts.netloc else placeholder + reference


def _program_html(case: _Case) -> list[_Finding]:
    findings = []
    for read in reads(case.task, case.final_url, case.mode, case.addresses):
        if read.before:
            if findings[-1].met:
                findings[-1] = _earned(case, read, findings[-1])
            continue
        contents = _contents(case.task, read.key)
        text, error = _evidence_text(case, read.key)
        if error.startswith("404"):
            findings.append(_Finding(False, f"{_cut(read.url)}: the page does not exist"))
        elif error:
            findings.append(_Finding(None, f"{_cut(read.url)} could not be read: {error}"))
        else:
            checked = _page_findings(case, contents, text)
            findings.append(_Finding(_passes(checked), f"{_cut(read.url)}: {'; '.join(f.reason for f in checked)}"))
    return findings


def _earned(case: _Case, read: Read, after: _Finding) -> _Finding:
    """Return the finding on a page, unless the state before the task already met it."""
    text, error = _evidence_text(case, read.key)
    if error.startswith("404"):
        return after
    if error:
        return _Finding(None, f"{_cut(read.url)} before the task could not be read: {error}")
    now, _ = _evidence_text(case, read.key.removesuffix(".before"))
    contents = _contents(case.task, read.key)
    unchanged = answer_types.fold(text) == answer_types.fold(now)
    # a judge is not asked about the page as it was: it met a fuzzy rule only if nothing changed
    if unchanged or "fuzzy_match" not in contents and _passes(_page_findings(case, contents, text)):
        return _Finding(False, f"{after.reason}, but that was so before the task")
    return after


def _page_findings(case: _Case, contents: Mapping[str, JSON], text: str) -> list[_Finding]:
    """Apply the rules of one page item; ``strict`` applies all, the released evaluators the first they know."""
    known = [rule for rule in case.rules.page_rules if rule in contents]
    if not known:
        return [_Finding(None, f"this evaluator has no rule {', '.join(contents)} for pages")]
    findings = []
    for rule in known if case.strict else known[:1]:
        texts = case.rules.page_texts(text) if rule != "fuzzy_match" else (text,)
        readings = [_text_finding(case, rule, contents[rule], reading, of_answer=False) for reading in texts]
        wanted = rule != "must_exclude"  # what must be there is in one reading, what must not is in none
        findings.append(next((found for found in readings if found.met is wanted), readings[0]))
    return findings


def _evidence_text(case: _Case, key: str) -> tuple[str, str]:
    """Return a text that was read and "", or "" and why it was not."""
    value = (case.evidence.get("reads") or {}).get(key, {"error": "it was not read"})
    if isinstance(value, Mapping):
        return "", str(value.get("error") or "unknown error")
    if isinstance(value, bool):
        return str(value).lower(), ""  # as JavaScript writes it
    return "" if value is None else str(value), ""


def _database(case: _Case) -> list[_Finding]:
    record = case.evidence.get("database")
    if not isinstance(record, Mapping) or "changes" not in record:
        reason = record.get("error") if isinstance(record, Mapping) else None
        return [_Finding(None, f"the changes are not known: {reason or 'they were not recorded'}")]
    wanted = case.task.eval["database"]
    lines = change_rules.misfits(wanted["changes"], wanted.get("allow", ()), record["changes"], answer_types.includes)
    return [_Finding(False, line) for line in lines] or [_Finding(True, "the changes are the expected ones")]


def _cut(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else shown[:79] + "…"


# --- a judge without a model -------------------------------------------------------------------------------


class OfflineJudge:
    """Compares typed values and words; decides only what they decide, else it is ungraded.

    True if every value and every word of the reference (but the smallest words) stands in the answer, in any order.
    False if a value of the reference (number, money, date, duration, distance) is missing, or if one text says yes
    and the other no. Otherwise the answer may be a paraphrase, and it raises ``Ungradable``. A declared fallback,
    weaker than a model: it does not see that an answer also says something wrong.
    """

    name = "offline"
    _SMALL_WORDS = frozenset("a an the is are was were be of in on at to for and or it its that this with by".split())
    _SPELLINGS = {"cancelled": "canceled", "colour": "color", "grey": "gray", "centre": "center"}

    def fuzzy_match(self, intent: str, reference: str, answer: str) -> bool:
        """Whether the answer states all that the reference states; see the class."""
        wanted = [atom for atom in self._atoms(reference) if atom not in self._SMALL_WORDS]
        found = self._atoms(answer)
        missing = [atom for atom in wanted if not answer_types.meets_any(atom, found)]
        if not missing:
            return True
        if any(not isinstance(atom, str) for atom in missing):
            return False
        if ("yes" in missing and "no" in found) or ("no" in missing and "yes" in found):
            return False
        raise Ungradable(f"an offline comparison cannot decide whether {missing[0]!r} is said in other words")

    def same_reason(self, intent: str, reference: str, answer: str) -> bool:
        """Reasons are prose, which only a model can compare: always ungraded."""
        raise Ungradable("an offline comparison cannot decide whether two reasons are the same")

    def _atoms(self, text: str) -> list[answer_types.Atom]:
        return [self._SPELLINGS.get(a, a) if isinstance(a, str) else a for a in answer_types.atoms(text)]


# --- rates -------------------------------------------------------------------------------------------------


Z = 1.959964
"""Quantile 0.975 of the normal distribution."""


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a rate.

    8 of 10 give (0.490, 0.943), 0 of 10 give (0, 0.278): unlike mean plus or minus two standard errors it stays in
    [0, 1] and does not shrink to a point at the ends. 0 of 0 give (0, 1), for nothing is known.

    Args:
        successes: in [0, n].
        n: trials.

    Raises:
        ValueError: there are more successes than trials, or fewer than none.

    Source: Wilson (1927), https://doi.org/10.1080/01621459.1927.10502953.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"`successes` must be in [0, n] ({n}), got {successes}. Count both on the same episodes.")
    if n == 0:
        return 0.0, 1.0
    share, z2 = successes / n, Z * Z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # exactly 0 and 1 at the ends, where rounding would leave a trace
    return (0.0 if successes == 0 else middle - half), (1.0 if successes == n else middle + half)


@dataclass(frozen=True)
class Rate:
    """A success rate over the graded episodes, with its Wilson 95 % interval."""

    successes: int
    graded: int
    ungraded: int = 0
    """Episodes whose grader could not decide; in no denominator."""
    faulted: int = 0
    """Episodes that the environment broke; in no denominator."""
    mode: str = ""
    version: str = ""

    @property
    def rate(self) -> float | None:
        """Successes over graded, in [0, 1]; None if nothing was graded."""
        return self.successes / self.graded if self.graded else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval, in [0, 1]; all of it if nothing was graded."""
        return wilson(self.successes, self.graded)

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.interval[0]

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.interval[1]

    def __str__(self) -> str:
        share = "nothing graded" if self.rate is None else f"{100 * self.rate:.1f} %"
        return (
            f"{self.successes}/{self.graded} = {share} [{100 * self.low:.1f}, {100 * self.high:.1f}] "
            f"(evaluator {self.mode or 'none'} {self.version}; over graded episodes only; "
            f"{self.ungraded} ungraded, {self.faulted} faulted)"
        )


def success_rate(items: Iterable[Trajectory | Verdict | None]) -> Rate:
    """Count successes over the graded episodes.

    Args:
        items: trajectories or verdicts; a score of exactly 1 is a success, None (or no verdict) is ungraded, and an
            episode that ended in ``env_error`` is faulted, whatever its verdict.

    Raises:
        ValueError: a score is not a number, or the verdicts are of different evaluators or versions.
    """
    successes = graded = ungraded = faulted = 0
    evaluators = set()
    for item in items:
        if isinstance(item, Trajectory):
            if item.stop == StopReason.ENV_ERROR:
                faulted += 1
                continue
            item = item.verdict
        if item is None or item.score is None:
            ungraded += 1
            continue
        if math.isnan(item.score):
            raise ValueError("`score` must be a number or None, got nan: the grader is broken, this is no failure.")
        graded += 1
        successes += item.success
        evaluators.add((item.mode, item.version))
    if len(evaluators) > 1:
        raise ValueError(f"scores of different evaluators are not comparable: {sorted(evaluators)}. Count each alone.")
    mode, version = evaluators.pop() if evaluators else ("", "")
    return Rate(successes, graded, ungraded, faulted, mode, version)
