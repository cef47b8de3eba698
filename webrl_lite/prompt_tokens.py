"""Text becomes token ids, within a length, and without becoming special tokens. Used by ``prompts``.

A tokenizer reads ``<|eot_id|>`` in any text as the token that ends a turn, so a page could speak as the user. Here the
template's own marks are read as such and everything that is filled in is quoted: a mark in it is split after its first
character, at a code point that no text has, and the two parts are encoded one by one. Standard library only.

# differs from release: page text is passed on as it is, marks included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

LEFT_OUT = "** Reply left out **"
"""Stands where an old reply did not fit."""
PAGE_CUT = "~ cut: the rest of the page did not fit"
"""Last line of a page that did not fit. (not in the authors' actor prompt, which ends without a sign)"""
BREAK = "\ufdd0"  # a code point that is no character, so no text has it; marks where a forged token is split
SURROGATE = re.compile("[\ud800-\udfff]")


class PromptError(ValueError):
    """A prompt that cannot be built: names the setting, the rule, the value and the way out."""


class Tokenizer(Protocol):
    """What is used of a tokenizer of transformers."""

    eos_token: str | None
    chat_template: str | dict[str, str] | None

    @property
    def added_tokens_decoder(self) -> Mapping[int, AddedToken]: ...  # noqa: D102
    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...  # noqa: D102
    def decode(  # noqa: D102
        self, token_ids: Sequence[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool
    ) -> str: ...
    def apply_chat_template(  # noqa: D102
        self, conversation: list[dict[str, str]], *, tokenize: bool, add_generation_prompt: bool, date_string: str
    ) -> str: ...


class AddedToken(Protocol):
    """A token beside the vocabulary's ordinary pieces."""

    content: str
    special: bool


@dataclass(frozen=True)
class Prompt:
    """A prompt that ends where the model's answer begins."""

    ids: tuple[int, ...]
    """Token ids."""
    cut: int
    """Characters of the page that did not fit and were left out."""


@dataclass(frozen=True)
class Marks:
    """The tokens of a tokenizer that mean something beside their text, and how text is kept from becoming one."""

    tokenizer: Tokenizer
    ids: dict[str, int]
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Marks:
        """Return the marks of a tokenizer: its special tokens, and others that look like one."""
        ids = {
            token.content: index
            for index, token in tokenizer.added_tokens_decoder.items()
            # Qwen's <tool_call> is not called special; runs of spaces, which some have, are ordinary text
            if len(token.content) > 1 and (token.special or re.fullmatch(r"<.+>|\[.+\]", token.content))
        }
        longest_first = sorted(ids, key=len, reverse=True)
        return cls(tokenizer, ids, re.compile("|".join(map(re.escape, longest_first)) or r"(?!)"))

    def quote(self, text: str) -> str:
        """Return a text with a ``BREAK`` inside everything that would be read as a mark.

        Half a surrogate pair, which JSON can hold and no tokenizer takes, becomes the sign for a broken character.
        """
        text = SURROGATE.sub("\ufffd", text.replace(BREAK, ""))
        while self.pattern.search(text):  # again, since what is left of one may be another
            text = self.pattern.sub(lambda mark: mark[0][0] + BREAK + mark[0][1:], text)
        return text

    def encode(self, text: str) -> list[int]:
        """Return a text's ids; a quoted mark becomes ordinary pieces.

        Without one the text is encoded as a whole, so the ids are those that the tokenizer itself would give.
        """
        ids = [i for part in text.split(BREAK) for i in self.tokenizer.encode(part, add_special_tokens=False)]
        known = set(self.ids.values())
        written, read = len(self.pattern.findall(text)), sum(i in known for i in ids)
        if read != written:
            raise PromptError(
                f"a prompt must hold only the {written} special tokens of its template, this tokenizer made {read}: it "
                "changes text before it looks for them. Use another tokenizer."
            )
        return ids


def fit(
    marks: Marks,
    write: Callable[[Sequence[str], str], str],
    replies: Sequence[str],
    page: str,
    tokens: int,
    room: Callable[[Sequence[str]], int] | None,
) -> Prompt:
    """Return the longest prompt that fits: all, or less of the page, or that with the oldest replies left out.

    Args:
        marks: of the model's tokenizer.
        write: gives the prompt's text from replies and page.
        replies: oldest first.
        page: the page's text.
        tokens: most tokens.
        room: gives the characters that replies leave to the page in the authors' form, which cuts without a sign;
            None: no such limit, and a page that is cut says so.
    """
    sign = room is None and len(page) > len(PAGE_CUT)  # on a shorter page it would cost more than it stands for

    def ids(kept: Sequence[str], length: int) -> tuple[int, ...]:
        return tuple(marks.encode(write(kept, _shortened(page, length, sign))))

    def longest(kept: Sequence[str]) -> int:
        return min(len(page), room(kept)) if room else len(page)

    if longest(replies) == len(page) and len(whole := ids(replies, len(page))) <= tokens:
        return Prompt(whole, 0)
    newest = max(len(replies) - 1, 0)
    for left_out in range(newest + 1):
        kept = [min(reply, LEFT_OUT, key=len) if i < left_out else reply for i, reply in enumerate(replies)]
        least = len(ids(kept, 0))
        if least <= tokens and (longest(kept) >= 0 or left_out == newest):
            break
    else:
        raise PromptError(
            f"`model.max_length` must hold at least the task and the newest reply, {least} tokens here, but leaves "
            f"{tokens} to the prompt. Raise model.max_length, or lower rollout.max_new_tokens."
        )
    fits, too_long = 0, max(longest(kept), 0) + 1  # the longest part of the page lies in [fits, too_long)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        fits, too_long = (middle, too_long) if len(ids(kept, middle)) <= tokens else (fits, middle)
    return Prompt(ids(kept, fits), len(page) - _line_end(page, fits, sign))


def _shortened(page: str, length: int, sign: bool) -> str:
    """Return the first characters of a page, with a sign that it goes on."""
    kept = page[: _line_end(page, length, sign)]
    if length >= len(page) or not sign:
        return kept
    return f"{kept}\n{PAGE_CUT}" if kept else PAGE_CUT


def _line_end(page: str, length: int, whole_lines: bool) -> int:
    """Return how much of the first characters to keep: up to the last whole line, if that is more than half."""
    end = page.rfind("\n", 0, length)
    return end if whole_lines and length // 2 < end and length < len(page) else length
