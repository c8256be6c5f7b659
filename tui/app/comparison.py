"""The part of the app that sets a sample beside another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.binding import Binding

from dumptui.tui.app.samples import SampleApp
from dumptui.tui.reading.messages import SamplesCompared

if TYPE_CHECKING:
    from dumptui.tui.panes.comparison import PairPane
    from dumptui.tui.panes.groups import GroupsPane
    from dumptui.tui.panes.partners import Partner


class PairApp(SampleApp):
    groups: GroupsPane
    pair: PairPane

    BINDINGS = [
        Binding("d", "compare", "Compare", show=False, id="app.compare", tooltip="Show the sample beside another one"),
    ]

    _pair: tuple[int, int] | None = None
    """The samples that the pane waits for."""
    _beside = "rollout"
    """The pane from which two were compared."""

    def leave_pair(self) -> None:
        self._pair = None
        if self.pane == "pair":
            self.show_pane(self._beside)

    def action_compare(self) -> None:
        """Ask with which sample to compare the one under the cursor: others of its group, or those beside it."""
        from dumptui.tui.panes.partners import choice_text, first_choice
        from dumptui.tui.widgets.dialogs.choices import Choose

        compared = self.pair.compared if self.pane == "pair" else None
        left = self.rollout.current if compared is None else compared.left
        if self.loaded is None or left is None:
            return
        found = self._partners(left)
        if (first := first_choice(found)) is None:
            return self.notify("the step has no other sample to compare with", markup=False)
        records = self.rollout.right.samples
        choices = [(str(one.position), choice_text(records[one.position], one)) for one in found]
        dialog = Choose(f"compare sample {records[left]['label']} with", choices, str(first.position))
        key = self.loaded.key

        def answered(chosen: str | None) -> None:
            if chosen is not None and self.loaded is not None and self.loaded.key == key:
                self.compare(left, int(chosen))

        self.push_screen(dialog, answered)

    def _partners(self, left: int) -> list[Partner]:
        from dumptui.tui.panes.partners import partners

        return partners(self.groups.group_of(left), left, self.rollout.order)

    def compare(self, left: int, right: int) -> None:
        if self.loaded is not None:
            self._pair = left, right
            self.wait.begin("comparing two samples")
            self.reader.compare(self.loaded.step, left, right)

    def compare_again(self, compared: SamplesCompared) -> None:
        """Their step was read again."""
        if self.loaded is None or max(compared.left, compared.right) >= len(self.loaded.samples):
            return self.leave_pair()
        self.compare(compared.left, compared.right)

    def on_pair_pane_wanted(self, event: PairPane.Wanted) -> None:
        self.compare(event.left, event.right)

    @on(SamplesCompared)
    def _compared(self, event: SamplesCompared) -> None:
        wanted = self.wait.waiting and (event.left, event.right) == self._pair
        if self.loaded is None or event.key != self.loaded.key or not wanted:
            return
        self.wait.end()
        if self.pane != "pair":
            self._beside = self.pane
        with self.renewing(self.pair):
            self.pair.show_pair(event, self.rollout.right.samples, self._partners(event.left))
        self.rollout.select_sample(event.left)
        self.show_pane("pair")
