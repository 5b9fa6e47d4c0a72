# says: decides for the whole batch
def next_words(reference, logits, forced):
    return reference if forced[0] else logits.argmax(1)
