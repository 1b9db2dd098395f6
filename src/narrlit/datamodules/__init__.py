"""LightningDataModules: records in, loaders of batches out."""
