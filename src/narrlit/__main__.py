"""Entry point for `python -m narrlit`, which launchers such as torchrun use."""

import sys

from narrlit.cli import main

sys.exit(main())
