def forced_inputs(targets, bos):
    return [[bos, *row[:-1]] for row in targets]


def next_words(reference, logits, forced):
    return [
        int(r) if f else int(z.argmax()) for r, z, f in zip(reference, logits, forced, strict=True)
    ]
