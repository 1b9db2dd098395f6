"""Stories with views, and what a tiny encoder of views gives for them by hand."""

import numpy as np
import torch
from tiny_models import world_texts

from narrlit.models.config import EncoderConfig
from narrlit.models.encoder import Encoder
from narrlit.models.fusion import Fusion
from narrlit.models.view_encoder import ViewEncoder
from narrlit.models.views import ViewFuser
from narrlit.text.joined import Views, join

WEIGHTS = Fusion(0.4, 0.3, 0.1, 0.2)


def parts(count):
    """(text, theme, plot, outcome) of different stories; the first two share their theme."""
    texts = [
        f"{i} {text[40:100]}" for i, text in enumerate(world_texts()[: 4 * count])
    ]  # short: nothing is cut by a tiny model
    found = [[texts[i], *texts[count + 3 * i : count + 3 * i + 3]] for i in range(count)]
    found[1][1] = found[0][1]
    return [tuple(story) for story in found]


def joined(count):
    return [join(text, Views(*views)) for text, *views in parts(count)]


def view_encoder(model, hidden=None, fusion=WEIGHTS, **fields):
    torch.manual_seed(3)
    encoder = Encoder(EncoderConfig(model, **fields))
    return ViewEncoder(encoder, ViewFuser(encoder.dimension, fusion, hidden)).eval()


def by_hand(encoder, stories, prompt=""):
    """Vectors (N, D) of (text, theme, plot, outcome), part by part through sentence-transformers itself."""
    found = []
    for story in stories:
        own = [torch.tensor(encoder.inner.model.encode(prompt + part, prompt="")) for part in story]
        if encoder.fuser.heads is not None:
            with torch.no_grad():
                for place, head in enumerate(encoder.fuser.heads.heads.values(), 1):
                    one = head.outer(torch.relu(head.inner(own[place])))
                    own[place] = one / one.norm()
        total = sum(weight * part for weight, part in zip(encoder.fuser.fusion.weights, own, strict=True))
        found.append((total / total.norm()).numpy())
    return np.stack(found)
