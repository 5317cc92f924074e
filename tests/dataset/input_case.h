#pragma once

#include <map>
#include <string>
#include <vector>

#include "data_feed.pb.h"

namespace millrace::testing {

/// One case of a tests/cases/input/*.case file: files, how they are read, and what a pass over them is.
///
///     case NAME                       begins a case
///       slots a:uint64 b:float[3]     as DescOf reads them; by default a:uint64
///       file NAME TEXT                makes a file in the case's folder DIR; TEXT with \n \t \\ \xNN
///       gz NAME TEXT, zst NAME TEXT   a packed one; a second line of the same name appends a member
///       csv NAME ROW | ROW | ...      a file of a format, likewise tfrecord, ofrecord, recordio (WriteFormat)
///       pack NAME                     packs a file by gz
///       cut NAME BYTES                takes bytes off the end of a file
///       flip NAME BYTE                damages a byte of a file, from 0
///       binary NAME VALUES            one for a FileInstantDataset: c3 is a count, i7 an id or size, f1.5 a float,
///                                     x0a a byte
///       folder NAME
///       list NAME ...                 the file list, if it is not all files in the order above; "" is an empty name
///       pipe COMMAND                  pipe_command; DIR stands for the folder
///       desc TEXT                     more of DataFeedDesc, as text
///       class NAME                    of the dataset; QueueDataset by default
///       dataset TEXT                  more of DatasetDesc, as text
///       threads N, workers N          of the dataset and the pass; 1 by default
///       ordered
///     and what is expected, in this order
///       batch ROW | ROW | ...         each batch, rows as RowText writes them (threads 1), or
///       rows N                        only their number
///       error CODE: MESSAGE           of Create, or of Next after the batches; \n for line ends, DIR for the folder
///       count NAME N, files N, lines N, bad_lines N, bytes N
///       absent NAME                   a file that must not be in the folder afterwards
///       content NAME TEXT             a file's content afterwards
struct InputCase {
  struct File {
    std::string kind;
    std::string name;
    std::string text;
  };
  std::string name;
  std::string where;  ///< "FILE:LINE" of the case file
  std::string slots = "a:uint64";
  std::string desc;
  std::string dataset;
  std::string pipe;
  bool has_pipe = false;
  std::vector<File> files;
  std::vector<std::string> list;
  bool has_list = false;
  std::string class_name = "QueueDataset";
  int threads = 1;
  int workers = 1;
  bool ordered = false;

  std::vector<std::string> batches;
  int64_t rows = -1;
  std::string error;
  std::map<std::string, int64_t> counts;
  std::map<std::string, int64_t> numbers;  ///< "files", "lines", "bad_lines", "bytes"
  std::vector<std::string> absent;
  std::vector<File> contents;
};

/// Reads a case file; a malformed one is a CHECK.
std::vector<InputCase> ReadInputCases(const std::string& path);

}  // namespace millrace::testing
