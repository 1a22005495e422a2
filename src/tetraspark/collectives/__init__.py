"""One-shot collectives; imports nothing else of the package."""
