"""Tables of the papers computed again, beside the published figures."""
