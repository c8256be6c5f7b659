"""Two samples of a step beside each other: which two, and the pane they were compared from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dumptui.tui.panes import FIRST_PANE
from dumptui.tui.panes.comparison import PairPane
from dumptui.tui.panes.groups import GroupsPane
from dumptui.tui.panes.requests import PairWanted, Request
from dumptui.tui.panes.rollout.pane import RolloutPane
from dumptui.tui.reading.messages import SamplesCompared

if TYPE_CHECKING:
    from dumptui.tui.app.panes import Panes
    from dumptui.tui.app.steps import Steps
    from dumptui.tui.panes.partners import Partner
    from dumptui.tui.reading.reader import Reader
    from dumptui.tui.terminal.terminal_app import TerminalApp
    from dumptui.tui.widgets.message import Answer


class Comparison:
    """Opens the pane that shows two samples, and leaves it for the pane before it."""

    def __init__(self, app: TerminalApp, steps: Steps, reader: Reader, panes: Panes) -> None:
        self._app = app
        self._steps = steps
        self._reader = reader
        self._panes = panes
        self._rollout = panes.of(RolloutPane)
        self._groups = panes.of(GroupsPane)
        self._pane = panes.of(PairPane)
        self._pair: tuple[int, int] | None = None
        """The positions of the samples that are being compared."""
        self._left_pane = FIRST_PANE
        """The pane that the two were compared from."""

    @property
    def is_shown(self) -> bool:
        return self._panes.current is self._pane

    def leave(self) -> None:
        self._pair = None
        if self.is_shown:
            self._panes.show(self._left_pane)

    def ask(self) -> None:
        """Ask with which sample to compare the one under the cursor: another of its group, or a neighbour."""
        from dumptui.tui.panes.partners import choice_text, first_choice
        from dumptui.tui.widgets.dialogs.choices import Choose

        loaded = self._steps.loaded
        left = self._pane.compared.left if self.is_shown and self._pane.compared is not None else self._rollout.current
        if loaded is None or left is None:
            return
        partners = self._partners(left)
        if (first := first_choice(partners)) is None:
            return self._app.notify("the step has no other sample to compare with", markup=False)
        records = self._rollout.records
        choices = [(str(partner.position), choice_text(records[partner.position], partner)) for partner in partners]
        dialog = Choose(f"compare sample {records[left]['label']} with", choices, str(first.position))
        key = loaded.key

        def answered(chosen: str | None) -> None:
            if chosen is not None and self._steps.loaded is not None and self._steps.loaded.key == key:
                self.compare(left, int(chosen))

        self._app.push_screen(dialog, answered)

    def _partners(self, left: int) -> list[Partner]:
        from dumptui.tui.panes.partners import partners

        return partners(self._groups.group_of(left), left, self._rollout.order)

    def compare(self, left: int, right: int) -> None:
        loaded = self._steps.loaded
        if loaded is None or max(left, right) >= len(loaded.samples):
            return self.leave()
        self._pair = left, right
        self._steps.ask("comparing two samples", lambda: self.compare(left, right))
        self._reader.compare(loaded.step, left, right)

    def compare_next(self, by: int) -> None:
        """Compare the first sample with the next one."""
        right = self._pane.next_partner(by)
        if right is not None and self._pane.compared is not None:
            self.compare(self._pane.compared.left, right)

    def compare_again(self) -> bool:
        """Compare the samples on screen once more, as their step was read again; False if there are none."""
        compared = self._pane.compared
        if not self.is_shown or compared is None:
            return False
        self.compare(compared.left, compared.right)
        return True

    # Messages ----------------------------------------------------------------------------------------------------

    def serve(self, request: Request) -> None:
        if isinstance(request, PairWanted):
            self.compare(request.left, request.right)

    def take(self, answer: Answer) -> None:
        if isinstance(answer, SamplesCompared):
            self._show(answer)

    def _show(self, compared: SamplesCompared) -> None:
        loaded, wait = self._steps.loaded, self._steps.wait
        wanted = wait.waiting and (compared.left, compared.right) == self._pair
        if loaded is None or compared.key != loaded.key or not wanted:
            return
        wait.end()
        if not self.is_shown:
            self._left_pane = self._panes.name
        with self._app.renewing(self._pane):
            self._pane.show_pair(compared, self._rollout.records, self._partners(compared.left))
        self._rollout.select_sample(compared.left)
        self._panes.show(str(self._pane.id))
