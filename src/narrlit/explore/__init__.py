"""Explore collections of stories: index, search, pairs, explanations, maps."""
