"""The entry points, run inside the test's process."""

from command_fixtures import command, folder, tiny  # noqa: F401 (fixtures)
