"""The parser of filters such as `reward == 0 and not truncated`: it checks them and translates them into SQL.

Every word must be a column, a value, an operator or one of a few functions before polars sees any of it: no filter can
read a file or another table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dumptui.core.query.filter_lexer import BLANK_WORDS, Names, Token, filter_error, read_tokens

MAX_CHARACTERS = (
    1000  # characters; polars takes 1.3 s to read a chain of 300 comparisons, and the square of that for more
)
COMPARISONS = {"=", "!=", "<>", "<", "<=", ">", ">=", "~", "~*", "!~", "!~*", "in", "like", "ilike", "between"}


class Blank(NamedTuple):
    """A derived column: true where `column` is what `what` names, null or nan."""

    column: str
    what: str

    @property
    def name(self) -> str:
        return f"{self.column} {self.what}"


class Piece(NamedTuple):
    """A part of the SQL expression."""

    kind: str  # column, value, open, close, comma, join (and, or, not), compare or sum (arithmetic)
    sql: str


@dataclass
class Expression:
    """A parsed filter: `sql` over `columns` and `blanks`.

    `columns` maps each name to whether some part of the filter uses the column by itself as a condition.
    """

    sql: str = ""
    columns: dict[str, bool] = field(default_factory=dict)
    blanks: dict[Blank, None] = field(default_factory=dict)


def parse(text: str, columns: Iterable[str], labels: Mapping[str, str] | None = None) -> Expression:
    """Parse a filter over `columns`; `labels` maps further names to columns. Raises DumpError with one sentence."""
    if len(text) > MAX_CHARACTERS:
        raise filter_error(f"longer than {MAX_CHARACTERS} characters")
    return Parser(list(read_tokens(text, Names(columns, labels or {})))).parse()


class Parser:
    """A parser that checks that values and operators alternate: polars would report no more than a syntax error."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._pieces: list[Piece] = []
        self._compared = [False]  # per level of parentheses: was there a comparison since the last `and` or `or`?
        self._result = Expression()

    def parse(self) -> Expression:
        while True:
            self._value()
            if self._operator() == "end":
                break
        if len(self._compared) > 1:
            raise filter_error("a ) is missing at the end")
        self._result.sql = " ".join(piece.sql for piece in self._pieces)
        self._note_columns()
        return self._result

    def _note_columns(self) -> None:
        kinds = ["open", *(piece.kind for piece in self._pieces), "close"]
        for before, piece, after in zip(kinds[:-2], self._pieces, kinds[2:], strict=True):
            if piece.kind == "column":
                name, is_condition = piece.sql[1:-1], before in ("open", "join") and after in ("close", "join")
                self._result.columns[name] = is_condition or self._result.columns.get(name, False)

    def _next(self) -> Token:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _skip(self, *texts: str) -> str | None:
        """Return the next token's text and step over it if it is one of these operators, else None."""
        token = self._tokens[self._position]
        if token.kind != "operator" or token.text not in texts:
            return None
        self._position += 1
        return token.text

    def _put(self, kind: str, sql: str) -> None:
        self._pieces.append(Piece(kind, sql))

    def _value(self) -> None:
        """Read one value with the signs, `not` and opening parentheses before it."""
        while True:
            token = self._next()
            if token.kind == "function":
                self._put("value", token.text)
            elif token.kind == "operator" and token.text in ("not", "-", "+"):
                self._put("join" if token.text == "not" else "sum", token.text)
            elif token.kind == "operator" and token.text == "(":
                self._put("open", "(")
                self._compared.append(False)
            else:
                return self._operand(token)

    def _operand(self, token: Token) -> None:
        if token.kind == "column":
            self._put("column", f'"{token.text}"')
        elif token.kind in ("text", "number") or token.text in ("true", "false"):
            self._put("value", token.text)
        elif token.text in BLANK_WORDS:
            raise filter_error(f"only a column can be compared with {token.typed}: write column is {token.text}")
        else:
            raise filter_error(
                f"a value is missing before {token.typed}" if token.text else "a value is missing at the end"
            )

    def _operator(self) -> str:
        """Read closing parentheses and `is null` after a value, then the next operator, and return that."""
        while True:
            token = self._next()
            if token.kind == "end":
                return "end"
            if token.kind != "operator" or token.text in ("(", "true", "false", *BLANK_WORDS):
                raise filter_error(f"an operator is missing before {token.typed}")
            if token.text == ")":
                self._close()
            elif token.text == "is" or (
                token.text in ("=", "!=", "<>") and self._tokens[self._position].text in BLANK_WORDS
            ):
                self._is(token)
            else:
                self._infix(token)
                return token.text

    def _close(self) -> None:
        if len(self._compared) == 1:
            raise filter_error("a ) has no ( before it")
        self._compared.pop()
        self._put("close", ")")

    def _is(self, token: Token) -> None:
        negated = token.text in ("!=", "<>") or self._skip("not") is not None
        what = self._skip("true", "false", *BLANK_WORDS)
        if what is None:
            raise filter_error("expected null, nan, true or false after is")
        if what in BLANK_WORDS:
            self._blank(BLANK_WORDS[what], negated)
        else:
            self._put("compare", f"is not {what}" if negated else f"is {what}")

    def _blank(self, what: str, negated: bool) -> None:
        before = self._pieces[-2].kind if len(self._pieces) > 1 else "open"
        name, kind = self._pieces[-1].sql[1:-1], self._pieces[-1].kind
        if kind != "column" or before not in ("open", "join"):
            raise filter_error(f"only a single column can be tested for {what}")
        blank = Blank(name, what)
        self._result.blanks[blank] = None
        self._pieces[-1] = Piece("value", f'(not "{blank.name}")' if negated else f'"{blank.name}"')

    def _infix(self, token: Token) -> None:
        text, negated = token.text, ""
        if text == "not":
            negated, text = "not ", self._skip("in", "like", "ilike", "between") or ""
            if not text:
                raise filter_error("an operator is missing before not")
        if text in ("and", "or", ","):
            self._compared[-1] = False
            self._put("comma" if text == "," else "join", text)
        elif text in COMPARISONS:
            self._compare(negated + text)
        else:
            self._put("sum", text)
        if text == "in" and self._tokens[self._position].text != "(":
            raise filter_error("expected a list after in, such as (1, 2)")

    def _compare(self, operator: str) -> None:
        if self._compared[-1]:  # SQL would compare the answer, true or false, with the third value
            raise filter_error("two comparisons in a row: write 0 < x and x < 1")
        self._compared[-1] = True
        self._put("compare", operator)
