"""A local web page that changes the attention of trained models and shows what happens."""

from pathlib import Path

PAGE = Path(__file__).parent / "page"
