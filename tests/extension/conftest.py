"""Fixtures of the tests with a foreign package."""

from __future__ import annotations

from command_fixtures import command, database, folder, made_once  # noqa: F401 (fixtures)
