"""One file for every revision of the tables."""
