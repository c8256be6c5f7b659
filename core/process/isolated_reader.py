"""A separate process that reads binary formats whose reader may end the process.

A damaged length in a parquet file makes the reader ask for more memory than there is and end the process, not raise;
other damage makes it panic on standard error, over the screen. So one process reads all such files. It is started as a
new program, not forked: a fork would lack the threads of a polars that is loaded here.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dumptui.core.errors import DumpError, NotHere
from dumptui.core.process.memory_limit import memory_ceiling

if TYPE_CHECKING:
    import subprocess

Answer = TypeVar("Answer")

ANSWER_SECONDS = 30
"""The longest wait for an answer; a mirror of 30 MB takes 0.2 s."""
GROWTH_FACTOR, HEADROOM_BYTES = 64, 2 << 30
"""Reading a file of N bytes may take GROWTH_FACTOR * N + HEADROOM_BYTES bytes of memory."""
_SERVE_CODE = "import sys; sys.path[:] = {path!r}; from dumptui.core.process.isolated_reader import serve; serve()"

_lock = threading.Lock()
_process: subprocess.Popen[bytes] | None = None
_owner = 0  # the process that started it: a fork must not write to it too
_is_reader = False


class Reply(NamedTuple):
    """The answer of the process, or the `problem` that it raised."""

    answer: Any
    problem: DumpError | None = None


def may_die() -> None:
    """Make this process one that may die: standard error is discarded, and `read_isolated` reads in this process."""
    global _is_reader
    _is_reader = True
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    os.close(silent)


def read_isolated(read: Callable[..., Answer], path: str | os.PathLike[str], *args: object) -> Answer:
    """Return `read(path, *args)` from the separate process; `read` must be a function of a module.

    Raises the DumpError of `read`, a DumpError for a file that ends the process, and NotHere without such a process.
    """
    if _is_reader:
        return guarded(read, path, *args)
    with _lock:
        reply = ask(read, path, args)
    if reply.problem is not None:
        raise reply.problem
    return reply.answer  # type: ignore[no-any-return]


def guarded(read: Callable[..., Answer], path: str | os.PathLike[str], *args: object) -> Answer:
    try:
        size = os.stat(path).st_size
    except OSError:
        size = 0  # `read` reports what is wrong with it
    with memory_ceiling(GROWTH_FACTOR * size + HEADROOM_BYTES):
        return read(path, *args)


def ask(read: Callable[..., Any], path: str | os.PathLike[str], args: tuple[object, ...]) -> Reply:
    try:
        process = running_process()
    except (OSError, MemoryError) as error:
        return Reply(None, NotHere(path, f"no process can be started to read it: {error}"))
    try:
        return exchange(process, (read, path, args))
    except TimeoutError:
        process.kill()
        process.wait()
        return Reply(None, NotHere(path, f"it could not be read within {ANSWER_SECONDS} s"))
    except (EOFError, OSError, pickle.UnpicklingError):
        process.kill()
        return Reply(None, death(path, process.wait()))


def running_process() -> subprocess.Popen[bytes]:
    """Return the process, which is started if there is none. It ends with its input, and so with this process."""
    global _process, _owner
    if _process is None or _owner != os.getpid() or _process.poll() is not None:
        import subprocess  # most starts do without

        _owner = os.getpid()
        code = _SERVE_CODE.format(path=sys.path)
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        _process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **streams)  # type: ignore[call-overload]
    return _process


def exchange(process: subprocess.Popen[bytes], question: object) -> Reply:
    """Send a question and return the reply. Raises TimeoutError, and EOFError or OSError if the process died."""
    assert process.stdin is not None and process.stdout is not None
    pickle.dump(question, process.stdin)
    process.stdin.flush()
    wait = select.poll()
    wait.register(process.stdout, select.POLLIN)
    if not wait.poll(ANSWER_SECONDS * 1000):
        raise TimeoutError
    reply: Reply = pickle.load(process.stdout)
    return reply


def death(path: str | os.PathLike[str], code: int) -> DumpError:
    """Return the error for a process that died: damage if its memory is unlimited, else perhaps a lack of memory."""
    if code == -signal.SIGABRT and resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return DumpError(path, "is damaged: the process that read it had to end (SIGABRT)")
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return NotHere(path, f"the process that read it ended ({how}), perhaps for lack of memory")


def serve() -> None:
    """Answer one question after the other; the main function of the process."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # standard output carries the answers only, not the output of libraries
    may_die()
    while True:
        try:
            read, path, args = pickle.load(questions)
        except EOFError:
            return
        pickle.dump(reply_to(read, path, args), answers)
        answers.flush()


def reply_to(read: Callable[..., Any], path: str | os.PathLike[str], args: tuple[object, ...]) -> Reply:
    try:
        return Reply(guarded(read, path, *args))
    except DumpError as error:
        return Reply(None, error)
