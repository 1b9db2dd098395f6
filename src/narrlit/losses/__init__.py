"""Losses as pure functions on tensors; they know torch and nothing else.

Letters of the shapes: B anchors (or triples), C positives, K negatives of an anchor's own, M = C + K candidates of an
anchor, D dimension of a vector.
"""
