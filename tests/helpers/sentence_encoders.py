"""Tiny encoders that read stories sentence by sentence, and what they give by hand."""

import numpy as np
import torch

from narrlit.models.bilstm import BiLSTM, BiLSTMConfig
from narrlit.models.config import EncoderConfig, Prompts
from narrlit.models.encoder import Encoder
from narrlit.models.sentence_encoder import SentenceEncoder
from narrlit.preprocessing.sentences import split_sentences as sentences

ROLES = ("anchor", "candidate", "story")
PROMPTS = Prompts(anchor="query: ", candidate="passage: ", story="text: ")
TEXTS = [
    "Anna found a map. She showed it to Ben! Both of them set out in spring, and they never came home.",
    "Nobody spoke.",
    "The ship sank. Anna found a map.",
    'He was late. "Where were you?" she asked. Mr. Lee said nothing.\n\nThen he left.',
]


def head(dimension=32, output=12):
    torch.manual_seed(5)
    made = BiLSTM(dimension, BiLSTMConfig(hidden=7, dropout=0.5, output=output))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2)  # small random weights would make all stories alike
    return made


def sentence_encoder(model, **fields):
    return SentenceEncoder(Encoder(EncoderConfig(model, **fields)), head()).eval()


def by_hand(encoder, texts, role="story"):
    """Vectors (N, output): one story after the other, sentences one by one through sentence-transformers itself."""
    found = []
    for text in texts:
        prompted = [encoder.prompt(role) + part for part in sentences(text)]
        one_by_one = [encoder.inner.model.encode(part, prompt="") for part in prompted]
        with torch.no_grad():
            found.append(encoder.head(torch.tensor(np.stack(one_by_one)), [len(one_by_one)])[0].numpy())
    return np.stack(found)
