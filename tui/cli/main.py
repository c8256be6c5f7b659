"""The command line: what to open, what to print, and starting the screen."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Sequence
from io import BufferedWriter, FileIO, TextIOWrapper
from itertools import islice
from typing import TYPE_CHECKING, NoReturn, TextIO

from dumptui import __version__
from dumptui.core.errors import DumpError, TooLittleMemory
from dumptui.core.process import gc_tuning, resources
from dumptui.core.text import visible
from dumptui.tui.panes import TABS

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer

    from dumptui.core.files.step_files import StepKey
    from dumptui.core.run.run import Run
    from dumptui.core.store.summaries import Summaries

# What reads a run is imported where it is used: numpy alone would take most of the time of --version and --help.

PRINT_VIEWS = (
    "overview",
    "steps",
    "samples",
    "groups",
    "prompts",
    "tools",
    "batch",
    "tokens",
    "worst",
    "pair",
    "conversation",
    "facts",
    "health",
    "metrics",
    "lanes",
    "keys",
)
STREAM_NAMES = ("stdin", "stdout", "stderr")
"""In the order of their descriptors."""
MOST_TOKENS = 1000  # the worst tokens that a survey of a step keeps: more could not be ranked
ENDING_SECONDS = 1.0
FRAMES_PER_SECOND = "120"
"""Paints a second at most: what a key changes in a second go, as the chart of a page, comes 8 ms later, not 17-33."""
SCREEN_THREADS = 6
"""Those that read keys, write, and read the dump, with some for what is asked beside."""
NUMPY_BYTES = 128 << 20
"""Address space that numpy takes; and some to read a small file."""
SCREEN_BYTES = 768 << 20
"""Address space of those threads, each of which reserves 72 MiB, and of what they read with."""
SAMPLE_PATTERN = re.compile(r"(-?\d+|\?)(?:\.(\d+))?")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 1 (health found something) or 2 (one sentence on stderr says what)."""
    gc_tuning.postpone()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads for algebra that is not done here
    resources.cap_polars()
    closed = open_closed()
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout = output(sys.stdout)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # where the locale is not UTF-8
    try:
        code = answer(argv, closed)
        sys.stdout.flush()
        return code
    except DumpError as error:
        if isinstance(error, Unwritable):
            put_nowhere(sys.stdout)
        complain(str(error))
        return 2
    except MemoryError as error:
        complain(str(error if isinstance(error, TooLittleMemory) else TooLittleMemory()))
        return 2
    except BrokenPipeError:  # the reader went away
        put_nowhere(sys.stdout)
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as error:
        if isinstance(error, ImportError) and "failed to map" in str(error):
            complain(str(TooLittleMemory()))
            return 2
        from dumptui.core.defect import defect_of

        complain(f"a defect of dumptui: {defect_of(error)}; please report this line")
        return 2


def answer(argv: Sequence[str] | None, closed: Collection[str]) -> int:
    """What the words of the command line ask for. Raises DumpError and BrokenPipeError."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.print == "keys":
        return print_keys(args)
    if args.demo == (args.run is not None):
        parser.error("give a RUN folder, or --demo for a generated one")
    if args.follow and args.print not in (None, "steps"):
        parser.error("--follow can only print the steps")
    if args.where is not None and (args.print not in ("samples", "steps") or args.follow):
        parser.error("--where needs --print samples or --print steps, without --follow")
    if (args.partner is not None or args.words) and args.print != "pair":
        parser.error("--with and --words need --print pair")
    if args.print is None and not can_draw():
        args.print = "steps"
    if args.print is not None and "stdout" in closed:
        raise DumpError("standard output", "is closed")
    code = with_demo(args, run_command) if args.demo else run_command(args)
    if args.print is None:
        leave_what_hangs(code)
    return code


# The three streams ------------------------------------------------------------------------------------------------


def open_closed() -> list[str]:
    """The names of those that whoever started this has closed: their numbers would be given to the next files."""
    closed = [name for name in STREAM_NAMES if getattr(sys, name) is None]
    for name in closed:
        descriptor, nowhere = STREAM_NAMES.index(name), os.open(os.devnull, os.O_RDWR)
        if nowhere != descriptor:
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
        stream = open(descriptor, "w" if descriptor else "r")  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    return closed


def complain(problem: str) -> None:
    try:
        print(f"dumptui: {visible(problem)}", file=sys.stderr, flush=True)
    except OSError:
        put_nowhere(sys.stderr)


class Unwritable(DumpError):
    """Standard output takes no more, such as a file on a full disk."""


class Output(FileIO):
    """A descriptor whose own errors can be told from those of what is read."""

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Unwritable("standard output", f"can't be written: {error.strerror or error}") from error


def output(stream: TextIOWrapper) -> TextIOWrapper:
    """The same stream, but for what it raises."""
    raw = BufferedWriter(Output(stream.fileno(), "w", closefd=False))
    return TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=stream.line_buffering)


def put_nowhere(stream: TextIO) -> None:
    """Nor may Python complain when it flushes at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def leave_what_hangs(code: int) -> None:
    """Python waits at its end for every thread, also for one that reads from a file system that does not answer."""
    end = time.monotonic() + ENDING_SECONDS
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                sys.stderr.flush()
                os._exit(code)


def print_keys(args: argparse.Namespace) -> int:
    from dumptui.tui.cli.print_views import write
    from dumptui.tui.session import keymap

    rows = keymap.rows()
    return write(args, rows, {"rows": rows})


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, without the usage."""
        complain(f"{message}; see --help")
        self.exit(2)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        sys.stdout.flush()  # a write that fails is reported, not lost
        super().exit(status, message)


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="dumptui",
        description="A terminal viewer for the debug dumps of reinforcement-learning runs of language models.",
        epilog="Keys are remapped by `id = keys` lines in XDG_CONFIG_HOME/dumptui/keys; --print keys lists the ids.",
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="a --dump-details folder, or a folder of rollout or train .pt files",
    )
    parser.add_argument("--demo", action="store_true", help="open a generated run in a temporary folder")
    at = parser.add_mutually_exclusive_group()
    at.add_argument("--step", type=int, metavar="N", help="a train step (default: the newest readable one)")
    at.add_argument("--eval", type=int, metavar="N", help="an eval step")
    parser.add_argument(
        "--sample",
        type=sample_key,
        metavar="I[.K]",
        help="Sample.index; where it repeats, .K picks one, counted from 0; ?.K picks one without an index",
    )
    parser.add_argument(
        "--pane",
        choices=tuple(TABS),
        default=None,
        help="the pane to start in",
    )
    parser.add_argument("--follow", action="store_true", help="a live run: show each step as its files land")
    parser.add_argument("--bell", action="store_true", help="ring when a followed step crosses a threshold")
    parser.add_argument("--no-mouse", action="store_true", help="leave clicks and selection to the terminal")
    parser.add_argument("--reward-key", metavar="KEY", help="the entry to use as reward where rewards are dicts")
    parser.add_argument(
        "--print", choices=PRINT_VIEWS, metavar="VIEW", help=f"print a view and exit: {', '.join(PRINT_VIEWS)}"
    )
    parser.add_argument("--key", metavar="K", help="the one metric to print (--print metrics)")
    parser.add_argument(
        "--with", type=sample_key, metavar="J[.K]", dest="partner", help="the sample to compare with (--print pair)"
    )
    parser.add_argument("--words", action="store_true", help="compare words, not tokens (--print pair)")
    parser.add_argument(
        "--where", metavar="EXPR", help="only samples, or steps, that match, such as 'reward == 0 and truncated'"
    )
    parser.add_argument(
        "--limit", type=token_count, metavar="N", default=20, help="how many tokens (--print worst; default: 20)"
    )
    parser.add_argument("--no-cache", action="store_true", help="neither read nor write cached summaries")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document")
    form.add_argument("--csv", action="store_true", help="print the rows as CSV")
    parser.add_argument("--version", action="version", version=f"dumptui {__version__}")
    return parser


def token_count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MOST_TOKENS:
        raise argparse.ArgumentTypeError(f"not a number from 1 to {MOST_TOKENS}: {text!r}")
    return int(text)


def sample_key(text: str) -> tuple[int | None, int]:
    """The index, None for `?`, and the occurrence."""
    match = SAMPLE_PATTERN.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"not a sample: {text!r}; give its index, or index.occurrence")
    return None if match[1] == "?" else int(match[1]), int(match[2] or 0)


def can_draw() -> bool:
    """Whether the screen can be drawn: Textual reads the keys from stdin and writes to stderr, also into a pipe."""
    terminals = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    return terminals and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def step_key(args: argparse.Namespace) -> StepKey | None:
    from dumptui.core.files.step_files import StepKey

    if args.eval is not None:
        return StepKey(args.eval, True)
    return None if args.step is None else StepKey(args.step)


def with_demo(args: argparse.Namespace, command: Callable[[argparse.Namespace], int]) -> int:
    from dumptui.core.demo.write_demo import write_demo
    from dumptui.core.process.temporary_folder import temporary_folder

    with temporary_folder("dumptui-demo-") as folder:
        args.run = folder / "demo-grpo-8gpu"
        steps = 6 if args.follow else 24
        write_demo(args.run, steps=steps, on_step=say_progress if sys.stderr.isatty() else None)
        if not args.follow:
            return command(args)
        ended = threading.Event()
        thread = threading.Thread(target=grow_demo, args=(args.run, steps, ended), daemon=True)
        thread.start()
        try:
            return command(args)
        finally:
            ended.set()
            thread.join(ENDING_SECONDS)


def grow_demo(root: Path, steps: int, ended: threading.Event) -> None:
    """A file every second or so."""
    from dumptui.core.demo.write_demo import grow

    with contextlib.suppress(FileNotFoundError):
        for _ in grow(root, steps, 1000):
            if ended.wait(1.2):
                return


def say_progress(done: int, steps: int) -> None:
    end = "" if done < steps else "\r\x1b[K"
    print(f"\rwriting the demo run: step {done} of {steps}{end}", end="", file=sys.stderr, flush=True)


def run_command(args: argparse.Namespace) -> int:
    from dumptui.core.store.cache import Cache, cache_folder
    from dumptui.core.store.summaries import Summaries

    resources.spare_address_space()
    if not resources.can_have_bytes(NUMPY_BYTES):  # without, a library of numpy ends the process
        raise TooLittleMemory
    if args.print is None:
        check_terminal()
    run = open_run(args)
    if isinstance(run, int):
        return run
    key = step_key(args)
    if key is not None:
        run.files(key)  # or there is none to show
    summaries = Summaries(run, Cache(run.root, None if args.no_cache else cache_folder()), args.reward_key)
    if args.print is None:
        return start_screen(run, summaries, args)
    from dumptui.tui.cli.print_views import Request, check_sample, print_view

    gc_tuning.collect_from_here()
    request = Request(run, summaries, key, args)
    check_sample(request)
    return print_view(request)


def open_run(args: argparse.Namespace) -> Run | int:
    """The run or, of one that was waited for in vain, the exit code. Raises DumpError."""
    from pathlib import Path

    from dumptui.core.run.run import Run

    root = Path(args.run)
    try:
        return Run.open(root)
    except DumpError as error:
        from dumptui.core.run.nearby import with_suggestion

        problem = with_suggestion(error, root)
    if not args.follow:
        raise problem
    from dumptui.tui.app.waiting import WaitingApp, is_worth_waiting

    if not is_worth_waiting(problem):
        raise problem
    if args.print is not None:
        from dumptui.tui.cli.wait_in_print import wait_in_print

        return wait_in_print(root, step_key(args))
    from dumptui.tui.terminal.themes import begin_with_theme

    app = WaitingApp(root, step_key(args))
    begin_with_theme(app)
    app.run(mouse=not args.no_mouse)
    return app.found or app.return_code or 0


def check_terminal() -> None:
    columns, lines = os.get_terminal_size(sys.stderr.fileno())
    if columns < 40 or lines < 10:
        raise DumpError("terminal", f"{columns}x{lines} is too small; dumptui needs 40x10")


def start_screen(run: Run, summaries: Summaries, args: argparse.Namespace) -> int:
    from dumptui.core.store.state import State, kept_reward_key
    from dumptui.core.store.summaries import WORTH_WORKERS

    if not resources.can_have_bytes(SCREEN_BYTES):
        raise DumpError("terminal", f"the screen takes {SCREEN_BYTES >> 20} MiB of address space (ulimit -v)")
    if not resources.can_have_threads(SCREEN_THREADS):
        raise DumpError("terminal", f"the screen takes {SCREEN_THREADS} threads, more than may be started (ulimit -u)")
    key = step_key(args)
    state = State(run.root, None) if args.demo else State.of(run.root)  # a generated run is gone with its folder
    if args.reward_key is None:
        summaries.reward_key = kept_reward_key(state)
    workers = None
    unknown = (key for key in run.steps if summaries.known(key) is None)
    if len(list(islice(unknown, WORTH_WORKERS))) == WORTH_WORKERS:  # no more are counted: that takes 0.1 s of 5,000
        from dumptui.core.process.workers import Workers

        workers = Workers.begin()  # before Textual starts its threads

    os.environ.setdefault("TEXTUAL_FPS", FRAMES_PER_SECOND)
    from dumptui.tui.app.app import DumpTui
    from dumptui.tui.terminal.defects import last_words
    from dumptui.tui.terminal.themes import begin_with_theme

    app = DumpTui(run, key, args.sample, args.pane, summaries, workers, args.follow, args.bell, state)
    begin_with_theme(app)
    app.run(mouse=not args.no_mouse)
    for defect in app.defects:
        print(last_words(defect), file=sys.stderr)
    summaries.save()
    return app.return_code or 0
