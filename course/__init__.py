"""What notebooks use besides the library: lessons, checks, experiments, real models, the working copy."""

from tutorial_lib import moved as _moved  # noqa: F401  finds modules by the names that they had in version 0.2
