"""Encoders of stories: plain torch and sentence-transformers, no Lightning."""

import logging

# It warns at every 8-bit forward pass, and on import of a kernel that nothing here needs.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
