"""Output, files, failures and exit codes, as those of the C++ programs (src/app/command_line.h)."""

import contextlib
import errno
import os
import re
import signal
import stat

_UNSAFE = re.compile("[\0-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")


class Failure(Exception):
    """An expected failure. `kind` is the name of a C++ status code."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind
        self.message = message


class ReaderGone(Failure):
    """Nobody reads standard output any more."""

    def __init__(self):
        super().__init__("input/output error", "cannot write to standard output: " + os.strerror(errno.EPIPE))


def io_failure(what, error):
    """The failure of an OSError."""
    return Failure("input/output error", f"{what}: {error.strerror}")


def harmless(text, keep=""):
    """The text with control characters and bytes that are not UTF-8 as "\\x1b": names and values come from files."""
    def shown(match):
        character = match[0]
        if character in keep:
            return character
        is_byte = "\udc80" <= character <= "\udcff"
        return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape" if is_byte else "surrogatepass"))
    return _UNSAFE.sub(shown, text)


def shortened(line, most):
    """Both ends of a long line, and its size."""
    if len(line) <= most:
        return line
    return f"{line[:2 * most // 3]} … ({len(line.encode('utf-8', 'surrogateescape'))} bytes) … {line[-(most // 3):]}"


def say(text):
    """Writes to standard error. Unbuffered, so signal handlers can call it."""
    with contextlib.suppress(OSError):
        os.write(2, harmless(text, "\n\t").encode())


def print_out(text):
    """Writes to standard output."""
    rest = harmless(text, "\n\t").encode()
    try:
        while rest:
            rest = rest[os.write(1, rest):]
    except BrokenPipeError:
        raise ReaderGone() from None
    except OSError as error:
        # The programs open a closed standard output for reading.
        reason = "standard output is closed" if error.errno == errno.EBADF else error.strerror
        raise Failure("input/output error", "cannot write to standard output: " + reason) from None


def let_signals_end_this():
    """Signals end this process as they end other programs; the one that started it has blocked them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def check_plain_file(path):
    """Rejects named pipes, which would block, and devices, which may have no end."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise io_failure(f'cannot look at "{path}"', error) from None
    if stat.S_ISREG(mode):
        return
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device",
             stat.S_IFBLK: "a device"}
    raise Failure("bad data", f'"{path}" is {kinds.get(stat.S_IFMT(mode), "no plain file")}, and a plain file belongs there')


def read_file(path):
    """The bytes of a plain file."""
    check_plain_file(path)
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise io_failure(f'cannot read "{path}"', error) from None


def write_file(path, text):
    """Writes a whole file or nothing: the old content stays until the new one is on the disk."""
    if os.path.exists(path) and not os.path.isfile(path):
        kind = "a folder" if os.path.isdir(path) else "no regular file"
        raise Failure("input/output error", f'cannot write "{path}": it is {kind}, whose place a new file would take')
    beside = path + ".millrace-writing"
    try:
        with open(beside, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise io_failure(f'cannot write "{path}"', error) from None


def end(program, failures):
    """Prints the failures and returns the exit code: that of an interruption, else of the first failure. A program whose
    reader is gone ends by SIGPIPE instead, as other programs do."""
    if not failures:
        return 0
    last = next((failure for failure in failures if failure.kind == "cancelled"), failures[0])
    for failure in [failure for failure in failures if failure is not last] + [last]:
        if isinstance(last, ReaderGone) and failure is last:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPIPE])
            os.kill(os.getpid(), signal.SIGPIPE)
        what = failure.message if failure.kind == "invalid configuration" else f"{failure.kind}: {failure.message}"
        say(f"{program}: {what}\n")
    return {"invalid configuration": 2, "cancelled": 130}.get(last.kind, 3)
