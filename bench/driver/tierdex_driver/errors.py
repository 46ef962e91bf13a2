"""Errors that end a run with one line."""

import click


class Failed(click.ClickException):
    """Something failed: exit code 1."""


class Usage(click.UsageError):
    """A wrong flag or definition: exit code 2."""


class CellFailed(click.ClickException):
    """One measurement failed. The run goes on, and its reports say why."""
