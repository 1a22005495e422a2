"""What was served: a receipt of every line that became ready, what changed, and the way back."""
