"""LightningDataModules: records in, loaders of batches out."""

from narrlit.datamodules.base import StoryData
from narrlit.datamodules.files import Extra, FileData
from narrlit.datamodules.folds import FoldData
from narrlit.datamodules.loading import Loading
from narrlit.datamodules.storyworld import StoryWorldData
from narrlit.datamodules.views import ViewData

__all__ = ["Extra", "FileData", "FoldData", "Loading", "StoryData", "StoryWorldData", "ViewData"]
