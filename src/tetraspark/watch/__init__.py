"""Watch: look at a served line, judge it, and act once when it is wedged."""
