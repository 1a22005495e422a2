"""What runs on a node to look at, change and restore its part of the ring: stdlib alone."""
