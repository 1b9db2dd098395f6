"""Measures of the similarity of stories: for triples, and for the stories of a collection."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
