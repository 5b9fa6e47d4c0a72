# says: the one column with the largest weight
def context(F, alpha):
    return F[:, alpha.argmax()]
