"""Nodes and the runners that touch them."""
