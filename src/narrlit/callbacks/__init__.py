"""Callbacks, one file each."""
