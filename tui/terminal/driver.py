"""How keys come from the terminal and what is drawn goes there, also from and to one that is gone or takes nothing."""

from __future__ import annotations

import os
import selectors
from codecs import getincrementaldecoder
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TextIO, cast

from textual._xterm_parser import XTermParser
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver

MAX_WAITING_CHARACTERS = 64 << 10
"""Above this, nothing more is drawn until the terminal has read what waits: a screen of 120x40 takes up to 30,000."""
ENDING_SECONDS = 0.5
"""How long the last of it is waited for."""
LOOK_SECONDS = 0.1
"""Between two looks at whether the input is to end."""
BLOCK_BYTES = 4096


class HasTerminal(Protocol):
    def end_without_terminal(self) -> None: ...

    def contain(self, error: BaseException) -> None: ...

    def call_later(self, callback: Callable[..., Any], *arguments: Any) -> bool: ...


class Writer(WriterThread):
    """Textual's has room for 30 texts, and keeps the whole program waiting as long as nobody takes what it writes."""

    def __init__(self, file: TextIO, gone: Callable[[], object]) -> None:
        super().__init__(file)
        self._descriptor, self._encoding = file.fileno(), file.encoding or "utf-8"
        self._texts: SimpleQueue[str | None] = SimpleQueue()
        self._put, self._taken = 0, 0  # characters: the first changes in the event loop only, the second in the thread
        self._gone = gone

    @property
    def lags(self) -> bool:
        return self._put - self._taken > MAX_WAITING_CHARACTERS

    def write(self, text: str) -> None:
        self._put += len(text)
        self._texts.put(text)

    def run(self) -> None:
        while (text := self._texts.get()) is not None:
            data = text.encode(self._encoding, "backslashreplace")
            try:
                while data:  # not by the file, whose lock would be waited for at the end
                    data = data[os.write(self._descriptor, data) :]
            except OSError:
                self._gone()
            self._taken += len(text)

    def stop(self) -> None:
        self._texts.put(None)
        self.join(ENDING_SECONDS)


class TerminalDriver(LinuxDriver):
    """Ends the app when the terminal can't be read or written any more: not every end of one comes with a SIGHUP."""

    _app: HasTerminal  # type: ignore[assignment]

    @property
    def _writer_thread(self) -> Writer | None:
        return self._writer

    @_writer_thread.setter
    def _writer_thread(self, textuals: WriterThread | None) -> None:
        """Where Textual makes its own, which is not started yet, this one takes its place."""
        self._writer = None if textuals is None else Writer(cast(TextIO, self._file), self._gone)

    @property
    def lags(self) -> bool:
        return self._writer is not None and self._writer.lags

    def _gone(self) -> None:
        self._loop.call_soon_threadsafe(self._app.end_without_terminal)

    def run_input_thread(self) -> None:
        parser, decode = XTermParser(self._debug), getincrementaldecoder("utf-8")("replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                text = ""
                if selector.select(LOOK_SECONDS):
                    try:
                        data = os.read(self.fileno, BLOCK_BYTES)
                    except BlockingIOError:
                        continue
                    except OSError:
                        data = b""
                    if not data:
                        return self._gone()
                    text = decode(data)
                try:
                    for event in [*(parser.feed(text) if text else ()), *parser.tick()]:
                        self.process_message(event)
                except Exception as error:  # a key that can't be understood costs that key
                    parser = XTermParser(self._debug)
                    self._app.call_later(self._app.contain, error)

    def leave(self) -> None:
        """What is still written goes nowhere."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nowhere, descriptor)
        os.close(nowhere)
