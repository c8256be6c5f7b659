"""The samples that a sample can be compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dumptui.core.tables.group_members import Group
from dumptui.core.text import visible
from dumptui.core.types import Record
from dumptui.tui.presentation import columns


class Partner(NamedTuple):
    """A sample to compare another one with, and its role for that one."""

    position: int
    role: str


def partners(group: Group | None, position: int, order: Sequence[int]) -> list[Partner]:
    """Return the other samples of a sample's group, the best first, and its neighbours in the `order` of the table."""
    positions = [] if group is None else [member for member in group.members if member != position]
    members = [Partner(member, role(group, member)) for member in positions] if group is not None else []
    known = {position, *(partner.position for partner in members)}
    return members + [partner for partner in neighbours(position, order) if partner.position not in known]


def neighbours(position: int, order: Sequence[int]) -> Iterator[Partner]:
    if position in order:
        row = order.index(position)
        yield from (Partner(neighbour, "previous in the table") for neighbour in order[max(0, row - 1) : row])
        yield from (Partner(neighbour, "next in the table") for neighbour in order[row + 1 : row + 2])


def role(group: Group, position: int) -> str:
    """Return the role of a sample in its group; where all rewards are equal, none is the best."""
    roles = {} if group.spread else {group.median: "median", group.best: "best", group.worst: "worst"}
    return roles.get(position, "")


def first_choice(candidates: Sequence[Partner]) -> Partner | None:
    """Return the best of the group, or for the best one itself the worst."""
    by_role = {partner.role: partner for partner in reversed(candidates)}
    ranked = (by_role.get(word) for word in ("best", "worst"))
    return next((partner for partner in ranked if partner is not None), candidates[0] if candidates else None)


def choice_text(record: Record, partner: Partner) -> str:
    reward = columns.reward(record["compared_reward"])
    return f"{visible(str(record['label'])):>8}  reward {reward:>6}  len {record['response_length']:>6}  {partner.role}"
