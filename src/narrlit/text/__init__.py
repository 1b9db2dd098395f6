"""What a text is made of, by rule: its sentences."""
