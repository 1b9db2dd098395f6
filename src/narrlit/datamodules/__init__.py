"""LightningDataModules: records in, loaders of batches out."""

from narrlit.datamodules.base import Loading, StoryData
from narrlit.datamodules.files import Extra, FileData
from narrlit.datamodules.folds import FoldData
from narrlit.datamodules.storyworld import StoryWorldData

__all__ = ["Extra", "FileData", "FoldData", "Loading", "StoryData", "StoryWorldData"]
