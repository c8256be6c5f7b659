"""The keys and palette commands of the app, which work in every pane. Users remap keys by their id."""

from __future__ import annotations

from textual.binding import Binding, BindingType
from textual.command import Provider

from dumptui.tui.panes import TABS

APP_BINDINGS: list[BindingType] = [
    Binding("c", "conversation", "Conversation", id="app.conversation", tooltip="Show the sample's conversation"),
    Binding("i", "facts", "Details", id="app.facts", tooltip="Show all dumped fields of the sample"),
    Binding("N", "member(1)", "Next in group", show=False, id="app.next-member"),
    Binding("P", "member(-1)", "Previous in group", show=False, id="app.previous-member"),
    Binding(
        "W", "worst_tokens", "Worst tokens", show=False, id="app.worst-tokens", tooltip="List those of the step or run"
    ),
    Binding("d", "compare", "Compare", show=False, id="app.compare", tooltip="Show the sample beside another one"),
    *(
        Binding(str(number), f"pane('{name}')", title, show=False, id=f"app.{name}")
        for number, (name, title) in enumerate(TABS.items(), 1)
    ),
    Binding(
        "U",
        "pane('prompts')",
        "Prompts",
        show=False,
        id="app.prompts",
        tooltip="Prompts of the run that were never, newly or always solved, or forgotten",
    ),
    Binding(
        "E",
        "pane('tools')",
        "Tools",
        show=False,
        id="app.tools",
        tooltip="Tool calls by tool, failures, and the lifecycle of every sample of the step",
    ),
    Binding("escape", "up", "Back", id="app.up"),
    Binding("n", "sample(1)", "Next", id="app.next-sample", tooltip="The next sample in the table"),
    Binding("p", "sample(-1)", "Previous", id="app.previous-sample", tooltip="The previous sample in the table"),
    Binding("greater_than_sign", "step(1)", "Next step", key_display=">", show=False, id="app.next-step"),
    Binding("less_than_sign", "step(-1)", "Previous step", key_display="<", show=False, id="app.previous-step"),
    Binding("number_sign", "ask_step", "Go to a step", key_display="#", show=False, id="app.ask-step"),
    Binding(
        "T,t",
        "twin_step",
        "Train/eval",
        show=False,
        id="app.twin-step",
        tooltip="The eval with the same number, or back",
    ),
    Binding("F", "follow", "Follow", show=False, id="app.follow", tooltip="Follow the newest step"),
    Binding("end", "follow_on", "Follow", show=False, id="app.follow-on", priority=True),
    Binding("q", "back_or_quit", "Quit", id="app.quit", tooltip="Go a level up; quit at the top"),
    Binding(
        "ctrl+z",
        "suspend",
        "Suspend",
        show=False,
        priority=True,
        id="app.suspend",
        tooltip="Stop, and go on at the shell's fg",
    ),
    Binding("ctrl+p", "command_palette", "Commands", show=False, priority=True, id="app.palette"),
    Binding("question_mark", "help", "Keys", key_display="?", id="app.help"),
]
SYSTEM_COMMANDS = ("Theme", "Screenshot")
"""The commands of Textual's own that have no key."""


def destinations() -> type[Provider]:
    from dumptui.tui.app.palette import Destinations

    return Destinations


def actions() -> type[Provider]:
    from dumptui.tui.app.palette import Actions

    return Actions


APP_COMMANDS = {destinations, actions}
"""What imports the providers of the palette, when it is opened first."""
