"""The switchless ring: addresses, paths, relays in the NICs, as one plan; simulated, then applied.

Planning is pure: `build` makes a plan from what the nodes show, `walk` follows every frame of it.
"""
