"""Keys of one's own: what the file says holds, what is wrong in it is told, and the rest goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.keys import _character_to_key

from dumptui.core.files.step_files import StepKey
from dumptui.tui.app.app import DumpTui
from dumptui.tui.session.keymap import as_written, is_key, keys_file, normal, read_keymap
from dumptui.tui.widgets.key_bar import KeyLine
from tests.support.kept_session import opened_with_state
from tests.support.screen import lines, press, run, text, until_shown


def write(content: str | bytes) -> Path:
    path = keys_file()
    assert path is not None
    path.parent.mkdir(parents=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# The file --------------------------------------------------------------------------------------------------------


def test_lines_are_ids_and_keys_by_character_or_by_name() -> None:
    path = write("# mine\n\ntokens.worst = N, ], f3\n app.quit=shift+q\ndesk.copy = ctrl+y,comma\n")
    keymap, problems = read_keymap(path)
    assert problems == []
    assert keymap == {
        "tokens.worst": ("N", "right_square_bracket", "f3"),
        "app.quit": ("Q",),
        "desk.copy": ("ctrl+y", "comma"),
    }


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("tokens.wurst = x", "unknown id 'tokens.wurst'; dumptui --print keys lists the ids"),
        ("app.quit", "no key for app.quit"),
        ("app.quit = ,", "no key for app.quit"),
        ("app.quit = ctlr+x", "'ctlr+x' is not a key"),
        ("app.quit = x, nokey", "'nokey' is not a key"),
        ("\x1b]0;owned\x07 = x", r"unknown id '\x1b]0;owned\x07'"),
    ],
)
def test_a_wrong_line_is_told_with_its_number_and_the_others_hold(line: str, told: str) -> None:
    keymap, problems = read_keymap(write(f"app.help = f1\n{line}\ndesk.copy = c\n"))
    assert keymap == {"app.help": ("f1",), "desk.copy": ("c",)}
    assert len(problems) == 1 and told in problems[0] and problems[0].startswith("keys, line 2: ")


def test_a_file_that_cannot_be_read_is_told_and_none_is_no_fault(tmp_path: Path) -> None:
    assert read_keymap(tmp_path / "keys") == ({}, []) == read_keymap(None)
    for content in (b"\xff\xfe", None):
        path = tmp_path / "bad"
        path.mkdir() if content is None else path.write_bytes(content)
        keymap, (problem,) = read_keymap(path)
        assert keymap == {} and "can't be read" in problem and "\n" not in problem
        if content is not None:
            path.unlink()


@given(st.characters(max_codepoint=0x17F, categories=("L", "N", "P", "S")).filter(lambda char: char not in ",#="))
def test_a_character_is_the_key_that_it_is_typed_by(char: str) -> None:
    key = normal(char)
    assert is_key(char) and key == _character_to_key(char)
    assert normal(as_written(key)) == key
    assert is_key(f"ctrl+{char}") and normal(f"ctrl+{char}") == f"ctrl+{key}"


def test_every_binding_has_an_id_of_its_own_and_says_what_it_does() -> None:
    rows = json.loads(run("--print", "keys", "--json").stdout)["rows"]
    assert {"table.down", "tokens.worst", "desk.copy", "list.leave", "app.quit"} <= {row["id"] for row in rows}
    assert all(row["keys"] and row["does"] for row in rows)
    assert next(row for row in rows if row["id"] == "table.down")["keys"] == "down, j"


def test_printed_keys_are_those_that_hold_and_can_be_written_into_the_file() -> None:
    write("table.down = J, comma\n")
    rows = json.loads(run("--print", "keys", "--json").stdout)["rows"]
    assert next(row for row in rows if row["id"] == "table.down")["keys"] == "J, comma"
    keys_file().write_text("".join(f"{row['id']} = {row['keys']}\n" for row in rows))  # type: ignore[union-attr]
    assert read_keymap(keys_file())[1] == []


# On screen -------------------------------------------------------------------------------------------------------


def footer(app: DumpTui) -> str:
    return lines(app)[-1]


async def test_remapped_keys_do_it_old_ones_don_t_and_the_line_of_keys_says_so(demo: Path) -> None:
    write("table.down = J\napp.help = f1\nrollout.sort = o\n")
    async with opened_with_state(demo, key=StepKey(2)) as (app, pilot):
        assert "o Sort" in footer(app) and footer(app).endswith("f1 Keys")
        await press(pilot, "j")
        await until_shown(pilot, "< step 2 >")
        await press(pilot, "J")
        await until_shown(pilot, "< step 1 >")
        await press(pilot, "o")
        await until_shown(pilot, "sort the steps by")


async def test_a_swap_is_no_clash(demo: Path) -> None:
    write("app.next-step = <\napp.previous-step = >\n")
    async with opened_with_state(demo, key=StepKey(2)) as (app, pilot):
        assert "is both" not in text(app)
        await press(pilot, "<")
        await until_shown(pilot, "step 3, 4 of 4")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("tokens.worst = n", "n is both tokens.worst and app.next-sample"),
        ("rollout.sort = j", "j is both table.down and rollout.sort"),
        ("rollout.sort = m", "m is both rollout.sort and rollout.trend"),
        ("list.down = q", "q is both list.down and list.leave"),
    ],
)
async def test_a_clash_is_told(demo: Path, line: str, told: str) -> None:
    write(line)
    async with opened_with_state(demo, size=(160, 30)) as (_, pilot):
        await until_shown(pilot, told)


async def test_in_a_clash_the_first_has_the_key(demo: Path) -> None:
    write("rollout.sort = m\n")
    async with opened_with_state(demo) as (_, pilot):
        await press(pilot, "m")
        await until_shown(pilot, "sort the steps by")


@pytest.mark.parametrize("pane", ["tokens", "rollout", "health", "batch"])
async def test_keys_of_two_panes_or_of_a_pane_and_a_table_it_has_not_are_no_clash(demo: Path, pane: str) -> None:
    write("tokens.worst = enter\nhealth.again = s\n")
    async with opened_with_state(demo, pane=pane) as (app, _):
        assert "is both" not in text(app)


async def test_a_hostile_file_reaches_the_screen_as_text(demo: Path) -> None:
    write("[/red]\x1b]0;owned\x07\u202e = x\n" * 9)
    async with opened_with_state(demo, size=(160, 40)) as (app, pilot):
        await until_shown(pilot, "[/red]")
        assert "\x1b" not in text(app) and "\u202e" not in text(app)
        assert app.query_one(KeyLine).entries()


async def test_lists_are_gone_through_by_the_keys_of_vim(demo: Path) -> None:
    async with opened_with_state(demo) as (app, pilot):
        await press(pilot, "y", "G")
        options = app.screen.query("OptionList").first()
        last = options.option_count - 1  # type: ignore[attr-defined]
        assert options.highlighted == last  # type: ignore[attr-defined]
        await press(pilot, "k", "g", "j")
        assert options.highlighted == 1  # type: ignore[attr-defined]
        await press(pilot, "q")
        assert len(app.screen_stack) == 1
