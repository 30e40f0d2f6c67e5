"""The interactive page: a conjecture about a law, tried in seconds."""
