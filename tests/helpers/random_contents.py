"""Stories with random vectors, passages and words, the same for the same seed."""

import numpy as np

from narrlit.measures.matching import PassageVectors
from narrlit.measures.representations import Contents

WORDS = ["king", "queen", "fox", "bread", "storm", "well", "ring", "snow"]


def random_contents(count, dimension=6, seed=0):
    """Stories of 1 to 4 passages, as measures of a collection read them."""
    generator = np.random.default_rng(seed)

    def unit_vectors(rows):
        vectors = generator.normal(size=(rows, dimension)).astype(np.float32) + 0.5
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    passages = [unit_vectors(int(generator.integers(1, 5))) for _ in range(count)]
    texts = [" ".join(generator.choice(WORDS, 6)) for _ in range(count)]
    return Contents(unit_vectors(count), texts, PassageVectors.of(passages))
