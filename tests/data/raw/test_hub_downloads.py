"""A dataset of the hub, from a local server.

Our readers read its files, online and then offline.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from small_hub import DATASET, small_hub

CARD = """---
configs:
- config_name: pairs
  data_files:
  - split: train
    path: data/train.csv
  - split: test
    path: data/test.csv
  sep: ";"
- config_name: others
  data_files: others.jsonl
---
"""
READ = """
import json, sys
from attnlab.data.raw.loading import RawData
from attnlab.data.raw.rows import Format
raw = RawData(sys.argv[1], None, "pairs", None, {"source": "de", "target": "en"}, Format())
rows = raw.read("train")
print(json.dumps([raw.splits, rows["source"][:], rows["target"][:], rows["place"][:], raw.notes]))
"""


def read(home: Path, **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", READ, DATASET],
        env={**os.environ, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_hub_dataset_is_read_as_written_online_and_then_offline(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "data").mkdir(parents=True)
    (repository / "README.md").write_text(CARD)
    (repository / "data" / "train.csv").write_text("de;en\n007;NA\n1.50;null\n")
    (repository / "data" / "test.csv").write_text("de;en\n1;2\n")
    (repository / "others.jsonl").write_text('{"x": 1}\n')
    with small_hub(repository) as address:
        online = read(tmp_path / "home", HF_ENDPOINT=address, HF_HUB_OFFLINE="0")
    places = ["data/train.csv, line 2", "data/train.csv, line 3"]
    assert online == [["train", "test"], ["007", "1.50"], ["NA", "null"], places, []]
    *content, (note,) = read(tmp_path / "home", HF_HUB_OFFLINE="1")
    assert content == online[:4]
    assert "the hub cannot be reached" in note
    assert note.endswith("read what was downloaded before")
