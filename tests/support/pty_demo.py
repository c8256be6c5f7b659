"""Start the installed `dumptui --demo` in a real pseudo-terminal, see its first screen, quit; exit 0 if it works."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

DEADLINE = 60.0


def read_until(fd: int, wanted: bytes, seen: bytes = b"") -> bytes:
    end = time.monotonic() + DEADLINE
    while wanted not in seen:
        if time.monotonic() > end:
            raise SystemExit(f"dumptui --demo never showed {wanted!r}; it showed {seen[-2000:]!r}")
        if select.select([fd], [], [], 1)[0]:
            seen += os.read(fd, 65536)
    return seen


def main() -> int:
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp("dumptui", ["dumptui", "--demo"])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    seen = read_until(fd, b"samples in")
    os.write(fd, b"q")
    read_until(fd, b"\x1b[?1049l", seen)
    _, status = os.waitpid(pid, 0)
    print(f"dumptui --demo drew {len(seen)} bytes and ended with {os.waitstatus_to_exitcode(status)}")
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
