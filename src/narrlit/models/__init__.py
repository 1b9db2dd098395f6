"""Encoders of stories: plain torch and sentence-transformers, no Lightning."""

import logging

# bitsandbytes warns in every 8-bit forward pass, and when it imports a kernel that is not used here.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
