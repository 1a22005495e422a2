"""Quality: 75 tasks of our own, scored without a judge; code runs in a sandbox or not at all."""
