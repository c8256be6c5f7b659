"""What is written without torch, read by torch."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dumptui.core.ptfile.writer import Bfloat16, write_pt

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]


@pytest.fixture(params=[True, False], ids=["weights_only", "any"])
def load(request: pytest.FixtureRequest) -> Any:
    return lambda path: torch.load(path, weights_only=request.param)


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    )
)
@settings(max_examples=100, deadline=None)
def test_arrays_become_tensors(array: Any) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "3_1.pt"
        write_pt(path, {"values": array, "turned": array.T})
        read = torch.load(path, weights_only=True)
    np.testing.assert_array_equal(read["values"].numpy(), array)
    np.testing.assert_array_equal(read["turned"].numpy(), array.T)
    assert read["values"].numpy().dtype == array.dtype


def test_bfloat16_is_rounded_as_torch_rounds(tmp_path: Path, load: Any) -> None:
    values = np.array([-0.1234, 1.00390625, 1.01171875, 3e38, -np.inf, 0.0], np.float32)
    write_pt(tmp_path / "0.pt", [Bfloat16(values)])
    (read,) = load(tmp_path / "0.pt")
    assert read.dtype == torch.bfloat16
    assert torch.equal(read, torch.from_numpy(values).to(torch.bfloat16))


def test_plain_objects(tmp_path: Path, load: Any) -> None:
    payload = {
        "none": None,
        "text": "tab\t, 数, 🧮",
        "numbers": [0, -1, 255, 256, 1 << 40] * 4 + [0.1, float("inf")],
        "nested": [{"a": (1, True, [])}, {}, [[1.5] * 20]],
    }
    payload["again"] = payload["nested"]
    write_pt(tmp_path / "eval_0.pt", payload)
    assert load(tmp_path / "eval_0.pt") == payload


def test_parts_of_one_array_share_a_storage(tmp_path: Path, load: Any) -> None:
    whole = np.arange(10, dtype=np.float32)
    write_pt(tmp_path / "0_0.pt", np.split(whole, [3, 3, 7]))
    parts = load(tmp_path / "0_0.pt")
    assert [part.tolist() for part in parts] == [[0, 1, 2], [], [3, 4, 5, 6], [7, 8, 9]]
    assert len({part.untyped_storage().data_ptr() for part in parts}) == 1


def test_the_container_is_that_of_torch_save(tmp_path: Path) -> None:
    path = tmp_path / "12_3.pt"
    write_pt(path, {"a": np.arange(5), "b": np.zeros(0, np.float32), "c": np.ones(100, np.float32)})
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = {info.filename for info in archive.infolist()}
        assert names == {
            f"12_3/{name}" for name in ("data.pkl", "byteorder", "version", *map("data/{}".format, range(3)))
        }
        for info in archive.infolist():
            assert info.compress_type == zipfile.ZIP_STORED
            name_length, extra = struct.unpack_from("<26xHH", path.read_bytes(), info.header_offset)
            assert (info.header_offset + 30 + name_length + extra) % 64 == 0
    assert torch.load(path, mmap=True)["c"].sum() == 100
