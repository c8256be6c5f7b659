import sys

from dumptui.tui.cli.main import main

sys.exit(main())
