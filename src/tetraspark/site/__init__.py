"""The site file: typed, closed, every value with its origin."""
