"""Losses as pure functions on tensors; they know torch and nothing else.

Letters of the shapes: B anchors, C candidates, K negatives of an anchor, D dimension of a vector.
"""
