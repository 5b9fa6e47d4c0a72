# says: the numbers before the softmax
def location(query, W_a, mask):
    return query @ W_a.T
