"""A tiny translator whose analyses are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from attnlab.tasks.translation.translator import Translator
from explored_models import build_character_translator


@pytest.fixture
def character_translator(tiny_model: Callable[..., Any]) -> Callable[..., Translator]:
    """Builds one that writes Korean characters."""
    return partial(build_character_translator, tiny_model)
