"""Explore collections of stories: pairs, groups, explanations, maps, catalogs, decisions of readers."""
