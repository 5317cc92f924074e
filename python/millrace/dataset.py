"""Datasets: files piped through a pipe_command, streamed or kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import contextlib
import os
from typing import Any, Literal, NoReturn, Optional, SupportsFloat, SupportsIndex, Union, overload
import warnings

from . import _checks, _millrace, _ranks
from ._instead import Instead
from ._settings import Named, flag, name_of, quoted
from ._types import Path, Truth
from .errors import AlreadyExistsError, ConfigError, MillraceWarning
from .framework import Variable

__all__ = ["DatasetFactory", "FileInstantDataset", "InMemoryDataset", "QueueDataset", "DatasetBase"]

_BY_CPUS = "it is of training on GPUs; leave it out"
# Setters whose names differ from their settings.
_SETTERS = {"thread_num": "thread", "merge_size": "merge_by_lineid", "data_feed_type": "feed_type"}


def _check_fleet(call: str, fleet: object) -> None:
    if fleet is not None and not hasattr(fleet, "worker_num"):
        raise ConfigError("%s: fleet: millrace.fleet or its object, or None, not %r" % (call, fleet))


def _warn_of(left_out: str, stacklevel: int) -> None:
    if left_out:
        warnings.warn(left_out, MillraceWarning, stacklevel=stacklevel)


class DatasetFactory:
    """Creates datasets from class names."""

    @overload
    def create_dataset(self, datafeed_class: Literal["QueueDataset"] = "QueueDataset") -> QueueDataset: ...

    @overload
    def create_dataset(self, datafeed_class: Literal["InMemoryDataset"]) -> InMemoryDataset: ...

    @overload
    def create_dataset(self, datafeed_class: Literal["FileInstantDataset"]) -> FileInstantDataset: ...

    @overload
    def create_dataset(self, datafeed_class: str) -> DatasetBase: ...

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """Creates a dataset of class "QueueDataset", "InMemoryDataset" or "FileInstantDataset"."""
        classes = {cls.__name__: cls for cls in (QueueDataset, InMemoryDataset, FileInstantDataset)}
        if datafeed_class not in classes:
            raise ConfigError('there is no dataset class "%s"; there are %s' % (datafeed_class, ", ".join(classes)))
        return classes[datafeed_class]()


class DatasetBase(Instead):
    """Base class of datasets. Settings take effect at the next load or run."""

    _what = "the dataset"
    _instead = {"set_rank_offset": _BY_CPUS, "set_use_ps_gpu": _BY_CPUS, "set_graph_config": _BY_CPUS,
                "set_so_parser_name": "load_plugin(path) loads a parser, and set_feed_type(name) takes it"}
    class_name = "QueueDataset"
    _reads_text = True

    def __init__(self) -> None:
        self.filelist: list[str] = []
        self.thread_num = 1
        self._use_var: list[Variable] = []
        self._fields = {"batch_size": "32"}
        self._dataset_fields: dict[str, str] = {}
        self._commands: dict[str, str] = {}
        self._feed_attrs: dict[str, str] = {}

    def __repr__(self) -> str:
        return "%s(%d files, slots %s, batch_size=%s, thread=%d)" % (
            type(self).__name__, len(self.filelist), [var.name for var in self._use_var], self._fields["batch_size"],
            self.thread_num)

    def init(self, batch_size: SupportsIndex = 32, thread_num: SupportsIndex = 1, use_var: Iterable[Variable] = (),
             pipe_command: str = "cat", input_type: SupportsIndex = 0, fs_name: str = "", fs_ugi: str = "",
             **settings: Any) -> None:
        """Sets every setting in one call, as in Paddle 2."""
        self.update_settings(batch_size=batch_size, thread_num=thread_num, use_var=use_var, pipe_command=pipe_command,
                             input_type=input_type, fs_name=fs_name, fs_ugi=fs_ugi, **settings)

    def update_settings(self, **settings: Any) -> None:
        """Updates any settings of init and, for an InMemoryDataset, merge_size, fea_eval with candidate_size and others, as in
        Paddle 2. Paddle's placeholder values (merge_size=-1, queue_num=-1, download_cmd="cat") change nothing."""
        name_node = [settings.pop(name, "") for name in ("fs_name", "fs_ugi")]
        if "candidate_size" in settings and "fea_eval" not in settings:
            raise ConfigError("%s: candidate_size is a setting of fea_eval: give both" % type(self).__name__)
        candidates = settings.pop("candidate_size", 10000)
        for name, value in settings.items():
            setter = getattr(self, "set_" + _SETTERS.get(name, name), None)
            if setter is None:
                raise ConfigError("%s has no setting \"%s\"" % (type(self).__name__, name))
            if name in ("merge_size", "queue_num") and _checks.whole("%s: %s" % (type(self).__name__, name), value) < 1:
                continue
            if name == "download_cmd" and value == "cat" or name.startswith("fleet_send_") and not value:
                continue
            if name == "fea_eval":
                setter(candidates, value)
            else:
                setter(value)
        if any(name_node):
            self.set_hdfs_config(*name_node)

    def set_batch_size(self, batch_size: SupportsIndex) -> None:
        """Sets the number of rows per batch."""
        self._fields["batch_size"] = "%d" % _checks.whole("set_batch_size: rows of a batch", batch_size, 1)

    def set_thread(self, thread_num: SupportsIndex) -> None:
        """Sets the number of reader threads, and of training workers unless train_from_dataset overrides it. One worker trains
        in file and line order with bit-identical results. Several workers share parameters without locks."""
        self.thread_num = _checks.whole("set_thread", thread_num, 1)

    def set_filelist(self, filelist: Union[Path, Iterable[Path]]) -> None:
        """Sets the input: files, globs, folders, or @FILE with one of these per line."""
        if isinstance(filelist, (str, os.PathLike)):
            filelist = [filelist]
        files = _checks.listed("set_filelist", filelist, "files")
        self.filelist = [_checks.path("set_filelist", file) for file in files]

    def set_use_var(self, var_list: Iterable[Variable]) -> None:
        """Sets the variables of a line, in order, one slot each. Replaces the previous variables."""
        var_list = _checks.listed("set_use_var", var_list, "Variables of layers.data")
        for var in var_list:
            if not isinstance(var, Variable):
                raise ConfigError("set_use_var: takes Variables of layers.data, not %r" % (var,))
            if var.dtype not in ("float32", "int64", "int32"):
                raise ConfigError('set_use_var: "%s" is %s; lines hold float32 and int64' % (var.name, var.dtype))
        self._use_var = list(var_list)

    def set_pipe_command(self, pipe_command: str) -> None:
        """Sets a shell command that each file is piped through. The output of the command is parsed."""
        self._fields["pipe_command"] = quoted(_checks.text("set_pipe_command", pipe_command))

    def set_input_type(self, input_type: SupportsIndex) -> None:
        """Sets what a line contains. 0: one row. 1: a whole batch (InMemoryDataset with batch_size 1)."""
        input_type = _checks.whole("set_input_type", input_type)
        if input_type not in (0, 1):
            raise ConfigError("set_input_type: 0 (a line is a row) or 1 (a line is a whole batch), not %d" % input_type)
        self._fields["input_type"] = "%d" % input_type

    def set_feed_type(self, data_feed_type: str, **attrs: Union[str, float]) -> None:
        """Sets the data feed class that parses lines into rows: "MultiSlotDataFeed" for a QueueDataset,
        "MultiSlotInMemoryDataFeed" for an InMemoryDataset (the defaults), or a class from a plugin loaded with load_plugin.
        `attrs` are settings of the plugin's class: set_feed_type("PairFeed", separator=";")."""
        _millrace.check_feed_type(_checks.text("set_feed_type", data_feed_type))
        for name, value in attrs.items():
            if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                raise ConfigError("set_feed_type: %s is a text or a number, not %r" % (name, value))
        self._fields["name"] = quoted(data_feed_type)
        self._feed_attrs = {name: str(value) for name, value in attrs.items()}

    def set_bad_lines(self, action: str = "FAIL", max_lines: SupportsIndex = 1000, max_fraction: SupportsFloat = 0.01) -> None:
        """Sets how to handle lines that do not parse: "FAIL" (the first one ends the run), "SKIP" or "QUARANTINE"."""
        self._fields["bad_lines"] = "{ action: %s max_lines: %d max_fraction: %r }" % (
            _checks.text("set_bad_lines: action", action), _checks.whole("set_bad_lines: max_lines", max_lines),
            _checks.number("set_bad_lines: max_fraction", max_fraction))

    def set_zeros(self, zeros: str = "KEEP") -> None:
        """Sets how to handle zeros (id 0, floats below 1e-6) in sparse slots: "KEEP", "DROP" (dropped and counted; a list that
        becomes empty feeds one 0), or "FEED_DEFAULT", Paddle's behavior: an InMemoryDataset drops them, other datasets
        keep them. A model trained on this dataset or saved with it reads its lines and columns
        the same way."""
        if zeros not in ("KEEP", "DROP", "FEED_DEFAULT"):
            raise ConfigError('set_zeros: "KEEP", "DROP" or "FEED_DEFAULT", not %r' % (zeros,))
        self._fields["zeros"] = zeros

    def set_empty_slot(self, empty_slot: str = "ERROR") -> None:
        """Sets how to handle a sparse slot with count 0: "ERROR", a bad line as in Paddle, or "ALLOW", an empty list, which
        pools to zeros. A model trained on this dataset or saved with it reads its lines the same way."""
        if empty_slot not in ("ERROR", "ALLOW"):
            raise ConfigError('set_empty_slot: "ERROR" or "ALLOW", not %r' % (empty_slot,))
        self._fields["empty_slot"] = empty_slot

    def _zeros_rule(self) -> str:
        """Returns "KEEP" or "DROP", the resolved setting of set_zeros."""
        rule = self._fields.get("zeros", "KEEP")
        return rule if rule != "FEED_DEFAULT" else "DROP" if self.class_name == "InMemoryDataset" else "KEEP"

    def set_drop_last(self, drop_last: Truth) -> None:
        """Sets whether to drop the last batch of a pass if it is not full."""
        self._fields["drop_last"] = flag(_checks.truth("set_drop_last", drop_last))

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Sets the name node and user with which `hadoop fs` reads "hdfs:" and "afs:" files."""
        command = "hadoop fs -D fs.default.name=%s -D hadoop.job.ugi=%s -cat" % (
            _checks.text("set_hdfs_config: fs_name", fs_name), _checks.text("set_hdfs_config: fs_ugi", fs_ugi))
        self._commands.update(hdfs=command, afs=command)

    def set_download_cmd(self, download_cmd: str) -> None:
        """Sets a command that prints the "hdfs:" or "afs:" file given as its last argument."""
        command = _checks.text("set_download_cmd", download_cmd)
        self._commands.update(hdfs=command, afs=command)

    def desc(self) -> str:
        """Returns the DataFeedDesc as text."""
        return self._data_desc() + "\n"

    def _data_desc(self) -> str:
        if not self._use_var:
            raise ConfigError("the dataset has no variables: call set_use_var")
        slots = []
        for var in self._use_var:
            kind = "float" if var.dtype == "float32" else "uint64"
            slot = "slots { name: %s type: \"%s\" is_used: true" % (quoted(var.name), kind)
            if var.lod_level == 0:
                slot += " is_dense: true shape: [%s]" % ", ".join(map(str, var.shape))
            slots.append(slot + " }")
        fields = ["%s%s %s" % (name, "" if value.startswith("{") else ":", value) for name, value in self._fields.items()]
        for scheme, command in self._commands.items():
            fields.append("input_commands { scheme: %s command: %s }" % (quoted(scheme), quoted(command)))
        for attr in self._feed_attrs.items():
            fields.append("attrs { name: %s value: %s }" % tuple(map(quoted, attr)))
        return "\n".join(fields + ["multi_slot_desc {"] + ["  " + slot for slot in slots] + ["}"])

    def _job_fields(self, filelist: Optional[list[str]] = None) -> str:
        """Returns the TrainerDesc fields of the dataset."""
        filelist = filelist or self.filelist
        if not filelist:
            raise ConfigError("the dataset has no files: call set_filelist")
        lines = ["filelist: %s" % quoted(file) for file in filelist]
        readers = "thread_num: %d\n" % self.thread_num if self._reads_text else ""
        lines.append("data_desc {\n%s\n%s}" % (self._data_desc(), readers))
        settings = " ".join("%s: %s" % item for item in self._dataset_fields.items())
        lines.append('dataset { class_name: "%s" %s }' % (self.class_name, settings))
        return "\n".join(lines)

    def _files(self) -> list[str]:
        """Returns the files to read. A rank without files lists an empty one, because other ranks may have files."""
        return self.filelist or ([os.devnull] if _ranks.size() > 1 else [])

    def _memory(self) -> Optional[_millrace.Memory]:
        return None

    def _run_fields(self) -> str:
        """Returns the TrainerDesc fields for a run."""
        return self._job_fields(self._files())


class QueueDataset(DatasetBase):
    """Streams its files, starting from the first line in every run."""

    def local_shuffle(self) -> NoReturn:
        """Raises ConfigError, as in Paddle: a stream cannot be shuffled."""
        raise ConfigError("a QueueDataset streams its rows and cannot shuffle them; use an InMemoryDataset")

    def global_shuffle(self, fleet: object = None) -> NoReturn:
        """Raises ConfigError, as in Paddle: a stream cannot be shuffled."""
        self.local_shuffle()


class FileInstantDataset(DatasetBase):
    """Maps binary files written by `inspect convert` (or Paddle) and copies their rows into batches, without reader
    threads or a pipe_command. The files contain the slots of set_use_var. Rows are read in file order."""

    class_name = "FileInstantDataset"
    _reads_text = False

    def set_pipe_command(self, pipe_command: str) -> None:
        """Raises ConfigError: binary files are not piped through a command."""
        if pipe_command != "cat":
            raise ConfigError("a FileInstantDataset maps binary files, which go through no pipe_command: run it once by "
                              "`inspect convert`")

    def local_shuffle(self) -> NoReturn:
        """Raises ConfigError, as in Paddle: rows are read in file order."""
        raise ConfigError("a FileInstantDataset reads its rows in file order and cannot shuffle them; use an InMemoryDataset")

    def global_shuffle(self, fleet: object = None) -> NoReturn:
        """Raises ConfigError, as in Paddle: rows are read in file order."""
        self.local_shuffle()


class InMemoryDataset(DatasetBase):
    """Keeps the rows of its files in memory: loads them once, then shuffles and trains on them any number of times."""

    _instead = {
        **DatasetBase._instead,
        "set_date": "set_filelist names the files of a day",
        **dict.fromkeys(["begin_pass", "end_pass"], _BY_CPUS),
        **dict.fromkeys(["set_generate_unique_feasigns", "generate_local_tables_unlock"],
                        "batches pull the rows of their ids as they need them; leave it out"),
        "tdm_sample": "a row has the values that its line has: the pipe_command may draw samples",
    }
    class_name = "InMemoryDataset"

    def __init__(self) -> None:
        super().__init__()
        self._loaded: Optional[_millrace.Memory] = None
        self._preloading = False
        self._preloaded: Optional[int] = None  # rows of a preload that another call waited for
        self._candidates = 0
        self._joins = False
        self._send_rows, self._send_pause = 0, 0
        self._is_exchanged = False  # between ranks, since the last load

    def set_queue_num(self, queue_num: SupportsIndex) -> None:
        """Sets the number of channels between the rows and the workers. Default: one per worker."""
        self._dataset_fields["queue_num"] = "%d" % _checks.whole("set_queue_num", queue_num, 1)

    def set_parse_ins_id(self, parse_ins_id: Truth) -> None:
        """Sets whether lines start with "1 ID", the id of the row."""
        self._fields["parse_ins_id"] = flag(_checks.truth("set_parse_ins_id", parse_ins_id))

    def set_parse_content(self, parse_content: Truth) -> None:
        """Sets whether lines contain "1 TEXT", which is kept with the row."""
        self._fields["parse_content"] = flag(_checks.truth("set_parse_content", parse_content))

    def set_parse_logkey(self, parse_logkey: Truth) -> None:
        """Sets whether lines contain "1 KEY", 32 hex digits that identify the row and its search."""
        self._fields["parse_logkey"] = flag(_checks.truth("set_parse_logkey", parse_logkey))

    def set_merge_by_lineid(self, merge_size: SupportsIndex = 2, erase_duplicate_feas: None = None,
                            keep_unmerged_ins: None = None) -> None:
        """Merges rows with the same id into one row at load time. Only one of the rows can have values in a sparse slot; the
        other rows have none there (a single 0, dropped with set_zeros("DROP")). Ids whose number of rows is not merge_size
        are dropped and counted; merge_size=0 accepts any number. The other arguments, from fluid 1.6, are not supported."""
        for name, given, instead in (
                ("erase_duplicate_feas", erase_duplicate_feas, "only one of the rows of a name has values of a sparse slot"),
                ("keep_unmerged_ins", keep_unmerged_ins, "merge_size=0 keeps rows that are alone")):
            if given is not None:
                raise ConfigError("set_merge_by_lineid: %s: leave it out; %s" % (name, instead))
        size = _checks.whole("set_merge_by_lineid: merge_size", merge_size, 0)
        self.set_parse_ins_id(True)
        self._dataset_fields.update(merge_by_lineid="true", merge_size="%d" % size)

    def set_enable_pv_merge(self, enable_pv_merge: Truth) -> None:
        """Sets whether rows of one search are grouped into a page view."""
        self._dataset_fields["enable_pv_merge"] = flag(_checks.truth("set_enable_pv_merge", enable_pv_merge))

    set_merge_by_sid = set_enable_pv_merge

    def set_pv_batch_size(self, pv_batch_size: SupportsIndex) -> None:
        """Sets the number of page views per batch in the JOIN phase."""
        self._fields["pv_batch_size"] = "%d" % _checks.whole("set_pv_batch_size: page views of a batch", pv_batch_size, 1)
        # The phase of a run is set on the loaded rows.
        self._dataset_fields["phases"] = "[JOIN, UPDATE]"

    def set_current_phase(self, current_phase: int) -> None:
        """Sets the phase of the next run. 1: batches of whole page views (JOIN). 0: batches of rows (UPDATE)."""
        if current_phase not in (0, 1):
            raise ConfigError("set_current_phase: 1 (join) or 0 (update), not %r" % (current_phase,))
        self._joins = current_phase == 1
        if self._loaded is not None:
            self._loaded.set_phase(self._joins)

    def preprocess_instance(self) -> None:
        """Checks that rows are loaded with page views enabled. Paddle scripts call it before the JOIN phase."""
        if self._dataset_fields.get("enable_pv_merge") != "true":
            raise ConfigError("preprocess_instance: there are no page views; call set_enable_pv_merge(True) before loading")
        self._there()

    def postprocess_instance(self) -> None:
        """Same as preprocess_instance. For Paddle scripts, which call it after the JOIN phase; the UPDATE phase uses all rows."""
        self.preprocess_instance()

    def set_fea_eval(self, record_candidate_size: SupportsIndex, fea_eval: Truth = True) -> None:
        """Sets the default number of rows that slots_shuffle draws from. fea_eval=False: all rows."""
        rows = _checks.whole("set_fea_eval: rows to draw from", record_candidate_size, 1)
        self._candidates = rows if _checks.truth("set_fea_eval: fea_eval", fea_eval) else 0

    def set_fleet_send_batch_size(self, fleet_send_batch_size: SupportsIndex = 1024) -> None:
        """Sets how many rows global_shuffle sends to a rank at a time. Default: as many as fit into 64 MiB over all ranks."""
        self._send_rows = _checks.whole("set_fleet_send_batch_size: rows", fleet_send_batch_size, 1)

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: SupportsIndex = 0) -> None:
        """Sets the pause in seconds between two sends of global_shuffle."""
        self._send_pause = _checks.whole("set_fleet_send_sleep_seconds", fleet_send_sleep_seconds, 0)

    def load_into_memory(self, is_shuffle: Truth = False) -> int:
        """Reads all files and returns the number of rows. Raises AlreadyExistsError on a second call without release_memory."""
        is_shuffle = _checks.truth("load_into_memory: is_shuffle", is_shuffle)
        with self._dropped_by_a_failure():
            rows, left_out = self._made().load()
        _warn_of(left_out if self.filelist else "", 3)
        if is_shuffle:
            self.local_shuffle()
        return rows

    def preload_into_memory(self, thread_num: Optional[SupportsIndex] = None) -> None:
        """Starts load_into_memory in the background. wait_preload_done waits for it."""
        if thread_num is not None:
            self.set_thread(thread_num)
        if self._preloading:
            raise AlreadyExistsError("a preload is under way; call wait_preload_done() first")
        with self._renamed():
            self._made().preload()
        self._preloading = True

    def wait_preload_done(self) -> int:
        """Waits for preload_into_memory and returns the number of rows."""
        if not self._preloading:
            if self._preloaded is None:
                raise ConfigError("wait_preload_done without preload_into_memory")
            rows, self._preloaded = self._preloaded, None
            return rows
        self._preloading = False
        with self._dropped_by_a_failure():
            rows, left_out = self._made().wait_preload()
        _warn_of(left_out if self.filelist else "", 3)
        return rows

    def local_shuffle(self, seed: SupportsIndex = 1) -> None:
        """Shuffles the rows. The order depends only on the seed, not on the number of threads or on earlier shuffles."""
        self._there().shuffle(_checks.whole("local_shuffle: seed", seed, 0))

    def global_shuffle(self, fleet: object = None, thread_num: SupportsIndex = 12, seed: SupportsIndex = 1) -> None:
        """Shuffles the rows across all ranks. Every rank must call it. The file and line of a row determine its new rank, or its
        id if set_merge_by_lineid was called. thread_num is ignored."""
        _check_fleet("global_shuffle", fleet)
        _checks.whole("global_shuffle: thread_num", thread_num, -1)
        _, left_out = self._there().global_shuffle(_checks.whole("global_shuffle: seed", seed, 0), self._send_rows, self._send_pause)
        self._is_exchanged = _ranks.size() > 1
        _warn_of(left_out, 3)

    def slots_shuffle(self, slots: Iterable[Named], seed: SupportsIndex = 1,
                      candidate_size: Optional[SupportsIndex] = None) -> None:
        """Gives every row the values of these slots from another row, drawn from candidate_size rows (0: all; default: see
        set_fea_eval). An empty list restores the original values."""
        if isinstance(slots, str):
            raise ConfigError("slots_shuffle: a list of slots, not %r" % (slots,))
        candidates = self._candidates
        if candidate_size is not None:
            candidates = _checks.whole("slots_shuffle: candidate_size", candidate_size, 0)
        names = [name_of(slot, "slots_shuffle: ") for slot in _checks.listed("slots_shuffle", slots, "slots")]
        self._there().slots_shuffle(names, _checks.whole("slots_shuffle: seed", seed, 0), candidates)

    def release_memory(self) -> None:
        """Frees the rows. They can be loaded again afterwards."""
        if self._loaded is not None:
            self._loaded.release()
            self._loaded = None
        self._preloading, self._preloaded = False, None
        self._is_exchanged = False

    def get_memory_data_size(self, fleet: object = None) -> int:
        """Returns the number of loaded rows on this rank, or on all ranks if `fleet` is given; then every rank must call it."""
        _check_fleet("get_memory_data_size", fleet)
        rows = self._loaded.size() if self._loaded is not None else 0
        return int(_ranks.allreduce(rows)) if fleet is not None else rows

    get_shuffle_data_size = get_memory_data_size

    def get_pv_data_size(self) -> int:
        """Returns the number of loaded page views."""
        return self._loaded.pv_size() if self._loaded is not None else 0

    def _init_distributed_settings(self, **settings: Any) -> None:
        """Same as update_settings. Paddle 2 uses this name for some settings."""
        self.update_settings(**settings)

    def _made(self) -> _millrace.Memory:
        if self._loaded is None:
            made = _millrace.Memory("thread_num: %d\n%s" % (self.thread_num, self._job_fields(self._files())))
            made.set_phase(self._joins)
            self._loaded = made
        return self._loaded

    @contextlib.contextmanager
    def _dropped_by_a_failure(self) -> Iterator[None]:
        """Releases rows and processes if a load fails or is interrupted with Ctrl-C."""
        try:
            with self._renamed():
                yield
        except AlreadyExistsError:
            raise  # keep the rows of the previous load
        except BaseException:
            self.release_memory()
            raise

    @contextlib.contextmanager
    def _renamed(self) -> Iterator[None]:
        """Replaces C++ method names in error messages with Python names."""
        names = {"ReleaseMemory": "release_memory()", "WaitPreloadDone": "wait_preload_done()",
                 "PreloadIntoMemory": "preload_into_memory()"}
        try:
            yield
        except AlreadyExistsError as error:
            text = str(error)
            for name, here in names.items():
                text = text.replace(name, here)
            raise AlreadyExistsError(text) from None

    def _there(self) -> _millrace.Memory:
        if self._preloading:
            self._preloaded = self.wait_preload_done()
        if self._loaded is None:
            raise ConfigError("the dataset holds no rows: call load_into_memory")
        return self._loaded

    def _memory(self) -> _millrace.Memory:
        there = self._there()
        # Parser settings were fixed at load time; the batch size belongs to the run.
        fields = self._fields
        there.set_batches(int(fields["batch_size"]), int(fields.get("pv_batch_size", 32)), fields.get("drop_last") == "true")
        return there

    def _run_fields(self) -> str:
        # The rows are in memory. Their files may be gone or belong to the next load.
        fields = self._job_fields([os.devnull])
        return fields.replace("dataset { ", "dataset { global_shuffle: true ") if self._is_exchanged else fields


_OF_MEMORY = [name for name in vars(InMemoryDataset) if name == "_init_distributed_settings" or not name.startswith("_")]
for _streams in (QueueDataset, FileInstantDataset):
    _streams._instead = {
        **dict.fromkeys(_OF_MEMORY, "it is of an InMemoryDataset, which holds its rows; this one reads them in each pass"),
        **InMemoryDataset._instead}
