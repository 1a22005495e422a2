"""A support bundle: what a line and its nodes say of themselves, in one file without secrets."""
