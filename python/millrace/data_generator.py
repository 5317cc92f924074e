"""Base classes for pipe_command scripts that convert raw lines to MultiSlot lines.

    from millrace.data_generator import MultiSlotDataGenerator

    class Reader(MultiSlotDataGenerator):
        def generate_sample(self, line):
            def samples():
                label, *ids = line.split()
                yield [("label", [int(label)]), ("ids", [int(i) for i in ids])]
            return samples

    Reader().run_from_stdin()

Use it with pipe_command: "python3 reader.py". The classes and their output match Paddle's fleet.data_generator; in a Paddle
script, change only the import line. Plain ints, floats and strings are formatted in C.
"""

from __future__ import annotations

import sys

try:
    from ._lines import number_lines as _number_lines
    from ._lines import string_lines as _string_lines
except ImportError:  # in a checkout without a build
    _number_lines = _string_lines = None  # type: ignore[assignment]

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

TYPE_CHECKING = False
if TYPE_CHECKING:  # a pipe_command starts once per file, and these imports would take half of its startup time
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Optional

    Field = Sequence[Any]  # (name, list of values)
    Sample = Sequence[Field]

_ROWS_AT_ONCE = 64


class DataGenerator:
    """Converts lines to samples and samples to MultiSlot lines."""

    def __init__(self) -> None:
        self._proto_info: Optional[list[tuple[Any, str]]] = None  # names, "uint64" or "float"
        self.batch_size_ = 32

    def set_batch(self, batch_size: int) -> None:
        """Sets the number of samples passed to generate_batch at a time."""
        self.batch_size_ = batch_size

    def generate_sample(self, line: Optional[str]) -> Callable[[], Iterable[Any]]:
        """Override it. Returns a callable that yields the samples of a line, "...\\n". None is skipped. A sample is a
        list or tuple of fields (name, [value, ...]), with the same names in the same order in every sample."""
        raise NotImplementedError("write generate_sample(self, line): it returns a function that yields samples, "
                                  '[("words", [1926, 8, 17]), ("label", [1])]')

    def generate_batch(self, samples: list[Sample]) -> Callable[[], Iterable[Sample]]:
        """Can be overridden. Returns a function that yields samples, given a list of up to set_batch samples."""
        return lambda: iter(samples)

    def run_from_stdin(self) -> None:
        """Reads raw lines from standard input and writes MultiSlot lines to standard output."""
        self._run(self.generate_sample(line) for line in sys.stdin)

    def run_from_memory(self) -> None:
        """Writes the samples of generate_sample(None) to standard output, for tests."""
        self._run([self.generate_sample(None)])

    def _run(self, makers: Iterable[Callable[[], Iterable[Any]]]) -> None:
        batches = type(self).generate_batch is not DataGenerator.generate_batch
        size = self.batch_size_ if batches else _ROWS_AT_ONCE
        write = sys.stdout.write
        samples: list[Sample] = []
        add = samples.append
        try:
            for make in makers:
                if not callable(make):
                    raise TypeError("generate_sample returns a function that yields samples, not %s%s" % (
                        type(make).__name__, ": return it without calling it" if hasattr(make, "__next__") else ""))
                for sample in make():
                    if sample is None:
                        continue
                    add(sample)
                    if len(samples) == size:
                        write(self._lines_of(self.generate_batch(samples) if batches else None, samples))
                        samples = []
                        add = samples.append
        except BaseException:
            # Samples before a failure are valid if they do not wait for a batch.
            if samples and not batches:
                write(self._lines_of(None, samples))
            raise
        if samples:
            write(self._lines_of(self.generate_batch(samples) if batches else None, samples))

    def _lines_of(self, batch: Optional[Callable[[], Iterable[Sample]]], samples: list[Sample]) -> str:
        """Returns the lines of the samples, or of the samples that generate_batch yields from them."""
        if batch is not None:
            samples = list(batch())
        return "".join(map(self._gen_str, samples))

    def _gen_str(self, line: Sample) -> str:
        """Returns the line of a sample."""
        raise NotImplementedError("derive from MultiSlotDataGenerator or MultiSlotStringDataGenerator")


def _fields(line: object, example: str) -> Sequence[Field]:
    if isinstance(line, zip):
        line = list(line)
    if not isinstance(line, (list, tuple)):
        raise ValueError("a sample is a list or tuple of fields, for example %s; not %s %r" % (
            example, type(line).__name__, line))
    return line


def _pair(index: int, field: object) -> Sequence[Any]:
    if not isinstance(field, (list, tuple)) or len(field) != 2:
        raise ValueError("field %d is (name, [value, ...]), not %r" % (index, field))
    return field


class MultiSlotDataGenerator(DataGenerator):
    """Writes ints and floats. A slot becomes a float slot once a float occurs in it.

    Raises ValueError for any other input: a different container, an empty list, fields whose number or names differ from
    the first sample, and values that are not int or float (bool and numpy integers are not accepted).
    """

    def _lines_of(self, batch: Optional[Callable[[], Iterable[Sample]]], samples: list[Sample]) -> str:
        if _number_lines is None or type(self)._gen_str is not MultiSlotDataGenerator._gen_str:
            return super()._lines_of(batch, samples)
        if batch is not None:
            samples = list(batch())
        parts = []
        at = 0
        while at < len(samples):
            if self._proto_info is not None:
                text, at = _number_lines(samples, at, self._names, self._floats)
                parts.append(text)
            if at < len(samples):
                parts.append(self._gen_str(samples[at]))
                at += 1
        return "".join(parts)

    def _gen_str(self, line: Sample) -> str:
        line = _fields(line, '[("words", [1926, 8, 17]), ("label", [1])]')
        if self._proto_info is None:
            info = [(_pair(index, field)[0], "uint64") for index, field in enumerate(line)]
        elif len(line) != len(self._proto_info):
            raise ValueError("a sample has %d fields, but the first one has %d" % (len(line), len(self._proto_info)))
        else:
            info = list(self._proto_info)
        parts = []
        for index, field in enumerate(line):
            name, elements = _pair(index, field)
            if not isinstance(name, str):
                raise ValueError("the name of field %d is a str, not %r" % (index, name))
            if name != info[index][0]:
                raise ValueError('field %d is "%s", but "%s" in the first sample' % (index, name, info[index][0]))
            if not isinstance(elements, list):
                raise ValueError('field "%s": its values are a list, not %s' % (name, type(elements).__name__))
            if not elements:
                raise ValueError('field "%s" has no values; give it a padding value' % name)
            parts.append(str(len(elements)))
            for element in elements:
                if isinstance(element, float):
                    info[index] = (name, "float")
                elif not isinstance(element, int) or isinstance(element, bool):
                    raise ValueError('field "%s": values are int or float, not %s %r' % (
                        name, type(element).__name__, element))
                parts.append(str(element))
        if info != self._proto_info:
            self._proto_info = info
            self._names = tuple(name for name, _ in info)
            self._floats = bytes(kind == "float" for _, kind in info)
        return " ".join(parts) + "\n"


class MultiSlotStringDataGenerator(DataGenerator):
    """Writes values that are strings already, unchanged and unchecked."""

    def _lines_of(self, batch: Optional[Callable[[], Iterable[Sample]]], samples: list[Sample]) -> str:
        if _string_lines is None or type(self)._gen_str is not MultiSlotStringDataGenerator._gen_str:
            return super()._lines_of(batch, samples)
        if batch is not None:
            samples = list(batch())
        parts = []
        at = 0
        while at < len(samples):
            text, at = _string_lines(samples, at)
            parts.append(text)
            if at < len(samples):
                parts.append(self._gen_str(samples[at]))
                at += 1
        return "".join(parts)

    def _gen_str(self, line: Sample) -> str:
        parts = []
        for index, field in enumerate(_fields(line, '[("words", ["1926", "08", "17"]), ("label", ["1"])]')):
            name, elements = _pair(index, field)
            try:
                " ".join(elements)
            except TypeError:
                raise ValueError('field "%s": its values are a list of str, not %r' % (name, elements)) from None
            parts.append(str(len(elements)))
            parts.extend(elements)
        return " ".join(parts) + "\n"
