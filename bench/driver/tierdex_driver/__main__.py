"""`python3 -m tierdex_driver`."""

import sys

from tierdex_driver.cli import run

sys.exit(run())
