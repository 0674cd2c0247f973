"""Mark a class's submissions: take in, run in a sandbox, compare outside, keep the marks in nbgrader."""
