"""Keys of one's own: a file of `id = keys` lines, in place of the keys that the bindings come with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import NamedTuple

from textual.binding import Binding
from textual.dom import DOMNode
from textual.keys import REPLACED_KEYS, Keys, _character_to_key, key_to_character
from textual.screen import Screen

from dumptui import tui
from dumptui.core.record import Record
from dumptui.core.snapshot import read_bounded
from dumptui.core.text import visible
from dumptui.core.xdg import xdg_folder

MODIFIERS = {"ctrl", "alt", "shift", "super", "meta", "hyper"}
LARGEST = 1 << 20  # bytes of a file of keys
NAMES = {key.value for key in Keys}

Keymap = dict[str, tuple[str, ...]]
"""The keys of bindings by their ids, as Textual names them."""


class Line(NamedTuple):
    number: int
    id: str
    keys: tuple[str, ...]


def keys_file() -> Path | None:
    """$XDG_CONFIG_HOME/dumptui/keys; None for a user without a home."""
    folder = xdg_folder("XDG_CONFIG_HOME", ".config")
    return None if folder is None else folder / "keys"


def read_keymap(path: Path | None) -> tuple[Keymap, list[str]]:
    """The keymap of a file, and what is wrong with it, a sentence each. A file that isn't there is no fault."""
    if path is None:
        return {}, []
    try:
        text = read_bounded(path, LARGEST).decode("utf-8")
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
    """Those that are neither empty nor a comment."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, _, keys = line.partition("=")
            yield Line(number, name.strip(), tuple(key.strip() for key in keys.split(",") if key.strip()))


def parts(key: str) -> tuple[list[str], str]:
    """The modifiers of a key, and its name or character, which may be a plus."""
    *modifiers, name = key[:-1].split("+")
    return modifiers, name + key[-1]


def normal(key: str) -> str:
    """A key by the name that Textual gives it: "?" is question_mark, shift+a is A."""
    modifiers, name = parts(key)
    if modifiers == ["shift"] and name.isalpha() and len(name) == 1:
        return name.upper()
    return "+".join([*modifiers, _character_to_key(name) if len(name) == 1 else name])


def fault(line: Line, known: Mapping[str, Binding]) -> str | None:
    if line.id not in known:
        return f"unknown id {line.id!r}; dumptui --print keys lists the ids"
    if not line.keys:
        return f"no key for {line.id}"
    return next((f"{key!r} is not a key" for key in line.keys if not is_key(key)), None)


def is_key(key: str) -> bool:
    """Whether a key as it is written can be pressed."""
    modifiers, name = parts(key)
    return MODIFIERS.issuperset(modifiers) and (len(name) == 1 or name in NAMES or character(name) is not None)


def character(key: str) -> str | None:
    """What is typed by a key without modifiers; None for keys such as f1."""
    return key_to_character(REPLACED_KEYS.get(key, key))


def as_written(key: str) -> str:
    """A key as a person writes it in the file: the character where it has one that a line may hold."""
    char = character(key)
    return char if char is not None and char.isprintable() and char not in ", =#" else key


# What there is to remap ------------------------------------------------------------------------------------------


def bindings_of(node: type[DOMNode]) -> Keymap:
    """The keys that a class of dumptui's own gives to the ids of its own bindings."""
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
    """What the screen may show; most of it is imported by the key that asks for it."""
    for module in walk_packages(tui.__path__, "dumptui.tui."):
        import_module(module.name)


def all_bindings() -> dict[str, Binding]:
    """By id, of everything that the screen may show."""
    import_all()
    found: dict[str, Binding] = {}
    for node in all_classes():
        for binding in Binding.make_bindings(node.__dict__.get("BINDINGS", ())):
            if binding.id is not None:
                found.setdefault(binding.id, binding)
    return found


def rows() -> list[Record]:
    """A row a binding, with the keys it has now."""
    keymap, _ = read_keymap(keys_file())
    known = all_bindings()
    defaults = {name: keys for node in all_classes() for name, keys in bindings_of(node).items()}
    found: list[Record] = []
    for name, binding in sorted(known.items()):
        keys = ", ".join(map(as_written, keymap.get(name, defaults[name])))
        found.append({"id": name, "keys": keys, "does": binding.tooltip or binding.description or binding.action})
    return found


# Clashes ---------------------------------------------------------------------------------------------------------


def clashes(screen: Screen[object], keymap: Keymap) -> list[str]:
    """Where a key that was remapped now stands for two things at once, a sentence each: the nearer one has it."""
    dialogs: list[list[type[DOMNode]]] = [[node] for node in all_classes() if issubclass(node, Screen)]
    chains: list[list[type[DOMNode]]] = [
        [type(node) for node in one.ancestors_with_self] for one in screen.query("*") if one.can_focus
    ]
    found = {pair: None for chain in dialogs + chains for pair in shared_keys(chain, keymap)}
    return [f"{as_written(key)} is both {nearer} and {farther}: {nearer} wins" for key, nearer, farther in found]


def shared_keys(chain: Sequence[type[DOMNode]], keymap: Keymap) -> Iterator[tuple[str, str, str]]:
    """Each key with the two ids that it has along a chain of nodes, the nearest first, if one of them was remapped."""
    owner: dict[str, str] = {}
    for name, default in along(chain, keymap):
        for key in keymap.get(name, default):
            nearer = owner.setdefault(key, name)
            if nearer != name and (name in keymap or nearer in keymap):
                yield key, nearer, name


def along(chain: Iterable[type[DOMNode]], keymap: Keymap) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The ids of a chain with their keys; within a class those that were remapped have their key first."""
    for node in chain:
        own = [one for base in node.__mro__ if issubclass(base, DOMNode) for one in bindings_of(base).items()]
        yield from sorted(own, key=lambda one: one[0] not in keymap)
