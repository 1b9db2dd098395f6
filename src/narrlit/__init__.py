"""Train, evaluate and use embeddings of stories.

Two stories are similar if their theme, course of action and outcome agree, not if they share names or words.

>>> import narrlit
>>> narrlit.similarity(["A knight seeks a grail.", "A diver seeks a pearl."]).shape
(2, 2)
"""

import logging

import lazy_loader

# bitsandbytes warns in every 8-bit forward pass, and when it imports a kernel that is not used here.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
