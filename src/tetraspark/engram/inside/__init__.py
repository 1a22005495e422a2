"""What runs on a node: the standard library alone, Python 3.9 or later, nothing else of ours."""
