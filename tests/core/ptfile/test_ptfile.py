"""What torch.save wrote is read equal to torch.load, without torch."""

from __future__ import annotations

import collections
import enum
import gc
import os
import pickle
import struct
import sys
import types
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dumptui.core.errors import DumpError
from dumptui.core.ptfile.file import Array, Placeholder, PtFile, Tensor, Truncated, read_all
from dumptui.core.ptfile.legacy_format import load_with_torch
from tests.support.crafted import build, call, entries_of, name, program, storage, tensor, write_pt, write_zip

FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "complex64", "complex128", *FLOAT8,
)  # fmt: skip
BALLAST = 70_000  # float32: makes a file too large to be kept whole in memory

VIEWS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda t: t.transpose(0, -1),
    "tail": lambda t: t[1:],
    "every second": lambda t: t[::2],
    "one row": lambda t: t[0],
    "expanded": lambda t: t.unsqueeze(0).expand(3, *t.shape),
    "last column": lambda t: t[..., -1],
}


def save(path: Path, root: Any, **options: Any) -> Path:
    torch.save(root, path, **options)
    return path


def as_numpy(value: Any) -> Any:
    value = value.detach()
    return (value.float() if str(value.dtype)[6:] in ("bfloat16", *FLOAT8) else value).numpy()


def assert_equal(ours: Any, theirs: Any) -> int:
    """Compares with what torch.load gave; returns how many tensors and arrays there were."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, (Tensor, Array))
        assert f"torch.{ours.dtype}" == str(theirs.dtype)
        assert_same_array(ours, as_numpy(theirs))
        return 1
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, Array)
        assert ours.dtype == theirs.dtype.name
        assert_same_array(ours, theirs)
        return 1
    if isinstance(theirs, dict):
        assert isinstance(ours, dict)
        assert list(ours) == list(theirs)
        return sum(assert_equal(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, (list, tuple)):
        assert type(ours) is type(theirs)
        return sum(assert_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    if isinstance(theirs, float) and theirs != theirs:
        assert ours != ours
    else:
        assert type(ours) is type(theirs)
        assert ours == theirs
    return 0


def assert_same_array(ours: Tensor | Array, theirs: Any) -> None:
    values = ours.numpy()
    assert ours.shape == values.shape == theirs.shape
    assert ours.size == theirs.size
    assert values.dtype == theirs.dtype.newbyteorder("=")
    np.testing.assert_array_equal(values, theirs)
    assert values.flags.writeable
    assert values.base is None or values.base.nbytes == values.nbytes, "pins more than it shows"
    if theirs.ndim:
        assert len(ours) == len(theirs)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pt")


@st.composite
def tensors(draw: st.DrawFn) -> Any:
    """A tensor of any dtype and bits, seen through up to three views."""
    dtype = getattr(torch, draw(st.sampled_from(DTYPES)))
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    size = int(np.prod(shape)) * dtype.itemsize
    data = draw(st.binary(min_size=size, max_size=size))
    if dtype is torch.bool:
        data = bytes(byte & 1 for byte in data)
    base = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
    view = base.view(dtype).reshape(shape)
    for step in draw(st.lists(st.sampled_from(sorted(VIEWS)), max_size=3)):
        if view.ndim and ((view.shape[0] and view.shape[-1]) or step in ("transposed", "tail", "expanded")):
            view = VIEWS[step](view)
    return view


@settings(max_examples=150, deadline=None)
@given(tensors(), st.booleans())
def test_any_view_of_any_dtype_is_equal_to_torch(folder: Path, value: Any, large: bool) -> None:
    root = {"it": value, "again": value, "rows": list(value) if value.ndim else [], "scalar": torch.tensor(1.5)}
    if large:
        root["ballast"] = torch.zeros(BALLAST)
    path = save(folder / "view.pt", root)
    ours = PtFile(path).root
    assert_equal(ours, torch.load(path))
    for one, other in zip(read_all([ours["it"], *ours["rows"]]), [value, *root["rows"]], strict=True):
        np.testing.assert_array_equal(one, as_numpy(other))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_every_float8_code_has_the_value_torch_gives_it(tmp_path: Path, dtype: str) -> None:
    codes = torch.arange(256, dtype=torch.uint8).view(getattr(torch, dtype))
    ours, theirs = PtFile(save(tmp_path / "codes.pt", codes)).root.numpy(), codes.float().numpy()
    np.testing.assert_array_equal(ours, theirs)
    zero = ours == 0
    np.testing.assert_array_equal(np.signbit(ours[zero]), np.signbit(theirs[zero]))


def test_every_recorded_file_is_read_equal_to_torch(shared: Path) -> None:
    paths = sorted(shared.glob("runs/*/rollout_data/*.pt")) + sorted(shared.glob("runs/*/train_data/*.pt"))
    compared = 0
    for path in paths:
        try:
            theirs = torch.load(path, map_location="cpu", weights_only=False)
        except (RuntimeError, EOFError, OSError):
            with pytest.raises(Truncated):
                PtFile(path)
        except ModuleNotFoundError:
            assert PtFile(path).root
        else:
            compared += assert_equal(PtFile(path).root, theirs)
    assert compared > 10_000


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_plain_values_keep_their_types(tmp_path: Path, protocol: int) -> None:
    root: dict[Any, Any] = {
        "none": None, "bool": True, "int": -5, "large": 2**80, "float": 0.1, "inf": float("-inf"), "text": "é\n",
        "bytes": b"\xff", "empty": b"", "list": [[]], "tuple": ((),), "set": {1, "a"}, "frozen": frozenset([1]),
        "complex": 1 + 2j, "bytearray": bytearray(b"ab"), "no bytes": bytearray(), "range": range(3),
        "slice": slice(1, None, 2), (1, 2): "tuple key",
    }  # fmt: skip
    assert_equal(PtFile(save(tmp_path / "plain.pt", root, pickle_protocol=protocol)).root, root)


def test_containers_and_torch_constants_become_plain_values(tmp_path: Path) -> None:
    state = torch.nn.Linear(2, 1).state_dict()
    root = [
        state, collections.OrderedDict(a=1), collections.defaultdict(list, b=[2]), torch.Size([2, 3]), torch.float32,
        torch.device("cuda", 1), torch.device("cpu"),
    ]  # fmt: skip
    ours = PtFile(save(tmp_path / "containers.pt", root)).root
    assert_equal(ours[0], dict(state))
    assert ours[1:] == [{"a": 1}, {"b": [2]}, (2, 3), "torch.float32", "cuda:1", "cpu"]


def test_parameters_and_tensor_subclasses_are_tensors(tmp_path: Path) -> None:
    marked = torch.arange(3)
    marked.origin = "engine"
    root = [torch.nn.Parameter(torch.ones(2)), torch.nn.Buffer(torch.zeros(2)), marked]
    ours = PtFile(save(tmp_path / "subclasses.pt", root)).root
    assert [tensor.numpy().tolist() for tensor in ours] == [[1, 1], [0, 0], [0, 1, 2]]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tensors_that_are_no_strided_numbers_are_placeholders(tmp_path: Path) -> None:
    root = [
        torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr(), torch.ones(2, dtype=torch.complex64).conj(),
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), torch.zeros(2, device="meta"),
        torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), torch.zeros(1).expand(1 << 28),
    ]  # fmt: skip
    ours = PtFile(save(tmp_path / "exotic.pt", [*root, torch.ones(1)])).root
    assert all(isinstance(value, Placeholder) for value in ours[:-1])
    assert ours[-1].numpy() == 1


def test_a_tensor_saved_from_a_gpu_is_read_here(tmp_path: Path) -> None:
    entries = entries_of(save(tmp_path / "cpu.pt", torch.arange(4)))
    moved = entries["data.pkl"].replace(b"X\3\0\0\0cpu", b"X\6\0\0\0cuda:3")
    assert moved != entries["data.pkl"]
    path = write_zip(tmp_path / "gpu.pt", entries | {"data.pkl": moved})
    assert PtFile(path).root.numpy().tolist() == [0, 1, 2, 3]


def test_big_endian_storages(tmp_path: Path) -> None:
    rows = [tensor(storage(2), 0, (2,), (1,)), tensor(storage(2, "BFloat16Storage", "1"), 0, (2,), (1,))]
    entries = {"data.pkl": program(rows), "byteorder": b"big"}
    storages = {"data/0": struct.pack(">2f", 1.5, -2), "data/1": bytes.fromhex("3fc0 c000")}
    ours = PtFile(write_zip(tmp_path / "big.pt", entries | storages)).root
    assert [row.numpy().tolist() for row in ours] == [[1.5, -2], [1.5, -2]]
    assert ours[0].numpy().dtype == np.dtype("f4")


# numpy in the pickle ---------------------------------------------------------------------------------------------

ARRAYS = {
    "int32": np.arange(6, dtype="i4").reshape(2, 3),
    "by column": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "transposed": np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
    "big endian": np.arange(3, dtype=">f8"),
    "bool": np.array([True, False]),
    "empty": np.empty((0, 48, 8), "i4"),
    "0-d": np.array(5),
    "strided": np.arange(10)[::3],
    "half": np.array([1.5], "f2"),
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_arrays_of_numpy_2_and_1(tmp_path: Path, protocol: int) -> None:
    new = pickle.dumps(ARRAYS, protocol)
    if protocol < 4:
        old = new.replace(b"cnumpy._core.", b"cnumpy.core.")
    else:  # strings with a length, in a frame with a length
        old = new
        for module in (b"numpy._core.multiarray", b"numpy._core.numeric"):
            spelled = bytes([len(module) - 1]) + module.replace(b"_core", b"core")
            old = old.replace(bytes([len(module)]) + module, spelled)
        old = old[:3] + struct.pack("<Q", len(old) - 11) + old[11:]
    assert old != new
    for data in (old, new):
        assert assert_equal(PtFile(write_pt(tmp_path / "arrays.pt", data)).root, ARRAYS) == len(ARRAYS)


def test_numpy_scalars_are_python_values(tmp_path: Path) -> None:
    root = [np.float32(1.5), np.int64(-2), np.bool_(True), np.float16(0.5), np.complex64(1j), np.str_("né")]
    ours = PtFile(save(tmp_path / "scalars.pt", root)).root
    assert ours == [1.5, -2, True, 0.5, 1j, "né"]
    assert [type(value) for value in ours] == [float, int, bool, float, complex, str]


@pytest.mark.parametrize("protocol", [2, 5])
def test_arrays_of_objects_and_records_are_placeholders(tmp_path: Path, protocol: int) -> None:
    root = [np.array([1, "a"], object), np.zeros(2, [("a", "i4")]), np.array(["a"]), np.zeros(1, "M8[s]")]
    ours = PtFile(save(tmp_path / "objects.pt", [*root, root[0]], pickle_protocol=protocol)).root
    assert [repr(value) for value in ours] == ["<numpy.ndarray>"] * 5
    assert all(isinstance(value, Placeholder) for value in ours)
    assert ours[4] is ours[0]
    assert ours[0].state[-1] == [1, "a"]


# classes that are not here ---------------------------------------------------------------------------------------


@pytest.fixture
def gone(tmp_path: Path) -> Path:
    """A file with instances of classes of a module that does not exist any more."""

    @dataclass
    class AdapterRef:
        name: str
        slot: int

    class Slotted:
        __slots__ = ("spans",)

        def __init__(self) -> None:
            self.spans = [1]

    class Metadata(dict[str, int]):
        pass

    class Turns(list[int]):
        pass

    class Status(enum.Enum):
        DONE = "done"

    class Pair(tuple[int, int]):
        pass

    module = types.ModuleType("framework_of_old")
    for kind in (AdapterRef, Slotted, Metadata, Turns, Status, Pair):
        kind.__module__, kind.__qualname__ = module.__name__, kind.__name__
        setattr(module, kind.__name__, kind)
    sys.modules[module.__name__] = module
    try:
        return save(
            tmp_path / "gone.pt",
            [
                AdapterRef("a", 3),
                Slotted(),
                Metadata(x=1),
                Turns([1, 2]),
                Status.DONE,
                Pair((1, 2)),
                AdapterRef,
            ],
        )
    finally:
        del sys.modules[module.__name__]


def test_an_object_made_with_keywords_keeps_what_it_was_made_of(tmp_path: Path) -> None:
    made = call(call(name("functools", "partial"), name("a", "Keyed"), 1))  # as protocol 2 writes it
    kind, argument = PtFile(write_pt(tmp_path / "0.pt", program(made))).root.args
    assert repr(kind) == "<a.Keyed>"
    assert argument == 1


def test_unknown_objects_keep_name_and_state(gone: Path) -> None:
    adapter, slotted, mapping, turns, status, pair, kind = PtFile(gone).root
    assert adapter.qualified_name == "framework_of_old.AdapterRef"
    assert repr(adapter) == repr(kind) == "<framework_of_old.AdapterRef>"
    assert adapter.state == {"name": "a", "slot": 3}
    assert slotted.state == {"spans": [1]}
    assert mapping.items == [("x", 1)]
    assert turns.items == [1, 2]
    assert status.args == ("done",)
    assert pair.args == ((1, 2),)
    assert all(isinstance(value, Placeholder) for value in (adapter, slotted, mapping, turns, status, pair))


# reading ---------------------------------------------------------------------------------------------------------


def test_read_all_gives_what_each_tensor_gives(tmp_path: Path) -> None:
    packed = torch.randn(50_000)
    column = [torch.randn(900 + row) for row in range(200)]
    root = {
        "column": column, "views": list(packed.view(100, 500)), "one view": packed[7:12], "gap": torch.randn(300_000),
        "after": torch.arange(9).to(torch.bfloat16), "array": np.arange(3), "same": column[0],
    }  # fmt: skip
    file = PtFile(save(tmp_path / "columns.pt", root))
    other = PtFile(save(tmp_path / "small.pt", torch.ones(3)))
    ours = file.root
    wanted = [*reversed(ours["column"]), *ours["views"], other.root, ours["after"], ours["array"], ours["same"]]
    for ordered in (wanted, [ours["one view"]], [ours["gap"], ours["after"]], []):
        for values, one in zip(read_all(ordered), ordered, strict=True):
            np.testing.assert_array_equal(values, one.numpy())
    np.testing.assert_array_equal(read_all([ours["one view"]])[0], packed[7:12].numpy())


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_a_burst_of_reads_holds_one_descriptor(tmp_path: Path) -> None:
    file = PtFile(save(tmp_path / "burst.pt", [torch.ones(2), torch.zeros(BALLAST)]))
    before = open_descriptors()
    with file.reading():
        assert open_descriptors() == before + 1
        with file.reading(), ThreadPoolExecutor(2) as readers:
            assert all(list(readers.map(lambda _: file.root[0].numpy().sum() == 2, range(20))))
        assert file.root[0].numpy().sum() == 2
    assert open_descriptors() == before


def test_stamp_and_size_are_those_of_the_file(tmp_path: Path) -> None:
    path = save(tmp_path / "0.pt", [1])
    status = path.stat()
    file = PtFile(path)
    assert file.path == str(path)
    assert file.size == status.st_size
    assert file.stamp == (status.st_ino, status.st_size, status.st_mtime_ns)


@pytest.mark.parametrize("change", ["rewritten", "cut", "replaced"])
def test_a_file_that_changed_is_not_read_on(tmp_path: Path, change: str) -> None:
    path = save(tmp_path / "0.pt", torch.zeros(BALLAST))
    file = PtFile(path)
    with file.reading():
        if change == "rewritten":
            save(path, torch.ones(BALLAST))
            os.utime(path, ns=(0, 0))
        elif change == "cut":
            os.truncate(path, 1000)
        else:
            os.replace(save(tmp_path / "1.pt", torch.ones(BALLAST)), path)
        if change != "replaced":
            for read in (file.root.numpy, lambda: read_all([file.root])):
                with pytest.raises(DumpError, match=r"0\.pt: changed while it was being read"):
                    read()
    with pytest.raises(DumpError, match=r"0\.pt: changed while it was being read"):
        file.root.numpy()
    path.unlink()
    with pytest.raises(DumpError, match=r"can't be opened: No such file"):
        file.root.numpy()


def test_a_small_file_is_read_once(tmp_path: Path) -> None:
    path = save(tmp_path / "0.pt", torch.arange(3))
    file = PtFile(path)
    path.unlink()
    assert file.root.numpy().tolist() == [0, 1, 2]


def test_a_dropped_file_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    file = PtFile(save(tmp_path / "0.pt", [torch.ones(2), torch.zeros(BALLAST)]))
    kept, gone = file.root[0], weakref.ref(file)
    gc.disable()
    try:
        del file
        assert gone() is None
    finally:
        gc.enable()
    assert kept.numpy().tolist() == [1, 1]


def test_progress_is_reported_to_the_end(tmp_path: Path) -> None:
    path = save(tmp_path / "0.pt", [*range(300, 400_000), *(str(at) for at in range(99_000))])
    size = len(entries_of(path)["data.pkl"])
    seen: list[tuple[int, int]] = []
    PtFile(path, on_read=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {total for _, total in seen} == {size}
    assert len(seen) > size / (1 << 18)
    assert seen[-1][0] > size * 0.8


@pytest.mark.parametrize("error", [KeyError("mine"), MemoryError(), KeyboardInterrupt(), DumpError("x", "y")])
def test_what_on_read_raises_cancels_the_load_unchanged(tmp_path: Path, error: BaseException) -> None:
    path = save(tmp_path / "0.pt", list(range(300, 300_000)))
    before = open_descriptors()

    def cancel(done: int, total: int) -> None:
        if done:
            raise error

    with pytest.raises(type(error)) as raised:
        PtFile(path, on_read=cancel)
    assert raised.value is error
    assert open_descriptors() == before


# containers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("rows", [1, 20_000])
def test_a_bare_pickle(tmp_path: Path, protocol: int, rows: int) -> None:
    samples = [{"tokens": [1, 2, row], "response": "x" * 9, "score": 0.5} for row in range(rows)]
    path = tmp_path / "0.pt"
    path.write_bytes(pickle.dumps(samples, protocol))
    assert PtFile(path).root == samples


def test_the_format_before_torch_1_6(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = {"a": [torch.arange(3), torch.ones(2, dtype=torch.bfloat16)], "b": 1}
    path = save(tmp_path / "old.pt", root, _use_new_zipfile_serialization=False)
    assert assert_equal(PtFile(path).root, root) == 2
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DumpError, match=r"before 1\.6, and torch can't read it"):
        PtFile(path)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(DumpError, match=r"before 1\.6; install dumptui\[torch\]"):
        load_with_torch(str(path))


def test_a_file_saved_without_checksums(tmp_path: Path) -> None:
    torch.serialization.set_crc32_options(False)
    try:
        path = save(tmp_path / "0.pt", torch.arange(3))
    finally:
        torch.serialization.set_crc32_options(True)
    assert PtFile(path).root.numpy().tolist() == [0, 1, 2]


def test_entries_of_more_than_4_gib(tmp_path: Path) -> None:
    count = (5 << 30) // 4
    last = tensor(storage(count), count - 2, (2,), (1,))
    behind = tensor(storage(2, "LongStorage", "1"), 0, (2,), (1,))
    entries: dict[str, bytes | int] = {"data.pkl": program([last, behind]), "data/0": 5 << 30}
    entries["data/1"] = struct.pack("<2q", 7, 8)
    file = PtFile(write_zip(tmp_path / "large.pt", entries, zip64=True))
    assert file.size > 5 << 30
    assert [row.numpy().tolist() for row in file.root] == [[0, 0], [7, 8]]
    assert [row.tolist() for row in read_all(file.root)] == [[0, 0], [7, 8]]


def test_shared_references_stay_shared(tmp_path: Path) -> None:
    shared_list = [1]
    loop: list[Any] = [shared_list, shared_list]
    loop.append(loop)
    ours = PtFile(save(tmp_path / "0.pt", loop)).root
    assert ours[0] is ours[1]
    assert ours[2] is ours


def test_attributes_of_an_ordered_dict_do_not_hide_its_methods(tmp_path: Path) -> None:
    mapping = build(call(name("collections", "OrderedDict"), [("a", 1)]), {"items": 5})
    assert list(PtFile(write_pt(tmp_path / "0.pt", program(mapping))).root.items()) == [("a", 1)]


def test_long_lists_of_numbers_are_arrays_with_the_same_numbers(tmp_path: Path) -> None:
    floats = np.random.default_rng(0).normal(size=80_000).astype(np.float32).tolist()
    value = {"log_probs": floats, "mask": [1, 0] * 300_000, "tokens": list(range(100_000)), "short": [0.5] * 5}
    root = PtFile(save(tmp_path / "0.pt", value)).root
    assert root["log_probs"].numpy().tolist() == floats and root["log_probs"].dtype == "float32"
    assert root["mask"].numpy().tolist() == value["mask"]
    assert root["tokens"].numpy().tolist() == value["tokens"] and root["short"] == value["short"]


def test_a_text_that_looks_like_a_list_of_numbers_is_still_read(tmp_path: Path) -> None:
    lookalike = "]q\x00(" + "G" * 9 * 1000 + "e"
    value = [lookalike, "x" * (1 << 20)]
    assert PtFile(save(tmp_path / "0.pt", value)).root == value
