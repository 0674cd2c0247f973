"""Grading a class: take in uploads, run them in a sandbox, mark, report."""
