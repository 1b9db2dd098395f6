"""LightningDataModules: rows in, loaders of batches out."""

from narrlit.datamodules.file_data import FileData
from narrlit.datamodules.fold_data import FoldData
from narrlit.datamodules.settings import Clusters, Extra, HardExampleSampling, Loading, PseudoLabels
from narrlit.datamodules.story_data import StoryData
from narrlit.datamodules.storyworld_data import StoryWorldData

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
