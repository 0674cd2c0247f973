"""What notebooks and exercises use besides the library: lessons, checks, experiments, and the learner's desk."""
