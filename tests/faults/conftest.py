"""What the tests of faults share: the entry points, run inside the test's process."""

from command_fixtures import command, folder  # noqa: F401 (fixtures)
