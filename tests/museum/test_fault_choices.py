"""The choices of `fault`: refusals, identities, names, loaded models, and their inspection."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_experiments import SMALL, overrides_of
from torch import Tensor, nn

from attnlab.config.binding import bind
from attnlab.config.identity import target_modules, used_code
from attnlab.config.names import readable_name
from attnlab.config.params import short_params
from attnlab.errors import ExperimentError
from attnlab.experiment.changes import changes
from attnlab.experiment.composition import compose
from attnlab.experiment.evaluation import EVALUATE_SOURCES
from attnlab.experiment.point import TRAIN_SOURCES
from attnlab.experiment.sections import EVALUATE_SECTIONS, TRAIN_SECTIONS
from attnlab.faults.fault import Fault
from attnlab.faults.faulty_model import FaultySeq2Seq
from attnlab.faults.faulty_task import FaultyTranslation, evaluated_with_fault, fault_of
from attnlab.inspection.probes import EXPLAINED, inspect_module
from attnlab.inspection.stranger import Sizes, Stranger
from attnlab.model.attention.attention import Attention
from attnlab.model.attention.memory import Memory
from attnlab.model.fast import FASTER, speed_up
from attnlab.model.model_folder import ModelFacts, load_model, save_model
from attnlab.model.seq2seq import Seq2Seq
from attnlab.project import CONF
from attnlab.runs.shown_params import shown_params
from attnlab.search.beam import BeamSearch
from attnlab.tasks.translation.task import Translation

NAMES = sorted(path.stem for path in (CONF / "fault").glob("*.yaml") if path.stem != "none")


def identity(overrides: list[str]) -> str:
    experiment = compose(overrides)
    return experiment.identity(TRAIN_SECTIONS, "the data", TRAIN_SOURCES)


def test_there_are_fifteen_faults() -> None:
    assert len(NAMES) == 15


@pytest.mark.parametrize("name", NAMES)
def test_choice_names_the_class_of_its_own_file(name: str) -> None:
    fault = compose(overrides_of(name)).model.values["fault"]
    assert fault.name == name
    assert type(fault).__module__ == f"attnlab.faults.{name}"
    for text in (fault.does, fault.made_by, fault.noticed):
        assert text.strip() == text
        assert not text.startswith(" ")
    docstring = inspect.cleandoc(type(fault).__doc__ or "")
    assert "\nWrong: " in docstring
    assert "\nRight: " in docstring


def test_constructor_of_a_faulty_model_has_every_setting_of_a_right_one() -> None:
    faulty = dict(inspect.signature(FaultySeq2Seq).parameters)
    assert faulty.pop("fault").default is inspect.Parameter.empty
    assert list(faulty.items()) == list(inspect.signature(Seq2Seq).parameters.items())


# Identity and names


def test_right_experiment_has_no_trace_of_the_museum() -> None:
    experiment = compose([*SMALL, "fault=none"])
    assert experiment.config == compose(SMALL).config
    assert "fault" not in experiment.config["model"]
    assert "fault" not in experiment.config
    assert type(experiment.task) is Translation
    stages = (TRAIN_SOURCES, TRAIN_SECTIONS), (EVALUATE_SOURCES, EVALUATE_SECTIONS)
    for sources, sections in stages:
        values = {name: experiment.values[name] for name in sections}
        code = used_code({*experiment.sources(sources), *target_modules(values)})
        assert not [place for place in code.texts if place.startswith("attnlab.faults")]
    assert "fault" not in short_params(experiment.config)
    assert "fault" not in shown_params(experiment.logged)


def test_each_fault_is_an_experiment_of_its_own() -> None:
    found = {name: identity(overrides_of(name)) for name in ("none", *NAMES)}
    assert len(set(found.values())) == 16
    leaks = "mask_that_leaks"
    assert identity(overrides_of(leaks, "model.fault.score=-3")) != found[leaks]


@pytest.mark.parametrize("name", NAMES)
def test_fault_counts_with_its_own_code_in_training_and_evaluation(name: str) -> None:
    experiment = compose(overrides_of(name))
    stages = (TRAIN_SOURCES, TRAIN_SECTIONS), (EVALUATE_SOURCES, EVALUATE_SECTIONS)
    for sources, sections in stages:
        values = {section: experiment.values[section] for section in sections}
        code = used_code({*experiment.sources(sources), *target_modules(values)})
        assert f"attnlab.faults.{name}" in code.texts
        assert any(place.startswith("attnlab.tasks.translation.") for place in code.texts)


@pytest.mark.parametrize("name", NAMES)
def test_name_of_a_run_begins_with_its_fault(name: str) -> None:
    config = compose(overrides_of(name)).logged
    right = compose([text for text in overrides_of(name) if text != f"fault={name}"]).logged
    assert readable_name(config) == f"fault {name} · {readable_name(right)}"
    assert short_params(config)["fault"] == name
    assert shown_params(config) == {"fault": name, **shown_params(right)}


def test_name_of_a_sweeps_point_has_its_fault_once() -> None:
    config = compose(overrides_of("relu_for_tanh")).logged
    name = readable_name(config, {"fault": "relu_for_tanh", "seed": "2"})
    assert name.startswith("relu_for_tanh fault · seed 2 · bahdanau")
    assert name.count("relu_for_tanh") == 1
    assert shown_params(config, varied={"fault": "relu_for_tanh"})["fault"] == "relu_for_tanh"
    right = compose(SMALL).logged
    assert readable_name(right, {"fault": "none"}).startswith("no fault · bahdanau")
    assert shown_params(right, varied={"fault": "none"})["fault"] == "none"


def test_changed_setting_of_a_fault_is_in_the_name() -> None:
    config = compose(["fault=mask_that_leaks", "model.fault.score=-3"]).logged
    assert readable_name(config).startswith("fault mask_that_leaks · fault score -3 · bahdanau")
    assert shown_params(config)["model.fault.score"] == "-3"


def test_report_says_what_was_asked_by_the_name_of_the_fault() -> None:
    experiment = compose(["fault=relu_for_tanh", "data=copy"])
    found = changes(experiment.config, experiment.choices)
    assert [change.override for change in found] == ["data=copy", "fault=relu_for_tanh"]
    assert found[1].default == "none"


# Refusals


REFUSED = {
    ("no_source_mask", "padding=unmasked"): "there is none; choose padding.attention_masked=true",
    ("no_source_mask", "model/attention=none"): "needs an attention",
    ("mask_that_leaks", "padding=unmasked"): "there is none; choose padding.attention_masked=true",
    ("mask_that_leaks", "model/attention=none"): "needs an attention",
    ("softmax_over_batch", "model/normaliser=sparsemax"): "made by Sparsemax",
    ("softmax_over_batch", "model/history=monotonic"): "Monotonic does not use",
    ("softmax_over_batch", "model/attention=none"): "needs an attention",
    ("context_from_keys", "model/attention=dot"): "DotScore projects none",
    ("context_from_keys", "model/attention=location"): "LocationScore projects none",
    ("context_from_keys", "model.attention.size=12"): "choose model.attention.size=16",
    ("context_from_keys", "model/heads=multi"): "choose model/heads=one",
    ("context_from_keys", "model/history=coverage"): "choose model/history=none",
    ("context_from_keys", "model/attention=none"): "needs an attention",
    ("relu_for_tanh", "model/attention=general"): "which GeneralScore has not",
    ("relu_for_tanh", "model/attention=none"): "needs an attention",
    ("score_not_learnt", "model/attention=dot"): "of which DotScore has none",
    ("score_not_learnt", "model/attention=none"): "needs an attention",
    ("state_not_passed", "model/attention=none"): "nothing of the source at all",
    ("cell_from_hidden", "model/encoder=gru"): "this decoder has none; choose model/encoder=lstm",
    ("cell_from_hidden", "model/bridge=zero"): "both first states are zero",
    ("cell_from_hidden", "hardware=ddp_cpu"): "choose hardware.strategy=single",
    ("directions_mixed", "model.encoder.bidirectional=false"): "model.encoder.bidirectional=true",
    ("directions_mixed", "model.encoder.merge=sum"): "choose model.encoder.merge=concatenate",
    ("directions_mixed", "model/bridge=mean"): "which this bridge does not read",
    ("pads_in_final_state", "padding=unmasked_read"): "which it does already",
    ("mask_assumes_right_pads", "padding=post_post"): "choose padding.encoder=pre",
    ("heat_map_off_by_one", "model/attention=none"): "needs an attention to show",
    ("loss_over_pads", "training.accumulate=2"): "choose training.accumulate=1",
    ("teacher_forcing_in_validation", "paths.ensemble=[one]"): "choose paths.ensemble=null",
}  # fmt: skip


@pytest.mark.parametrize(("fault", "override"), REFUSED)
def test_combination_without_an_effect_is_refused_in_one_sentence(
    fault: str, override: str
) -> None:
    with pytest.raises(ExperimentError) as refused:
        compose(overrides_of(fault, override))
    (problem,) = refused.value.problems
    assert fault in problem
    assert REFUSED[fault, override] in problem


@pytest.mark.parametrize("fault", ["state_not_passed", "heat_map_off_by_one"])
def test_fault_of_a_recurrent_decoder_refuses_a_transformer(fault: str) -> None:
    transformer = ("model/decoder=transformer", "model/attention=general", "model/bridge=zero")
    with pytest.raises(ExperimentError, match=r"choose (another|a recurrent) model/decoder"):
        compose([f"fault={fault}", *transformer])


def test_heat_map_off_by_one_refuses_an_output_that_shows_something_else() -> None:
    shows_posterior = ("model/decoder=step_then_attend", "model/output=hard_attention")
    with pytest.raises(ExperimentError, match="choose model/output=linear"):
        compose(["fault=heat_map_off_by_one", "model/attention=general", *shows_posterior])


def test_every_fault_refuses_another_task() -> None:
    for name in NAMES:
        with pytest.raises(ExperimentError) as refused:
            compose([f"fault={name}", "task=classification"])
        assert str(refused.value) == (
            f"fault={name} is a mistake of task=translation, but the task is classification; "
            "choose task=translation, or fault=none"
        )


def test_leak_that_single_precision_cannot_tell_is_refused() -> None:
    with pytest.raises(
        ExperimentError, match=r"model.fault.score must be a number of at least -50"
    ):
        compose(["fault=mask_that_leaks", "model.fault.score=-1e8"])


# Loaded models


def saved(name: str, folder: Path) -> tuple[Seq2Seq, Any]:
    """A model with a fault in a folder, as a training leaves it, and its config."""
    experiment = compose(overrides_of(name))
    sizes = {"source_vocabulary_size": 11, "target_vocabulary_size": 9}
    torch.manual_seed(3)
    model = experiment.model(**sizes, padding=experiment.padding).eval()
    sections = {key: experiment.config[key] for key in ("task", "data", *TRAIN_SECTIONS, "search")}
    save_model(folder, model.state_dict(), sections, ModelFacts("f" * 16, 7, sizes), [])
    return model, sections


@pytest.mark.parametrize("name", NAMES)
def test_loaded_model_has_the_fault(name: str, tmp_path: Path, pair: Callable[..., Any]) -> None:
    model, sections = saved(name, tmp_path / "model")
    loaded = speed_up(load_model(tmp_path / "model"))
    batch = pair(name).batch()
    search = BeamSearch(size=2, length_penalty=0.0, max_length=5)

    with torch.no_grad():
        ours, theirs = model(batch), loaded(batch)
    torch.testing.assert_close(model.output(ours.reading), loaded.output(theirs.reading))
    torch.testing.assert_close(ours.attention_weights, theirs.attention_weights)
    written = [
        search(each, batch.source, batch.source_mask, with_attention=True)
        for each in (model, loaded)
    ]
    for one, other in zip(*written, strict=True):
        assert one[0].tokens == other[0].tokens
        torch.testing.assert_close(one[0].attention_weights, other[0].attention_weights)

    assert isinstance(loaded, FaultySeq2Seq)
    assert loaded.fault == fault_of(tmp_path / "model")
    assert loaded.fault.name == name
    assert readable_name(sections).startswith(f"fault {name} · ")


@pytest.mark.parametrize("name", NAMES)
def test_faulty_parts_are_not_sped_up(name: str) -> None:
    experiment = compose(overrides_of(name))
    sizes = {"source_vocabulary_size": 11, "target_vocabulary_size": 9}
    model = experiment.model(**sizes, padding=experiment.padding)
    of_museum = [
        part for part in model.modules() if type(part).__module__.startswith("attnlab.faults.")
    ]
    before = [type(part) for part in of_museum]
    assert model in of_museum
    speed_up(model)
    assert [type(part) for part in of_museum] == before
    assert not {*before} & {*FASTER}


def test_command_without_a_fault_evaluates_a_model_with_its_own(tmp_path: Path) -> None:
    saved("teacher_forcing_in_validation", tmp_path / "forced")
    saved("relu_for_tanh", tmp_path / "relu")
    right = compose(SMALL)
    task = evaluated_with_fault(right, [tmp_path / "forced"]).task
    assert isinstance(task, FaultyTranslation)
    assert task.fault.name == "teacher_forcing_in_validation"

    other = compose(overrides_of("relu_for_tanh"))
    task = evaluated_with_fault(other, [tmp_path / "forced"]).task
    assert isinstance(task, FaultyTranslation)
    assert task.fault.name == "teacher_forcing_in_validation"

    with pytest.raises(ExperimentError, match=r"paths.ensemble: .*evaluate it alone"):
        evaluated_with_fault(right, [tmp_path / "relu", tmp_path / "forced"])
    both = evaluated_with_fault(right, [tmp_path / "relu", tmp_path / "relu"]).task
    assert isinstance(both, FaultyTranslation)


# The inspection of attention modules


class Adapter(nn.Module):
    """The attention of a model, called as `attnlab inspect` calls a stranger's."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        assert isinstance(model.decoder.attention, Attention)
        self.attention = model.decoder.attention
        self.masked = model.padding.attention_masked

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Any:
        positions = torch.arange(keys.shape[1]).expand(keys.shape[:2])
        projected, averaged = self.attention.project(keys, positions, mask)
        memory = Memory(
            summary=keys[:, 0],
            keys=projected,
            values=values if averaged is keys else averaged,
            mask=mask if self.masked else None,
            positions=positions,
            lengths=mask.sum(1),
        )
        context, weights = self.attention(query, memory, positions[:, : query.shape[1]])
        return context, weights[:, 0]


def found_in(overrides: list[str]) -> list[str]:
    experiment = compose(overrides)
    sizes = {"source_vocabulary_size": 11, "target_vocabulary_size": 9}
    model = experiment.model(**sizes, padding=experiment.padding)
    probed = inspect_module(Stranger(Adapter(model), Sizes()))
    assert not [each.error for each in probed if each.error]
    return [each.fault.name for each in probed if each.fault is not None]


def test_inspection_finds_nothing_in_the_right_attention() -> None:
    assert found_in(list(SMALL)) == []


SHARED = {
    name: compose(overrides_of(name)).model.values["fault"].inspected
    for name in NAMES
    if compose(overrides_of(name)).model.values["fault"].inspected
}


@pytest.mark.parametrize("name", SHARED)
def test_inspection_finds_the_faults_that_it_knows(name: str) -> None:
    # With one score for all pads, more of it than real tokens' would hide the leak.
    assert SHARED[name] in found_in(overrides_of(name))


def test_page_of_the_inspection_has_the_shared_names() -> None:
    page = (CONF.parent / "docs" / "inspect.md").read_text(encoding="utf-8")
    assert len(SHARED) == 5
    for inspected in SHARED.values():
        assert f"| {inspected} |" in page
    assert SHARED["softmax_over_batch"] in EXPLAINED


def test_fault_of_a_users_own_is_bound_like_ours() -> None:
    with pytest.raises(ExperimentError, match=r"it must be one of attnlab.faults.cell_from_hidden"):
        bind({"_target_": "attnlab.model.bridges.ZeroBridge"}, Fault, "model.fault")
