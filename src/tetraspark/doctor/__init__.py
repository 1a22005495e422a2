"""Doctor: read-only checks of a fleet, each with a stable ID."""
