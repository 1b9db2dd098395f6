"""Experiments that take several fits or models: cross-validation, ablation, hyperparameter search, fusion weights."""
