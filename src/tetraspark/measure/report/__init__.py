"""Reports as one page: what was measured, beside another set of runs, and what may be compared."""
