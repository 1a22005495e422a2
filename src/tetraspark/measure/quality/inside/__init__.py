"""Programs that run inside the sandbox, as text: they import the standard library alone."""
