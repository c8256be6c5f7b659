"""Files that are damaged, that lie, or that would run something: a DumpError or an inert graph comes of them."""

from __future__ import annotations

import os
import pickle
import random
import resource
import struct
import sys
import types
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dumptui.core.errors import DumpError
from dumptui.core.process.memory_limit import memory_ceiling
from dumptui.core.ptfile.file import Array, Placeholder, PtFile, Tensor, Truncated
from dumptui.core.ptfile.unpickler import KNOWN_GLOBALS
from tests.support.crafted import (
    Raw,
    build,
    call,
    entries_of,
    name,
    opcodes,
    program,
    storage,
    tensor,
    write_pt,
    write_zip,
)

needs_ceiling = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no memory ceiling here")


def load(path: Path, root: Any, **storages: bytes) -> Any:
    """Loads the pickle of `root`, in which parts may be opcodes."""
    return PtFile(write_pt(path / "hostile.pt", program(root), {"0": bytes(16)} | storages)).root


def parts(value: Any) -> Iterator[Any]:
    """Everything in a loaded graph, tensors read."""
    seen: set[int] = set()
    todo = [value]
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if isinstance(value, (Tensor, Array)):
            value.numpy()
        elif isinstance(value, dict):
            todo += [*value, *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            todo += value
        elif isinstance(value, Placeholder):
            todo += [value.args, value.state, value.items]


# nothing runs ----------------------------------------------------------------------------------------------------


class Runs:
    """Pickles as a call of whatever it is given."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_file_that_would_run_a_command_names_it_instead(tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "marker"
    command = Runs(os.system, f"touch {marker}")
    method, module = Runs(marker.touch), Runs(__import__, "antigravity")
    code = Runs(eval, f"open({str(marker)!r}, 'w')")
    root = [command, code, method, module, types.SimpleNamespace(deep=(command, {"key": code}))]
    torch.save(root, tmp_path / "0.pt", pickle_protocol=protocol)
    loaded = PtFile(tmp_path / "0.pt").root
    assert not marker.exists()
    assert "antigravity" not in sys.modules
    assert all(isinstance(value, Placeholder) for value in loaded)
    assert [value.qualified_name for value in loaded[:2]] == ["posix.system", "builtins.eval"]
    assert loaded[0].args == (f"touch {marker}",)
    assert loaded[4].state["deep"][0] is loaded[0]


def test_a_command_inside_the_arguments_of_known_functions_does_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    command = call(name("posix", "system"), f"touch {marker}")
    kind = name("torch", "Tensor")
    root = [
        call(name("torch._utils", "_rebuild_parameter"), command, False, {}),
        call(name("torch._tensor", "_rebuild_from_type_v2"), name("posix", "system"), kind, (f"touch {marker}",), {}),
        tensor(command, 0, (1,), (1,)),
        call(name("collections", "defaultdict"), name("posix", "system")),
        call(name("numpy._core.multiarray", "scalar"), command, b"1"),
        build(call(name("unknown", "Class"), command), {"__reduce__": command, "append": command, "args": ()}),
    ]  # fmt: skip
    loaded = load(tmp_path, root)
    assert loaded[1].args[1] == (f"touch {marker}",)
    assert loaded[5].args[0].qualified_name == "posix.system"
    assert not marker.exists()


@pytest.mark.parametrize("target", sorted(KNOWN_GLOBALS))
def test_no_file_can_change_what_it_is_handed(tmp_path: Path, target: tuple[str, str]) -> None:
    value = KNOWN_GLOBALS[target]
    before = (dict(vars(value)) if isinstance(value, type) else None, dict(vars(type(value))), KNOWN_GLOBALS.copy())
    handed = name(*target)
    items = opcodes([1])
    for attack in (
        build(handed, {"__call__": 1, "_function": 2, "__setstate__": 3}),
        build(handed, ({}, {"__call__": 1, "_function": 2, "__setstate__": 3})),
        build(handed, (None, {"_function": name("posix", "system")})),
        Raw(handed + opcodes("x") + opcodes("y") + pickle.SETITEM),
        Raw(handed + opcodes("x") + pickle.APPEND),
        Raw(handed + pickle.MARK + items + pickle.APPENDS),
        Raw(handed + pickle.MARK + items + pickle.ADDITEMS),
    ):
        with pytest.raises(DumpError, match="not a readable pickle"):
            load(tmp_path, attack)
    after = (dict(vars(value)) if isinstance(value, type) else None, dict(vars(type(value))), KNOWN_GLOBALS)
    assert after == before


def test_no_file_can_change_placeholders_of_the_next(tmp_path: Path) -> None:
    before = dict(vars(Placeholder))
    kind = name("unknown", "Class")
    for attack in (
        build(kind, {"append": 1}),
        build(kind, ({}, {"append": 1})),
        Raw(kind + opcodes("x") + pickle.APPEND),
        Raw(kind + opcodes("x") + opcodes("y") + pickle.SETITEM),
    ):
        with pytest.raises(DumpError, match="not a readable pickle"):
            load(tmp_path, attack)
    changed = load(tmp_path, build(call(kind), ({"a": 1}, {"append": 1, "qualified_name": 2})))
    assert changed.state == {"a": 1, "append": 1, "qualified_name": 2}
    assert changed.qualified_name == "unknown.Class"
    assert dict(vars(Placeholder)) == before


def test_state_given_to_a_tensor_or_array_does_not_change_it(tmp_path: Path) -> None:
    plain = tensor(storage(4), 0, (2,), (1,))
    changed = load(tmp_path, build(plain, (None, {"dtype": "evil", "offset": 10**9, "source": None})))
    assert changed.numpy().tolist() == [0, 0]
    array = call(name("numpy.core.multiarray", "_reconstruct"), name("numpy", "ndarray"), (0,), b"b")
    assert isinstance(load(tmp_path, build(array, {"shape": (10**9,)})), Placeholder)


def test_names_are_safe_to_show(tmp_path: Path) -> None:
    loaded = load(tmp_path, [name("m" * 10**6, "x"), name("a", "\x1b[2J\u202e"), call(name("a\x00b", "\ud7ff c"))])
    assert [repr(value) for value in loaded] == [
        f"<{'m' * 99}…>",
        r"<a.\x1b[2J\u202e>",
        r"<a\x00b.\ud7ff c>",
    ]


# sizes that lie --------------------------------------------------------------------------------------------------

IMPOSSIBLE: dict[str, tuple[Any, Any, Any]] = {
    "past the end": (0, (5,), (1,)),
    "past the end by stride": (0, (2,), (4,)),
    "past the end by offset": (3, (2,), (1,)),
    "negative offset": (-1, (1,), (1,)),
    "negative size": (0, (-1,), (1,)),
    "negative stride": (3, (2,), (-1,)),
    "fewer strides": (0, (2, 2), (1,)),
    "more strides": (0, (2,), (1, 1)),
    "overflowing size": (0, (2**63,), (0,)),
    "overflowing stride": (0, (1,), (2**63,)),
    "overflowing offset": (2**64, (1,), (1,)),
    "a float": (0, (2.0,), (1,)),
    "a bool": (0, (True,), (2,)),
    "a list": (0, [1, 2], (1,)),
    "no shape": (0, None, None),
    "too many dimensions": (0, (1,) * 100, (1,) * 100),
}


@pytest.mark.parametrize("view", IMPOSSIBLE)
def test_a_tensor_that_cannot_be_is_refused(tmp_path: Path, view: str) -> None:
    with pytest.raises(DumpError, match="not a readable pickle: it describes a tensor"):
        load(tmp_path, tensor(storage(4), *IMPOSSIBLE[view]))


@pytest.mark.parametrize("shape", [(1 << 30,), (1 << 20, 1 << 20), (0, 1 << 55), (1 << 55, 0)])
def test_a_tensor_that_claims_far_more_than_the_file_is_a_placeholder(tmp_path: Path, shape: tuple[int, ...]) -> None:
    loaded = load(tmp_path, tensor(storage(4), 0, shape, (0,) * len(shape)))
    assert isinstance(loaded, Placeholder)
    assert shape in loaded.args


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        (storage(5), "storage 0 claims 20 bytes, but holds 16"),
        (storage(2**60), "not a readable pickle"),
        (storage(-1), "not a readable pickle"),
        (storage(4, key="1"), "its entry 'data/1' is missing"),
        (storage(4, key="../../etc/passwd"), "is missing"),
        (Raw(opcodes(("module", "x", "0", "cpu", 4)) + pickle.BINPERSID), "not a readable pickle"),
        (Raw(opcodes("0") + pickle.BINPERSID), "not a readable pickle"),
        (Raw(b"P0\n"), "not a readable pickle"),
    ],
)
def test_a_storage_that_is_not_there(tmp_path: Path, claim: Raw, problem: str) -> None:
    with pytest.raises(DumpError, match=problem):
        load(tmp_path, claim)


def test_arrays_that_lie_about_their_shape(tmp_path: Path) -> None:
    dtype = build(call(name("numpy", "dtype"), "f8", False, True), (3, "<", None, None, None, -1, -1, 0))
    empty = call(name("numpy._core.multiarray", "_reconstruct"), name("numpy", "ndarray"), (0,), b"b")
    for shape in ((3,), (1, 1), (-1,), (2**40, 2**40), (2**55, 0), (2.0,), None):
        with pytest.raises(DumpError, match="not a readable pickle"):
            load(tmp_path, build(empty, (1, shape, dtype, False, bytes(16))))
        with pytest.raises(DumpError, match="not a readable pickle"):
            load(tmp_path, call(name("numpy._core.numeric", "_frombuffer"), bytes(16), dtype, shape, "C"))
    assert load(tmp_path, build(empty, (1, (2,), dtype, False, bytes(16)))).numpy().tolist() == [0, 0]


def test_pointers_smuggled_in_as_objects_stay_bytes(tmp_path: Path) -> None:
    dtype = build(call(name("numpy", "dtype"), "O8", False, True), (3, "|", None, None, None, -1, -1, 63))
    empty = call(name("numpy._core.multiarray", "_reconstruct"), name("numpy", "ndarray"), (0,), b"b")
    root = [
        build(empty, (1, (1,), dtype, False, b"\x10" * 8)),
        call(name("numpy._core.multiarray", "scalar"), dtype, b"\x10" * 8),
        call(name("numpy._core.numeric", "_frombuffer"), b"\x10" * 8, dtype, (1,), "C"),
    ]
    assert all(isinstance(value, Placeholder) for value in load(tmp_path, root))


@pytest.mark.parametrize(
    "value",
    [
        call(name("builtins", "bytearray"), 10**12),
        call(name("builtins", "bytes"), 10**12),
        call(name("builtins", "set"), call(name("builtins", "range"), 10**6)),
        call(name("builtins", "frozenset"), "text"),
        call(name("torch", "Size"), call(name("builtins", "range"), 10**6)),
        call(name("_codecs", "encode"), "text", "idna"),
        call(name("_codecs", "encode"), "text"),
        call(name("builtins", "complex"), call(name("a", "b"))),
    ],
)
def test_a_call_that_torch_and_numpy_never_write_is_refused(tmp_path: Path, value: Raw) -> None:
    with pytest.raises(DumpError, match="not a readable pickle"):
        load(tmp_path, value)


def test_a_range_nobody_could_walk_is_a_placeholder(tmp_path: Path) -> None:
    assert isinstance(load(tmp_path, call(name("__builtin__", "xrange"), 2**61)), Placeholder)
    assert isinstance(load(tmp_path, call(name("builtins", "slice"), [])), Placeholder)


# memory ----------------------------------------------------------------------------------------------------------


@needs_ceiling
@pytest.mark.parametrize(
    "data",
    [
        pickle.NONE + pickle.LONG_BINPUT + struct.pack("<L", 2**31) + pickle.STOP,
        pickle.NONE + pickle.LONG_BINPUT + struct.pack("<L", 2**32 - 1) + pickle.STOP,
        pickle.NONE + pickle.PUT + b"4000000000000\n" + pickle.STOP,
        pickle.BINBYTES8 + struct.pack("<Q", 2**40) + b"x",
        pickle.BINUNICODE8 + struct.pack("<Q", 2**62) + b"x",
    ],
)
@pytest.mark.parametrize("wrapped", [True, False])
def test_twenty_bytes_cannot_claim_gigabytes(tmp_path: Path, data: bytes, wrapped: bool) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    path = tmp_path / "memo.pt"
    path.write_bytes(b"\x80\4" + data)
    if wrapped:
        write_pt(path, b"\x80\4" + data)
    with pytest.raises(DumpError, match=r"asks for more memory|truncated"):
        PtFile(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 << 10


@needs_ceiling
def test_the_ceiling_holds_for_overlapping_loads_and_is_lifted_after_the_last() -> None:
    def limit() -> int:
        return int(resource.getrlimit(resource.RLIMIT_AS)[0])

    original = limit()
    first, second = ExitStack(), ExitStack()
    first.enter_context(memory_ceiling(1 << 30))
    one = limit()
    second.enter_context(memory_ceiling(1 << 30))
    assert 0 < one < limit()
    with pytest.raises(MemoryError):
        bytearray(1 << 40)
    first.close()
    assert limit() > 0
    second.close()
    assert limit() == original
    bytes(3 << 30)


@needs_ceiling
def test_loads_in_several_threads_leave_no_ceiling_behind(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    path = write_pt(tmp_path / "0.pt", program([list(range(1000))]))
    with ThreadPoolExecutor(4) as pool:
        assert all(root == [list(range(1000))] for root in pool.map(lambda _: PtFile(path).root, range(100)))
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_depth_is_no_problem(tmp_path: Path) -> None:
    levels = 50_000
    lists = load(tmp_path, Raw(pickle.EMPTY_LIST * levels + pickle.APPEND * (levels - 1)))
    calls = load(tmp_path, Raw(name("a", "b") * levels + pickle.NONE + (pickle.TUPLE1 + pickle.REDUCE) * levels))
    depth = 0
    while lists:
        lists, (calls,), depth = lists[0], calls.args, depth + 1
    assert depth == levels - 1


# damage ----------------------------------------------------------------------------------------------------------


def small_file(path: Path) -> Path:
    root = {
        "tensor": torch.arange(5), "half": torch.ones(2, dtype=torch.bfloat16), "array": np.arange(3), "text": "é",
        "object": types.SimpleNamespace(a=1), "set": {1}, "float": [0.5] * 3, "scalar": np.float32(1),
    }  # fmt: skip
    torch.save(root, path)
    return path


def test_a_file_cut_anywhere_is_truncated(tmp_path: Path) -> None:
    whole = small_file(tmp_path / "0.pt").read_bytes()
    path = tmp_path / "cut.pt"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(Truncated, match=r"cut\.pt: (is empty \(0 bytes\)|is truncated)"):
            PtFile(path)


def test_a_large_file_cut_anywhere_is_truncated(tmp_path: Path) -> None:
    torch.save([torch.zeros(50_000), torch.ones(50_000)], tmp_path / "0.pt")
    whole = (tmp_path / "0.pt").read_bytes()
    for length in (1, 100, 1000, 200_000, 300_000, len(whole) - 1000, len(whole) - 60, len(whole) - 1):
        os.truncate(tmp_path / "0.pt", length)
        with pytest.raises(Truncated):
            PtFile(tmp_path / "0.pt")
        (tmp_path / "0.pt").write_bytes(whole)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_bare_pickle_cut_anywhere_is_truncated(tmp_path: Path, protocol: int) -> None:
    whole = pickle.dumps([{"tokens": list(range(50)), "text": "x" * 300, "bytes": bytearray(9)}], protocol)
    path = tmp_path / "cut.pt"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(Truncated):
            PtFile(path)


def test_an_entry_past_the_end_is_truncated(tmp_path: Path) -> None:
    path = write_pt(tmp_path / "0.pt", program(1), {"0": bytes(16)})
    data = path.read_bytes()
    sizes = struct.pack("<2L", 16, 16)
    at = data.rindex(sizes)
    path.write_bytes(data[:at] + struct.pack("<2L", 10_000, 10_000) + data[at + 8 :])
    with pytest.raises(Truncated, match="its zip entry 'data/0' lies past the end of the data"):
        PtFile(path)


def test_flipped_bytes_give_a_dump_error_or_a_graph(tmp_path: Path) -> None:
    whole = small_file(tmp_path / "0.pt").read_bytes()
    path, rng, refused = tmp_path / "flipped.pt", random.Random(5), 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3))):
            data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        path.write_bytes(data)
        try:
            list(parts(PtFile(path).root))
        except DumpError:
            refused += 1
    assert 50 < refused < 350


def test_garbage_pickles_give_a_dump_error_or_a_graph(tmp_path: Path) -> None:
    entries = entries_of(small_file(tmp_path / "0.pt"))
    rng, refused = random.Random(6), 0
    for _ in range(600):
        data = bytearray(entries["data.pkl"])
        for _ in range(rng.choice((1, 2, 5))):
            at, change = rng.randrange(len(data)), rng.random()
            if change < 0.5:
                data[at] = rng.randrange(256)
            elif change < 0.8:
                data.insert(at, rng.randrange(256))
            else:
                del data[at : at + rng.randrange(1, 4)]
        try:
            list(parts(PtFile(write_zip(tmp_path / "garbage.pt", entries | {"data.pkl": bytes(data)})).root))
        except DumpError as error:
            refused += 1
            assert len(str(error)) < 400
            assert str(error).isprintable()
    assert 50 < refused < 600


def test_a_damaged_pickle_is_told_by_its_checksum(tmp_path: Path) -> None:
    torch.save(["the text of it"], tmp_path / "0.pt")
    data = (tmp_path / "0.pt").read_bytes()
    (tmp_path / "0.pt").write_bytes(data.replace(b"the text", b"her text"))
    with pytest.raises(DumpError, match=r"0\.pt: its data\.pkl is damaged: the checksum does not match"):
        PtFile(tmp_path / "0.pt")


# not a torch file ------------------------------------------------------------------------------------------------


def test_what_is_no_torch_file_is_named_so(tmp_path: Path) -> None:
    text, other, packed, pipe = (tmp_path / each for each in ("notes.pt", "other.pt", "packed.pt", "pipe.pt"))
    text.write_text("not a dump")
    np.savez(other.with_suffix(""), np.arange(3))
    other.with_suffix(".npz").rename(other)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("packed/data.pkl", program([1] * 100))
    os.mkfifo(pipe)
    for path, problem in {
        text: "is not a torch file",
        other: r"is a zip without a data\.pkl, so not a torch file",
        packed: r"its entry 'data\.pkl' is compressed, which torch\.save never does",
        pipe: "is not a file",
        tmp_path: "is not a file",
        tmp_path / "missing.pt": "can't be opened: No such file or directory",
    }.items():
        with pytest.raises(DumpError, match=f"{path.name}: {problem}$") as raised:
            PtFile(path)
        assert not isinstance(raised.value, Truncated)
