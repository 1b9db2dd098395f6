"""`python -m narrlit` is the command `narrlit`; launchers such as torchrun want it."""

import sys

from narrlit.cli import main

sys.exit(main())
