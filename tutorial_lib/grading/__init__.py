"""Taking in, running, marking and reporting a class of submissions."""
