"""Run the command line by `python -m narrlit`, as launchers such as torchrun do."""

import sys

from narrlit.cli import main

sys.exit(main())
