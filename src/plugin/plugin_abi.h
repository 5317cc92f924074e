/* The interface of a parser or a loader in a shared object: plain C99, so it can be built with any compiler and keeps
 * working when Millrace is updated.
 *
 *   static const millrace_parser kParser = {sizeof(millrace_parser), "CsvFeed", ...};
 *   static const millrace_parser* const kParsers[] = {&kParser};
 *   MILLRACE_C_PLUGIN(kParsers, 1, 0, 0);
 *
 * A parser converts lines to rows; it is a class of data feeds: data_desc { name: "CsvFeed" }. A loader reads whole
 * files of its own format, row by row; it is also a class of data feeds, selected by name, and a file format of
 * readers, selected by name or by the suffixes of file names.
 *
 * Every structure that can grow starts with its own size. Program and plugin use only the fields that both have, and
 * fields are only added at the end. An incompatible change increases MILLRACE_PLUGIN_ABI, and old plugins are then
 * rejected with both numbers.
 *
 * Everything a plugin points to must stay valid until the process ends. C++ exceptions must not leave a function; if
 * one does, it is caught and reported as the function's failure. See docs/plugins.md for examples.
 */
#ifndef MILLRACE_PLUGIN_PLUGIN_ABI_H_
#define MILLRACE_PLUGIN_PLUGIN_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MILLRACE_PLUGIN_ABI 1
#define MILLRACE_C_PLUGIN_TAG "millrace plugin, C: 1"

/* An attribute of a parser or loader. */
typedef struct millrace_attr_info {
  const char* name;
  const char* default_value; /* null: required */
  const char* doc;
} millrace_attr_info;

/* An attribute value as given in the job; always a string. */
typedef struct millrace_attr {
  const char* name;
  const char* value;
} millrace_attr;

enum millrace_kind { MILLRACE_IDS = 0, MILLRACE_FLOATS = 1 };

/* A column of the requested rows: a used slot, or a reader's output. */
typedef struct millrace_column {
  const char* name;
  int32_t kind;  /* of millrace_kind */
  int32_t width; /* required number of values per row; -1: any */
} millrace_column;

/* Arguments for opening a parser or loader; valid, with everything they point to, until close. */
typedef struct millrace_open_args {
  size_t size;
  const char* file;           /* the loader's file, to be read with `read`; null for a parser */
  const millrace_attr* attrs; /* every attribute of attr_info, in order: the given value or the default */
  size_t attr_count;
  const millrace_column* columns;
  size_t column_count;
  /* Fills `bytes` from the loader's file, decompressed if it is gz or zstd. Returns the number of bytes (`room` is
   * above 0), 0 at the end, -1 on failure. The program then reports its reason instead of the loader's error. */
  void* host;
  ptrdiff_t (*read)(void* host, char* bytes, size_t room);
} millrace_open_args;

/* Receives the values of the current row. A column without values is empty; repeated calls for a column append. A
 * mismatch (another kind of column, a number of values other than its width) makes the finished row a failure,
 * regardless of the plugin's result. Calls are cheap; values are copied. Without memory for them the run ends, and
 * later calls are ignored. */
typedef struct millrace_sink {
  size_t size;
  void* host;
  void (*ids)(void* host, size_t column, const uint64_t* values, size_t count);
  void (*floats)(void* host, size_t column, const float* values, size_t count);
} millrace_sink;

/* Buffer for a message, truncated if too long: state the fault and the value found; the program adds the position. */
typedef struct millrace_error {
  size_t size;
  char* text;
  size_t room; /* size of text, including the terminating zero */
} millrace_error;

/* A row was delivered. */
#define MILLRACE_ROW 1
/* No row: an empty line for a parser, the end of a loader's file. */
#define MILLRACE_NONE 0
/* Failure, explained in `error`: a bad line, which data_desc.bad_lines can skip, or an unreadable file. */
#define MILLRACE_FAILED (-1)

typedef struct millrace_parser {
  size_t size;
  const char* name;
  const char* doc;
  const millrace_attr_info* attrs;
  size_t attr_count;
  /* Called once per reading thread; null on failure. */
  void* (*open)(const millrace_open_args* args, millrace_error* error);
  /* `line` has no line feed and no terminating zero; 32 bytes after it are readable. */
  int (*parse)(void* parser, const char* line, size_t length, const millrace_sink* sink, millrace_error* error);
  void (*close)(void* parser);
} millrace_parser;

/* data_desc.attrs sets the attributes of a loader, as of a parser. As a format of readers it gets none, so attributes
 * without a default are missing there. */
typedef struct millrace_loader {
  size_t size;
  const char* name;     /* of [a-z0-9_] */
  const char* suffixes; /* of file names, comma-separated: ".pgm,.ppm"; can be empty */
  const char* doc;
  const millrace_attr_info* attrs;
  size_t attr_count;
  /* Called once per file and pass; the loader is used by one thread at a time. Null on failure. The columns are the
   * used slots of a dataset, or the outputs of a reader ("0", "1", ...). */
  void* (*open)(const millrace_open_args* args, millrace_error* error);
  int (*next)(void* loader, const millrace_sink* sink, millrace_error* error);
  void (*close)(void* loader);
} millrace_loader;

/* The contents of a shared object. */
typedef struct millrace_c_plugin {
  size_t size;
  const millrace_parser* const* parsers;
  size_t parser_count;
  const millrace_loader* const* loaders;
  size_t loader_count;
} millrace_c_plugin;

#if defined(__GNUC__)
#define MILLRACE_EXPORT __attribute__((visibility("default")))
#else
#define MILLRACE_EXPORT
#endif

MILLRACE_EXPORT extern const char millrace_plugin_tag[];
MILLRACE_EXPORT extern const millrace_c_plugin millrace_plugin_c;

/* Makes a shared object a plugin; use it exactly once, in C or C++. */
#define MILLRACE_C_PLUGIN(parsers, parser_count, loaders, loader_count) \
  const char millrace_plugin_tag[] = MILLRACE_C_PLUGIN_TAG;             \
  const millrace_c_plugin millrace_plugin_c = {sizeof(millrace_c_plugin), parsers, parser_count, loaders, loader_count}

/* Sets the plugin's own version, in either tier: MILLRACE_VERSION_OF_PLUGIN("1.2"); at most once per plugin. Models
 * record it with their requirements of the plugin. */
MILLRACE_EXPORT extern const char millrace_plugin_version[];
#define MILLRACE_VERSION_OF_PLUGIN(text) const char millrace_plugin_version[] = text

#ifdef __cplusplus
}
#endif

#endif
