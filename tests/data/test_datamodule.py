from types import SimpleNamespace

import pytest
from pytorch_lightning.accelerators import CPUAccelerator, CUDAAccelerator, MPSAccelerator

from attnlab.batch import BOS, EOS, Padding
from attnlab.data.datamodule import SeqDataModule
from attnlab.data.prepare import prepare
from attnlab.data.prepared import PreparedData
from attnlab.data.row_kinds import Pairs
from attnlab.data.sampler import Batching


@pytest.fixture
def data(dates, tmp_path):
    prepare(dates(), Pairs, tmp_path / "data")
    return PreparedData(tmp_path / "data")


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_batches_hold_their_rows_for_any_number_of_workers(data, workers):
    module = SeqDataModule(data, Batching(size=16), Padding(), seed=1, num_workers=workers)
    split = data.split("train")
    batches = list(module.train_dataloader())
    seen = []
    for batch in batches:
        for i, row in enumerate(batch.rows.tolist()):
            seen.append(row)
            assert batch.source[i][batch.source_mask[i]].tolist() == [*split.source[row], EOS]
            assert batch.target_input[i][batch.target_mask[i]].tolist() == [BOS, *split.target[row]]
            assert batch.target_output[i][batch.target_mask[i]].tolist() == [
                *split.target[row],
                EOS,
            ]
    assert sorted(seen) == list(range(len(split)))
    again = SeqDataModule(data, Batching(size=16), Padding(), seed=1)
    assert seen == [row for batch in again.train_dataloader() for row in batch.rows.tolist()]
    first, second = (
        [row for batch in module.val_dataloader() for row in batch.rows.tolist()] for _ in range(2)
    )
    assert first == second
    assert sorted(first) == list(range(len(data.split("validation"))))


@pytest.mark.parametrize("workers", [0, 2])
def test_restored_loader_skips_batches_in_its_first_epoch_only(data, workers):
    def epochs(skipped):
        loader = SeqDataModule(
            data, Batching(size=16), Padding(), seed=1, num_workers=workers
        ).train_dataloader()
        loader.sampler.set_epoch(3)
        loader.load_state_dict({"batches": skipped})
        found = []
        for epoch in (3, 4):
            loader.sampler.set_epoch(epoch)
            found.append([batch.rows.tolist() for batch in loader])
        return found

    whole, rest = epochs(0), epochs(2)
    assert len(whole[0]) > 3
    assert rest == [whole[0][2:], whole[1]]


@pytest.mark.parametrize(
    ("accelerator", "pinned"),
    [(CUDAAccelerator, True), (CPUAccelerator, False), (MPSAccelerator, False)],
)
def test_loader_pins_memory_only_for_cuda(accelerator, pinned, data):
    module = SeqDataModule(data, Batching(size=16), Padding())
    assert not module.train_dataloader().pin_memory  # there is no trainer yet
    module.trainer = SimpleNamespace(
        accelerator=accelerator(), global_rank=0, world_size=1, current_epoch=0
    )
    for loader in (module.train_dataloader(), module.val_dataloader(), module.test_dataloader()):
        assert loader.pin_memory is pinned
