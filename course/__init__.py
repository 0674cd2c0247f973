"""What notebooks use besides the library: lessons, checks, experiments, endings, the working copy."""
