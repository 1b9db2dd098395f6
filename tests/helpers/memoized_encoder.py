"""An encoder that computes each text once in a test session."""

import contextlib
import weakref

import pytest
import torch

from narrlit.models.encoder import Encoder


class MemoizedVectors:
    """Vectors of an encoder by its settings, its weights and a text's tokens; nobody changes them.

    Args:
        dimension: of the text vectors of the encoders that are memoized; others compute as ever.
    """

    def __init__(self, dimension):
        self.dimension = dimension
        self.vectors = {}
        self.states = weakref.WeakKeyDictionary()

    @contextlib.contextmanager
    def replacing_forward(self):
        """Look texts up before Encoder.forward computes them."""
        compute = Encoder.forward

        def forward(encoder, stories):
            return self.look_up(encoder, stories, compute) if self.applies_to(encoder) else compute(encoder, stories)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Encoder, "forward", forward)
            yield

    def applies_to(self, encoder):
        """True where nothing but vectors is wanted: no gradients, no dropout."""
        inference = torch.is_inference_mode_enabled() and not encoder.training
        return inference and encoder.text_dimension == self.dimension

    def look_up(self, encoder, stories, compute):
        """Vectors (U, D) of packed stories, of which those not met before are computed."""
        state = self.state_of(encoder)
        keys = [(state, *ids.tolist()) for ids in stories.token_ids.split(list(stories.lengths))]
        missing = [index for index, key in enumerate(keys) if key not in self.vectors]
        if missing:
            computed = compute(encoder, stories.select(missing))
            for index, vector in zip(missing, computed, strict=True):
                self.vectors[keys[index]] = vector
        return torch.stack([self.vectors[key] for key in keys])

    def state_of(self, encoder):
        """Settings and sums of weights, summed again where a weight has been changed."""
        versions = [(weight.data_ptr(), weight._version) for weight in encoder.parameters()]
        known, state = self.states.get(encoder, (None, None))
        if known != versions:
            settings = [item for item in vars(encoder).items() if isinstance(item[1], bool | int | str | torch.dtype)]
            sums = [weight.float().sum().item() for weight in encoder.parameters()]
            state = f"{encoder.model} {settings} {sums}"
            self.states[encoder] = versions, state
        return state
