"""One entry makes a per-token field: everything that knows fields by name reads the registry."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dumptui.core.fields import registry
from dumptui.core.fields.registry import FIELDS, FieldDefinition
from dumptui.core.sample.view import view_sample
from dumptui.core.step.distribution import Distribution, distributions
from dumptui.core.step.field_survey import survey
from dumptui.tui.presentation.tokens import statistic_text, token_line
from tests.support.reading import documents, read
from tests.support.writer import sample, write_step

REFERENCE_DIFFERENCE = FieldDefinition(
    name="ref_diff",
    label="ref Δ",
    meaning="difference to the reference model",
    formula="trainer - ref",
    signed=True,
    inputs=("train_log_probs", "ref_log_probs"),
    derive=np.subtract,
)


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> FieldDefinition:
    monkeypatch.setattr(registry, "FIELDS", (*FIELDS, REFERENCE_DIFFERENCE))
    return REFERENCE_DIFFERENCE


def test_names_and_labels_are_unique_and_inputs_stand_before_what_is_derived_from_them() -> None:
    names = [field.name for field in FIELDS]
    assert len(set(names)) == len(names) == len({field.label for field in FIELDS})
    for number, field in enumerate(FIELDS):
        assert field.meaning, field
        assert set(field.inputs) <= set(names[:number]), field
        assert bool(field.inputs) != bool(field.train_column), field
        assert not field.inputs or field.formula, field


def test_a_derived_field_is_one_entry(tmp_path: Path, added: FieldDefinition) -> None:
    """It was twelve files."""
    truth = write_step(tmp_path, 0, [sample(at, response_length=6) for at in range(4)], mirror=False)
    step = read(tmp_path)
    expected = truth.fields["log_probs"][1] - truth.fields["ref_log_probs"][1]
    shown = documents(step)[1]["fields"]["ref_diff"]
    assert shown["state"] == "ok" and np.allclose(shown["values"], expected)

    view = view_sample(step, 1, None)
    first = view.sample.prompt_length
    assert statistic_text(view, "ref_diff").plain == "ref Δ = trainer - ref"
    assert f"ref Δ {expected[0]:+.3f}" in token_line(view, first).plain

    found = [one for one in distributions(step) if isinstance(one, Distribution) and one.name == "ref_diff"]
    assert found[0].count == 24 and found[0].samples == 4
    assert len(survey(step, "ref_diff").values) == 24


def test_a_derived_field_is_as_bad_as_the_worst_of_its_inputs(tmp_path: Path, added: FieldDefinition) -> None:
    reference = [None, np.zeros(6), np.zeros(6), np.zeros(6)]
    made = [sample(at, response_length=6) for at in range(4)]
    write_step(tmp_path, 0, made, truth={"ref_log_probs": reference}, mirror=False)
    shown = [document["fields"]["ref_diff"] for document in documents(read(tmp_path))]
    assert [field["state"] for field in shown] == ["not dumped", "ok", "ok", "ok"]
    assert shown[0]["values"] is None


def test_a_field_of_no_input_is_not_there(tmp_path: Path, added: FieldDefinition) -> None:
    write_step(tmp_path, 0, [sample(at) for at in range(4)], fields=("log_probs", "rollout_log_probs"), mirror=False)
    step = read(tmp_path)
    assert "ref_diff" not in step.fields
    assert documents(step)[0]["fields"]["ref_diff"]["state"] == "not dumped"
