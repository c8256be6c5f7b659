"""dumptui: a terminal viewer for the debug dumps of reinforcement-learning runs of language models."""

import os

__version__ = "0.1.0"

# dumptui/core and dumptui/tui are links to core/ and tui/ beside this folder. A zip of the repository, or a clone with
# core.symlinks=false, has text files in their place: there the packages are looked for where the links point.
if not os.path.isdir(os.path.join(__path__[0], "core")):
    __path__.append(os.path.dirname(os.path.abspath(__path__[0])))
