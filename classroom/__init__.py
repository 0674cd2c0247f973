"""Mark the submissions of a class: take in, run in a sandbox, compare outside, keep in nbgrader's book."""
