"""Where the words of a run go; called by the extension module."""

from __future__ import annotations

import logging
import sys

_logger = logging.getLogger("millrace")


def print(text: str) -> None:
    """Fetched values, with their newline."""
    sys.stdout.write(text)
    sys.stdout.flush()


def log(text: str) -> None:
    """Whole lines: to the logger "millrace", or to sys.stderr while neither it nor the root has a handler."""
    if _logger.hasHandlers():
        for line in text.splitlines():
            _logger.info("%s", line)
    elif sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
