"""Placeholders for objects of a dump whose class dumptui does not know."""

from __future__ import annotations

from typing import Any, cast

_LONGEST_NAME = 100


class _Named(type):
    qualified_name: str

    def __repr__(cls) -> str:
        name = cls.qualified_name
        if len(name) > _LONGEST_NAME:
            name = name[: _LONGEST_NAME - 1] + "…"
        return f"<{name if name.isprintable() else ascii(name)[1:-1]}>"


class Placeholder(metaclass=_Named):
    """An object of an unknown class: it keeps what the pickle holds for the object and runs none of its code.

    A class or function that the pickle names is a subclass of this one, not an instance.
    """

    qualified_name = "object"
    """Module and name from the pickle, which may be any text; `repr()` is short and printable."""
    args: tuple[object, ...]
    state: object
    """For most classes a dict of attributes, including those of `__slots__`."""
    items: list[Any]
    """Elements of a list or set subclass, (key, value) pairs of a dict subclass."""

    def __new__(cls, *args: object, **kwargs: object) -> Placeholder:
        self = super().__new__(cls)
        self.args = (*args, kwargs) if kwargs else args
        self.state = None
        self.items = []
        return self

    def __repr__(self) -> str:
        return repr(type(self))

    # The opcodes BUILD, REDUCE, APPENDS, ADDITEMS and SETITEMS call these methods.

    def __setstate__(self, state: object) -> None:
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
            attributes, slots = state
            if attributes is None or isinstance(attributes, dict):
                state = {**(attributes or {}), **slots}
        self.state = state

    def __call__(self, *args: object) -> Placeholder:
        """Stand for the result of a callable that the pickle creates (a partial, a bound method) and calls."""
        return type(self)(*self.args, *args)

    def append(self, item: object) -> None:
        self.items.append(item)

    add = append

    def __setitem__(self, key: object, value: object) -> None:
        self.items.append((key, value))


def placeholder_class(qualified_name: str) -> type[Placeholder]:
    # The class name is fixed: type() refuses some characters that the pickle's name may hold.
    return cast(type[Placeholder], _Named("Placeholder", (Placeholder,), {"qualified_name": qualified_name}))


def placeholder(qualified_name: str, *args: object) -> Placeholder:
    return placeholder_class(qualified_name)(*args)
