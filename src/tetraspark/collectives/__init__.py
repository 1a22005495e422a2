"""One-shot collectives; imports nothing else of the package.

`group.Group` is the way in; docs/collectives.md explains the protocol and its limits.
"""
