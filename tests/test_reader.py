"""What the reader thread tells of its work: how far it is in a step, and that it can be left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from queue import Queue

from textual.message import Message

from dumptui.core.cache import Cache
from dumptui.core.run import Run, StepKey
from dumptui.core.summaries import Summaries
from dumptui.tui.answers import Loaded, Progress
from dumptui.tui.reader import Reader
from tests.screen import DEADLINE, ROOT
from tests.writer import Layout, sample, write_step


def read_step(root: Path) -> list[Message]:
    """Everything that is posted until a step is there."""
    posted: Queue[Message] = Queue()
    run = Run.open(root)
    reader = Reader(Summaries(run, Cache(root, None)), posted.put)
    reader.open_step(StepKey(0))
    messages = [posted.get(timeout=DEADLINE)]
    while not isinstance(messages[-1], Loaded):
        messages.append(posted.get(timeout=DEADLINE))
    reader.close()
    return messages


def test_the_progress_of_a_step_counts_all_its_files_and_never_goes_back(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(at, prompt_len=50, response_len=400) for at in range(8)], Layout(dp=2))
    told = [one for one in read_step(tmp_path) if isinstance(one, Progress)]
    files = Run.open(tmp_path).steps[StepKey(0)]
    assert files.rollout is not None
    assert {one.total for one in told} == {files.rollout.size + sum(entry.size for _, entry in files.shards)}
    done = [one.done for one in told]
    assert done == sorted(done) and done[0] == 0 and done[-1] > files.rollout.size


def test_a_reader_that_was_asked_nothing_keeps_no_process_alive(tmp_path: Path) -> None:
    write_step(tmp_path, 0, [sample(0)], Layout())
    imports = "import sys; from dumptui.core.run import Run; from dumptui.tui.app import DumpTui"
    code = f"{imports}; DumpTui(Run.open(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True, timeout=DEADLINE)
