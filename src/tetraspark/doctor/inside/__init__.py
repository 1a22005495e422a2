"""Programs that run in a container of a node's image."""
