"""Command lines of tests that set options again which a fixture has set; the command line itself refuses that."""


def last_of(*words):
    """The words, with the last of repeated options (each followed by one value) in place of the earlier ones."""
    words = [str(word) for word in words]
    kept = []
    for place, word in enumerate(words):
        again = word.startswith("--") and word in words[place + 1 :]
        behind_again = place and words[place - 1].startswith("--") and words[place - 1] in words[place:]
        if not again and not behind_again:
            kept.append(word)
    return kept
