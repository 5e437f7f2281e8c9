"""How log lines look: one line each, plain for people, JSON for collectors."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime


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


def configure(level: str, form: str) -> None:
    """Send log lines to standard error. Libraries speak up from warnings on, unless everything is asked for."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
    handler.setFormatter(JSONFormatter() if form == "json" else plain)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("edge_operator").setLevel(level.upper())
    if level == "debug":
        logging.getLogger("kopf").setLevel(logging.INFO)
