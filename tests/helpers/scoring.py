"""Scores of triples by an encoder that is loaded."""

from narrlit.encoding.story_encoder import StoryEncoder


def scores_of(encoder, triples):
    """Cosines (N, 2) of the anchors with A and with B, as the public encoder computes them."""
    return StoryEncoder(encoder).score(triples)
