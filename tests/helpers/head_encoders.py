"""Tiny encoders that read sentences or views, their stories, and their embeddings by hand."""

from dataclasses import asdict

import numpy as np
import torch
from tiny_models import world_texts

from narrlit.data.schema import Story, Views
from narrlit.models.config import EncoderConfig, Fusion, Prompts
from narrlit.models.encoder import Encoder
from narrlit.models.heads import VIEWS, ViewFusion, apply_head, build_head
from narrlit.preprocessing.sentences import split_sentences

ROLES = ("anchor", "candidate", "story")
PROMPTS = Prompts(anchor="query: ", candidate="passage: ", story="text: ")
WEIGHTS = Fusion(0.4, 0.3, 0.1, 0.2)
TEXTS = [
    "Anna found a map. She showed it to Ben! Both of them set out in spring, and they never came home.",
    "Nobody spoke.",
    "The ship sank. Anna found a map.",
    'He was late. "Where were you?" she asked. Mr. Lee said nothing.\n\nThen he left.',
]


def bilstm(dimension=32, output=12):
    torch.manual_seed(5)
    head = build_head("bilstm", dimension, hidden=7, dropout=0.5, output=output)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.mul_(2)  # small random weights would make all stories alike
    return head


def sentence_encoder(model, **fields):
    encoder = Encoder(EncoderConfig(model, **fields))
    encoder.attach(bilstm(encoder.text_dimension))
    return encoder.eval()


def sentences_by_hand(encoder, texts, role="story"):
    """Embeddings (N, output), sentences one by one through sentence-transformers itself."""
    vectors = []
    for text in texts:
        one_by_one = [encoder.model.encode(encoder.prompt(role) + part, prompt="") for part in split_sentences(text)]
        with torch.no_grad():
            vectors.append(apply_head(encoder.sentences, torch.tensor(np.stack(one_by_one)), [len(one_by_one)])[0])
    return np.stack(vectors)


def view_encoder(model, hidden=None, fusion=WEIGHTS, **fields):
    torch.manual_seed(3)
    encoder = Encoder(EncoderConfig(model, **fields))
    encoder.attach(ViewFusion(encoder.dimension, asdict(fusion), hidden))
    return encoder.eval()


def viewed(count):
    """Stories with views, all different; the first two share their theme. Short: a tiny model cuts nothing."""
    texts = [f"{i} {text[40:100]}" for i, text in enumerate((world_texts() * 2)[: 4 * count])]
    views = [texts[count + 3 * i : count + 3 * i + 3] for i in range(count)]
    views[1][0] = views[0][0]
    return [Story(str(i), texts[i], Views(*views[i])) for i in range(count)]


def join_views(text, *views):
    """The one text that an exported view model reads."""
    return text + "".join(f"\n[{name}]\n{view}" for name, view in zip(VIEWS, views, strict=True))


def joined(stories):
    return [join_views(story.text, *story.views.texts) for story in stories]


def views_by_hand(encoder, stories, prompt=""):
    """Embeddings (N, D), part by part through sentence-transformers itself."""
    vectors = []
    for story in stories:
        own = [
            torch.tensor(encoder.model.encode(prompt + part, prompt="")) for part in (story.text, *story.views.texts)
        ]
        if encoder.views.heads is not None:
            with torch.no_grad():
                for place, name in enumerate(VIEWS, 1):
                    first, _, last = encoder.views.heads.heads[name]
                    one = last(torch.relu(first(own[place])))
                    own[place] = one / one.norm()
        total = sum(weight * part for weight, part in zip(encoder.views.weights, own, strict=True))
        vectors.append((total / total.norm()).numpy())
    return np.stack(vectors)
