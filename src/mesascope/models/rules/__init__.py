"""Rules: how the memory of a layer is written, token by token, and read."""
