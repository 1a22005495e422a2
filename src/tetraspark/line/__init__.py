"""The serving line: plan, launch, readiness, status, logs, stop."""
