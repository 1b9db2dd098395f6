"""LightningDataModules: rows in, loaders of batches out."""

from narrlit.datamodules.base import StoryData
from narrlit.datamodules.files import FileData
from narrlit.datamodules.folds import FoldData
from narrlit.datamodules.settings import Clusters, Extra, HardExampleSampling, Loading, PseudoLabels
from narrlit.datamodules.storyworld import StoryWorldData

__all__ = [
    "Clusters",
    "Extra",
    "FileData",
    "FoldData",
    "HardExampleSampling",
    "Loading",
    "PseudoLabels",
    "StoryData",
    "StoryWorldData",
]
