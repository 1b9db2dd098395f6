"""Write a spaCy pipeline that recognizes names by rules: `python make_pipeline.py FOLDER`."""

import sys

import spacy
from spacy.pipeline import EntityRuler

language = spacy.blank("en")
ruler = language.add_pipe("entity_ruler")
assert isinstance(ruler, EntityRuler)
ruler.add_patterns([{"label": "PERSON", "pattern": [{"IS_TITLE": True, "IS_SENT_START": False}]}])
language.add_pipe("sentencizer", first=True)
language.to_disk(sys.argv[1])
