"""The tokens of a filter - columns, values, operators and functions - with their SQL spelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from dumptui.core.errors import DumpError

SQL_FUNCTIONS = (
    *("abs", "round", "floor", "ceil", "sqrt", "exp", "ln", "coalesce", "least", "greatest"),
    *("min", "max", "avg", "median", "stddev"),
    *("lower", "upper", "length", "starts_with", "ends_with"),
)
BLANK_WORDS = {"null": "null", "none": "null", "nan": "nan"}
_SPELLINGS = {"==": "=", "&": "and", "&&": "and", "|": "or", "||": "or", "!": "not", "[": "(", "]": ")"}
_RESERVED_WORDS = {"and", "or", "not", "in", "is", "like", "ilike", "between", "true", "false", *BLANK_WORDS}
_TOKEN_PATTERN = r"""
    (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<operator>==|!=|<>|<=|>=|!~\*|!~|~\*|&&|\|\||//|[-+*/%<>=~&|!(),\[\]])
    |(?P<other>\S)"""


class Token(NamedTuple):
    """A token of a filter. `kind` is text, number, column, function, operator or end; `text` is the SQL spelling."""

    kind: str
    text: str
    typed: str


def filter_error(problem: str) -> DumpError:
    return DumpError("filter", problem)


def encodable(text: str) -> str:
    """Return the text with `?` for each lone surrogate, which UTF-8 can't encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class Names:
    """The names of columns that a filter may use, in any case: the columns' own and their labels on screen.

    `pattern` matches a token of a filter; a label such as `max |Δ|` is one token.
    """

    def __init__(self, columns: Iterable[str], labels: Mapping[str, str]) -> None:
        by_name = {name.casefold(): name for name in columns}
        labelled = {label.casefold(): name for label, name in labels.items() if name.casefold() in by_name}
        self._columns = labelled | by_name
        phrases = [re.escape(name).replace(r"\ ", r"\s+") for name in self._columns if not name.isidentifier()]
        longest_first = "|".join(sorted(phrases, key=len, reverse=True))
        label = rf"(?P<label>(?<!\w)(?i:{longest_first})(?!\w))|" if phrases else ""
        self.pattern = re.compile(label + _TOKEN_PATTERN, re.VERBOSE)

    def __contains__(self, word: str) -> bool:
        return _folded(word) in self._columns

    def __getitem__(self, word: str) -> str:
        return self._columns[_folded(word)]

    def unknown(self, word: str) -> str:
        """Return the sentence for a word that names no column, with up to four similar names."""
        low = word.casefold()
        close = [name for name in self._columns if len(low) > 1 and low in name]
        close += difflib.get_close_matches(low, self._columns, 3, 0.6)
        similar = list(dict.fromkeys(self._columns[name] for name in close))[:4]
        more = f": did you mean {', '.join(similar)}?" if similar else f" (quote text: '{word}')"
        return f"unknown column {word}{more}"


def _folded(word: str) -> str:
    return " ".join(word.split()).casefold()


def read_tokens(text: str, names: Names) -> Iterator[Token]:
    matches = list(names.pattern.finditer(text))
    for position, match in enumerate(matches):
        following = matches[position + 1][0] if position + 1 < len(matches) else ""
        yield read_token(match, following, names)
    yield Token("end", "", "the end")


def read_token(match: re.Match[str], following: str, names: Names) -> Token:
    typed, low = match[0], match[0].lower()
    match match.lastgroup:
        case "label":
            return Token("column", names[typed], typed)
        case "text":
            body = encodable(typed[1:-1]).replace(typed[0] * 2, typed[0]).replace("'", "''")
            return Token("text", f"'{body}'", typed)
        case "number":
            return Token("number", typed, typed)
        case "operator":
            return Token("operator", _SPELLINGS.get(low, low), typed)
        case "other":
            problem = "starts a text that is not closed" if typed in "'\"" else "has no meaning in a filter"
            raise filter_error(f"{typed} {problem}")
    if following == "(" and low not in _RESERVED_WORDS:
        if low not in SQL_FUNCTIONS:
            raise filter_error(f"unknown function {typed}: expected one of {', '.join(SQL_FUNCTIONS)}")
        return Token("function", low, typed)
    if typed in names:
        return Token("column", names[typed], typed)
    if low in _RESERVED_WORDS:
        return Token("operator", low, typed)
    raise filter_error(names.unknown(typed))
