"""The help: what a pane is for, and every key that works in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import dedent

from rich.console import Console
from rich.style import Style
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.dom import DOMNode
from textual.screen import Screen
from textual.strip import Strip

from dumptui.core.text import cell_width
from dumptui.tui.cell_formats.wrapping import Lines
from dumptui.tui.widgets.blocks.block import Block, Passage
from dumptui.tui.widgets.blocks.blocks import Blocks
from dumptui.tui.widgets.dialogs.choices import Dialog
from dumptui.tui.widgets.focus import MOVING_KEYS_NAME
from dumptui.tui.widgets.key_bar import KeyLine
from dumptui.tui.widgets.line import Line

KEY_CELLS = 10
"""Cells for the keys of an action; longer ones push its description to the right."""
EVERYWHERE_TITLE = "everywhere"
TEXTUAL = {
    "app.focus_next": ("Next table", "Move the focus to the next table, text or chart"),
    "app.focus_previous": ("Previous table", "Move the focus to the previous table, text or chart"),
    "quit": ("Quit", ""),
}
BOLD_STYLE = Style(bold=True)


class Explanation(Blocks):
    """The purpose of a pane, above its keys."""

    def __init__(self, paragraphs: Sequence[str], keys: Iterable[tuple[str, list[str]]]) -> None:
        super().__init__()
        self._paragraphs = paragraphs
        self.show([block("About", map(plain, paragraphs)), *(block(*group) for group in keys)], full=True)

    def on_resize(self) -> None:
        self.call_next(self._draw)  # once the width is known

    def _draw(self) -> None:
        self.draw(0, {0: list(prose(self._paragraphs, self.text_width, self.app.console))})


class HelpScreen(Dialog[None]):
    """The help text of the focused pane, then the keys that work there. (Textual's own panel takes 0.1 s to open.)"""

    BINDINGS = [Binding("question_mark,escape,q", "dismiss(None)", "Close", id="help.leave")]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        self._below = below

    def compose(self) -> ComposeResult:
        title, paragraphs = help_of(self._below)
        heading = Line()
        heading.say(Text(f"{title}: help", "bold"))
        with Vertical(id="help"):
            yield heading
            yield Explanation(paragraphs, keys_of(self._below))
            yield KeyLine()


def block(title: str, lines: Iterable[str]) -> Block:
    return Block("first", title, "", [Passage("plain", "", Lines(list(lines)))])


def help_of(screen: Screen[object]) -> tuple[str, list[str]]:
    """Return the title of the help for the focused part, and its paragraphs, including the items of lists."""
    nodes = screen.focused.ancestors_with_self if screen.focused is not None else [screen]
    text = dedent(next((node.HELP for node in nodes if node.HELP), "# Keys\n"))
    title, _, body = text.partition("\n")
    paragraphs = body.strip().replace("\n- ", "\n\n- ").split("\n\n")
    return title.removeprefix("# "), [" ".join(paragraph.split()) for paragraph in paragraphs]


def plain(paragraph: str) -> str:
    return paragraph.replace("**", "")


def prose(paragraphs: Iterable[str], width: int, console: Console) -> Iterator[Strip]:
    """Yield paragraphs as rows of `width` cells: items of lists are indented, **keys** are bold."""
    for number, paragraph in enumerate(paragraphs):
        hang = 2 * paragraph.startswith("- ")
        if number and not hang:
            yield Strip.blank(0)
        pieces = paragraph[hang:].split("**")
        text = Text.assemble(
            *((piece, BOLD_STYLE if piece_number % 2 else "") for piece_number, piece in enumerate(pieces))
        )
        for row, line in enumerate(text.wrap(console, max(1, width - hang))):
            sign = Text(("- " if row == 0 else "  ") if hang else "")
            yield Strip(list((sign + line).render(console)))


def keys_of(screen: Screen[object]) -> list[tuple[str, list[str]]]:
    """Return the keys that work now, by their owner: each owner's name with one line per action. The keys of a pane
    come before the keys that move in it.
    """
    groups: dict[str, dict[str, list[Binding]]] = {}
    for node, binding, *_ in screen.active_bindings.values():
        if binding.description and not binding.system:
            groups.setdefault(name_of(node), {}).setdefault(binding.action, []).append(binding)
    names = list(groups)
    if names[0] == MOVING_KEYS_NAME:
        names[:2] = reversed(names[:2])
    return [(f"keys: {name}", [line_of(screen.app, bindings) for bindings in groups[name].values()]) for name in names]


def name_of(node: DOMNode) -> str:
    known = node.BINDING_GROUP_TITLE or type(node).__name__.removesuffix("Pane")
    return EVERYWHERE_TITLE if isinstance(node, App) or type(node) is Screen else known


def line_of(app: App[object], bindings: Sequence[Binding]) -> str:
    keys = " ".join(dict.fromkeys(map(app.get_key_display, bindings)))
    first = bindings[0]
    label, tip = words_of(first)
    return f"{' ' * max(0, KEY_CELLS - cell_width(keys))}{keys}  {label}{f': {tip}' if tip else ''}"


def words_of(binding: Binding) -> tuple[str, str]:
    """Return the label and the tip of a key's action, those of Textual's own keys in our words."""
    return TEXTUAL.get(binding.action, (binding.description, binding.tooltip))
