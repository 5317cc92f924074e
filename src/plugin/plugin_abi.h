/* What a parser or a loader in a shared object looks like to Millrace: plain C99, so that it may be built by any
 * compiler and goes on working when Millrace is updated.
 *
 *   static const millrace_parser kParser = {sizeof(millrace_parser), "CsvFeed", ...};
 *   static const millrace_parser* const kParsers[] = {&kParser};
 *   MILLRACE_C_PLUGIN(kParsers, 1, 0, 0);
 *
 * A parser turns lines into rows; it is a class of data feeds: data_desc { name: "CsvFeed" }. A loader reads whole
 * files of its own format, row by row; it is a class of data feeds as well, by its name, and a file format of readers,
 * by its name or the suffixes of file names.
 *
 * Every structure that may grow begins with its own size: a program reads of a plugin's structures, and a plugin of a
 * program's, what both of them have. Fields are only added at the end. A change that old plugins could not stand gets
 * another number in MILLRACE_PLUGIN_ABI, and they are then refused with both numbers.
 *
 * Whatever a plugin points to must stay until the process ends. No C++ exception may leave a function; one that does is
 * caught and reported as its failure. docs/plugins.md has examples.
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

/* An attribute that a parser or loader knows. */
typedef struct millrace_attr_info {
  const char* name;
  const char* default_value; /* null: it must be given */
  const char* doc;
} millrace_attr_info;

/* An attribute as it is given; the value is a text, whatever it means. */
typedef struct millrace_attr {
  const char* name;
  const char* value;
} millrace_attr;

enum millrace_kind { MILLRACE_IDS = 0, MILLRACE_FLOATS = 1 };

/* A column of the rows that are asked for: a slot that is used, or a reader's output. */
typedef struct millrace_column {
  const char* name;
  int32_t kind;  /* of millrace_kind */
  int32_t width; /* values that every row must have; -1: any number */
} millrace_column;

/* What a parser or loader is opened with; it and all that it points to stay until close. */
typedef struct millrace_open_args {
  size_t size;
  const char* file;           /* of a loader, to be read through `read`; null for a parser */
  const millrace_attr* attrs; /* every attribute of attr_info, in its order: as given, or the default */
  size_t attr_count;
  const millrace_column* columns;
  size_t column_count;
  /* Fills `bytes` from the loader's file, unpacked when it is gz or zstd: how many it got (`room` is above 0), 0 at the
   * end, -1 when it failed. The program knows why then, and says so in place of the loader's own error. */
  void* host;
  ptrdiff_t (*read)(void* host, char* bytes, size_t room);
} millrace_open_args;

/* Takes the values of the row that is being made. A column that gets none is empty; one that gets some several times
 * has all of them, one behind the other. What does not fit (another kind of column, a number of values that is not its
 * width) makes the row a failure when it is done, whatever the plugin returns. Calls are cheap; values are copied. When
 * there is no memory for them the run ends, and later calls take nothing. */
typedef struct millrace_sink {
  size_t size;
  void* host;
  void (*ids)(void* host, size_t column, const uint64_t* values, size_t count);
  void (*floats)(void* host, size_t column, const float* values, size_t count);
} millrace_sink;

/* Room for a message, cut at its end: say what is wrong and what was found, not where; the program knows that. */
typedef struct millrace_error {
  size_t size;
  char* text;
  size_t room; /* bytes of text, with the zero at its end */
} millrace_error;

/* A row was made. */
#define MILLRACE_ROW 1
/* There is none: an empty line of a parser, the end of a loader's file. */
#define MILLRACE_NONE 0
/* It failed, and `error` says why: a bad line, which data_desc.bad_lines may leave out, or a file that cannot be read.
 */
#define MILLRACE_FAILED (-1)

typedef struct millrace_parser {
  size_t size;
  const char* name;
  const char* doc;
  const millrace_attr_info* attrs;
  size_t attr_count;
  /* One parser for each thread that reads; null when it failed. */
  void* (*open)(const millrace_open_args* args, millrace_error* error);
  /* `line` has no line feed and no zero at its end; 32 bytes behind it may be read. */
  int (*parse)(void* parser, const char* line, size_t length, const millrace_sink* sink, millrace_error* error);
  void (*close)(void* parser);
} millrace_parser;

/* data_desc.attrs gives a loader its attributes, as it gives them to a parser. Nothing does where it is a format of
 * readers: one without a default is missing there. */
typedef struct millrace_loader {
  size_t size;
  const char* name;     /* of [a-z0-9_] */
  const char* suffixes; /* of file names, comma-separated: ".pgm,.ppm"; may be empty */
  const char* doc;
  const millrace_attr_info* attrs;
  size_t attr_count;
  /* One loader a file and pass, used by one thread at a time; null when it failed. The columns are the used slots of a
   * dataset, or the outputs of a reader ("0", "1", ...). */
  void* (*open)(const millrace_open_args* args, millrace_error* error);
  int (*next)(void* loader, const millrace_sink* sink, millrace_error* error);
  void (*close)(void* loader);
} millrace_loader;

/* What a shared object brings. */
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

/* Makes a shared object a plugin; once in it, in C or C++. */
#define MILLRACE_C_PLUGIN(parsers, parser_count, loaders, loader_count) \
  const char millrace_plugin_tag[] = MILLRACE_C_PLUGIN_TAG;             \
  const millrace_c_plugin millrace_plugin_c = {sizeof(millrace_c_plugin), parsers, parser_count, loaders, loader_count}

/* Says the plugin's own version, in either tier: MILLRACE_VERSION_OF_PLUGIN("1.2"); at most once in it. Models record
 * it beside what they need of the plugin. */
MILLRACE_EXPORT extern const char millrace_plugin_version[];
#define MILLRACE_VERSION_OF_PLUGIN(text) const char millrace_plugin_version[] = text

#ifdef __cplusplus
}
#endif

#endif
