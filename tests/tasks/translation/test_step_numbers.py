"""The numbers of a step: each from those that it names, and the end from the model itself."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from composed_variants import COPIES, FOLLOWS_ALIGNMENT, MARGINALISES, VARIANTS, Variant, build
from lab_extras.decoders import GatedDecoder
from lab_extras.scores import EuclideanScore
from lab_extras.weights import GainedSoftmax
from recomputed import check_symbols

import attnlab.explorer
from attnlab.batch import BOS
from attnlab.config.part import Part
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError
from attnlab.model.attention.intervention import Intervention
from attnlab.model.fast import speed_up
from attnlab.model.histories.history import History, Remembered
from attnlab.model.outputs.linear import LinearOutput
from attnlab.tasks.translation import analysis
from attnlab.tasks.translation.analysis import Edit, Source
from attnlab.tasks.translation.step_numbers import sheet_of, step_numbers
from attnlab.tasks.translation.taken_step import take_step
from attnlab.tasks.translation.translator import Translator
from explored_models import BEAM

WORDS = "a b c d e f g"
OTHER_WORDS = "u v w x y"
TEXT = "c a d"
NO_CHANGE = Intervention()


def translator_of(model: Any) -> Translator:
    """A translator around a model with the vocabularies of the composed variants."""
    trainer = WordTrainer(min_frequency=1)
    target = WORDS if model.output.copies else OTHER_WORDS
    return Translator(model, trainer.train([WORDS]), trainer.train([target]), BEAM)


def sheet_at(
    ours: Translator,
    step: int,
    edit: Edit = Edit(),  # noqa: B008 (frozen)
    masking: str = "before",
    intervene: Intervention = NO_CHANGE,
) -> tuple[Any, Any]:
    """The sheet of a step of a target, and the step as the model took it."""
    source = Source.read(ours, TEXT, edit, intervene)
    taken = take_step(ours, source, [BOS, 5, 6, 4, 7][: step + 1], intervene, masking)
    return sheet_of(taken), taken


def check_end(sheet: Any, taken: Any, atol: float = 1e-9) -> None:
    """The logits and all that the next step reads are those of the model."""

    def check(name: str, wanted: torch.Tensor) -> None:
        values = sheet.symbols[name].values
        np.testing.assert_allclose(values, wanted.double(), atol=atol, err_msg=name)

    after = taken.after
    layers = len(after.recurrent.hidden)
    for layer in range(layers):
        above = "" if layers == 1 else f"^{layer + 1}"
        check(f"s_t{above}", after.recurrent.hidden[layer, 0])
        if after.recurrent.cell is not None:
            check(f"C_t{above}", after.recurrent.cell[layer, 0])
    if after.context is not None:
        check("c_t", after.context[0])
    heads = after.past or ()
    for number, head in enumerate(heads):
        mark = "" if len(heads) == 1 else f"^({number})"
        remembered = [f"{name}{mark}" for name in ("κ_t+1", "z_t", "α")]
        check(next(name for name in remembered if name in sheet.symbols), head.weights[0])
        if f"u_t{mark}" in sheet.symbols:
            check(f"u_t{mark}", head.transition[0])
    if after.fed is not None:
        fed = ["p_t", "ȳ_t", "s̃_t"]
        width = after.fed.shape[1]
        by_width = [name for name in fed if name in sheet.symbols]
        found = [sheet.symbols[name].values for name in by_width]
        matching = [values for values in found if len(values) == width]
        wanted = after.fed[0].double().numpy()
        assert any(np.allclose(values, wanted, atol=atol) for values in matching), by_width
    check("p_t", taken.logits.softmax(-1))
    if isinstance(taken.model.output, LinearOutput):
        check("logits", taken.logits)


# The blocks of a Transformer, and the sum over all alignments of what was written before
NOT_WRITTEN_OUT = {"transformer": ["q_t", "s_t"]} | {name: ["π_t"] for name in FOLLOWS_ALIGNMENT}


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_numbers_of_every_variant_follow_and_end_as_the_model(variant: Variant) -> None:
    ours = translator_of(speed_up(build(variant)))
    for step, edit in ((0, Edit()), (3, Edit(before=1, behind=2))):
        sheet, taken = sheet_at(ours, step, edit)
        given = [symbol.id for symbol in sheet.symbols.values() if symbol.part is not None]
        assert given == NOT_WRITTEN_OUT.get(variant.name, [])
        check_symbols(sheet)
        check_end(sheet, taken)


@pytest.mark.parametrize(
    "choices",
    [
        {"cell": "lstm", "layers": 2},
        {"cell": "rnn", "layers": 2, "decoder": "conditional_gru"},
        {"cell": "lstm", "decoder": "conditional_gru", "context": "cell_and_readout"},
        {"cell": "lstm", "attention": "cosine", "scope": "local_p_renormalised"},
        {"attention": "location", "cell": "lstm"},
        {"attention": "uniform"},
        {"heads": 2, "history": "coverage", "projection": 3, "scope": "local_p"},
        {"heads": 2, "attention": "concat", "normaliser": "sparsemax", "scope": "local_m"},
        {"projection": 3, "history": "coverage", "attention": "scaled_dot"},
        {"projection": 3, "history": "location_sensitive", "attention": "scaled_dot"},
        {"heads": 2, "history": "forward_with_agent", "projection": 3, "scope": "local_p"},
        {"history": "forward", "normaliser": "sparsemax", "scope": "local_m"},
        {"history": "soft_monotonic", "scope": "local_p_renormalised"},
        {"history": "soft_mocha", "scope": "local_p"},
        {"history": "soft_mocha", "heads": 2},
        {"history": "mocha", "projection": 3, "scope": "local_m"},
        {"decoder": "step_then_attend", "context": "readout_and_previous_in_cell"},
        {"decoder": "step_then_attend", "input_feeding": "softmax_output", "cell": "lstm"},
        {"decoder": "step_then_attend", "input_feeding": "expected_embedding"},
        {"decoder": "no_attention", "context": "every_step", "readout": "plain"},
        {"gate": "elementwise", "history": "forward_with_agent"},
        {"gate": "per_head", "decoder": "conditional_gru"},
        {"gate": "per_head", "heads": 2},
        {"gate": "elementwise", "heads": 2, "projection": 3},
        {"output": "pointer_generator", "heads": 2, "input_feeding": "expected_embedding"},
        {"output": "pointer_network", "readout": "plain", "decoder": "step_then_attend"},
        {"output": "pointer_network", "readout": "plain", "heads": 2, "history": "coverage"},
        {"output": "hard_attention", "readout": "maxout", "input_feeding": "softmax_output"},
        {"output": "hard_attention", "decoder": "step_then_attend", "context": "readout"},
        {"output": "hard_monotonic_attention", "input_feeding": "expected_embedding"},
    ],
    ids=lambda choices: ",".join(map(str, choices.values())),
)
def test_numbers_of_joined_choices_follow_and_end_as_the_model(tiny_model, choices) -> None:
    copies = {"target_vocabulary_size": 11} if choices.get("output") in COPIES else {}
    ours = translator_of(tiny_model(**choices, **copies))
    sheet, taken = sheet_at(ours, 3, Edit(behind=2))
    check_symbols(sheet)
    check_end(sheet, taken)


@pytest.mark.parametrize(
    "choices",
    [{}, {"heads": 2}, {"decoder": "conditional_gru"}, {"decoder": "no_attention"}],
    ids=str,
)
def test_answer_has_the_numbers_of_the_sheet_to_six_decimals(tiny_model, choices) -> None:
    ours = translator_of(tiny_model(**choices))
    target = analysis.score(ours, TEXT, "v w u x")["ids"]
    shown = step_numbers(ours, TEXT, target, step=2, edit=Edit(behind=1))
    json.dumps(shown, allow_nan=False)
    source = Source.read(ours, TEXT, Edit(behind=1), NO_CHANGE)
    sheet = sheet_of(take_step(ours, source, [BOS, *target[:2]], NO_CHANGE, "before"))
    assert [record["id"] for record in shown["symbols"]] == list(sheet.symbols)
    for record in shown["symbols"]:
        values = np.array(record["values"], dtype=np.float64)  # None becomes nan
        wanted = sheet.symbols[record["id"]].values
        values = np.where(np.isneginf(wanted), -np.inf, values)
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-6)
        sizes = [axis["size"] for axis in record["axes"]]
        assert list(wanted.shape) == sizes
        without_batch = [size for letter, size in record["shape"] if letter != "B"]
        assert without_batch == sizes


def test_weights_of_a_step_are_those_of_the_whole_reading(character_translator) -> None:
    ours = character_translator(attention="general")
    target = analysis.score(ours, "May 13", "3월 1일")["ids"]
    for step in range(len(target)):
        shown = step_numbers(ours, "May 13", target, step=step, edit=Edit(behind=2))
        (alpha,) = [each["values"] for each in shown["symbols"] if each["id"] == "α"]
        np.testing.assert_allclose(alpha, shown["attention"][step], atol=1e-5)
        (masked,) = [each["values"] for each in shown["symbols"] if each["id"] == "e′"]
        assert masked[-2:] == [None, None]
        assert alpha[-2:] == [0.0, 0.0]


def test_mask_after_the_softmax_leaves_a_sum_below_one(tiny_model) -> None:
    ours = translator_of(tiny_model())
    sheet, _ = sheet_at(ours, 1, Edit(behind=3), masking="after")
    check_symbols(sheet)
    weights = sheet.symbols["α"].values
    assert not weights[-3:].any()
    assert 0 < sheet.symbols["Σα"].values < 0.999
    unmasked = sheet.symbols["a"].values
    np.testing.assert_allclose(unmasked.sum(), 1)
    np.testing.assert_allclose(weights[:-3], unmasked[:-3])
    before, _ = sheet_at(ours, 1, Edit(behind=3))
    np.testing.assert_allclose(before.symbols["Σα"].values, 1)


def test_weights_without_a_mask_fall_on_pads(tiny_model) -> None:
    ours = translator_of(tiny_model())
    sheet, taken = sheet_at(ours, 1, Edit(behind=3), intervene=Intervention(mask_pads=False))
    assert "e′" not in sheet.symbols
    assert sheet.symbols["α"].values[-3:].all()
    check_end(sheet, taken)


def test_pads_that_are_read_change_the_encoders_vectors(tiny_model) -> None:
    ours = translator_of(tiny_model(bidirectional=False))

    def vectors(behind: int, recurrence: str | None) -> Any:
        shown = step_numbers(ours, TEXT, [5, 3], edit=Edit(before=behind), recurrence=recurrence)
        (h,) = [each["values"] for each in shown["symbols"] if each["id"] == "h"]
        return shown["recurrence"], h

    kind, without = vectors(0, None)
    assert kind == "skip"
    assert vectors(2, None) == ("skip", [[0.0] * 4] * 2 + without)
    kind, read = vectors(2, "read")
    assert kind == "read"
    assert np.abs(np.array(read)[0]).max() > 0
    assert np.abs(np.array(read)[2:] - np.array(without)).max() > 1e-3
    assert ours.model.encoder.padding.recurrence == "skip"
    ours.model.encoder = torch.nn.Identity()
    with pytest.raises(ExperimentError, match="Identity has no recurrence"):
        step_numbers(ours, TEXT, [5, 3], recurrence="read")


@pytest.mark.parametrize(
    "intervene",
    [
        Intervention("uniform"),
        Intervention(temperature=3.0),
        Intervention(weights={2: [0.5, 0.25, 0.25, 0.0]}),
        Intervention(hide="all"),
        Intervention(hide=[1]),
        Intervention("uniform", heads=[0]),
    ],
    ids=["uniform", "temperature", "weights", "all hidden", "one hidden", "one head"],
)
def test_numbers_under_an_intervention_end_as_the_model(tiny_model, intervene) -> None:
    for choices in ({}, {"heads": 2}):
        sheet, taken = sheet_at(translator_of(tiny_model(**choices)), 2, intervene=intervene)
        check_symbols(sheet)
        check_end(sheet, taken)


@pytest.mark.parametrize("output", MARGINALISES)
@pytest.mark.parametrize(
    "intervene",
    [
        Intervention("uniform"),
        Intervention(weights={2: [0.5, 0.25, 0.5, 0.0]}),
        Intervention(hide=[1]),
    ],
    ids=["uniform", "weights", "one hidden"],
)
def test_numbers_of_hard_attention_under_an_intervention_end_as_the_model(
    tiny_model, output, intervene
) -> None:
    model = tiny_model(output=output)
    sheet, taken = sheet_at(translator_of(model), 2, intervene=intervene)
    check_symbols(sheet)
    check_end(sheet, taken)


def test_score_and_weights_from_outside_are_taken_from_the_model(tiny_model) -> None:
    model = tiny_model(attention=Part(EuclideanScore, temperature=2.0))
    model.decoder.attention.normaliser = GainedSoftmax(0.5).double()
    sheet, taken = sheet_at(translator_of(model), 2)
    e, alpha = sheet.symbols["e"], sheet.symbols["α"]
    assert (e.operation, e.part) == ("module", "EuclideanScore")
    assert (alpha.operation, alpha.part) == ("module", "GainedSoftmax")
    assert sheet.symbols["Σα"].values == pytest.approx(0.5)
    check_symbols(sheet)
    check_end(sheet, taken)


def test_decoder_from_outside_shows_query_weights_context_and_state(tiny_model) -> None:
    model = tiny_model(decoder="step_then_attend")
    model.decoder.__class__ = GatedDecoder
    width = model.decoder.attention.score.U.weight.shape[1]
    model.decoder.gate = torch.nn.Linear(8, width).double()
    sheet, taken = sheet_at(translator_of(model), 2)
    assert {"q_t", "h", "α", "c_t", "s_t"} <= set(sheet.symbols)
    assert sheet.symbols["s_t"].part == "GatedDecoder"
    check_symbols(sheet)
    check_end(sheet, taken)


def test_subclass_of_a_known_score_is_not_taken_for_it(tiny_model) -> None:
    from attnlab.model.attention.dot import DotScore

    class Doubled(DotScore):
        def forward(self, query, keys):
            return 2 * super().forward(query, keys)

    sheet, taken = sheet_at(translator_of(tiny_model(attention=Part(Doubled))), 1)
    assert sheet.symbols["e"].operation == "module"
    check_end(sheet, taken)


def test_large_symbols_come_as_windows_and_large_vocabularies_as_likely_tokens(tiny_model) -> None:
    trainer = WordTrainer(min_frequency=1)
    words = " ".join(f"w{number}" for number in range(200))
    source, target = trainer.train([WORDS]), trainer.train([words])
    model = tiny_model(
        decoder_hidden_size=100,
        target_vocabulary_size=target.size,
    )
    ours = Translator(model, source, target, BEAM)
    ids = analysis.score(ours, TEXT, "w3 w150")["ids"]
    windows = {"W_s": [40, 64]}
    shown = step_numbers(ours, TEXT, ids, step=1, windows=windows)
    symbols = {record["id"]: record for record in shown["symbols"]}
    gates, hidden = symbols["W_s"]["axes"]
    assert gates["at"] == list(range(40, 72))
    assert hidden["at"] == list(range(64, 96))
    weight = model.decoder.body.cell.cells[0].weight_hh.detach().numpy()
    np.testing.assert_allclose(symbols["W_s"]["values"], weight[40:72, 64:96], atol=1e-6)

    (vocabulary,) = symbols["logits"]["axes"]
    assert vocabulary["size"] == target.size
    assert ids[0] in vocabulary["at"]  # the token that is read
    likeliest = [token for _, token, _ in shown["likeliest"][1]]
    assert set(likeliest) <= set(vocabulary["at"])
    assert vocabulary["labels"] == target.tokens(vocabulary["at"])
    assert len(symbols["W_y"]["values"]) == len(vocabulary["at"])


@pytest.mark.parametrize(
    ("score", "own"),
    [
        ("dot", "dot"),
        ("scaled_dot", "scaled_dot"),
        ("general", "general"),
        ("concat", "concat"),
        ("bahdanau", "additive"),
        ("location", "location"),
    ],
)
def test_five_scores_hold_the_models_own_energies(tiny_model, score, own) -> None:
    ours = translator_of(tiny_model(attention=score))
    target = analysis.score(ours, TEXT, "v w")["ids"]
    shown = step_numbers(ours, TEXT, target, step=1, edit=Edit(behind=1))
    symbols = {record["id"]: record["values"] for record in shown["symbols"]}
    (of_the_head,) = shown["scores"]
    rows = {row["name"]: row for row in of_the_head}
    assert list(rows) == ["dot", "scaled_dot", "general", "concat", "additive", "location"]
    np.testing.assert_allclose(rows[own]["energies"], symbols["e"], atol=2e-6)
    np.testing.assert_allclose(rows[own]["weights"], symbols["α"], atol=2e-6)
    assert rows["dot"]["weights_from"] == "none"
    drawn = [name for name, row in rows.items() if row["weights_from"] == "drawn"]
    assert own not in drawn
    assert all("seed" in rows[name] for name in drawn)
    for row in rows.values():
        assert row["weights"][-1] == 0.0  # the pad


def test_five_scores_leave_out_what_unequal_widths_forbid(tiny_model) -> None:
    ours = translator_of(tiny_model(attention="general", decoder_hidden_size=5))
    shown = step_numbers(ours, TEXT, [5, 3], step=0)
    (of_the_head,) = shown["scores"]
    rows = {row["name"]: row for row in of_the_head}
    assert rows["dot"]["energies"] is rows["scaled_dot"]["energies"] is None
    assert rows["location"]["weights"] is not None
    assert rows["general"]["weights_from"] == "model"


def test_decoder_without_attention_compares_no_scores(tiny_model) -> None:
    ours = translator_of(tiny_model(decoder="no_attention"))
    assert step_numbers(ours, TEXT, [5, 3])["scores"] is None


def test_step_behind_the_target_is_refused(tiny_model) -> None:
    ours = translator_of(tiny_model())
    for step in (-1, 2):
        with pytest.raises(ExperimentError, match="step must be at least 0 and below 2"):
            step_numbers(ours, TEXT, [5, 3], step=step)


@dataclasses.dataclass(frozen=True)
class Asked(Remembered):
    sharpness: torch.Tensor  # (B, 1)


class SharpAsAsked(History[Asked]):
    """Its normaliser gets other scores than those of the step."""

    def __init__(self, *, query_size: int) -> None:
        super().__init__()
        self.v = torch.nn.Linear(query_size, 1, bias=False)

    def first(self, memory: Any) -> Asked:
        return Asked(memory.positions * self.v.weight.new_zeros(()), torch.zeros(1, 1))

    def before(self, past: Asked, query: torch.Tensor) -> Asked:
        return dataclasses.replace(past, sharpness=self.v(query).exp())

    def weigh(self, scores: torch.Tensor, normalise: Any, past: Asked) -> torch.Tensor:
        return normalise(past.sharpness * scores)

    def after(self, past: Asked, query: Any, context: Any, weights: torch.Tensor) -> Asked:
        return dataclasses.replace(past, weights=weights)


class HalfBefore(SharpAsAsked):
    """Reads what the normaliser makes of the scores, and the last weights."""

    def weigh(self, scores: torch.Tensor, normalise: Any, past: Asked) -> torch.Tensor:
        return (normalise(scores) + past.weights) / (1 + past.weights.sum(1, keepdim=True))


class BiasedKeys(SharpAsAsked):
    changes_keys = True

    def change_keys(self, keys: torch.Tensor, past: Asked) -> torch.Tensor:
        return keys + past.sharpness.unsqueeze(2) + past.weights.unsqueeze(2)


@pytest.mark.parametrize(
    ("history", "formulas"),
    [
        (SharpAsAsked, ["α = history(e′, past.sharpness)"]),
        (HalfBefore, ["α = history(y, α_t−1)"]),
        (
            BiasedKeys,
            ["k′_t = history(U h, past.sharpness, α_t−1)", "α = history(e′, past.sharpness)"],
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_history_of_ones_own_shows_what_it_reads(tiny_model, history, formulas) -> None:
    ours = translator_of(tiny_model(history=Part(history)))
    for step in (0, 2):
        sheet, taken = sheet_at(ours, step, Edit(behind=1))
        written = []
        for group in sheet.groups:
            for parts in group.formulas:
                written.append("".join(getattr(part, "id", part) for part in parts))
        assert [each for each in written if "history(" in each] == formulas
        check_end(sheet, taken)  # among it, that α are the model's own weights


def test_page_has_a_name_for_every_symbol_and_group(tiny_model) -> None:
    page = Path(attnlab.explorer.__file__).parent / "page"
    words = "".join(
        (page / name).read_text(encoding="utf-8") for name in ("words.js", "server_words.js")
    )
    known = set(re.findall(r'^  "?([\w.]+)"?:', words, re.MULTILINE))
    models = [build(variant) for variant in VARIANTS]
    models.append(
        tiny_model(cell="lstm", scope="local_p_renormalised", history="coverage", heads=2)
    )
    models.append(tiny_model(history=Part(SharpAsAsked)))
    models.append(tiny_model(decoder="no_attention", context="every_step"))
    models.append(tiny_model(decoder="step_then_attend", context="readout_and_previous_in_cell"))
    used = set()
    for model in models:
        for masking in ("before", "after"):
            sheet, _ = sheet_at(translator_of(model), 1, Edit(behind=1), masking)
            used |= {f"sym.{symbol.about}" for symbol in sheet.symbols.values()}
            used |= {f"group.{group.about}" for group in sheet.groups}
    assert used <= known, sorted(used - known)
