"""Statistics over masked flats, against the plain formula sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dumptui.core.fields.statistics import Masked
from dumptui.core.fields.token_field import TokenField, empty
from dumptui.core.fields.torch_mean import torch_mean


def flat(rows: list[list[float]], known: list[list[bool]] | None = None, states: list[str] | None = None) -> TokenField:
    out = empty("x", np.arange(len(rows)), np.array([len(row) for row in rows]))
    out.values[:] = [value for row in rows for value in row]
    out.known[:] = True if known is None else [one for row in known for one in row]
    out.states[:] = states or ["ok"] * len(rows)  # type: ignore[assignment]
    return out


samples = st.lists(st.lists(st.tuples(st.floats(-50, 50, width=32), st.booleans()), max_size=9), min_size=1, max_size=8)


@given(samples)
def test_every_statistic_is_that_of_the_unmasked_values(drawn: list[list[tuple[float, bool]]]) -> None:
    masked = Masked(flat([[v for v, _ in row] for row in drawn]), flat([[float(m) for _, m in row] for row in drawn]))
    for at, row in enumerate(drawn):
        values = np.array([v for v, m in row if m], np.float64)
        if not len(values):
            assert masked.mean()[at] is masked.max_abs()[at] is masked.std()[at] is None
            continue
        assert masked.mean()[at] == pytest.approx(values.mean(), abs=1e-9)
        assert masked.mean_abs()[at] == pytest.approx(np.abs(values).mean(), abs=1e-9)
        assert masked.max()[at] == values.max()
        assert masked.max_abs()[at] == np.abs(values).max()
        if len(values) > 1:
            assert masked.std()[at] == pytest.approx(values.std(ddof=1), abs=1e-5)
        else:
            assert masked.std()[at] is None


def test_the_worked_numbers_of_a_masked_difference() -> None:
    difference, mask = flat([[0.1, -0.2, 9.9]]), flat([[1, 1, 0]])
    ratio = flat([[np.exp(0.1), np.exp(-0.2), np.exp(9.9)]])
    assert Masked(difference, mask).mean_abs() == [pytest.approx(0.15)]
    assert Masked(difference, mask).max_abs() == [pytest.approx(0.2)]
    assert Masked(ratio, mask).mean() == [pytest.approx(0.961951, abs=1e-6)]


def test_a_sample_that_is_only_partly_there_has_no_statistic_and_spoils_no_other() -> None:
    values = flat(
        [[1, 2], [3, 4], [5, 6]], known=[[True, True], [True, False], [True, True]], states=["ok", "partial", "ok"]
    )
    masked = Masked(values, flat([[1, 1]] * 3))
    assert masked.mean() == [1.5, None, 5.5]
    assert masked.max() == [2.0, None, 6.0]


def test_what_is_not_finite_is_counted_and_in_no_statistic() -> None:
    nan, inf = np.nan, np.inf
    masked = Masked(
        flat([[nan, 1.0, 2.0], [2.0, 3.0], [inf, -inf], [nan, 9.0]]), flat([[1] * 3, [1] * 2, [1, 1], [0, 1]])
    )
    assert masked.not_finite.tolist() == [1, 0, 2, 0]
    assert masked.mean() == [1.5, 2.5, None, 9.0]
    assert masked.max_abs() == [2.0, 3.0, None, 9.0]
    assert masked.std() == [pytest.approx(0.5**0.5), pytest.approx(0.5**0.5), None, None]


def test_the_largest_values_have_a_mean_and_a_spread() -> None:
    low = float(np.finfo(np.float32).min)
    masked = Masked(flat([[low] * 70]), flat([[1] * 70]))
    assert masked.mean() == [low] and masked.std() == [0.0]


@given(st.integers(1, 5000), st.integers(0, 2**32 - 1), st.booleans())
def test_the_float32_mean_and_the_spread_around_it_are_torchs(length: int, seed: int, constant: bool) -> None:
    if torch.backends.cpu.get_cpu_capability() != "AVX2":
        pytest.skip("torch sums in another order on this processor")
    rng = np.random.default_rng(seed)
    values = np.full(length, rng.normal(), np.float32) if constant else rng.normal(size=length).astype(np.float32)
    assert torch_mean(values) == torch.from_numpy(values).mean().item()
    if length > 1:
        shown = Masked(flat([values.tolist()]), flat([[1.0] * length])).std()[0]
        assert shown == pytest.approx(torch.from_numpy(values).std().item(), rel=1e-5, abs=1e-12)
