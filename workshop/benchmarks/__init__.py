"""Speed and memory of the encodings beside public implementations: ``python -m workshop.benchmarks``."""
