/* A plugin of the C tier: a parser of lines "1.5;3" and a loader of files that hold such numbers as bytes. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin_abi.h"

static void Fail(millrace_error* error, const char* text) { snprintf(error->text, error->room, "%s", text); }

static const char* Attr(const millrace_open_args* args, const char* name) {
  for (size_t i = 0; i < args->attr_count; ++i) {
    if (strcmp(args->attrs[i].name, name) == 0) return args->attrs[i].value;
  }
  return "";
}

typedef struct Parser {
  char separator;
  char comment;
  size_t columns;
  const millrace_column* column;
} Parser;

static void* OpenParser(const millrace_open_args* args, millrace_error* error) {
  const char* separator = Attr(args, "separator");
  if (strlen(separator) != 1) {
    snprintf(error->text, error->room, "separator is one character, not \"%s\"", separator);
    return NULL;
  }
  Parser* parser = malloc(sizeof(Parser));
  if (parser == NULL) return NULL;
  parser->separator = *separator;
  parser->comment = *Attr(args, "comment");
  parser->columns = args->column_count;
  parser->column = args->columns;
  return parser;
}

/* Fields go to the columns in their order; an empty field gives a column no value, too many fields are for the last. */
static int Parse(void* state, const char* line, size_t length, const millrace_sink* sink, millrace_error* error) {
  const Parser* parser = state;
  if (length == 0 || *line == parser->comment) return MILLRACE_NONE;
  const char* end = line + length;
  const char* at = line;
  for (size_t field = 0; at <= end; ++field) {
    const size_t column = field < parser->columns ? field : parser->columns - 1;
    const char* stop = memchr(at, parser->separator, (size_t)(end - at));
    if (stop == NULL) stop = end;
    char text[64] = {0};
    if (stop - at >= (ptrdiff_t)sizeof(text)) {
      Fail(error, "a field is too long");
      return MILLRACE_FAILED;
    }
    memcpy(text, at, (size_t)(stop - at));
    char* rest = text;
    if (parser->column[column].kind == MILLRACE_IDS) {
      const uint64_t id = strtoull(text, &rest, 10);
      if (rest != text) sink->ids(sink->host, column, &id, 1);
    } else {
      const float value = strtof(text, &rest);
      if (rest != text) sink->floats(sink->host, column, &value, 1);
    }
    if (*rest != '\0') {
      snprintf(error->text, error->room, "field %zu: expected a number, found \"%s\"", field + 1, text);
      return MILLRACE_FAILED;
    }
    at = stop + 1;
  }
  return MILLRACE_ROW;
}

static void CloseParser(void* state) { free(state); }

static const millrace_attr_info kParserAttrs[] = {
    {"separator", NULL, "what stands between two fields"},
    {"comment", "#", "what a line without fields begins with"},
};
static const millrace_parser kParser = {
    sizeof(millrace_parser), "PairFeed", "Lines of numbers.", kParserAttrs, 2, OpenParser, Parse, CloseParser};
static const millrace_parser* const kParsers[] = {&kParser};

typedef struct Loader {
  void* host;
  ptrdiff_t (*read)(void* host, char* bytes, size_t room);
} Loader;

static void* OpenLoader(const millrace_open_args* args, millrace_error* error) {
  char magic[4] = {0};
  if (args->read(args->host, magic, 4) != 4 || memcmp(magic, "PAIR", 4) != 0) {
    Fail(error, "it does not begin with PAIR");
    return NULL;
  }
  Loader* loader = malloc(sizeof(Loader));
  if (loader == NULL) return NULL;
  loader->host = args->host;
  loader->read = args->read;
  return loader;
}

static int Next(void* state, const millrace_sink* sink, millrace_error* error) {
  const Loader* loader = state;
  struct {
    float x;
    uint32_t id;
  } record;
  size_t have = 0;
  while (have < sizeof(record)) {
    const ptrdiff_t got = loader->read(loader->host, (char*)&record + have, sizeof(record) - have);
    if (got < 0) return MILLRACE_FAILED;
    if (got == 0) break;
    have += (size_t)got;
  }
  if (have == 0) return MILLRACE_NONE;
  if (have < sizeof(record)) {
    Fail(error, "the file ends within it");
    return MILLRACE_FAILED;
  }
  sink->floats(sink->host, 0, &record.x, 1);
  const uint64_t ids[2] = {record.id, record.id + 1};
  sink->ids(sink->host, 1, ids, 1 + record.id % 2);
  return MILLRACE_ROW;
}

static void CloseLoader(void* state) { free(state); }

static const millrace_loader kLoader = {sizeof(millrace_loader),
                                        "pairs",
                                        ".pairs,.prs",
                                        "A float and one or two ids.",
                                        NULL,
                                        0,
                                        OpenLoader,
                                        Next,
                                        CloseLoader};
static const millrace_loader* const kLoaders[] = {&kLoader};

MILLRACE_C_PLUGIN(kParsers, 1, kLoaders, 1);
MILLRACE_VERSION_OF_PLUGIN("1.2");
