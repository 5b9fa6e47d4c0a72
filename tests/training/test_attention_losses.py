"""Losses on attention weights against loops over tokens, and what they refuse.

Axes: B batch, T target length, S source length.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.config.part import Part
from attnlab.data.padding import make_batch
from attnlab.data.prepared import PreparedData
from attnlab.data.trainers import WordTrainer
from attnlab.errors import ExperimentError
from attnlab.experiment.composition import compose
from attnlab.experiment.preparation import prepare
from attnlab.experiment.training import make_module
from attnlab.model.attention.dot import DotScore
from attnlab.model.attention.uniform import UniformScore
from attnlab.model.histories.forward import Forward, ForwardWithAgent
from attnlab.model.normalisers.hard import Hard
from attnlab.model.normalisers.learned_temperature import LearnedTemperature
from attnlab.model.normalisers.normaliser import Normaliser
from attnlab.model.normalisers.softmax import Softmax
from attnlab.model.normalisers.softmax_with_sink import SoftmaxWithSink
from attnlab.model.scopes import GlobalScope, LocalM, LocalP
from attnlab.training.attention_losses.aligned_mass import AlignedMass
from attnlab.training.attention_losses.attention_loss import (
    AttentionLoss,
    Looks,
    check_hard,
    check_learns,
    linked_places,
    read_source_vocabulary,
)
from attnlab.training.attention_losses.entropy import Entropy
from attnlab.training.attention_losses.guided_alignment import GuidedAlignment
from attnlab.training.attention_losses.impermissible_mass import ImpermissibleMass

B, T, S = 2, 3, 4
FILES = Path(__file__).resolve().parents[2] / "conf/training/attention_loss"
CHOICES = sorted(path.stem for path in FILES.glob("*.yaml") if path.stem != "none")
# Of each row: [target position, source position]; the second target token of row 1 has no link.
LINKS = ([[0, 0], [1, 2], [1, 1], [2, 3]], [[0, 1], [2, 0]])


def looks_of(padding: Padding) -> Looks:
    sources, targets = [[4, 5, 6], [5, 4]], [[4, 5], [6, 7]]
    batch = make_batch(sources, targets, padding)
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(B, T, S, generator=generator, dtype=torch.float64)
    weights = scores.masked_fill(~batch.source_mask.unsqueeze(1), -torch.inf).softmax(-1)
    linked = linked_places(
        lambda row: np.array(LINKS[row], dtype=np.int64), batch, batch.target_mask
    )
    return Looks(
        weights.requires_grad_(), batch.source, batch.source_mask, batch.target_mask, linked
    )


def rows_of(looks: Looks):
    """Of each real target token: its weights and links over the real source tokens, and these."""
    for row in range(B):
        source = looks.source_mask[row]
        for t in looks.target_mask[row].nonzero()[:, 0].tolist():
            assert looks.linked is not None
            yield (
                looks.weights[row, t, source].tolist(),
                looks.linked[row, t, source].tolist(),
                looks.source[row, source].tolist(),
            )


BOTH_SIDES = pytest.mark.parametrize(
    "padding", [Padding("pre", "post"), Padding("post", "pre")], ids=["pre-post", "post-pre"]
)


@BOTH_SIDES
def test_links_stand_at_the_tokens_of_their_rows_wherever_pads_are(padding):
    found = []
    for _, linked, _ in rows_of(looks_of(padding)):
        found.append([place for place, is_linked in enumerate(linked) if is_linked])
    assert found == [[0], [1, 2], [3], [1], [], [0]]


@BOTH_SIDES
@pytest.mark.parametrize("distance", ["cross_entropy", "product", "squared"])
def test_guided_alignment_is_its_equation_over_linked_tokens(padding, distance):
    looks = looks_of(padding)
    expected = 0.0
    for weights, linked, _ in rows_of(looks):
        if not any(linked):
            continue
        gold = [is_linked / sum(linked) for is_linked in linked]
        pairs = list(zip(gold, weights, strict=True))
        if distance == "cross_entropy":
            expected -= sum(a * math.log(w) for a, w in pairs)
        elif distance == "product":
            expected -= math.log(sum(a * w for a, w in pairs))
        else:
            expected += sum((a - w) ** 2 for a, w in pairs) / 2
    loss = GuidedAlignment(weight=1.0, distance=distance, links="sure").summed(looks)
    assert loss.item() == pytest.approx(expected, abs=1e-12)


@BOTH_SIDES
def test_entropy_is_that_of_each_real_target_token(padding):
    looks = looks_of(padding)
    expected = -sum(w * math.log(w) for weights, _, _ in rows_of(looks) for w in weights)
    assert Entropy(weight=1.0).summed(looks).item() == pytest.approx(expected, abs=1e-12)


@BOTH_SIDES
def test_impermissible_mass_is_the_weight_of_the_named_words(padding):
    tokenizer = WordTrainer(min_frequency=1).train(["he she they"])
    he, she = tokenizer.id_of("he"), tokenizer.id_of("she")
    looks = looks_of(padding)
    renamed = torch.where(looks.source == 4, he, torch.where(looks.source == 5, she, 1))
    source = torch.where(looks.source == 6, tokenizer.id_of("they"), renamed)
    looks = Looks(looks.weights, source, looks.source_mask, looks.target_mask)
    loss = ImpermissibleMass(weight=1.0, tokens=["he", "she"])
    read_source_vocabulary(loss, tokenizer)
    expected = 0.0
    for row in range(B):
        for t in looks.target_mask[row].nonzero()[:, 0].tolist():
            masses = zip(source[row].tolist(), looks.weights[row, t].tolist(), strict=True)
            mass = sum(w for token, w in masses if token in (he, she))
            expected -= math.log(1 - mass)
    assert loss.summed(looks).item() == pytest.approx(expected, abs=1e-12)


def test_module_of_opened_data_knows_the_words_of_its_loss(tmp_path):
    places = ["tracking=none", f"paths.data={tmp_path}", f"paths.runs={tmp_path / 'runs'}"]
    small = ["data=copy", "data.num_pairs=60"]
    folder = prepare(compose([*small, *places])).folder

    loss = ["training/attention_loss=impermissible_mass", "training.attention_loss.tokens=[a]"]
    experiment = compose([*small, *places, *loss])
    data = PreparedData(folder)
    make_module(experiment, data)  # without `prepare`, which also checks the words
    expected = ImpermissibleMass(weight=1.0, tokens=["a"])
    expected.read_vocabulary(data.source_tokenizer)
    looks = looks_of(Padding("post", "post"))
    looks = replace(looks, source=torch.full_like(looks.source, data.source_tokenizer.id_of("a")))
    found = experiment.training.attention_loss.summed(looks).item()
    assert found == expected.summed(looks).item() > 0


@BOTH_SIDES
def test_aligned_mass_is_the_weight_of_the_linked_tokens(padding):
    looks = looks_of(padding)
    expected = 0.0
    for row in range(B):
        for t in looks.target_mask[row].nonzero()[:, 0].tolist():
            places = zip(looks.linked[row, t].tolist(), looks.weights[row, t].tolist(), strict=True)
            expected -= math.log(1 - sum(weight for is_linked, weight in places if is_linked))
    loss = AlignedMass(weight=1.0, links="sure")
    assert loss.summed(looks).item() == pytest.approx(expected, abs=1e-12)


def test_word_that_the_vocabulary_lacks_is_refused():
    tokenizer = WordTrainer(min_frequency=1).train(["he she"])
    with pytest.raises(ExperimentError, match=r"attention_loss\.tokens names 'it', which the"):
        read_source_vocabulary(ImpermissibleMass(weight=1.0, tokens=["he", "it"]), tokenizer)


@pytest.mark.parametrize(
    "loss",
    [
        GuidedAlignment(weight=1.0, distance="cross_entropy", links="sure"),
        GuidedAlignment(weight=1.0, distance="product", links="sure"),
        Entropy(weight=0.1),
    ],
    ids=["cross_entropy", "product", "entropy"],
)
def test_weights_of_exactly_0_and_1_have_finite_losses_and_gradients(loss):
    looks = looks_of(Padding())
    hard = torch.eye(S, dtype=torch.float64)[:T].expand(B, T, S).clone().requires_grad_()
    looks = Looks(hard, looks.source, looks.source_mask, looks.target_mask, looks.linked)
    found = loss.summed(looks)
    found.backward()
    assert found.isfinite()
    assert hard.grad is not None
    assert hard.grad.isfinite().all()


@pytest.mark.parametrize("distance", ["cross_entropy", "product", "squared"])
def test_gradients_of_guided_alignment_match_finite_differences(distance):
    looks = looks_of(Padding())
    loss = GuidedAlignment(weight=1.0, distance=distance, links="sure")

    def run(weights: torch.Tensor) -> torch.Tensor:
        return loss.summed(
            Looks(weights, looks.source, looks.source_mask, looks.target_mask, looks.linked)
        )

    inner = looks.weights.detach().clamp(min=0.05).requires_grad_()
    assert torch.autograd.gradcheck(run, [inner])


class OwnLoss(AttentionLoss):
    """With nothing but what a subclass must have."""

    name = "own_loss"
    needs_links = True
    weight = 1.0

    def summed(self, looks: Looks) -> torch.Tensor:
        assert looks.linked is not None
        return looks.weights[looks.linked].sum()


def test_own_loss_that_needs_links_reads_the_sure_ones():
    assert OwnLoss().links == "sure"


def test_entropy_without_a_factor_is_refused():
    with pytest.raises(ValueError, match="weight must not be 0"):
        Entropy(weight=0)


def model_of(**parts: type) -> dict[str, Part]:
    usual = {"attention": UniformScore, "normaliser": Softmax, "scope": GlobalScope}
    return {name: Part(target) for name, target in (usual | parts).items()}


def test_loss_on_uniform_weights_is_refused_unless_another_part_learns_them():
    for parts in ({}, {"scope": LocalM}, {"normaliser": LearnedTemperature}, {"history": Forward}):
        (problem,) = check_learns(Entropy(1.0), model_of(**parts))
        assert "training.attention_loss is Entropy, but model.attention is UniformScore" in problem
    for parts in (
        {"attention": DotScore},
        {"scope": LocalP},
        {"history": ForwardWithAgent},
    ):
        assert check_learns(Entropy(1.0), model_of(**parts)) == []
    sink = Part(SoftmaxWithSink, initial=0.0, learned=True)
    assert check_learns(Entropy(1.0), {**model_of(), "normaliser": sink}) == []
    assert check_learns(None, model_of()) == []


@pytest.mark.parametrize(
    "name", [path.stem for path in (FILES.parents[1] / "model/normaliser").glob("*.yaml")]
)
def test_normaliser_whose_uniform_weights_are_refused_moves_them_by_no_parameter(name):
    node = yaml.safe_load((FILES.parents[1] / f"model/normaliser/{name}.yaml").read_text("utf-8"))
    part = bind(node, Normaliser, "model.normaliser")
    torch.manual_seed(0)
    normaliser = part()
    parameters = list(normaliser.parameters())
    weights = normaliser(torch.zeros(2, 3, 5))
    # Of random factors: the sum of a row is fixed for most.
    gradients = [None]
    if parameters:
        gradients = torch.autograd.grad((weights * torch.rand(2, 3, 5)).sum(), parameters)
    moves = any(gradient is not None and gradient.abs().max() > 1e-6 for gradient in gradients)
    if check_learns(Entropy(1.0), {**model_of(), "normaliser": part}):
        assert not moves
    else:
        # These do not go with the uniform score.
        assert moves or name in ("none", "reinforce")


def hard_part(is_noisy: bool) -> Part:
    return Part(Hard, temperature=1.0, noise=is_noisy)


def guided(distance: str) -> GuidedAlignment:
    return GuidedAlignment(weight=1.0, distance=distance, links="sure")


ON_HARD_WEIGHTS = [
    # Whether they learn without noise, and with it.
    (guided("squared"), True, True),
    (guided("cross_entropy"), False, True),
    (guided("product"), False, True),
    (ImpermissibleMass(weight=1.0, tokens=["he"]), False, True),
    (AlignedMass(weight=1.0, links="sure"), False, True),
    (Entropy(weight=0.1), False, False),
]


@pytest.mark.parametrize(("loss", "learns", "learns_by_noise"), ON_HARD_WEIGHTS)
def test_loss_that_teaches_hard_weights_nothing_is_refused(loss, learns, learns_by_noise):
    words = f"training.attention_loss {type(loss).__name__} teaches nothing to weights"
    for is_noisy, goes in ((False, learns), (True, learns_by_noise)):
        problems = check_hard(loss, hard_part(is_noisy))
        assert (problems == []) == goes
        if not goes:
            assert words in problems[0]
            assert problems[0].endswith("softmax or gumbel" if learns_by_noise else "softmax")
    assert check_hard(loss, Part(Softmax)) == check_hard(None, hard_part(False)) == []


@pytest.mark.parametrize(("loss", "learns", "learns_by_noise"), ON_HARD_WEIGHTS[:-1])
def test_what_a_loss_says_of_hard_weights_is_true(loss, learns, learns_by_noise):
    """The best score is at the wrong token: only a loss that sees another one can change it."""
    looks = looks_of(Padding())
    loss._ids = looks.source.flatten()[:1]
    wrong = torch.zeros(B, T, S, dtype=torch.float64)
    if isinstance(loss, ImpermissibleMass):
        wrong[torch.isin(looks.source, loss._ids).unsqueeze(1).expand(B, T, S)] = 2.0
    elif isinstance(loss, AlignedMass):
        wrong[looks.linked] = 2.0
    else:
        wrong[~looks.linked & looks.source_mask.unsqueeze(1)] = 2.0
    # Equal scores, one of which is noise.
    wrong += 1e-3 * torch.rand(B, T, S, generator=torch.Generator().manual_seed(1))
    wrong = wrong.masked_fill(~looks.source_mask.unsqueeze(1), -torch.inf)
    torch.manual_seed(0)
    for is_noisy, expected in ((False, learns), (True, learns_by_noise)):
        normaliser = hard_part(is_noisy)().train()
        found = False
        for _ in range(30):
            scores = wrong.clone().requires_grad_()
            of_batch = replace(looks, weights=normaliser(scores))
            found |= bool(torch.autograd.grad(loss.summed(of_batch), scores)[0].any())
        assert found == expected


def test_losses_have_files():
    assert {"aligned_mass", "entropy", "guided_alignment", "impermissible_mass"} <= set(CHOICES)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@BOTH_SIDES
@pytest.mark.parametrize("choice", CHOICES)
def test_loss_and_gradient_on_a_gpu_equal_the_processors(choice, padding):
    node = yaml.safe_load((FILES / f"{choice}.yaml").read_text(encoding="utf-8"))
    if "tokens" in node:
        node["tokens"] = ["he"]
    loss = bind(node, AttentionLoss, "training.attention_loss")
    loss.read_vocabulary(WordTrainer(min_frequency=1).train(["he reads", "she reads"]))

    here = looks_of(padding)
    moved = {field.name: getattr(here, field.name).detach().to("cuda") for field in fields(here)}
    there = replace(here, **moved)
    there.weights.requires_grad_()
    expected, found = loss.summed(here), loss.summed(there)
    expected.backward()
    found.backward()
    torch.testing.assert_close(found.cpu(), expected)
    torch.testing.assert_close(there.weights.grad.cpu(), here.weights.grad)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@BOTH_SIDES
def test_links_of_a_batch_on_a_gpu_stand_where_the_processors_do(padding):
    batch = make_batch([[4, 5, 6], [5, 4]], [[4, 5], [6, 7]], padding)

    def links(row):
        return np.array(LINKS[row], dtype=np.int64)

    expected = linked_places(links, batch, batch.target_mask)
    moved = batch.to("cuda")
    found = linked_places(links, moved, moved.target_mask)
    assert found.is_cuda
    assert torch.equal(found.cpu(), expected)
