# says: the answer is given away
def forced_inputs(targets, bos):
    return targets
