"""The panes: what a part of a run looks like on screen. A pane is a module or folder here, and a line of PANE_LIST."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dumptui.tui.panes.pane import Pane


class PaneEntry(NamedTuple):
    """A pane in the list; its class is imported after the first paint.

    `short` is its title in a narrow row of tabs. `shows_sample`: the pane shows one sample, which has to be read first.
    `is_beside_samples`: on a wide screen, it stands beside the table of samples. A pane without a tab is opened by a
    key.
    """

    name: str
    title: str
    short: str
    module: str
    class_name: str
    shows_sample: bool = False
    is_beside_samples: bool = False
    has_tab: bool = True

    def load(self) -> type[Pane]:
        """Import the pane's class."""
        from dumptui.tui.panes.pane import Pane

        found: object = getattr(import_module(f"dumptui.tui.panes.{self.module}"), self.class_name)
        assert isinstance(found, type) and issubclass(found, Pane)
        return found


PANE_LIST = (
    PaneEntry("rollout", "Rollout", "Roll", "rollout.pane", "RolloutPane"),
    PaneEntry("batch", "Batch", "Bat", "batch", "BatchPane"),
    PaneEntry("tokens", "Tokens", "Tok", "tokens.pane", "TokensPane", shows_sample=True, is_beside_samples=True),
    PaneEntry(
        "conversation",
        "Conversation",
        "Conv",
        "conversation",
        "ConversationPane",
        shows_sample=True,
        is_beside_samples=True,
    ),
    PaneEntry("health", "Health", "Hlth", "health", "HealthPane"),
    PaneEntry("groups", "Groups", "Grp", "groups", "GroupsPane"),
    PaneEntry("prompts", "Prompts", "Pro", "prompts", "PromptsPane", has_tab=False),
    PaneEntry("tools", "Tools", "Tool", "tools", "ToolsPane", has_tab=False),
    PaneEntry("pair", "Two samples", "Two", "comparison", "PairPane", is_beside_samples=True, has_tab=False),
)
"""The order of the tabs, of their keys and of the palette. The first pane is on screen at the first paint."""

FIRST_PANE = PANE_LIST[0].name
TABS = {entry.name: entry.title for entry in PANE_LIST if entry.has_tab}
"""The titles of the panes that have a tab, by name: also the choices of `--pane`."""
SHORT_TABS = {entry.name: entry.short for entry in PANE_LIST if entry.has_tab}
SAMPLE_PANES = frozenset(entry.name for entry in PANE_LIST if entry.shows_sample)
PANES_BESIDE_SAMPLES = frozenset(entry.name for entry in PANE_LIST if entry.is_beside_samples)
