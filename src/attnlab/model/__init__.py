"""The models: encoder, bridge, attention and decoder, and what joins them.

Axes: B batch, S source length, T target length, E embedding, H decoder hidden, D encoder output, A
    attention,
F features, R readout, V vocabulary, L layers. Batch first. Masks are bool, and True is a real
token.
"""
