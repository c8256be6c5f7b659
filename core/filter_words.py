"""The words of a filter: columns, values, operators and functions, told apart and spelt as SQL has them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from dumptui.core.errors import DumpError

FUNCTIONS = (
    *("abs", "round", "floor", "ceil", "sqrt", "exp", "ln", "coalesce", "least", "greatest"),
    *("min", "max", "avg", "median", "stddev"),
    *("lower", "upper", "length", "starts_with", "ends_with"),
)
BLANKS = {"null": "null", "none": "null", "nan": "nan"}
_SPELLINGS = {"==": "=", "&": "and", "&&": "and", "|": "or", "||": "or", "!": "not", "[": "(", "]": ")"}
_WORDS = {"and", "or", "not", "in", "is", "like", "ilike", "between", "true", "false", *BLANKS}
_TOKEN = re.compile(
    r"""(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<operator>==|!=|<>|<=|>=|!~\*|!~|~\*|&&|\|\||//|[-+*/%<>=~&|!(),\[\]])
    |(?P<other>\S)""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """`kind` is text, number, column, function, operator or, behind all others, end; `text` is what SQL calls it."""

    kind: str
    text: str
    typed: str


def wrong(problem: str) -> DumpError:
    return DumpError("filter", problem)


def encodable(text: str) -> str:
    """With `?` for lone surrogates, which no UTF-8 can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


class Names:
    """The columns that can be named, in any case, and what the screen calls some of them."""

    def __init__(self, columns: Iterable[str], labels: Mapping[str, str]) -> None:
        self._columns = {name.casefold(): name for name in columns}
        self._labels = {label.casefold(): name for label, name in labels.items()}

    def __contains__(self, word: str) -> bool:
        return word.casefold() in self._columns

    def __getitem__(self, word: str) -> str:
        return self._columns[word.casefold()]

    def unknown(self, word: str) -> str:
        """What to say of a word that is no column: the ones it is like."""
        low = word.casefold()
        if low in self._labels:
            return f"there is no column {word}: what the screen calls so is {self._labels[low]}"
        close = [name for name in self._columns if len(low) > 1 and low in name]
        close += difflib.get_close_matches(low, self._columns, 3, 0.6)
        found = list(dict.fromkeys(self._columns[name] for name in close))[:4]
        more = f": did you mean {', '.join(found)}?" if found else ", and a text stands in quotes"
        return f"there is no column {word}{more}"


def read_tokens(text: str, names: Names) -> Iterator[Token]:
    found = list(_TOKEN.finditer(text))
    for at, match in enumerate(found):
        following = found[at + 1][0] if at + 1 < len(found) else ""
        yield read_token(match, following, names)
    yield Token("end", "", "the end")


def read_token(match: re.Match[str], following: str, names: Names) -> Token:
    typed, low = match[0], match[0].lower()
    match match.lastgroup:
        case "text":
            body = encodable(typed[1:-1]).replace(typed[0] * 2, typed[0]).replace("'", "''")
            return Token("text", f"'{body}'", typed)
        case "number":
            return Token("number", typed, typed)
        case "operator":
            return Token("operator", _SPELLINGS.get(low, low), typed)
        case "other":
            problem = "means nothing in a filter" if typed not in "'\"" else "begins a text that has no end"
            raise wrong(f"{typed} {problem}")
    if following == "(" and low not in _WORDS:
        if low not in FUNCTIONS:
            raise wrong(f"there is no function {typed}: there are {', '.join(FUNCTIONS)}")
        return Token("function", low, typed)
    if typed in names:
        return Token("column", names[typed], typed)
    if low in _WORDS:
        return Token("operator", low, typed)
    raise wrong(names.unknown(typed))
