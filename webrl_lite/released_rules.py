"""The released evaluators' rules for texts and addresses: ``webarena`` and ``vab``.

Pure functions that ``evaluators.py`` puts into its table of modes. They keep the originals' verdicts, flaws
included, so that scores can be compared with published ones. What they do and where they differ:

=================  ==================================  ====================================
rule               ``webarena`` (the original)         ``vab`` (WebRL's runs)
=================  ==================================  ====================================
cleaning           strip, unquote, lower case          unquote, lower case
exact_match        same text                           same text
must_include       substring; a token if it is the     a token if it is one token, else a
                   list's only phrase and one letter   substring; tokens also in parts at "/"
must_exclude       none                                as must_include, without the parts
required_values    none                                integer; "<" and ">" allow equality
url, contained     base path a substring, each query   reference a substring of the address
                   key has one of the right values
url, exact         none                                same text but for one final "/"
=================  ==================================  ====================================

Sources: ``evaluation_harness/evaluators.py`` of web-arena-x/webarena (``libwebarena`` 0.0.5) and
``VAB-WebArena-Lite/new/evaluators.py`` of THUDM/VisualAgentBench (commit 5e3bc55). Both tokenize with NLTK's
``word_tokenize``; ``words`` gives the same tokens without NLTK and its data (checked on the 2,473 texts of
WebArena's 812 tasks), but knows fewer abbreviations and one kind of double quote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from urllib.parse import parse_qs, urlsplit

# Applied in this order; each puts spaces around what is a word of its own.
_SPLITS = [
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        ("([«“‘„]|`+)", r" \1 "),
        (r"(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", "' "),
        (r"(?<=[^.])\.(?=[\])}>\"'»”’\s]*+$)", " . "),  # the final stop of a sentence
        (r"([:,])(\D)", r" \1 \2"),
        ("([:,])$", r" \1 "),
        (r"(\.{2,}|[;@#$%&?!*]|[\u2012-\u2015])", r" \1 "),
        (r"(?<=[^'])' ", " ' "),
        (r"([][(){}<>]|--)", r" \1 "),
        ("([»”’]|'')", r" \1 "),
        ('"', " '' "),
        (r"\s+", " "),
        (r"(?<=[^' ])('[smd]|'|'ll|'re|'ve|n't)(?= )", r" \1"),
        (r"\b(can)(not)\b|\b(gim|lem)(me)\b|\b(gon|wan)(na)\b|\b(got)(ta)\b", r" \1\3\5\7 \2\4\6\8 "),
    )
]
_ABBREVIATIONS = frozenset(
    "a.m p.m u.s u.k u.n n.y d.c ph.d dr mr mrs ms messrs jr sr st ave bros co corp inc ltd vs rep prof gen "
    "maj col sen lt jan feb aug sept sep oct nov dec tues wed fri calif ill pa va".split()
)


def words(text: str) -> list[str]:
    """Return the words and marks of a lower-case English text, as NLTK's ``word_tokenize`` does."""
    found = []
    for sentence in _sentences(text):
        for pattern, replacement in _SPLITS:
            sentence = pattern.sub(replacement, f" {sentence} " if replacement == " " else sentence)
        found += sentence.split()
    return found


def _sentences(text: str) -> list[str]:
    """Split after a full stop, but not after an abbreviation, an initial, or a number and a small letter."""
    sentences, start = [], 0
    for match in re.finditer(r"\.(?=[?!)\";}\]*:@'({\[]|\s+(\S))", text):
        token = text[max(start, match.start() - 40) : match.start()].split(" ")[-1].lstrip("\"'([{«“‘")
        number = re.fullmatch(r"[-.,]?[0-9][0-9,.-]*", token)
        goes_on = match[1] is not None and match[1].islower()
        if token in _ABBREVIATIONS or re.fullmatch(r"[^\W\d_]|\.*", token) or number and goes_on:
            continue
        sentences.append(text[start : match.end()])
        start = match.end()
    return [*sentences, text[start:]]


def _unquoted(text: str) -> str:
    for quote in "'\"":
        if text.startswith(quote) and text.endswith(quote):
            return text[1:-1]
    return text


def clean_vab(text: str) -> str:
    """Return what ``vab`` compares; the answer goes through it once more than the reference."""
    return _unquoted(text).lower()


def clean_webarena(text: str) -> str:
    """Return what ``webarena`` compares; the answer goes through it once more than the reference."""
    return _unquoted(text.strip()).lower()


def exact_vab(reference: str, text: str) -> bool:
    """Whether the text is the reference."""
    return clean_vab(reference) == clean_vab(text)


def exact_webarena(reference: str, text: str) -> bool:
    """Whether the text is the reference."""
    return clean_webarena(reference) == clean_webarena(text)


def includes_vab(phrase: str, text: str) -> bool:
    """Whether the text includes the phrase: as a token if it is one token."""
    phrase, text = clean_vab(phrase), clean_vab(text)
    if len(words(phrase)) != 1:
        return phrase in text
    found = words(text)
    return phrase in found or any(phrase in word.split("/") for word in found if "/" in word)


def excludes_vab(phrase: str, text: str) -> bool:
    """Whether the phrase is absent."""
    phrase, text = clean_vab(phrase), clean_vab(text)
    return phrase not in (words(text) if len(words(phrase)) == 1 else text)


def within_vab(sign: str, bound: Decimal, text: str) -> bool:
    """Whether the text is an integer on the right side of the bound."""
    try:
        value = int(text.strip().replace(",", ""))
    except ValueError:
        return False
    margin = Decimal("1e-8")  # as released; with it, "<" and ">" allow equality
    below, above = value <= bound + margin, value >= bound - margin
    return {"<": below, "<=": below, ">": above, ">=": above, "==": below and above}[sign]


def includes_webarena(phrase: str, text: str, alone: bool) -> bool:
    """Whether the text includes the phrase; ``alone``: it is the only phrase of an answer's list."""
    phrase, text = clean_webarena(phrase), clean_webarena(text)
    if alone and len(phrase) == 1 and len(words(phrase)) == 1:
        return phrase in words(text)
    return phrase in text


def url_vab(references: Sequence[str], url: str, contained: bool) -> bool:
    """Whether the address is one of the references or, if ``contained``, has one in it."""
    url, *references = (text.replace("localhost", "127.0.0.1").removesuffix("/") for text in (url, *references))
    return any(reference in url for reference in references) if contained else url in references


def url_webarena(references: Sequence[str], url: str) -> bool:
    """Whether the address has a reference's base path in it, and for each query key one of their values."""
    bases, values = [], {}
    for reference in references:
        base, query = _base_and_query(reference)
        bases.append(base)
        for key, given in query.items():
            values.setdefault(key, set()).update(given)
    base, query = _base_and_query(url)
    return any(wanted in base for wanted in bases) and all(
        not possible.isdisjoint(query.get(key, ())) for key, possible in values.items()
    )


def _base_and_query(url: str) -> tuple[str, dict[str, list[str]]]:
    try:
        parts = urlsplit(url.rstrip("/"))
    except ValueError:  # no address at all; as a text it is compared with the references
        return url, {}
    return (parts.netloc + parts.path).rstrip("/"), parse_qs(parts.query)
