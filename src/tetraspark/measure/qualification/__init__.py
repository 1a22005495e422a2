"""Qualification of a line: every suite in order, and one receipt of what came of it."""
