"""LightningDataModules, which read data and return loaders of batches."""

from narrlit.datamodules.file_data import Extra, FileData
from narrlit.datamodules.fold_data import FoldData
from narrlit.datamodules.hard_examples import HardExampleSampling
from narrlit.datamodules.loaders import LoaderOptions
from narrlit.datamodules.pseudo_labels import Clusters, PseudoLabels
from narrlit.datamodules.story_data import StoryData
from narrlit.datamodules.story_versions import VersionSampling
from narrlit.datamodules.storyworld_data import StoryWorldData

__all__ = [
    "Clusters",
    "Extra",
    "FileData",
    "FoldData",
    "HardExampleSampling",
    "LoaderOptions",
    "PseudoLabels",
    "StoryData",
    "StoryWorldData",
    "VersionSampling",
]
