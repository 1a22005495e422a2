"""Programs that run on a node, sent there over ssh: the standard library only."""
