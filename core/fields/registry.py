"""The per-token fields that dumptui knows by name: what each is, where it comes from, and how it is derived.

A field with `derive` needs nothing but its entry here. Float columns without an entry are shown under their own names.
numpy is imported only when a field is derived: the first screen does without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from dumptui.core.fields.ratio_limits import LARGEST_LOG_RATIO

if TYPE_CHECKING:
    from dumptui.core.arrays import Array

Scale: TypeAlias = Literal["log-prob", "ratio", "entropy", "number"]
"""How values compare: log-probs are at most 0, low ones stand out; ratios are compared by their logarithm."""

SCALE_UNITS: dict[Scale, str] = {"log-prob": "nats", "entropy": "nats"}
SCALE_RANGES: dict[Scale, str] = {
    "log-prob": "0 or less",
    "ratio": "0 or more; 1 where trainer and engine agree",
    "entropy": "0 to the logarithm of the vocabulary's size",
}


class FieldDefinition(NamedTuple):
    """A per-token field.

    `train_column` is its column in the train files; `in_samples` says that samples of the rollout file may hold it too.
    A field with `inputs` is computed from those fields: by `derive`, element by element, from their arrays of values.
    Statistics clamp the inputs to ±`largest_input`. `formula` is shown beside the name.
    """

    name: str
    label: str
    meaning: str
    formula: str = ""
    scale: Scale = "number"
    signed: bool = False
    train_column: str | None = None
    in_samples: bool = False
    last_stage_only: bool = False
    """Whether only the last pipeline stage has it: an output of the forward pass."""
    either_rule: bool = False
    """Whether train files may cut it by another slicing rule than the run's own."""
    inputs: tuple[str, ...] = ()
    derive: Callable[..., Array] | None = None
    largest_input: float | None = None
    prominent: bool = False
    """Whether the line of a token has it before version, turn and rank, so that a short line shows it."""
    compared: bool = False
    """Whether it is shown of both tokens where two samples are compared."""
    bad: str = ""
    """Which values are a bad sign, and of what."""


def exponential(values: Array) -> Array:
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        return np.exp(values)


FIELDS = (
    FieldDefinition(
        name="train_log_probs",
        label="trainer",
        meaning="log-prob of the token by the trainer",
        scale="log-prob",
        train_column="log_probs",
        last_stage_only=True,
        prominent=True,
        compared=True,
        bad="far from the engine's log-prob of the same token",
    ),
    FieldDefinition(
        name="rollout_log_probs",
        label="engine",
        meaning="log-prob of the token by the inference engine that sampled it",
        scale="log-prob",
        train_column="rollout_log_probs",
        prominent=True,
        compared=True,
        bad="far from the trainer's log-prob of the same token",
    ),
    FieldDefinition(
        name="ref_log_probs",
        label="ref",
        meaning="log-prob of the token by the reference model",
        scale="log-prob",
        train_column="ref_log_probs",
        last_stage_only=True,
        prominent=True,
    ),
    FieldDefinition(
        name="teacher_log_probs",
        label="teacher",
        meaning="log-prob of the token by the teacher of a distillation",
        scale="log-prob",
        train_column="teacher_log_probs",
        in_samples=True,
    ),
    FieldDefinition(
        name="lp_diff",
        label="Δ",
        meaning="difference of the two log-probs, where the loss mask is 1 and both are dumped",
        formula="trainer - engine",
        signed=True,
        inputs=("train_log_probs", "rollout_log_probs"),  # without `derive`: Step.difference chooses between copies
        prominent=True,
        compared=True,
        bad="far from 0: trainer and engine disagree about the token",
    ),
    FieldDefinition(
        name="imp_ratio",
        label="ratio",
        meaning="importance ratio of trainer and engine",
        formula="exp(trainer - engine)",
        scale="ratio",
        signed=True,
        inputs=("lp_diff",),
        derive=exponential,
        largest_input=LARGEST_LOG_RATIO,
        prominent=True,
        bad="far from 1: trainer and engine disagree about the token",
    ),
    FieldDefinition(
        name="entropy",
        label="H",
        meaning="entropy of the trainer's distribution",
        scale="entropy",
        train_column="entropy",
        last_stage_only=True,
        prominent=True,
        compared=True,
        bad="near 0 at nearly all tokens: the policy no longer explores",
    ),
    FieldDefinition(
        name="ref_entropy",
        label="ref H",
        meaning="entropy of the reference model's distribution",
        scale="entropy",
        train_column="ref_entropy",
        last_stage_only=True,
    ),
    FieldDefinition(
        name="teacher_entropy",
        label="teacher H",
        meaning="entropy of the teacher's distribution",
        scale="entropy",
        train_column="teacher_entropy",
    ),
    FieldDefinition(
        name="opd_reverse_kl",
        label="opd KL",
        meaning="reverse KL of on-policy distillation",
        signed=True,
        train_column="opd_reverse_kl",
        in_samples=True,
    ),
    FieldDefinition(
        name="advantages",
        label="adv",
        meaning="advantage",
        signed=True,
        train_column="advantages",
        either_rule=True,
        prominent=True,
        bad="0 at all tokens of a group: nothing is learned from it",
    ),
    FieldDefinition(
        name="returns",
        label="return",
        meaning="return",
        signed=True,
        train_column="returns",
        either_rule=True,
    ),
    FieldDefinition(
        name="values",
        label="value",
        meaning="value by the critic",
        signed=True,
        train_column="values",
        last_stage_only=True,
    ),
)
"""In the order in which they are shown."""

UNNAMED = FieldDefinition(name="", label="", meaning="")
"""What is known of a field without an entry."""


def definition(name: str) -> FieldDefinition:
    return next((field for field in FIELDS if field.name == name), UNNAMED)


def field_names() -> list[str]:
    return [field.name for field in FIELDS]


def shown_name(column: str) -> str:
    """Return the name of the field that a per-token column of a train file holds."""
    return next((field.name for field in FIELDS if field.train_column == column), column)


def unit_of(name: str) -> str:
    """Return the unit of a field: that of its scale, and of a difference that of what it is the difference of."""
    known = definition(name)
    inputs = known.inputs if known.derive is None else ()
    return SCALE_UNITS.get(scale_of(name), "") or (unit_of(inputs[0]) if inputs else "")


def train_column(name: str) -> str:
    """Return the column of the train files that holds a field."""
    return definition(name).train_column or name


def train_columns() -> tuple[str, ...]:
    return tuple(field.train_column for field in FIELDS if field.train_column is not None)


def field_label(name: str) -> str:
    return definition(name).label or name


def scale_of(name: str) -> Scale:
    """Return the scale of a field; one without an entry is recognised by its name."""
    known = definition(name)
    if known is not UNNAMED:
        return known.scale
    return "log-prob" if name.endswith("log_probs") else "entropy" if "entropy" in name else "number"


def with_derived(names: set[str]) -> list[str]:
    """Return the fields that files hold and those that can be derived from them, in the order they are shown."""
    found = set(names)
    for field in FIELDS:  # an input stands before what is derived from it
        if field.inputs and found.issuperset(field.inputs):
            found.add(field.name)
    known = [name for name in field_names() if name in found]
    return known + sorted(found.difference(known))
