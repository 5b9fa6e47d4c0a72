def both_directions(forward, backward):
    joined = []
    for there, back in zip(forward, backward, strict=True):
        joined.append([[*a, *b] for a, b in zip(there, back[::-1], strict=True)])
    return joined
