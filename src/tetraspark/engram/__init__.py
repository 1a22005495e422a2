"""Engram: each rank's rows of the hash tables, packed on its own disk."""
