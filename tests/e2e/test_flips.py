"""Every flipped bit of a parquet mirror and of a tokenizer, in the printed views and on screen: no abort, no hang, no
traceback.

By default some bits of each, spread evenly and at random. DUMPTUI_FLIPS=N tries N bits of each file, DUMPTUI_FLIPS=all
every one.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from dumptui.core.files.step_files import StepKey
from dumptui.tui.cli.main import main
from tests.support.screen import text, until
from tests.support.session import opened
from tests.support.writer import Layout, sample, write_step

TOKENS = [0, 1, 2, 3, 8]
WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "mat", "<end>"]
VIEWS = (["tokens", "--sample", "0"], ["samples"], ["conversation", "--sample", "0"], ["health"])
HANG_SECONDS = 60.0
"""After which a flip counts as a hang, and ends the tests: a view takes some hundredths of a second."""
WHOLE = "theacatdog«<end>»"
"""The text of the sample on screen."""
DEFECT_SIGNS = ("Traceback", "defect of dumptui", "please report")
SHARE = os.environ.get("DUMPTUI_FLIPS", "")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two steps whose samples are read from their mirrors, as the rollout file is gone, and a small tokenizer."""
    root = tmp_path / "run"
    for step in range(2):
        samples = [sample(2 * step + at, prompt_len=2, response_len=3, tokens=TOKENS) for at in range(2)]
        write_step(root, step, samples, Layout())
        (root / "rollout_data" / f"{step}.pt").unlink()
    write_tokenizer(root / "tokenizer")
    return root


def write_tokenizer(folder: Path) -> None:
    folder.mkdir()
    model = {"type": "WordLevel", "vocab": {word: at for at, word in enumerate(WORDS)}, "unk_token": "the"}
    added = [{"id": 8, "content": "<end>", "special": True, "normalized": False}]
    document = {"added_tokens": added, "decoder": {"type": "ByteLevel"}, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps(document, separators=(",", ":")))


MIRROR, TOKENIZER = "dashboard_columns/rollout_0.parquet", "tokenizer/tokenizer.json"


def flips(path: Path, usual: int) -> Iterator[int]:
    """Flip one bit of a file after the other, and yield its number; the file is whole again at the end."""
    whole = path.read_bytes()
    for bit in chosen_bits(8 * len(whole), usual):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        os.utime(path, (bit, bit))  # so that it is old, and not the file of the flip before
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True, file=sys.__stderr__ or 2)
        yield bit
    faulthandler.cancel_dump_traceback_later()
    path.write_bytes(whole)


def chosen_bits(count: int, usual: int) -> list[int]:
    if SHARE == "all":
        return list(range(count))
    tried = min(int(SHARE or usual), count)
    evenly = set(range(0, count, max(1, 2 * count // tried)))
    return sorted(evenly | set(random.Random(7).sample(range(count), tried - tried // 2)))


@pytest.mark.parametrize("name", [MIRROR, TOKENIZER])
def test_a_flipped_bit_is_a_printed_view_or_one_sentence(
    run: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    ended: dict[int, int] = {}
    for bit in flips(run / name, 60):
        for view in VIEWS:
            code = main([str(run), "--step", "0", "--no-cache", "--print", *view])
            out, err = capfd.readouterr()
            assert code in (0, 1, 2) and err.count("\n") <= 2, (bit, view, code, err)
            assert not any(sign in out + err for sign in DEFECT_SIGNS), (bit, view, err)
            assert code != 2 or err.startswith("dumptui: "), (bit, view, err)
            ended[code] = ended.get(code, 0) + 1
    print(f"{name}: views by exit code: {ended}")


async def reads_mirror(run: Path, bits: Iterator[int], check: Callable[[int, str], None]) -> None:
    """One app, which goes to the step of the mirror after each flip."""
    async with opened(run, size=(80, 24), sample=(2, 0), pane="tokens") as (app, pilot):
        for bit in bits:
            app.action_step(-1)
            await until(pilot, lambda: app.steps.wanted == StepKey(0) and not app.wait.waiting)
            check(bit, text(app))
            app.action_step(1)
            await until(pilot, lambda: app.steps.wanted == StepKey(1) and not app.wait.waiting)


async def reads_tokenizer(run: Path, bits: Iterator[int], check: Callable[[int, str], None]) -> None:
    """A new app after each flip, as a tokenizer is read once."""
    for bit in bits:
        async with opened(run, size=(80, 24), sample=(0, 0), pane="tokens") as (app, _):
            check(bit, text(app))


@pytest.mark.parametrize(("name", "read"), [(MIRROR, reads_mirror), (TOKENIZER, reads_tokenizer)])
async def test_a_flipped_bit_leaves_a_screen(run: Path, name: str, read: Callable[..., Awaitable[None]]) -> None:
    as_before: list[bool] = []

    def check(bit: int, shown: str) -> None:
        assert "run" in shown and not any(sign in shown for sign in DEFECT_SIGNS), (bit, shown)
        as_before.append(WHOLE in shown)

    await read(run, flips(run / name, 30), check)
    assert 0 < sum(as_before) < len(as_before)
    print(f"{name}: {len(as_before)} flips on screen, {sum(as_before)} of which change no text")
