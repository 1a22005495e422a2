"""The weights of a fleet: the checkpoint on each node, shared, copied or there already."""
