"""What a sample can be compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dumptui.core.groups import Group
from dumptui.core.record import Record
from dumptui.core.text import visible
from dumptui.tui import columns


class Partner(NamedTuple):
    """A sample to compare another one with, and what it is to that one."""

    position: int
    role: str


def partners(group: Group | None, position: int, order: Sequence[int]) -> list[Partner]:
    """The other members of a sample's group, the best first, and what stands beside it in the `order` of the table."""
    found = [Partner(at, role(group, at)) for at in group.members if at != position] if group is not None else []
    known = {position, *(one.position for one in found)}
    return found + [one for one in neighbours(position, order) if one.position not in known]


def neighbours(position: int, order: Sequence[int]) -> Iterator[Partner]:
    if position in order:
        at = order.index(position)
        yield from (Partner(one, "previous in the table") for one in order[max(0, at - 1) : at])
        yield from (Partner(one, "next in the table") for one in order[at + 1 : at + 2])


def role(group: Group, position: int) -> str:
    """What a member is of its group; where all rewards are equal none is the best."""
    roles = {} if group.spread else {group.median: "median", group.best: "best", group.worst: "worst"}
    return roles.get(position, "")


def first_choice(found: Sequence[Partner]) -> Partner | None:
    """The best of the group, or the worst for the best one itself."""
    by_role = {one.role: one for one in reversed(found)}
    ranked = (by_role.get(word) for word in ("best", "worst"))
    return next((one for one in ranked if one is not None), found[0] if found else None)


def choice_text(record: Record, one: Partner) -> str:
    reward = columns.reward(record["compared_reward"])
    return f"{visible(str(record['label'])):>8}  reward {reward:>6}  len {record['response_length']:>6}  {one.role}"
