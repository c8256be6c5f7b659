"""User-defined keys: a file of `id = keys` lines that replace the default keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import REPLACED_KEYS, Keys, key_to_character
from textual.screen import Screen

from dumptui import tui
from dumptui.core.ptfile.snapshot import read_bounded
from dumptui.core.store.xdg import xdg_folder
from dumptui.core.text import visible
from dumptui.core.types import Record
from dumptui.tui.terminal.key_names import key_name

KEY_MODIFIERS = {"ctrl", "alt", "shift", "super", "meta", "hyper"}
MAX_FILE_BYTES = 1 << 20  # bytes of a file of keys
KEY_NAMES = {key.value for key in Keys}

Keymap = dict[str, tuple[str, ...]]
"""Keys by the id of their binding, as Textual names them."""


class Line(NamedTuple):
    number: int
    id: str
    keys: tuple[str, ...]


def keys_file() -> Path | None:
    """Return $XDG_CONFIG_HOME/dumptui/keys; None for a user without a home."""
    folder = xdg_folder("XDG_CONFIG_HOME", ".config")
    return None if folder is None else folder / "keys"


def read_keymap(path: Path | None) -> tuple[Keymap, list[str]]:
    """Return the keymap of a file, and one sentence per problem. A missing file is no problem."""
    if path is None:
        return {}, []
    try:
        text = read_bounded(path, MAX_FILE_BYTES).decode("utf-8")
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError) as error:
        return {}, [f"{visible(str(path))} can't be read: {visible(str(error))}"]
    keymap: Keymap = {}
    problems = []
    known = all_bindings()
    for line in lines(text):
        if (problem := fault(line, known)) is None:
            keymap[line.id] = tuple(map(normal, line.keys))
        else:
            problems.append(f"{visible(path.name)}, line {line.number}: {visible(problem)}")
    return keymap, problems


def lines(text: str) -> Iterator[Line]:
    """Yield the lines that are neither empty nor comments."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, _, keys = line.partition("=")
            yield Line(number, name.strip(), tuple(key.strip() for key in keys.split(",") if key.strip()))


def parts(key: str) -> tuple[list[str], str]:
    """Return the modifiers of a key, and its name or character, which may be a plus."""
    *modifiers, name = key[:-1].split("+")
    return modifiers, name + key[-1]


def normal(key: str) -> str:
    """Return a key by its name in Textual: "?" is question_mark, shift+a is A."""
    modifiers, name = parts(key)
    if modifiers == ["shift"] and name.isalpha() and len(name) == 1:
        return name.upper()
    return "+".join([*modifiers, key_name(name) if len(name) == 1 else name])


def fault(line: Line, known: Mapping[str, Binding]) -> str | None:
    if line.id not in known:
        return f"unknown id {line.id!r}; dumptui --print keys lists the ids"
    if not line.keys:
        return f"no key for {line.id}"
    return next((f"{key!r} is not a key" for key in line.keys if not is_key(key)), None)


def is_key(key: str) -> bool:
    """Whether a key, as written in the file, can be pressed."""
    modifiers, name = parts(key)
    return KEY_MODIFIERS.issuperset(modifiers) and (len(name) == 1 or name in KEY_NAMES or character(name) is not None)


def character(key: str) -> str | None:
    """Return the character that a key without modifiers types; None for keys such as f1."""
    return key_to_character(REPLACED_KEYS.get(key, key))


def as_written(key: str) -> str:
    """Return a key as it is written in the file: its character, if a line can hold it."""
    char = character(key)
    return char if char is not None and char.isprintable() and char not in ", =#" else key


# What there is to remap ------------------------------------------------------------------------------------------


def bindings_of(node: type[DOMNode]) -> Keymap:
    """Return the keys that a class of dumptui gives to its own bindings, by id."""
    keymap: Keymap = {}
    for binding in Binding.make_bindings(node.__dict__.get("BINDINGS", ())):
        if binding.id is not None:
            keymap[binding.id] = (*keymap.get(binding.id, ()), binding.key)
    return keymap


def all_classes(root: type[DOMNode] = DOMNode) -> Iterator[type[DOMNode]]:
    for node in root.__subclasses__():
        if node.__module__.startswith("dumptui."):
            yield node
        yield from all_classes(node)


def import_all() -> None:
    """Import every module of the screen; most are otherwise imported when a key first needs them."""
    for info in walk_packages(tui.__path__, "dumptui.tui."):
        import_module(info.name)


def all_bindings() -> dict[str, Binding]:
    """Return every binding of the screen by its id."""
    import_all()
    bindings: dict[str, Binding] = {}
    for node in all_classes():
        for binding in Binding.make_bindings(node.__dict__.get("BINDINGS", ())):
            if binding.id is not None:
                bindings.setdefault(binding.id, binding)
    return bindings


def rows() -> list[Record]:
    """Return one row per binding, with its current keys."""
    keymap, _ = read_keymap(keys_file())
    known = all_bindings()
    defaults = {name: keys for node in all_classes() for name, keys in bindings_of(node).items()}
    records: list[Record] = []
    for name, binding in sorted(known.items()):
        keys = ", ".join(map(as_written, keymap.get(name, defaults[name])))
        records.append({"id": name, "keys": keys, "does": binding.tooltip or binding.description or binding.action})
    return records


# Clashes ---------------------------------------------------------------------------------------------------------


def clashes(screen: Screen[object], keymap: Keymap) -> list[str]:
    """Return one sentence per remapped key that now has two actions at once; the nearer action wins."""
    dialogs: list[list[type[DOMNode]]] = [[node] for node in all_classes() if issubclass(node, Screen)]
    chains: list[list[type[DOMNode]]] = [
        [type(node) for node in widget.ancestors_with_self] for widget in screen.query("*") if widget.can_focus
    ]
    pairs = {pair: None for chain in dialogs + chains for pair in shared_keys(chain, keymap)}
    return [f"{as_written(key)} is both {nearer} and {farther}: {nearer} wins" for key, nearer, farther in pairs]


def shared_keys(chain: Sequence[type[DOMNode]], keymap: Keymap) -> Iterator[tuple[str, str, str]]:
    """Yield each key with the two ids it has along a chain of nodes, the nearest first, if one of them was remapped."""
    owner: dict[str, str] = {}
    for name, default in along(chain, keymap):
        for key in keymap.get(name, default):
            nearer = owner.setdefault(key, name)
            if nearer != name and (name in keymap or nearer in keymap):
                yield key, nearer, name


def along(chain: Iterable[type[DOMNode]], keymap: Keymap) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the ids of a chain with their keys; within a class, remapped ids come first."""
    for node in chain:
        own = [item for base in node.__mro__ if issubclass(base, DOMNode) for item in bindings_of(base).items()]
        yield from sorted(own, key=lambda item: item[0] not in keymap)
