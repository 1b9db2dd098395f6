"""Works to cite with a model: narrlit, the shared task, and the paper of an objective."""

from narrlit import __version__

NARRLIT = f"""```bibtex
@software{{narrlit,
  title = {{narrlit: embeddings of stories by theme, course of action and outcome}},
  author = {{{{The narrlit developers}}}},
  version = {{{__version__}}},
  url = {{https://github.com/narrlit/narrlit}},
  license = {{Apache-2.0}}
}}
```"""
"""Citation of the software, as in CITATION.cff."""
TASK = (
    "Hatzel, Artemova, Stiemer, Gius and Biemann, *SemEval-2026 Task 4: Narrative Story Similarity and Narrative "
    "Representation Learning*, SemEval 2026, pages 3460 to 3478, "
    "[aclanthology.org/2026.semeval-1.429](https://aclanthology.org/2026.semeval-1.429/)"
)
"""Citation of the shared task, as in CITATION.cff."""
_COMHIS = "Shu, Mäkelä and Tolonen, *Comhis at SemEval-2026 Task 4*"
_HITS = "Zhou, Fan, Liu and Strube, *Team HITS at SemEval-2026 Task 4*"
_MENDEL = "Rijal, Gruppi and DeBenedetto, *Mendel292 at SemEval-2026 Task 4*"
_NLP_FSDM = "Benlahbib, Essalmani, Boumhidi, Fahfouh and Alami, *NLP-FSDM at SemEval-2026 Task 4*"
_TTDA = "Tan and Thien, *ttda704 at SemEval-2026 Task 4*, [arXiv:2606.15783](https://arxiv.org/abs/2606.15783)"
PAPERS = {
    "AspectBiLSTM": _MENDEL,
    "MLPHead": _MENDEL,
    "MultiView": _TTDA,
    "MultipleNegativesRanking": _NLP_FSDM,
    "Projection": _COMHIS,
    "SelfDistillation": _HITS,
    "Triplet": _TTDA,
}
"""Papers of the objectives of systems, as on the pages of the systems in the documentation."""
