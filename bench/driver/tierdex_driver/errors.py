"""Errors that end a run with one line."""


class Failed(Exception):
    """Something failed: exit code 1."""


class Usage(Exception):
    """A wrong flag or definition: exit code 2."""


class CellFailed(Exception):
    """One measurement failed. The run goes on, and its reports say why."""
