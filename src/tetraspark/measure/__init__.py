"""Measurement: benchmarks whose output describes itself."""
