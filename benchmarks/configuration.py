"""The configuration that all systems share, and the pairs of systems to compare."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnlab.training.hardware import cpu_has_bfloat16

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "runs" / "benchmarks"
PEERS = ROOT / "runs" / "peers"


@dataclass(frozen=True)
class Shared:
    """Sizes and settings that all systems have; encoder: units of each of its two directions."""

    embedding: int = 256
    encoder: int = 256
    decoder: int = 512
    attention: int = 512
    readout: int = 512
    batch_size: int = 64  # sentences
    min_frequency: int = 2
    dropout: float = 0.3
    learning_rate: float = 0.001
    clip: float = 1.0
    max_length: int = 100  # of a hypothesis, <eos> included
    seed: int = 1


SHARED = Shared()


@dataclass(frozen=True)
class SharedTransformer(Shared):
    """Sizes of the Transformers, those of `experiment=multi30k_vaswani`."""

    embedding: int = 192
    blocks: int = 3
    heads: int = 4
    feed_forward: int = 384
    dropout: float = 0.2


@dataclass(frozen=True)
class Peer:
    """Another system at one of its attentions; environment: its folder under runs/peers.

    attention: empty for a Transformer.
    """

    name: str
    environment: str
    runner: str
    attention: str
    input_feeding: bool

    @property
    def python(self) -> Path:
        return python_of(self.environment)

    def job(self, task: str, text: Path, model: Path, **more: Any) -> dict[str, Any]:
        """The job of a runner.

        task: `train` or `decode`.
        text: the folder with the sentences.
        model: the folder of the model.

        The peers' attention and readout are as wide as their decoder, which is what `SHARED` says
        too.
        """
        own = {"attention": self.attention, "input_feeding": self.input_feeding}
        shared = SHARED if self.attention else SharedTransformer()
        return {
            "task": task,
            "text": str(text),
            "model": str(model),
            "beam": 1,
            **asdict(shared),
            **own,
            **more,
        }


@dataclass(frozen=True)
class Contestant:
    """attnlab in one configuration, its peers, and the group of products it stands for.

    score: empty for those whose products are not counted.
    """

    name: str
    overrides: tuple[str, ...]
    rivals: tuple[str, ...]
    score: str
    input_feeding: bool = False
    attends_first: bool = True

    @property
    def precision(self) -> str:
        return "bf16" if "hardware.precision=bf16" in self.overrides else "32"


JOEYNMT = Peer("JoeyNMT bahdanau, fed", "joeynmt", "joeynmt_runner.py", "bahdanau", True)
OPENNMT = tuple(
    Peer(
        f"OpenNMT-py {attention}{', fed' if fed else ''}",
        "opennmt",
        "opennmt_runner.py",
        attention,
        fed,
    )
    for attention in ("mlp", "general")
    for fed in (True, False)
)
TRANSFORMERS = (
    Peer("JoeyNMT Transformer", "joeynmt", "joeynmt_runner.py", "", False),
    Peer("OpenNMT-py Transformer", "opennmt", "opennmt_runner.py", "", False),
)
ALL_PEERS = (JOEYNMT, *OPENNMT, *TRANSFORMERS)


def python_of(environment: str) -> Path:
    """The interpreter of a folder under runs/peers."""
    return PEERS / environment / "bin" / "python"


# `experiment=multi30k_bahdanau` is THE configuration. The schedule, Adam's rate and smoothed labels
# are not what the peers have: the first two cost no time, and smoothing costs attnlab a little.
BAHDANAU = ("experiment=multi30k_bahdanau",)
# With OpenNMT-py's bridge, none: the decoder begins where the encoder's two directions end.
AFTER_THE_STEP = (
    *BAHDANAU,
    "model/bridge=copy",
    "model/decoder=step_then_attend",
    "model/readout=attentional",
    f"model.decoder.hidden_size={SHARED.decoder}",
    f"model.readout.size={SHARED.readout}",
)
GENERAL = (*AFTER_THE_STEP, "model/attention=general", "~model.attention.size")
# The additive score asked by s_t, as OpenNMT-py has it.
MLP = (*AFTER_THE_STEP, "model/attention=bahdanau")
FED = ("model/input_feeding=attentional_hidden",)
PRECISIONS = {"fp32": ("hardware.precision=32",)}
if cpu_has_bfloat16():
    PRECISIONS["bf16"] = ("hardware.precision=bf16",)
else:
    print("bfloat16 is left out: this processor does not compute in it", file=sys.stderr)

MLP_RIVALS = ("JoeyNMT bahdanau, fed", "OpenNMT-py mlp, fed", "OpenNMT-py mlp")
CONTESTANTS = (
    *(
        Contestant(f"attnlab Bahdanau {name}", (*BAHDANAU, *precision), MLP_RIVALS, "bahdanau")
        for name, precision in PRECISIONS.items()
    ),
    Contestant(
        "attnlab Bahdanau fp32, half its own guesses",
        (*BAHDANAU, *PRECISIONS["fp32"], "training.teacher_forcing.ratio=0.5"),
        ("attnlab Bahdanau fp32", *MLP_RIVALS),
        "bahdanau",
    ),
    *(
        Contestant(
            f"attnlab {attention}{', fed' if fed else ''} {name}",
            (*model, *(FED if fed else ()), *precision),
            (f"OpenNMT-py {attention}{', fed' if fed else ''}",),
            score,
            input_feeding=fed,
            attends_first=False,
        )
        for attention, model, score in (("mlp", MLP, ""), ("general", GENERAL, "general"))
        for fed in (True, False)
        for name, precision in PRECISIONS.items()
    ),
    *(
        Contestant(
            f"attnlab Transformer {name}",
            ("experiment=multi30k_vaswani", *precision),
            tuple(peer.name for peer in TRANSFORMERS),
            score="",
        )
        for name, precision in PRECISIONS.items()
    ),
)
