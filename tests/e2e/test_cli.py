"""The command line: exit codes, one sentence for what is wrong, and printed views that other programs can read."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dumptui import __version__
from dumptui.tui.cli.main import PRINT_VIEWS, main
from tests.support.screen import DEADLINE, ROOT, Terminal, foreign, run
from tests.support.writer import sample, write_step

EVIL = "\x1b]0;owned\x07\x1b[2J\u202e\x9b\x00"


def ask(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    """The exit code, standard output and standard error."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{tmp}/nothing"], "no such folder"),
        (["{tmp}"], "holds no dump"),
        (["{tmp}/file"], "not a folder"),
        (["{tmp}/\x1b]0;owned\x07"], "␛]0;owned␇: no such folder"),
        (["{demo}", "--print", "samples", "--step", "9"], "no step 9: the run has train steps 0 to 3"),
        (["{demo}", "--print", "samples", "--eval", "9"], "no eval 9"),
        (["{demo}", "--print", "tokens", "--sample", "7"], "no sample 7 in step 3"),
        (["{demo}", "--print", "tokens", "--sample", "x"], "not a sample: 'x'"),
        (["{demo}", "--print", "samples", "--where", "rewrd > 0"], "unknown column rewrd: did you mean reward"),
        (["{demo}", "--print", "samples", "--where", "\x1b == 1"], "␛ has no meaning in a filter"),
        (["{demo}", "--where", "reward > 0"], "--where needs --print samples"),
        (["{demo}", "--print", "nothing"], "invalid choice: 'nothing'"),
        (["{demo}", "--step", "1", "--eval", "1"], "not allowed with"),
        (["{demo}", "--demo"], "give a RUN folder"),
        ([], "give a RUN folder"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, demo: Path, words: list[str], said: str
) -> None:
    (tmp_path / "file").write_text("")
    code, out, err = ask(capsys, *(word.format(tmp=tmp_path, demo=demo) for word in words))
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("dumptui: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert "\x1b" not in err


@pytest.mark.parametrize("spelled", ["{run}/", "{link}", "{link}//", "{run}/rollout_data", "{run}/rollout_data/.."])
def test_a_run_may_be_spelled_in_any_way(capsys: pytest.CaptureFixture[str], tmp_path: Path, spelled: str) -> None:
    folder, link = tmp_path / "ü 🙂\n[/x]", tmp_path / "link"
    link.symlink_to(folder)
    write_step(folder, 0, [sample(0), sample(1)])
    code, out, err = ask(capsys, spelled.format(run=folder, link=link), "--print", "steps", "--json")
    assert (code, err, json.loads(out)["rows"][0]["samples"]) == (0, "", 2)
    code, out, err = ask(capsys, spelled.format(run=folder, link=link), "--print", "tokens", "--sample", "1")
    assert (code, err) == (0, "")


def test_the_screen_refuses_before_it_starts(demo: Path) -> None:
    cases = [((demo, "--step", "9"), (80, 24), "no step 9"), ((demo,), (39, 9), "39x9 is too small")]
    for words, size, said in cases:
        with Terminal(*words, size=size) as terminal:
            assert terminal.end() == 2
            assert said in " ".join(terminal.text.split())
            assert b"\x1b" not in terminal.raw


# Case 33: NVIDIA/OpenShell#3120, a terminal that can't draw


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_terminal_that_can_not_draw_gets_the_table(demo: Path, env: dict[str, str]) -> None:
    with Terminal(demo, size=(200, 24), env=env) as terminal:
        assert terminal.end() == 0
        assert terminal.lines[0].startswith("step  evaluation  samples")
        assert b"\x1b" not in terminal.raw


def test_pipes_get_the_table_and_the_demo_leaves_nothing(tmp_path: Path) -> None:
    done = run("--demo", env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1 + 24 + 4
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_ends_it_quietly(demo: Path) -> None:
    command = [sys.executable, "-m", "dumptui", str(demo), "--print", "tokens"]
    writer = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stderr is not None
    assert writer.stdout.readline().startswith(b"sample_index")
    writer.stdout.close()
    assert writer.stderr.read() == b""
    writer.stderr.close()
    assert writer.wait() in (0, 128 + signal.SIGPIPE)  # of one large write Python does not always learn it


# A stream that can't be had or can't take what is printed ----------------------------------------------------------


def shell(line: str, *words: str | Path, stdin: Any = None) -> subprocess.CompletedProcess[str]:
    """A line for sh with `$0` for dumptui, and what comes out at standard error."""
    start = f'exec "{sys.executable}" -m dumptui "$@"'
    return subprocess.run(
        ["sh", "-c", line.replace("$0", start), "sh", *map(str, words)],
        cwd=ROOT,
        text=True,
        stdin=stdin,
        capture_output=True,
        timeout=DEADLINE,
    )


@pytest.mark.parametrize("view", [*PRINT_VIEWS, "--json", "--csv", "--follow", "--help", "--version", None])
def test_what_can_not_be_written_is_one_sentence_and_exit_code_2(demo: Path, view: str | None) -> None:
    words: list[str | Path] = [] if view == "keys" else [demo, "--step", "2"]
    words += ["--print", view] if view in PRINT_VIEWS else ["--print", "steps", view] if view else []
    words += ["--sample", "64"] if view in ("tokens", "conversation", "facts", "pair") else []
    words += ["--with", "65"] if view == "pair" else []
    done = shell("$0 >/dev/full", *words, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (
        2,
        "dumptui: standard output: can't be written: No space left on device\n",
    )


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("$0 <&-", 0, ""),
        ("$0 2>&-", 0, ""),
        ("$0 >&-", 2, "dumptui: standard output: is closed\n"),
        ("$0 <&- >&- 2>&-", 2, ""),
        ("$0 --step 99 --print samples 2>/dev/full", 2, ""),
        ("$0 --step 99 --print samples 2>&-", 2, ""),
        ("$0 --step x 2>/dev/full", 2, ""),
    ],
)
def test_closed_streams_are_no_defect(demo: Path, line: str, code: int, said: str) -> None:
    """A job that cron or a daemon starts may have none of them."""
    done = shell(line, demo)
    assert (done.returncode, done.stderr) == (code, said)
    assert code or done.stdout.startswith("step  evaluation")


def test_a_locale_without_the_characters(demo: Path) -> None:
    done = run(demo, "--print", "tokens", "--sample", "100", env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u" in done.stdout


def strict_json(text: str) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("view", ["steps", "samples", "groups", "batch", "tokens", "health", "metrics", "lanes"])
def test_every_view_as_table_csv_and_strict_json(capsys: pytest.CaptureFixture[str], shared: Path, view: str) -> None:
    root = shared / "runs" / "odd"
    words: list[str | Path] = [
        root,
        "--print",
        view,
        "--no-cache",
        *(["--step", "1"] if view in ("samples", "groups", "batch") else []),
    ]
    code, table, err = ask(capsys, *words)
    assert (code in (0, 1), err) == (True, "")
    assert not any(char < " " and char != "\n" for char in table)
    code, document, _ = ask(capsys, *words, "--json")
    rows = strict_json(document)["rows"]
    code, text, _ = ask(capsys, *words, "--csv")
    records = list(csv.DictReader(io.StringIO(text)))
    if view == "tokens":
        assert len(records) == sum(row["total_length"] for row in rows)
    else:
        assert len(records) == len(rows)
        assert all(set(row) <= set(record) for row, record in zip(rows, records, strict=True))


def test_not_finite_is_text_in_json_and_nothing_is_null(capsys: pytest.CaptureFixture[str], shared: Path) -> None:
    _, document, _ = ask(capsys, shared / "runs" / "odd", "--print", "tokens", "--step", "1", "--json")
    values = [one for row in strict_json(document)["rows"] for one in row["fields"]["lp_diff"]["values"] or ()]
    assert {"NaN", "Infinity", None} <= set(values)


def test_text_of_a_dump_is_safe_on_a_terminal_and_whole_in_a_pipe(tmp_path: Path) -> None:
    write_step(
        tmp_path,
        0,
        [sample(0, status=EVIL, group_index=None)],
        fields=(),
        truth={EVIL.replace("\x00", ""): [[0.5] * 6], "log_probs": [[-0.5] * 6]},
        mirror=False,
    )
    for view, form in (("samples", []), ("tokens", ["--csv"]), ("tokens", [])):
        with Terminal(tmp_path, "--print", view, "--no-cache", *form, size=(400, 24)) as terminal:
            assert terminal.end() == 0
            assert foreign(bytes(terminal.raw)) == [], (view, form)
    status = next(csv.DictReader(io.StringIO(run(tmp_path, "--print", "samples", "--csv", "--no-cache").stdout)))[
        "status"
    ]
    assert status == EVIL


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(capsys, "--version")[1].startswith("dumptui ")
    code, out, _ = ask(capsys, "--help")
    assert code == 0
    assert all(word in out for word in ("--print", "--step", "--demo"))


def test_where_prints_the_samples_for_which_it_holds(capsys: pytest.CaptureFixture[str], shared: Path) -> None:
    words = (shared / "runs" / "multiturn", "--print", "samples", "--step", "1", "--json", "--no-cache")
    every = strict_json(ask(capsys, *words)[1])["rows"]
    found = strict_json(ask(capsys, *words, "--where", "tool_calls >= 2 or status != 'completed'")[1])["rows"]
    assert found == [row for row in every if (row["tool_calls"] or 0) >= 2 or row["status"] != "completed"]
    assert 0 < len(found) < len(every)


def test_where_takes_the_labels_of_columns_on_screen(capsys: pytest.CaptureFixture[str], demo: Path) -> None:
    words = (demo, "--print", "samples", "--step", "1", "--json", "--where")
    by_label = ask(capsys, *words, "len > 100 and max |Δ| > 0.02")
    assert by_label == ask(capsys, *words, "response_length > 100 and max_abs_lp_diff > 0.02")
    assert strict_json(by_label[1])["rows"]


def test_a_defect_is_one_line_with_what_to_report(
    demo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("nobody expected this")

    monkeypatch.setattr("dumptui.core.store.summaries.Summaries.samples", fail)
    assert main([str(demo), "--no-cache", "--print", "samples"]) == 2
    said = capsys.readouterr().err
    assert "ZeroDivisionError: nobody expected this" in said and "print_views.py:" in said and __version__ in said
    assert said.count("\n") == 1
