"""Names of persons, places and organisations out of stories, placeholders in: Character_A, Location_1, ..."""
