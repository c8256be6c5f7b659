"""Tokens as flowing text, each shaded by a statistic: 100,000 of them paint at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from dumptui.core.text import cell_width, centred, clip
from dumptui.tui.widgets.heatmap import hues
from dumptui.tui.widgets.heatmap.styles import (
    COMPONENT_CLASSES,
    LOOK_MASKED,
    LOOK_MISSING,
    LOOK_NO_VALUE,
    LOOK_PROMPT,
    MISSING,
    SHADE_LEVELS,
    STRONG_LEVEL,
    is_shaded,
    looks,
    shade_styles,
)
from dumptui.tui.widgets.heatmap.token_flow import MISSING_SIGN, Flow
from dumptui.tui.widgets.line_scroll import Wheel
from dumptui.tui.widgets.message import FrozenMessage

UNSEEN_LINE_CELLS = 80  # cells per line before the widget was first on screen


class ShadedText(Wheel):
    """Token text shaded by a statistic, with a cursor on one token.

    A line breaks after a token with a newline in it (shown as `⏎`); a token wider than the pane is cut with `…`, an
    empty token is `◦`. Hue is never the only sign, in every colour mode:

    | token | hue | without hue |
    | --- | --- | --- |
    | positive | one of the pair, 8 shades | bold from half of the scale on |
    | negative | the other, 8 shades | underlined from half of the scale on |
    | magnitude (not diverging) | one hue, 8 shades | bold from half of the scale on |
    | prompt | muted | dim |
    | masked | muted | dim italic, never shaded |
    | missing | muted | `∅` before it |
    | trained, shade NaN | as missing | struck through |
    | special | another hue, but not with 16 colours | in « » |
    | first of a turn or chunk | | `│` or `┊` before it |
    | marked (search) | yellow | bold italic |
    | under the cursor | reverse | bold reverse |
    | a folded run | | as its first token, with their number |

    Args:
        empty: the reason why there are no tokens, shown in the middle.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *("heatmap--prompt", "heatmap--masked", "heatmap--missing"),
        *("heatmap--mark", "heatmap--cursor", "heatmap--special", "heatmap--border"),
    }

    DEFAULT_CSS = """
    ShadedText {
        background: $surface;
        color: $foreground;
        overflow-x: hidden;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        & > .heatmap--prompt { color: $text-muted; text-style: dim; }
        & > .heatmap--masked { color: $text-muted; text-style: dim italic; }
        & > .heatmap--missing { color: $text-muted; }
        & > .heatmap--special { color: $text-secondary; }
        & > .heatmap--border { color: $text-primary; text-style: bold; }
        & > .heatmap--mark { background: #ffe14d; color: #000000; text-style: bold italic; }
        & > .heatmap--cursor { text-style: bold reverse; }
        &:ansi > .heatmap--special { color: $foreground; }
        &:ansi > .heatmap--mark { background: ansi_bright_green; color: ansi_black; text-style: bold italic; }
    }
    """

    cursor: reactive[int] = reactive(0, repaint=False, init=False)
    """The token under the cursor, within the text; 0 without tokens."""

    pair: reactive[str] = reactive(hues.DEFAULT_PAIR, repaint=False, init=False)
    """The hues of the shades: a name in `hues.PAIRS`."""

    class Scrolled(FrozenMessage):
        """Posted when other tokens are on screen."""

        text: ShadedText

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, ShadedText.Scrolled)

    def __init__(self, *, empty: str = "no tokens", **widget: Any) -> None:
        super().__init__(**widget)
        self.empty = empty
        self.flow = Flow()
        self._kind: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._looks: npt.NDArray[np.int8] = np.zeros(0, np.int8)
        self._diverging = True
        self._marked: Set[int] = frozenset()
        self._columns = 0
        self._strips: LRUCache[tuple[int, int], Strip] = LRUCache(512)
        self._palette: dict[int, Style] = {}

    # Content

    def show(
        self,
        flow: Flow,
        shade: npt.NDArray[np.floating],
        kind: npt.NDArray[np.uint8],
        *,
        diverging: bool,
        cursor: int | None = None,
    ) -> None:
        """Show other tokens, or redraw the same ones.

        `shade` and `kind` have one value per token: `shade` in [-1, 1], or in [0, 1] if not diverging, NaN without a
        value; `kind` is 0 prompt, 1 trained, 2 masked, 3 missing from the dump. The cursor goes to `cursor`, or keeps
        its index. Marks are dropped.
        """
        if flow is not self.flow:
            self.flow = flow.copy()  # it came in a message, and is laid out here
        self.flow.mark_missing(frozenset(np.flatnonzero(kind == MISSING).tolist()))
        self._kind = kind
        self._marked = frozenset()
        self.reshade(shade, diverging=diverging)
        self._wrap()
        self.cursor = self.cursor if cursor is None else cursor
        self.reveal()

    def reshade(self, shade: npt.NDArray[np.floating], *, diverging: bool) -> None:
        """Show another statistic of the same tokens; lines and cursor stay."""
        self._looks = looks(shade, self._kind, diverging=diverging)
        if diverging != self._diverging:
            self._palette.clear()
        self._diverging = diverging
        self._repaint()

    def mark(self, indices: Set[int]) -> None:
        """Mark these tokens, the hits of a search, and no others."""
        self._marked = indices
        self._repaint()

    def scale_legend(self) -> Text:
        """Return the shades from end to end, in a few cells."""
        palette = self._styles()
        steps = (
            [-SHADE_LEVELS, -STRONG_LEVEL, 0, STRONG_LEVEL, SHADE_LEVELS]
            if self._diverging
            else [0, STRONG_LEVEL, SHADE_LEVELS]
        )
        names = (
            {-SHADE_LEVELS: " −", 0: " 0 ", SHADE_LEVELS: "+ "}
            if self._diverging
            else {0: " 0 ", SHADE_LEVELS: " max "}
        )
        return Text.assemble(*((names.get(step, " "), palette[step]) for step in steps))

    def kind_legend(self) -> Text:
        """Return how the unshaded kinds of token at hand are drawn."""
        palette, present = self._styles(), np.unique(self._looks)
        names = {
            LOOK_PROMPT: "prompt",
            LOOK_MASKED: "masked",
            LOOK_MISSING: MISSING_SIGN + "missing",
            LOOK_NO_VALUE: "no value",
        }
        return Text("  ").join(Text(name, palette[look]) for look, name in names.items() if look in present)

    # Layout

    @property
    def columns(self) -> int:
        """The cells of a line; while hidden, when keys also move the cursor, the last known number."""
        return self.scrollable_content_region.width or self._columns or UNSEEN_LINE_CELLS

    def _wrap(self) -> None:
        self._columns = self.columns
        self.flow.wrap(self._columns)
        self.virtual_size = Size(1, self.flow.lines)
        self._repaint()

    @property
    def on_screen(self) -> range:
        """The tokens of the lines on screen."""
        first = min(self.scroll_offset.y, self.flow.lines)
        last = min(first + max(self.page_height, 1), self.flow.lines)
        return range(self.flow.starts[first], self.flow.starts[last])

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Scrolled(self))

    @property
    def page_height(self) -> int:
        return self.scrollable_content_region.height

    # Painting

    def _repaint(self) -> None:
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._palette.clear()

    def watch_pair(self) -> None:
        self.notify_style_update()
        self.refresh()

    def _styles(self) -> Mapping[int, Style]:
        """Return the style of each look, made once per theme: blending 16 shades takes longer than drawing a line."""
        if not self._component_styles:  # on a busy machine a sample may be there before the stylesheet is applied
            return defaultdict(lambda: self.rich_style)
        if not self._palette:
            for look, name in COMPONENT_CLASSES.items():
                self._palette[look] = self.get_component_rich_style(f"heatmap--{name}")
            self._palette[LOOK_NO_VALUE] += Style(strike=True)
            ends = hues.hues(
                self.pair,
                ansi=self.app.native_ansi_color,
                dark=self.app.current_theme.dark,
                palette=self.app.console.color_system == "256",
            )
            _, base = self.background_colors
            self._palette |= shade_styles(ends, base, self.rich_style, diverging=self._diverging)
        return self._palette

    def _token_style(self, index: int) -> Style:
        look = int(self._looks[index])
        style = self._styles()[look]
        if index in self.flow.special and not is_shaded(look):
            style += self.get_component_rich_style("heatmap--special", partial=True)
        if index in self._marked:
            style += self.get_component_rich_style("heatmap--mark", partial=True)
        if index == self.flow.holder(self.cursor):
            style += self.get_component_rich_style("heatmap--cursor", partial=True)
        return style

    def render_line(self, y: int) -> Strip:
        if not len(self.flow):
            return Strip([Segment(centred(self.empty, self._columns, self.page_height)[y], self.rich_style)])
        line = y + self.scroll_offset.y
        if line >= self.flow.lines:
            return Strip.blank(self._columns, self.rich_style)
        first, end = self.flow.bounds(line)
        key = (line, self.cursor if first <= self.cursor < end else -1)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._line(first, end)
        return strip

    def _line(self, first: int, end: int) -> Strip:
        segments = []
        room = self._columns
        index = first if self.flow.holder(first) == first else self.flow.after(first)
        while index < end:
            if index in self.flow.borders:
                border = self.get_component_rich_style("heatmap--border")
                segments.append(Segment(clip(self.flow.borders[index], room), border))
                room -= 1
            label = clip(self.flow.label(index), room)
            segments.append(Segment(label, self._token_style(index)))
            room -= cell_width(label)
            index = self.flow.after(index)
        segments.append(Segment(" " * room, self.rich_style))
        return Strip(segments, self._columns).simplify()

    # Cursor

    def validate_cursor(self, index: int) -> int:
        return max(0, min(index, len(self.flow) - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        self.reveal()
        for line in {self.flow.line_of(min(old, len(self.flow) - 1)), self.flow.line_of(new)}:
            y = line - self.scroll_offset.y
            if 0 <= y < self.page_height:
                self.refresh(Region(0, y, self._columns, 1))

    def reveal(self) -> None:
        """Scroll by one line if the cursor left the screen by one, else bring it to the middle."""
        top, height = self.scroll_offset.y, self.page_height
        line = self.flow.line_of(self.cursor)
        if not height or top <= line < top + height:
            return
        if line == top - 1:
            self.scroll_lines_to(line)
        elif line == top + height:
            self.scroll_lines_to(top + 1)
        else:
            self.scroll_lines_to(line - height // 2)

    def scroll_lines_to(self, y: int) -> None:
        # force: the scrollbar that allows scrolling appears only with the next layout
        self.scroll_to(y=y, animate=False, force=True)

    def on_resize(self) -> None:
        if self._columns != self.columns:
            self._wrap()
        self.reveal()
