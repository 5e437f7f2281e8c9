"""How log lines look: one line each, plain for people, JSON for collectors."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from pathlib import Path


class JSONFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as `{"time": …, "level": …, "logger": …, "message": …}`."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def where(error: BaseException) -> str:
    """The type of an unexpected error and where it came from, without its text: that may quote what is secret."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{at}"


def configure(level: str, form: str) -> None:
    """Send log lines to standard error. Libraries speak up from warnings on, unless everything is asked for."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
    handler.setFormatter(JSONFormatter() if form == "json" else plain)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("edge_operator").setLevel(level.upper())
    if level == "debug":
        logging.getLogger("kopf").setLevel(logging.INFO)
