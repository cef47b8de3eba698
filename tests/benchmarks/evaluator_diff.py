"""Judge the same answers, addresses and pages with WebArena's own evaluators and with our mode ``webarena``.

For each of the 812 tasks the references are varied (case, quotes, spaces, forms of numbers and dates, further words,
reordered queries, slashes, empty, "N/A" and so on). The public evaluators, unchanged, judge them in a virtual
environment of their own, ours in this one; every disagreement is counted by its cause, with an example.

    python -m venv wa
    wa/bin/pip install --no-deps libwebarena nltk regex click joblib tqdm beartype==0.12.0
    python -m tests.benchmarks.evaluator_diff --python wa/bin/python [--nltk-data FOLDER] [--examples 2]

What the evaluators import but do not use for this (browser, model clients) is replaced by empty modules. The judge is
a fixed rule on both sides. NLTK needs its sentence data (``punkt_tab``), in FOLDER or where NLTK looks for it; without
it a text counts as one sentence, and the table says so.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ADDRESSES = {
    "__SHOPPING_ADMIN__": "http://127.0.0.1:7780/admin",
    "__SHOPPING__": "http://127.0.0.1:7770",
    "__REDDIT__": "http://127.0.0.1:9999",
    "__GITLAB__": "http://127.0.0.1:8023",
    "__MAP__": "http://127.0.0.1:3000",
    "__WIKIPEDIA__": "http://127.0.0.1:8888",
}
ORDER = "/sales/order/view/order_id/191/"


def judged_same(reference: str, answer: str) -> bool:
    """The judge of both sides: every word of the reference stands in the answer."""
    return set(re.findall(r"\w+", reference.lower())) <= set(re.findall(r"\w+", answer.lower()))


# --- variants ----------------------------------------------------------------------------------------------


def answer_variants(text: str) -> dict[str, str]:
    """Return a reference's text in the ways an agent may write it, by the name of the change."""
    variants = {
        "same": text,
        "upper case": text.upper(),
        "title case": text.title(),
        "single quotes": f"'{text}'",
        "double quotes": f'"{text}"',
        "two pairs of quotes": f"\"'{text}'\"",
        "half a quote": f"'{text}",
        "quote alone": "'",
        "typographic quotes": f"“{text}”",
        "spaces around": f"  {text}\n",
        "spaces in quotes": f'" {text} "',
        "double spaces": text.replace(" ", "  "),
        "no-break spaces": text.replace(" ", "\xa0"),
        "full stop": f"{text}.",
        "comma after": f"{text}, as asked",
        "sentence": f"The answer is {text}.",
        "two sentences": f"It is {text}. That is all.",
        "parentheses": f"({text})",
        "hash": f"#{text}",
        "glued": f"x{text}y",
        "letter after": f"{text}s",
        "digit after": f"{text}0",
        "slashes": f"a/{text}/b",
        "hyphen": f"re-{text}-d",
        "markup": text.replace("&", "&amp;").replace("<", "&lt;"),
        "without commas": text.replace(",", ""),
        "dollars": re.sub(r"(?<![\d$.,])(\d)", r"$\1", text),
        "without dollars": text.replace("$", ""),
        "cents": re.sub(r"(?<![\d.,])(\d+)(?![\d.,])", r"\1.00", text),
        "zeros in front": re.sub(r"(?<![\d.,])(\d+)", r"000\1", text),
        "thousands": re.sub(r"(?<![\d.,])(\d+)(\d{3})(?![\d.])", r"\1,\2", text),
        "slash dates": text.replace("-", "/"),
        "dash dates": text.replace("/", "-"),
        "ordinals": re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text),
        "reversed words": " ".join(reversed(text.split())),
        "first half": text[: len(text) // 2],
        "without marks": re.sub(r"[^\w\s]", "", text),
        "straight quotes": text.replace("’", "'"),
        "list": f"- {text}\n- other",
        "json": json.dumps([text], ensure_ascii=False),
    }
    return {**variants, "empty": "", "space": "  ", "N/A": "N/A", "n/a.": "n/a.", "not there": "There is none."}


def url_variants(url: str) -> dict[str, str]:
    """Return an address in the ways a browser may end up at it."""
    base, _, query = url.partition("?")
    pairs = query.split("&") if query else []
    return {
        "same": url,
        "slash": base + "/" + (f"?{query}" if query else ""),
        "slash at the end": url + "/",
        "two slashes at the end": url + "//",
        "letters after": base + "asdf",
        "below": base + "/edit",
        "no last part": base.rsplit("/", 1)[0],
        "double slash": base.replace("/", "//").replace("http:////", "http://") + (f"?{query}" if query else ""),
        "reordered query": base + (f"?{'&'.join(reversed(pairs))}" if pairs else ""),
        "no query": base,
        "half the query": base + (f"?{'&'.join(pairs[: len(pairs) // 2])}" if pairs else ""),
        "more query": f"{url}{'&' if query else '?'}page=2",
        "other values": base + "?" + re.sub(r"=[^&]*", "=other", query),
        "repeated keys": f"{url}{'&' if query else '?'}{query}",
        "empty values": base + "?" + re.sub(r"=[^&]*", "=", query),
        "semicolons": url.replace("&", ";"),
        "encoded": url.replace("[", "%5B").replace("]", "%5D").replace(" ", "%20").replace("+", "%20"),
        "decoded": url.replace("%20", " ").replace("%5B", "[").replace("%5D", "]"),
        "plus signs": url.replace("%20", "+"),
        "fragment": url + "#notes",
        "upper case": url.upper(),
        "localhost": url.replace("127.0.0.1", "localhost"),
        "https": url.replace("http:", "https:"),
        "other port": url.replace("127.0.0.1:", "127.0.0.1:1"),
        "other host": url.replace("127.0.0.1", "evil.example"),
        "in the query": f"http://evil.example/?u={url}",
        "in the path": f"http://evil.example/{url}",
        "post below": base + "/9000/new-post",
        "comment below": base + "/9000/new-post/-/comment/77?x=1#c77",
        "no port": re.sub(r":\d+", "", url, count=1),
        "broken": "http://[" + url,
        "blank": "about:blank",
    }


@dataclass(frozen=True)
class Case:
    """One thing to judge."""

    task_id: str
    part: str
    """``answer``, ``url`` or ``page``."""
    variant: str
    answer: str
    url: str
    pages: list[object]
    """What each page item's locator gives: a text, or another value of JavaScript."""


def cases(task: dict) -> Iterator[Case]:
    """Yield what one task is asked of; each part varied while the others are right."""
    evaluation, task_id = task["eval"], str(task["task_id"])
    types = evaluation["eval_types"]
    answer = right_answer(evaluation) if "string_match" in types else "done"
    urls = evaluation["reference_url"].split(" |OR| ") if "url_match" in types else ["http://127.0.0.1:7770/"]
    items = evaluation["program_html"] if "program_html" in types else []
    pages = [right_page(item) for item in items]
    if "string_match" in types:
        for rule, reference in evaluation["reference_answers"].items():
            for n, text in enumerate([reference] if isinstance(reference, str) else reference):
                for name, changed in answer_variants(text).items():
                    yield Case(task_id, "answer", f"{rule} {n}: {name}", changed, urls[0], pages)
        for name, changed in answer_variants(answer).items():
            yield Case(task_id, "answer", f"all: {name}", changed, urls[0], pages)
        yield Case(task_id, "answer", "all: joined by commas", answer.replace(" ; ", ", "), urls[0], pages)
    if "url_match" in types:
        for n, url in enumerate(urls):
            for name, changed in url_variants(url).items():
                yield Case(task_id, "url", f"{n}: {name}", answer, changed, pages)
    for n, (item, page) in enumerate(zip(items, pages, strict=True)):
        for name, changed in answer_variants(page).items():
            texts = [*pages[:n], changed, *pages[n + 1 :]]
            yield Case(task_id, "page", f"{n}: {name}", answer, urls[0], texts)
        if not item["locator"].startswith("func:") and item["locator"].strip():
            values = {"null": None, "true": True, "false": False, "number": 7, "fraction": 7.5, "list": ["a", page]}
            values |= {"the same number": int(page)} if page.isdecimal() else {}
            for name, value in values.items():
                yield Case(task_id, "page", f"{n}: {name}", answer, urls[0], [*pages[:n], value, *pages[n + 1 :]])
        whole = f"<html><body>Before <b>{page}</b> after</body></html>"
        yield Case(task_id, "page", f"{n}: whole page", answer, urls[0], [*pages[:n], whole, *pages[n + 1 :]])


def right_answer(evaluation: dict) -> str:
    """Return an answer that holds all references."""
    parts = []
    for reference in evaluation["reference_answers"].values():
        parts += [reference] if isinstance(reference, str) else reference
    return " ; ".join(parts)


def right_page(item: dict) -> str:
    """Return a text that holds all that a page must hold."""
    contents = item["required_contents"]
    if "exact_match" in contents:
        return contents["exact_match"]
    return " ; ".join(part.split(" |OR| ")[0] for part in contents["must_include"])


def resolved(tasks: list[dict]) -> list[dict]:
    """Put the addresses for the placeholders in the whole file, as WebArena does before a run."""
    text = json.dumps(tasks)
    for placeholder, address in ADDRESSES.items():
        text = text.replace(placeholder, address)
    return json.loads(text)


# --- the public evaluators, in their own environment -------------------------------------------------------


def stand_in(name: str, **names: object) -> types.ModuleType:
    """Put an empty module in place of one that the evaluators import and do not use here."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    vars(module).update(__path__=[], **names)
    sys.modules[name] = module
    return module


def public_evaluators() -> tuple[types.ModuleType, str]:
    """Import the wheel's evaluators; return them and how they tell sentences apart."""
    for placeholder, address in ADDRESSES.items():
        os.environ[placeholder.strip("_")] = address
    os.environ["HOMEPAGE"] = "http://127.0.0.1:4399"
    import webarena
    from beartype import __version__ as _  # noqa: F401  (fails here, with a clear message, if it is missing)

    folder = Path(webarena.__path__[0])
    stand_in("playwright")
    page = type("Page", (), {})
    stand_in("playwright.sync_api", Page=page, CDPSession=type("CDPSession", (), {}))
    stand_in("requests")
    stand_in("webarena.browser_env").__path__ = [str(folder / "browser_env")]
    stand_in("webarena.browser_env.actions", Action=dict)
    stand_in("webarena.browser_env.utils", StateInfo=dict)
    stand_in("webarena.llms")
    stand_in("webarena.llms.providers")
    stand_in("webarena.llms.providers.openai_utils", generate_from_openai_chat_completion=None)
    from webarena.evaluation_harness import evaluators

    evaluators.llm_fuzzy_match = lambda pred, ref, intent: float(judged_same(ref, pred))
    evaluators.llm_ua_match = lambda pred, ref, intent: float(judged_same(ref, pred))
    evaluators.shopping_get_latest_order_url = lambda: ADDRESSES["__SHOPPING__"] + ORDER
    evaluators.time.sleep = lambda seconds: None
    try:
        evaluators.word_tokenize("one. two.")
        return evaluators, "NLTK's sentence data"
    except LookupError:
        whole = evaluators.word_tokenize
        evaluators.word_tokenize = lambda text: whole(text, preserve_line=True)
        return evaluators, "no sentence data: a text is one sentence"


class FakePage:
    """A page whose texts are given, one a page item, in order."""

    def __init__(self, url: str, texts: list[object]):
        self.url, self.texts, self.context = url, texts, self
        self.opened: list[str] = []

    def new_page(self) -> object:
        return self.wrap(self)

    def goto(self, url: str) -> None:
        self.opened.append(url)

    def close(self) -> None:
        pass

    def content(self) -> str:
        return self.texts.pop(0)

    def evaluate(self, script: str) -> object:
        if "querySelectorAll(\"td[data-label='Account']" in script:
            return "0"  # the first of the two questions of the helper for a member's role
        if script.endswith(".click()"):
            return ""  # a preparation
        return self.texts.pop(0)


def judge_with_public_evaluators(source: Path, target: Path) -> None:
    """Judge all cases of a file; write for each 1.0, 0.0 or the exception, and the addresses that were opened."""
    evaluators, sentences = public_evaluators()
    given = json.loads(source.read_text(encoding="utf-8"))
    verdicts: list[tuple[float | str, list[str]]] = []
    FakePage.wrap = staticmethod(lambda page: evaluators.PseudoPage(page, page.url))
    for helper in ("author", "rating"):
        name = f"shopping_get_sku_latest_review_{helper}"
        setattr(evaluators, name, lambda sku: current.texts.pop(0))
    with tempfile.TemporaryDirectory() as folder:
        for task in given["tasks"]:
            config = Path(folder) / "task.json"
            config.write_text(json.dumps(task), encoding="utf-8")
            comb = evaluators.evaluator_router(config)
            for case in given["cases"][str(task["task_id"])]:
                current = FakePage(case["url"], list(case["pages"]))
                try:
                    page = FakePage.wrap(current)
                    verdict = float(comb([{}, {"answer": case["answer"]}], config, page, None))
                except Exception as error:
                    verdict = f"{type(error).__name__}: {error}"[:120]
                verdicts.append((verdict, current.opened))
    target.write_text(json.dumps({"sentences": sentences, "verdicts": verdicts}), encoding="utf-8")


# --- ours --------------------------------------------------------------------------------------------------


class FixedJudge:
    """``judged_same`` as a judge of ours."""

    name = "every word of the reference"

    def fuzzy_match(self, intent: str, reference: str, answer: str) -> bool:
        return judged_same(reference, answer)

    def same_reason(self, intent: str, reference: str, answer: str) -> bool:
        return judged_same(reference, answer)


def as_read(value: object) -> str:
    """Return the text that ``Session.read`` gives for a value of JavaScript."""
    return "" if value is None or value is False else str(value)


def opened(task: object, case: Case) -> list[str]:
    """Return the addresses that our grader has read, but for the page where the agent stopped."""
    from webrl_lite import evaluators

    wanted = evaluators.reads(task, case.url, "webarena", ADDRESSES)
    urls = [ADDRESSES["__SHOPPING__"] + ORDER if read.url_call else read.url for read in wanted]
    return [url for url in urls if url != "last"]


def cause(case: Case, theirs: float | str, ours: float | None, task: dict) -> str:
    """Name why two verdicts differ; the text is a row of the table."""
    if isinstance(theirs, str):
        return f"the public evaluator stops with {theirs.split(':')[0]}; ours {ours}"
    if case.variant.endswith((": null", ": false")):
        return f"{case.variant.split(': ')[1]} of JavaScript: public {theirs} (reads it as a word), ours {ours}"
    if case.part == "answer" and not case.answer.strip(" \t\r\n\xa0'\"“”‘’"):
        return f"an answer without content: public {theirs}, ours {ours} (documented: an empty answer never passes)"
    if ours is None:
        return "ours undecided"
    return f"{case.part}: public {theirs}, ours {ours}"


def compare(tasks: list[dict], python: str, nltk_data: str | None, examples: int) -> int:
    """Judge everything twice and print the table; return the number of disagreements."""
    from webrl_lite import evaluators
    from webrl_lite.trajectory import Task

    tasks = resolved(tasks)
    wanted = {str(task["task_id"]): list(cases(task)) for task in tasks}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "cases.json", Path(folder) / "verdicts.json"
        dumped = {task_id: [vars(case) for case in some] for task_id, some in wanted.items()}
        source.write_text(json.dumps({"tasks": tasks, "cases": dumped}), encoding="utf-8")
        environ = {**os.environ, **({"NLTK_DATA": nltk_data} if nltk_data else {})}
        subprocess.run([python, __file__, "--judge", str(source), str(target)], env=environ, check=True)
        public = json.loads(target.read_text(encoding="utf-8"))
    verdicts, judge, counted, shown = iter(public["verdicts"]), FixedJudge(), Counter(), defaultdict(list)
    number, passed = Counter(), Counter()
    for record in tasks:
        task = Task.from_json(record)
        for case in wanted[task.task_id]:
            reads = {f"program_html.{n}": as_read(value) for n, value in enumerate(case.pages)}
            ours = evaluators.grade(
                task,
                answer=case.answer,
                final_url=case.url,
                evidence={"reads": reads},
                mode="webarena",
                judge=judge,
                addresses=ADDRESSES,
            ).score
            theirs, visited = next(verdicts)
            number[case.part] += 1
            passed[case.part] += theirs == 1.0
            if case.part == "url" and not isinstance(theirs, str) and visited != opened(task, case):
                name = f"other pages are read for {case.variant.split(': ')[1]}"
                counted[name] += 1
                shown[name].append((case, visited, opened(task, case)))
            if theirs != ours:
                name = cause(case, theirs, ours, record)
                counted[name] += 1
                shown[name].append((case, theirs, ours))
    sizes = ", ".join(f"{count} {part}s ({passed[part]} right)" for part, count in number.items())
    print(f"{len(tasks)} tasks; judged twice: {sizes}")
    print(f"sentences: {public['sentences']}; disagreements: {sum(counted.values())}")
    for name, count in counted.most_common():
        print(f"| {count} | {name} |")
        for case, theirs, ours in shown[name][:examples]:
            text = case.answer if case.part == "answer" else case.url if case.part == "url" else case.pages
            print(f"    task {case.task_id}, {case.variant}: {text!r:.150}; public {theirs}, ours {ours}")
    return sum(counted.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", help="Python of the environment with libwebarena")
    parser.add_argument("--tasks", help="task file; by default that of the installed wheel")
    parser.add_argument("--nltk-data", help="folder with tokenizers/punkt_tab")
    parser.add_argument("--examples", type=int, default=2, help="examples to print of each cause")
    parser.add_argument("--judge", nargs=2, metavar=("CASES", "VERDICTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge:
        judge_with_public_evaluators(*map(Path, options.judge))
        return
    if not options.python:
        parser.error("--python must name the Python of an environment with libwebarena")
    from webrl_lite.envs.webarena_tasks import find_file

    path = Path(options.tasks) if options.tasks else find_file("webarena")
    compare(json.loads(path.read_text(encoding="utf-8")), options.python, options.nltk_data, options.examples)


if __name__ == "__main__":
    main()
