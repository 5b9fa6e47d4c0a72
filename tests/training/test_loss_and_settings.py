"""The loss, the schedules of the learning rate, the optimisers, and what the settings refuse: all without a trainer."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from attnlab.batch import Padding
from attnlab.config.binding import bind
from attnlab.data.padding import make_batch
from attnlab.evaluation.text_metrics import TextMetrics
from attnlab.model.seq2seq import Unrolled
from attnlab.training.loss import summed_nll
from attnlab.training.optimizer import SGD, Adadelta, Adam, Optimizer
from attnlab.training.schedule import ConstantSchedule, CosineSchedule, HalvingSchedule, PlateauSchedule
from attnlab.training.seq2seq_module import Seq2SeqModule
from attnlab.training.stopping import total_steps
from attnlab.training.teacher_forcing.constant import ConstantTeacherForcing

CONF = Path(__file__).resolve().parents[2] / "conf"


@pytest.mark.parametrize("side", ["pre", "post"])
def test_the_loss_is_the_sum_over_real_tokens(side, pairs):
    batch = make_batch(*pairs(), Padding(decoder=side))
    torch.manual_seed(0)
    output, readout = torch.nn.Linear(5, 9), torch.randn(*batch.target_output.shape, 5)
    readout[~batch.target_mask] = math.nan  # whatever stands at pads, it does not count
    found = summed_nll(output, Unrolled(readout, None), batch)

    logits = (
        readout.double().numpy() @ output.weight.detach().double().numpy().T + output.bias.detach().double().numpy()
    )
    expected = 0.0
    for row, t in zip(*batch.target_mask.numpy().nonzero(), strict=True):
        z = logits[row, t]
        expected += np.log(np.exp(z).sum()) - z[batch.target_output[row, t]]
    assert found.item() == pytest.approx(expected, rel=1e-6)
    assert batch.num_target_tokens == sum(len(target) + 1 for target in pairs()[1])


def test_a_half_precision_output_layer_is_summed_in_single(pairs):
    batch = make_batch(*pairs(), Padding())
    output, readout = torch.nn.Linear(5, 9), torch.randn(*batch.target_output.shape, 5)
    with torch.autocast("cpu", torch.bfloat16):
        assert summed_nll(output, Unrolled(readout, None), batch).dtype == torch.float32


@pytest.mark.parametrize("ratio", [0.0, 0.5])
def test_validation_knows_no_ratio(ratio, settings, tiny_model, pairs):
    batch = make_batch(*pairs(), Padding())
    found = []
    for r in (1.0, ratio):
        torch.manual_seed(0)
        module = Seq2SeqModule(
            tiny_model(scale=3.0),
            settings(teacher_forcing=ConstantTeacherForcing(r)),
            TextMetrics("none", ter=False),
            decode=lambda ids: " ".join(map(str, ids)),
            references=lambda rows: [" ".join(map(str, pairs()[1][row])) for row in rows],
            seed=1,
        ).eval()
        with torch.no_grad():
            module.validation_step(batch, 0)
        found.append((module.validation_nll.compute(), module.text_metrics.compute()))
    assert found[0] == found[1]


def rates(schedule, steps: int, total: int = 10) -> list[float]:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    entry = schedule(optimizer, total, "m", "min")
    assert entry["interval"] == "step"
    assert entry.get("frequency", 1) == 1
    seen = []
    for _ in range(steps):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        entry["scheduler"].step()
    return seen


def test_schedules():
    assert rates(ConstantSchedule(), 3) == [2.0, 2.0, 2.0]
    assert rates(ConstantSchedule(3), 6) == [0.5, 1.0, 1.5, 2.0, 2.0, 2.0]
    assert rates(CosineSchedule(), 11) == pytest.approx([1 + math.cos(math.pi * t / 10) for t in range(11)])
    warmed = rates(CosineSchedule(2), 12, total=10)
    assert warmed[:3] == pytest.approx([2 / 3, 4 / 3, 2.0])
    assert warmed[6] == pytest.approx(1.0)  # half-way between the warm-up and the end
    assert warmed[10:] == pytest.approx([0.0, 0.0])  # and it does not grow again
    assert rates(HalvingSchedule(3, 2), 9) == [2, 2, 2, 1, 1, 0.5, 0.5, 0.25, 0.25]
    assert rates(HalvingSchedule(0, 1), 3) == [1, 0.5, 0.25]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_a_plateau_is_where_nothing_got_better(mode):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    entry = PlateauSchedule(0.5, patience=1, minimum=0.2)(optimizer, 100, "validation/x", mode)
    assert entry["monitor"] == "validation/x"
    seen = []
    for value in (1, 2, 3, 2, 4, 4, 4, 5, 1, 1, 1, 1):
        entry["scheduler"].step(value if mode == "max" else 10 - value)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == [1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.2]


def test_optimisers_take_their_settings():
    parameters = [torch.nn.Parameter(torch.ones(2))]
    adam = Adam(0.01, 0.8, 0.9, 0.1)(parameters)
    assert isinstance(adam, torch.optim.AdamW)
    assert {k: adam.defaults[k] for k in ("lr", "betas", "weight_decay")} == {
        "lr": 0.01,
        "betas": (0.8, 0.9),
        "weight_decay": 0.1,
    }
    sgd = SGD(0.5, 0.9, 0.1)(parameters)
    assert [sgd.defaults[k] for k in ("lr", "momentum", "weight_decay")] == [0.5, 0.9, 0.1]
    adadelta = Adadelta(0.5, 0.9, 1e-3, 0.1)(parameters)
    assert [adadelta.defaults[k] for k in ("lr", "rho", "eps", "weight_decay")] == [0.5, 0.9, 1e-3, 0.1]


def test_the_first_step_of_adam_by_hand():
    parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = Adam(0.1)([parameter])
    (parameter * torch.tensor([3.0, 5.0])).sum().backward()
    optimizer.step()
    torch.testing.assert_close(parameter.detach(), torch.tensor([0.9, -2.1]))


@pytest.mark.parametrize("path", sorted((CONF / "training" / "optimizer").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_optimiser_in_conf_lowers_a_loss(path):
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(3, 1), torch.randn(20, 3)
    optimizer = bind(yaml.safe_load(path.read_text()) | {"learning_rate": 0.05}, Optimizer, "optimizer")(
        layer.parameters()
    )
    losses = []
    for _ in range(50):
        loss = (layer(x) - x.sum(1, keepdim=True)).square().mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0]


def test_hardware_that_contradicts_itself_is_refused(hardware):
    with pytest.raises(ValueError, match=r"strategy single has one process, but there are 2 device\(s\) on 1 node"):
        hardware(devices=2)
    with pytest.raises(ValueError, match=r"strategy single .* on 2 node"):
        hardware(nodes=2)
    with pytest.raises(ValueError, match="strategy ddp_fork cannot leave its node, got nodes 2; choose strategy ddp"):
        hardware(strategy="ddp_fork", nodes=2, devices=2)
    with pytest.raises(ValueError, match="strategy ddp_fork is for the CPU, got accelerator gpu"):
        hardware(strategy="ddp_fork", accelerator="gpu", devices=2)
    assert hardware(strategy="ddp_fork", devices=2).device == "cpu"
    assert hardware(accelerator="gpu").device == "cuda"


def test_hardware_that_is_not_there_is_refused(hardware, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    hardware().check_available()
    for name in ("gpu", "mps"):
        with pytest.raises(ValueError, match=f"accelerator {name} is not on this machine; it has: cpu$"):
            hardware(accelerator=name).check_available()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    hardware(accelerator="gpu").check_available()
    with pytest.raises(ValueError, match="devices must be at most 1 on this machine, got 2"):
        hardware(accelerator="gpu", devices=2, strategy="ddp").check_available()


def test_more_threads_than_cores_are_refused(hardware, monkeypatch):
    monkeypatch.setattr("attnlab.training.hardware.cores", lambda: 4)
    hardware(threads=4).check_available()
    hardware(threads=2).check_available(jobs=2)
    hardware(strategy="ddp_fork", devices=2, threads=2).check_available()
    with pytest.raises(ValueError, match=r"threads must be at most 4 with 1 process\(es\) at a time on the 4 core"):
        hardware(threads=5).check_available()
    with pytest.raises(ValueError, match=r"threads must be at most 1 with 4 process.*, got 2"):
        hardware(threads=2).check_available(jobs=4)
    with pytest.raises(ValueError, match=r"at most 1 with 4 process"):
        hardware(strategy="ddp_fork", devices=2, threads=2).check_available(jobs=2)
    with pytest.raises(ValueError, match=r"threads: 5 processes at a time need as many cores, .* has 4; choose fewer"):
        hardware().check_available(jobs=5)


def test_hardware_sets_the_threads_that_it_names(hardware):
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        hardware(threads=2, matmul_precision="high").apply()
        assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == (2, "high")
        hardware().apply()
        assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == (1, "highest")
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])


def test_training_must_end(settings):
    with pytest.raises(ValueError, match="max_steps and max_epochs are both null; give at least one"):
        settings(max_steps=None)
    assert total_steps(settings(max_steps=12), 5) == 12
    assert total_steps(settings(max_steps=None, max_epochs=3), 5) == 15
    assert total_steps(settings(max_steps=12, max_epochs=3), 5) == 12
    assert total_steps(settings(max_steps=12, max_epochs=2), 5) == 10


def test_translation_settings_map_monitor_to_validation_metric_and_mode(settings):
    assert settings().monitored_metric == "validation/teacher_forced/token_nll"
    assert settings().monitor_mode == "min"
    for name in ("bleu", "chrf", "exact_match"):
        assert settings(monitor=name).monitored_metric == f"validation/free_running/{name}"
        assert settings(monitor=name).monitor_mode == "max"
