"""Pictures of a real, tiny training: drawn at validations, uploaded."""

from functools import partial

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from matplotlib.figure import Figure

from attnlab.evaluation.attention_map import AttentionMap, load_maps
from attnlab.evaluation.formed_attention import read_formed
from attnlab.plots.picture import Picture
from attnlab.runs.pictures import PictureCallback, Pictures, write_heat_maps, write_sentences
from attnlab.runs.run_folder import OUTBOX
from attnlab.runs.tracking import NoTracking
from attnlab.training.spool import RUN_FOLDER, SPOOL_NAME, MetricSpool
from attnlab.training.spool_logger import SpoolLogger


class Tiny(pl.LightningModule):
    """Its validation metric is best after the second validation."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.scores = iter([0.5, 0.9, 0.3, 0.2])

    def training_step(self, batch, index):
        loss = self.layer(batch).mean()
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, index):
        pass

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            self.log("validation/bleu", next(self.scores))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def maps(module):
    assert not module.training
    assert not torch.is_grad_enabled()
    weights = np.array([[0.9, 0.1], [0.2, 0.8]])
    first = AttentionMap(["<b>", "<eos>"], ["날짜", "<eos>"], weights, "first")
    drawn = [first, AttentionMap(["a"], ["b"], [[1.0]])]
    return Pictures(drawn, partial(write_heat_maps, drawn))


def steps_of_image(client, run, key):
    """The steps at which MLflow has a picture, as its own pages read them from the names."""
    found = [info.path for info in client.list_artifacts(run.run_id, "images")]
    parts = [path.removeprefix("images/").split("+") for path in found if path.endswith(".png")]
    return sorted(int(each[2]) for each in parts if each[0] == key)


def fit(point, maps=maps, own=None, module=None, draws=True):
    callback = PictureCallback(maps, point, own or {}, draws)
    data = torch.utils.data.DataLoader(torch.ones(8, 1), batch_size=1)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=8,
        val_check_interval=2,
        num_sanity_val_steps=1,
        log_every_n_steps=1,
        logger=SpoolLogger(MetricSpool(point / SPOOL_NAME)),
        callbacks=[callback],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module or Tiny(), data, data)


class Blank(Picture):
    def draw(self, maps):
        assert maps[0].title == "first"
        return Figure(figsize=(1, 1))


class Broken(Picture):
    def draw(self, maps):
        raise ValueError("no ink")


@pytest.mark.filterwarnings("ignore")
def test_own_picture_is_written_and_one_that_fails_is_warned_of(
    tracking, runs, point, record, client, capfd
):
    with tracking().start(runs, point, record) as run:
        fit(point, own={"blank": Blank(), "broken": Broken()})
    assert steps_of_image(client, run, "validation~attention~blank") == [0, 2, 4, 6, 8]
    assert steps_of_image(client, run, "validation~attention~broken") == []
    said = "warning: pictures.broken could not be drawn: ValueError: no ink (test_pictures.py"
    assert capfd.readouterr().err.count(said) == 5


@pytest.mark.filterwarnings("ignore")
def test_maps_of_every_validation_stay_beside_the_learning_curves(
    tracking, runs, point, record, client
):
    with tracking().start(runs, point, record):
        fit(point)
    found = read_formed(point / "training", 9)
    assert [step for step, _ in found] == [0, 2, 4, 6, 8]
    assert {attention.title for _, attention in found} == {"first"}


@pytest.mark.filterwarnings("ignore")
def test_untracked_training_keeps_its_maps_and_draws_nothing(point):
    fit(point, draws=NoTracking.draws_pictures)
    assert [step for step, _ in read_formed(point / "training", 9)] == [0, 2, 4, 6, 8]
    assert not (point / RUN_FOLDER / OUTBOX).exists()


@pytest.mark.filterwarnings("ignore")
def test_maps_of_every_validation_arrive_in_mlflow(tracking, runs, point, record, client):
    with tracking().start(runs, point, record) as run:
        fit(point)
    steps = [info.path for info in client.list_artifacts(run.run_id, "attention")]
    assert steps == [f"attention/step_00000{step}" for step in (0, 2, 4, 6, 8)]
    names = [
        info.path.rpartition("/")[2]
        for info in client.list_artifacts(run.run_id, "attention/step_000008")
    ]
    assert names == ["attention.html", "attention.npz"]
    folder = runs / "mlflow-artifacts" / run.run_id / "artifacts" / "attention" / "step_000008"
    page = (folder / "attention.html").read_text(encoding="utf-8")
    assert "날짜" in page
    assert "<b>" not in page
    assert load_maps(folder / "attention.npz")[0].target_tokens == ["날짜", "<eos>"]
    for sentence in ("sentence_1", "sentence_2"):
        assert steps_of_image(client, run, f"validation~attention~{sentence}") == [0, 2, 4, 6, 8]
    assert [metric.step for metric in client.get_metric_history(run.run_id, "validation/bleu")] == [
        2,
        4,
        6,
        8,
    ]
    assert not any((point / "run" / "outbox").rglob("*.png"))


@pytest.mark.filterwarnings("ignore")
def test_drawing_before_the_training_changes_neither_modes_nor_random_numbers(point):
    class Frozen(Tiny):
        def __init__(self):
            super().__init__()
            self.layer.eval()
            self.seen = []

        def on_train_batch_start(self, batch, index):
            self.seen.append((self.training, self.layer.training, torch.rand(1).item()))

    def trained(maps):
        module = Frozen()
        pl.seed_everything(1, verbose=False)
        fit(point, maps, module=module)
        return module.seen[0]

    def drawing(module):
        assert not module.training
        torch.rand(5)
        return None

    assert trained(drawing) == trained(lambda module: None)


@pytest.mark.filterwarnings("ignore")
def test_model_without_attention_draws_nothing(point):
    fit(point, lambda module: None)
    assert not (point / "run" / "outbox").exists()


def test_classifier_pictures_are_files(tmp_path):
    maps = [AttentionMap(["<b>", "날짜"], ["love"], [[0.9, 0.1]], "love (0.93)")]
    write_sentences(maps, ["love", "일상"], np.array([[3, 1], [0, 2]]), tmp_path, "Step 4")
    names = ["attention.npz", "confusion_matrix.png", "sentences.html", "sentences.png"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert load_maps(tmp_path / "attention.npz")[0].source_tokens == ["<b>", "날짜"]
    page = (tmp_path / "sentences.html").read_text(encoding="utf-8")
    assert "Step 4" in page
    assert "<b>" not in page
