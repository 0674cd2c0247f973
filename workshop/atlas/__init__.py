"""The atlas of positions: what each layer of each decoder in Transformers does about order, measured.

``python -m workshop.atlas`` builds them all with random weights, probes them, and writes the record.
"""
