"""The options of a command as a table: flag, environment variable, default and meaning."""

from __future__ import annotations

from enum import Enum
from typing import Any

import click

from edge_operator.__main__ import cli
from edge_operator.derive.rows import shown


def options(command: str) -> str:
    """Every option of `edge-operator <command>` that is not for tests."""
    found = ["| Option | Environment variable | Default | Meaning |", "|---|---|---|---|"]
    for option in cli.commands[command].params:
        if isinstance(option, click.Option) and not option.hidden:
            text = " ".join((option.help or "").split())
            found.append(f"| `{option.opts[0]}` | `{option.envvar}` | {_default(option)} | {text} |")
    return "\n".join(found) + "\n"


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    value: Any = option.default
    if value is None or isinstance(value, Enum) or value == ():  # click marks "no default" by an enumeration
        return ""
    return f"`{shown(value)}`"
