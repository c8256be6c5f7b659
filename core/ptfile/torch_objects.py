"""Tensors of torch in a pickle: the replacements for torch's rebuild functions.

The rebuild functions of sparse, quantized, nested and meta tensors stay placeholders.
"""

from __future__ import annotations

import pickle

from dumptui.core.ptfile.placeholder import Placeholder, placeholder
from dumptui.core.ptfile.tensor import ITEMSIZE, Shape, Tensor, claims_more, is_known, is_shape, is_size

STORAGE_DTYPES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
    "_UntypedStorage": "uint8",  # torch 1.11 to 1.13
}


def rebuild_tensor(
    storage: object,
    offset: int,
    shape: Shape,
    stride: Shape,
    _requires_grad: object = None,
    _hooks: object = None,
    metadata: object = None,
) -> Tensor | Placeholder:
    if not isinstance(storage, Tensor):
        return placeholder("torch.Tensor", storage, offset, shape, stride)
    if shape == storage.shape and stride == (1,) and offset == 0 and not metadata:
        storage.source.claimed += shape[0]
        return storage  # nearly every tensor of a dump: halves the time to open a file of small tensors
    return _view(storage, storage.dtype, offset, shape, stride, metadata)


def rebuild_tensor_v3(
    storage: object,
    offset: int,
    shape: Shape,
    stride: Shape,
    _requires_grad: object,
    _hooks: object,
    dtype: object,
    metadata: object = None,
) -> Tensor | Placeholder:
    """Rebuild a tensor of a dtype without a storage class (float8, uint16...): its storage holds bytes."""
    name = dtype.removeprefix("torch.") if isinstance(dtype, str) else ""
    if isinstance(storage, Tensor) and is_known(name):
        return _view(storage, name, offset, shape, stride, metadata)
    return placeholder("torch.Tensor", storage, offset, shape, stride, dtype)


def rebuild_parameter(data: object, *_: object) -> object:
    return data


def device(kind: object, index: object = None) -> str:
    return str(kind) if index is None else f"{kind}:{index}"


def _view(
    storage: Tensor, dtype: str, offset: int, shape: Shape, stride: Shape, metadata: object
) -> Tensor | Placeholder:
    if not (is_size(offset) and is_shape(shape) and is_shape(stride) and len(shape) == len(stride)):
        raise pickle.UnpicklingError("it describes a tensor with an impossible shape, stride or offset")
    tensor = Tensor(storage.source, storage.storage, dtype, offset, shape, stride)
    if tensor.span()[1] > storage.span()[1]:
        raise pickle.UnpicklingError("it describes a tensor that reaches past the end of its storage")
    # metadata: the conj and neg bits of a view whose values would have to be computed
    if metadata or claims_more(shape, ITEMSIZE[dtype], storage.source.size):
        return placeholder("torch.Tensor", storage, offset, shape, stride, metadata)
    storage.source.claimed += tensor.size
    return tensor
