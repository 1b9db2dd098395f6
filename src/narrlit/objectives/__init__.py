"""LightningModules, one file an objective."""
