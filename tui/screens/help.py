"""The help: ten keys to begin with, what the words on screen mean, every key that works, and the pane in prose."""

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

from dumptui.core.tables.glossary import glossary
from dumptui.core.tables.meanings import Meaning
from dumptui.core.text import cell_width, visible
from dumptui.tui.cell_formats.wrapping import Lines
from dumptui.tui.presentation.meanings import Explained
from dumptui.tui.widgets.blocks.block import Block, Passage
from dumptui.tui.widgets.blocks.blocks import Blocks
from dumptui.tui.widgets.dialogs.choices import Dialog
from dumptui.tui.widgets.focus import MOVING_KEYS_NAME
from dumptui.tui.widgets.key_bar import KeyLine
from dumptui.tui.widgets.line import Line

KEY_CELLS = 10
"""Cells for the keys of an action; longer ones push its description to the right."""
EVERYWHERE_TITLE = "everywhere"
LEADING_KEYS = 10
TWO_COLUMNS_WIDTH = 80
"""Columns of the screen from which on the first keys are in two columns."""
GAP_CELLS = 2
LABEL_CELLS = 18
"""Cells to which the labels of words are aligned; longer ones push their text to the right."""
HERE_TITLE = "Words on this screen"
GLOSSARY_TITLE = "Glossary"
SECTION_HINT = "space shows formula, unit and range of a word · / searches"
TEXTUAL = {
    "app.focus_next": ("Next table", "Move the focus to the next table, text or chart"),
    "app.focus_previous": ("Previous table", "Move the focus to the previous table, text or chart"),
    "quit": ("Quit", ""),
}
BOLD_STYLE = Style(bold=True)


class Explanation(Blocks):
    """The blocks of the help; the last one is prose, drawn once its width is known."""

    def __init__(self, blocks: Sequence[Block], paragraphs: Sequence[str]) -> None:
        super().__init__()
        self._paragraphs = paragraphs
        self.show([*blocks, block("About", map(plain, paragraphs))], full=True)

    def on_resize(self) -> None:
        self.call_next(self._draw)  # once the width is known

    def _draw(self) -> None:
        self.draw(len(self.blocks) - 1, {0: list(prose(self._paragraphs, self.text_width, self.app.console))})


class HelpScreen(Dialog[None]):
    """The help of the focused pane. (Textual's own panel takes 0.1 s to open.)"""

    BINDINGS = [Binding("question_mark,escape,q", "dismiss(None)", "Close", id="help.leave")]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        self._below = below

    def compose(self) -> ComposeResult:
        title, paragraphs = help_of(self._below)
        heading = Line()
        heading.say(Text(f"{title}: help", "bold"))
        side_by_side = 2 if self.app.size.width >= TWO_COLUMNS_WIDTH else 1
        first = block("First keys", [*first_words(paragraphs), *leading_keys(self._below, side_by_side)])
        blocks = [first, *meaning_blocks(self._below)]
        blocks += [block(f"keys: {name}", lines) for name, lines in keys_of(self._below)]
        with Vertical(id="help"):
            yield heading
            yield Explanation(blocks, paragraphs)
            yield KeyLine()


def block(title: str, lines: Iterable[str], *, folded: bool = False, kind: str = "first") -> Block:
    return Block(kind, title, "", [Passage("plain", "", Lines(list(lines)))], folded)


def nodes_of(screen: Screen[object]) -> Sequence[DOMNode]:
    """Return what has the focus and what it is in, from the inside out."""
    return screen.focused.ancestors_with_self if screen.focused is not None else [screen]


def first_words(paragraphs: Sequence[str]) -> list[str]:
    """Return the first sentence of the prose, above the first keys."""
    return [plain(paragraphs[0]).split(". ")[0].rstrip(".") + "."] if paragraphs and paragraphs[0] else []


def leading_keys(screen: Screen[object], columns: int) -> list[str]:
    """Return ten keys to begin with, in so many columns: enter, what the footer shows, then others of the pane."""
    groups = [bindings for actions in bindings_of(screen).values() for bindings in actions.values()]
    groups.sort(key=lambda bindings: (bindings[0].key != "enter", not bindings[0].show))
    cells = [key_text(screen.app, bindings, with_tip=False) for bindings in groups[:LEADING_KEYS]]
    rows = -(-len(cells) // columns)
    width = max(map(cell_width, cells), default=0) + GAP_CELLS
    return ["".join(cell.ljust(width) for cell in cells[row::rows]).rstrip() for row in range(rows)]


def meaning_blocks(screen: Screen[object]) -> list[Block]:
    """Return a folded block for each word: those on screen, then those of the glossary."""
    here = next((list(node.meanings()) for node in nodes_of(screen) if isinstance(node, Explained)), [])
    known = {meaning.label for meaning in here}
    others = [meaning for meaning in glossary() if meaning.label not in known]
    return [
        word for title, meanings in ((HERE_TITLE, here), (GLOSSARY_TITLE, others)) for word in section(title, meanings)
    ]


def section(title: str, meanings: Sequence[Meaning]) -> list[Block]:
    """Return the blocks of words under a title that says how to read them."""
    if not meanings:
        return []
    width = min(max(cell_width(meaning.label) for meaning in meanings), LABEL_CELLS)
    words = [
        block(
            visible(meaning.label).ljust(width), map(visible, [meaning.text, *meaning.facts]), folded=True, kind="plain"
        )
        for meaning in meanings
    ]
    return [block(title, [SECTION_HINT], folded=True), *words]


def help_of(screen: Screen[object]) -> tuple[str, list[str]]:
    """Return the title of the help for the focused part, and its paragraphs, including the items of lists."""
    text = dedent(next((node.HELP for node in nodes_of(screen) if node.HELP), "# Keys\n"))
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
    """Return the keys that work now, by their owner: each owner's name with one line per action."""
    groups = bindings_of(screen)
    return [(name, [key_text(screen.app, bindings) for bindings in groups[name].values()]) for name in groups]


def bindings_of(screen: Screen[object]) -> dict[str, dict[str, list[Binding]]]:
    """Return the bindings that work now, by their owner's name and by action. The keys of a pane come before the keys
    that move in it.
    """
    groups: dict[str, dict[str, list[Binding]]] = {}
    for node, binding, *_ in screen.active_bindings.values():
        if binding.description and not binding.system:
            groups.setdefault(name_of(node), {}).setdefault(binding.action, []).append(binding)
    names = list(groups)
    if names[0] == MOVING_KEYS_NAME:
        names[:2] = reversed(names[:2])
    return {name: groups[name] for name in names}


def name_of(node: DOMNode) -> str:
    known = node.BINDING_GROUP_TITLE or type(node).__name__.removesuffix("Pane")
    return EVERYWHERE_TITLE if isinstance(node, App) or type(node) is Screen else known


def key_text(app: App[object], bindings: Sequence[Binding], *, with_tip: bool = True) -> str:
    keys = " ".join(dict.fromkeys(map(app.get_key_display, bindings)))
    label, tip = words_of(bindings[0])
    return f"{' ' * max(0, KEY_CELLS - cell_width(keys))}{keys}  {label}{f': {tip}' if tip and with_tip else ''}"


def words_of(binding: Binding) -> tuple[str, str]:
    """Return the label and the tip of a key's action, those of Textual's own keys in our words."""
    return TEXTUAL.get(binding.action, (binding.description, binding.tooltip))
