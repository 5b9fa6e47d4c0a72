"""Cost of a training step with each encoder, beside the bidirectional LSTM.

    python benchmarks/encoder_choices.py [--length 14] [--rounds 5] [--only convolutional]

The model of `experiment=multi30k_bahdanau` takes forward and backward passes of 64 made sentence
pairs, each side `--length` tokens long, over a vocabulary of 6,000 words. Every encoder has
embeddings of 256, and where it has hidden units 256 of them, in each direction; all else is its
own default. A round times all of them one after the other, three passes each; the least of all
passes counts, as in attention_choices.py. An encoder of features is left out, for it needs a corpus
that has some.
"""

from __future__ import annotations

from attention_choices import arguments_of, chosen, least_of, timed_rounds
from process_cost import limit_threads
from results import Row, report

DEFAULT = "lstm"
SIZE = 256
# Sizes of a stack's parts; the experiment's own encoder has the settings that go.
STACK = (
    f"model.encoder.first.embedding_size={SIZE}",
    f"model.encoder.first.hidden_size={SIZE}",
    f"model.encoder.then.embedding_size={SIZE}",
    "~model.encoder.embedding_size",
    "~model.encoder.hidden_size",
    "~model.encoder.dropout",
)


def choices() -> dict[str, tuple[str, ...]]:
    """{name: overrides} of all files of the group, the LSTM first."""
    import yaml  # type: ignore[import-untyped]

    from attnlab.project import CONF

    found: dict[str, tuple[str, ...]] = {DEFAULT: ()}
    for file in sorted((CONF / "model" / "encoder").glob("*.yaml")):
        if file.stem == "with_features":
            continue
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
        if "_target_" not in settings:  # it builds on another file of the group
            settings |= yaml.safe_load((file.parent / "gru.yaml").read_text(encoding="utf-8"))
        sizes = [f"model.encoder.embedding_size={SIZE}"]
        if "hidden_size" in settings:
            sizes.append(f"model.encoder.hidden_size={SIZE}")
        else:
            sizes.append("~model.encoder.hidden_size")  # the experiment's own encoder has it
        found[file.stem] = (f"model/encoder={file.stem}", *sizes)
    found["stacked"] = ("model/encoder=stacked", *STACK)
    return found


def main() -> None:
    args = arguments_of(__doc__, "encoders")
    limit_threads()
    timed = chosen(choices(), DEFAULT, args.only)
    rounds = timed_rounds(timed, args.length, args.rounds)

    rows: list[Row] = []
    least = least_of(rounds)
    for name, one in timed.items():
        encoder = one.model.encoder
        weights = sum(parameter.numel() for parameter in encoder.parameters())
        rows.append(
            {
                "encoder": name,
                "weights beside the words'": str(weights - encoder.embedding.weight.numel()),
                "times the LSTM": least[name] / least[DEFAULT],
                "ms a step": least[name],
            }
        )
    report(f"encoder_choices_{args.length}", rows)


if __name__ == "__main__":
    main()
