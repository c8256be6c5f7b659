import sys

from dumptui.tui.cli import main

sys.exit(main())
