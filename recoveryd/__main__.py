"""`python -m recoveryd`."""

import sys

from recoveryd.cli import main

sys.exit(main())
