"""Reference implementations and teaching tools of the course *How Transformers know order*."""

__version__ = "0.1.0"
