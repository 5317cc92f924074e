"""What goes wrong, as exceptions. The text of each is the whole message: what, where, why and what to do."""

from __future__ import annotations

__all__ = ["Error", "ConfigError", "DataError", "NotFoundError", "AlreadyExistsError", "IoError", "UnavailableError",
           "CancelledError", "EOFException", "InternalError", "MillraceWarning", "StopTraining"]


def _harmless(arguments: tuple[object, ...]) -> list[object]:
    """Texts as a terminal may show them: names and values in them may come from data or a model."""
    from ._millrace import harmless  # which raises these errors
    return [harmless(_utf8_of(one)) if isinstance(one, str) else one for one in arguments]


def _utf8_of(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")  # of names of files
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


class Error(Exception):
    """Any failure that Millrace reports. `code` names its kind, as the programs' exit codes do."""

    code = "internal error"

    def __init__(self, *arguments: object) -> None:
        super().__init__(*_harmless(arguments))


class ConfigError(Error, ValueError):
    """A job, a model or an argument is wrong. All mistakes are in one text, a line or more each."""

    code = "invalid configuration"


class DataError(Error, ValueError):
    """A line of input or a data file does not parse; the text begins with FILE:LINE:COLUMN."""

    code = "bad data"


class NotFoundError(Error, LookupError):
    """A file, a variable or a class that was named is not there."""

    code = "not found"


class AlreadyExistsError(Error):
    """A name is taken, or something that happens once was asked for again."""

    code = "already exists"


class IoError(Error, OSError):
    """The system refused to read or write, or a pipe_command failed."""

    code = "input/output error"


class UnavailableError(Error):
    """A thing is not there now and may be later."""

    code = "unavailable"


class CancelledError(Error):
    """Something else stopped the work: a closed queue, another thread's failure."""

    code = "cancelled"


class EOFException(Error, EOFError):
    """A reader is at its end: its reset(), or start(), begins the next pass. Parameters stay as they are."""

    code = "end of data"


class InternalError(Error, RuntimeError):
    """A bug of Millrace."""


class StopTraining(Exception):
    """Raised by a FetchHandler to end a training when this batch is done, as a success: its Report has stopped_early."""


class MillraceWarning(UserWarning):
    """A job runs, but something in it looks like a mistake."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*_harmless(arguments))


_BY_CODE = {cls.code: cls for cls in (ConfigError, DataError, NotFoundError, AlreadyExistsError, IoError,
                                      UnavailableError, CancelledError, EOFException, InternalError)}


def error_of(code: str, message: str) -> Error:
    """The exception for a status; called by the extension module."""
    return _BY_CODE.get(code, InternalError)(message)
