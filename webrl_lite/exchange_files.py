"""JSON files of others, read piece by piece and written whole. Used by ``exchange``. Standard library only.

A file is a list of objects, one object after another, or one object a line: all three are read alike, so ``.json`` and
``.jsonl`` need not be told apart. Of a file of any size no more is held than a few of its objects. Text is UTF-8 with
or without a byte-order mark and with either kind of line end; half a surrogate pair, which JSON can spell, is kept.
"""

from __future__ import annotations

import codecs
import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from webrl_lite.trajectory import JSON, TraceError, encode_line, whole_file, write_jsonl

CHUNK = 1 << 20  # bytes; an object that is longer makes the next piece longer
_SPACE = re.compile(r"[ \t\r\n]*+")
_MARGIN = 16  # a literal such as -Infinity that a piece cut off fails so near to its end


@dataclass(frozen=True)
class Record:
    """One JSON object of a form that is not ours."""

    fields: dict[str, JSON]

    def to_json(self) -> dict[str, JSON]:
        """Return the object."""
        return self.fields


def read_records(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, JSON]]]:
    """Yield the objects of a file with the numbers of the lines on which they begin, from 1.

    Args:
        path: a file of JSON objects, compressed if its name ends in ``.gz``.

    Raises:
        TraceError: the file is no JSON of that kind, no UTF-8, or cut off; the message names file and line.
        OSError: there is no such file.
    """
    file = _Reader(Path(path))
    listed = file.peek() == "["
    if listed:
        file.at += 1
        if file.peek() == "]":
            file.at += 1
            file.finish()
            return
    while listed or file.peek():
        yield file.object()
        if not listed:
            continue
        mark = file.peek()
        if mark not in (",", "]"):
            file.refuse('after an object of a list comes "," or "]"' + (f", got {mark!r}." if mark else ": cut off?"))
        file.at += 1
        if mark == "]":
            break
    file.finish()


def write_lines(path: str | os.PathLike[str], records: Iterable[dict[str, JSON]]) -> int:
    """Write one object a line, whole or not at all, and return their number. See ``trajectory.write_jsonl``."""
    return write_jsonl(path, map(Record, records))


def write_list(path: str | os.PathLike[str], records: Iterable[dict[str, JSON]]) -> int:
    """Write a list of objects, one a line, whole or not at all, and return their number."""
    count = 0
    with whole_file(path) as file:
        file.write(b"[")
        for record in records:
            line = encode_line(Record(record)).removesuffix("\n")
            file.write(f"{',' if count else ''}\n{line}".encode())
            count += 1
        file.write(b"\n]\n")
    return count


class _Reader:
    """A text that comes in pieces, the place in it, and the number of the line there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.at = 0
        self._text = ""
        self._line, self._counted = 1, 0
        self._size = CHUNK
        self._pieces = self._read()

    def peek(self) -> str:
        """Return the next character that is no white space, "" at the end."""
        while True:
            self.at = _SPACE.match(self._text, self.at).end()
            if self.at < len(self._text):
                return self._text[self.at]
            if not self._more():
                return ""

    def object(self) -> tuple[int, dict[str, JSON]]:
        """Read one object."""
        if self.peek() != "{":
            self.refuse(f"a JSON object must stand here, got {self._text[self.at : self.at + 20]!r}.")
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self.at)
                break
            except json.JSONDecodeError as error:
                unfinished = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _MARGIN
                position = error.pos - self.at  # the place moves to the front when a piece is added
                if not (unfinished and self._more()):
                    self.at += position
                    self.refuse(f"not JSON: {error.msg}.")
            except (ValueError, RecursionError) as error:
                self.refuse(f"not JSON: {error}." if isinstance(error, ValueError) else "nested too deeply.")
        self._size = CHUNK
        line = self._line_here()
        self.at = end
        return line, value

    def finish(self) -> None:
        """Check that nothing follows."""
        if self.peek():
            self.refuse("something follows the end of the list.")

    def refuse(self, rule: str) -> NoReturn:
        """Say what is wrong at this place."""
        raise TraceError(f"{self.path}, line {self._line_here()}: {rule}")

    def _line_here(self) -> int:
        self._line += self._text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def _more(self) -> bool:
        """Add a piece; what was passed is dropped."""
        piece = next(self._pieces, "")
        self._line_here()
        self._text = self._text[self.at :] + piece
        self.at = self._counted = 0
        self._size = max(CHUNK, len(self._text))  # so that a long object is tried again a few times only
        return bool(piece)

    def _read(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
        lines, first = 1, True
        with (gzip.open if self.path.suffix == ".gz" else open)(self.path, "rb") as file:
            while True:
                try:
                    data = file.read(self._size)
                    if first and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
                        raise TraceError(f"{self.path}: the text is UTF-16. Save it as UTF-8.")
                    text = decoder.decode(data, final=not data)
                except UnicodeDecodeError as error:
                    lines += error.object.count(b"\n", 0, error.start)
                    byte = error.object[error.start]
                    raise TraceError(f"{self.path}, line {lines}: the byte 0x{byte:02x} is no UTF-8.") from error
                except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                    raise TraceError(f"{self.path}: a compressed file that is cut off or damaged ({error}).") from error
                lines += text.count("\n")
                if first and text:
                    text, first = text.removeprefix("\ufeff"), False
                if text:
                    yield text
                if not data:
                    return


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number that JSON has")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
