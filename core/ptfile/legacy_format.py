"""Files of torch.save before torch 1.6 (2020): five pickles and raw storages, no zip. torch itself reads them."""

from __future__ import annotations

import pickle
from typing import Any

from dumptui.core.errors import DumpError
from dumptui.core.ptfile.tensor import Array

_MAGIC_NUMBER = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")


def is_legacy(head: bytes) -> bool:
    """Whether a file begins with torch's magic number, a pickle of under 30 bytes."""
    return _MAGIC_NUMBER in head[:30]


def load_with_torch(path: str) -> Any:
    """Return the content, read with `weights_only`. Raises DumpError if torch is missing or refuses the file."""
    try:
        import torch
    except ImportError:
        problem = "is in torch's file format from before 1.6; install dumptui[torch] to read it, or save it again"
        raise DumpError(path, problem) from None
    try:
        root = torch.load(path, map_location="cpu", weights_only=True)
    except (
        pickle.UnpicklingError,
        RuntimeError,
        EOFError,
        ValueError,
        TypeError,
        LookupError,
        OSError,
    ) as error:
        raise DumpError(path, "is in torch's file format from before 1.6, and torch can't read it") from error
    return _without_torch(root, torch)


def _without_torch(value: Any, torch: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _array(value.detach(), torch)
    if isinstance(value, dict):
        return {key: _without_torch(item, torch) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_without_torch(item, torch) for item in value])
    return value


def _array(tensor: Any, torch: Any) -> Array:
    name = str(tensor.dtype).removeprefix("torch.")
    widen = name == "bfloat16" or name.startswith("float8")
    return Array((tensor.float() if widen else tensor).numpy(), name)
