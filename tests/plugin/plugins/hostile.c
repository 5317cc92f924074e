/* A plugin of the C tier that does what it must not: a line, or a file, says what. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin_abi.h"

static int state;
static char elsewhere[] = "written elsewhere";

static void* Open(const millrace_open_args* args, millrace_error* error) {
  (void)args;
  (void)error;
  return &state;
}

/* Column 0 is of floats, column 1 of ids. */
static int Do(const char* what, const millrace_sink* sink, millrace_error* error) {
  static const float x = 1;
  static const uint64_t id = 7;
  if (strcmp(what, "null") == 0) sink->floats(sink->host, 0, NULL, 1);
  if (strcmp(what, "nothing at null") == 0) sink->floats(sink->host, 0, NULL, 0);
  if (strcmp(what, "huge") == 0) sink->floats(sink->host, 0, &x, SIZE_MAX);
  if (strcmp(what, "kind") == 0) sink->ids(sink->host, 0, &id, 1);
  if (strcmp(what, "column") == 0) sink->ids(sink->host, SIZE_MAX, &id, 1);
  if (strcmp(what, "silent") == 0) return MILLRACE_FAILED;
  if (strcmp(what, "odd") == 0) return 7;
  if (strcmp(what, "long") == 0) {
    memset(error->text, 'x', error->room);
    return MILLRACE_FAILED;
  }
  if (strncmp(what, "overrun", 7) == 0) {
    memset(error->text, 'x', error->room + 64);
    if (strcmp(what, "overrun") == 0) return MILLRACE_FAILED;
    if (strcmp(what, "overrun and nothing") == 0) return MILLRACE_NONE;
  }
  if (strcmp(what, "escapes") == 0) {
    snprintf(error->text, error->room, "\x1b[2J\x1b[1;31mall is well\x07\r");
    return MILLRACE_FAILED;
  }
  if (strcmp(what, "exit") == 0) exit(0);
  if (strcmp(what, "elsewhere") == 0) {
    error->text = elsewhere;
    error->room = SIZE_MAX;
    return MILLRACE_FAILED;
  }
  sink->floats(sink->host, 0, &x, 1);
  sink->ids(sink->host, 1, &id, 1);
  return strcmp(what, "kept back") == 0 ? MILLRACE_NONE : MILLRACE_ROW;
}

static int Parse(void* parser, const char* line, size_t length, const millrace_sink* sink, millrace_error* error) {
  char what[32] = {0};
  (void)parser;
  memcpy(what, line, length < sizeof(what) ? length : sizeof(what) - 1);
  return Do(what, sink, error);
}

typedef struct Loader {
  const millrace_open_args* args;
  char what[32];
} Loader;

static void* OpenLoader(const millrace_open_args* args, millrace_error* error) {
  Loader* loader = calloc(1, sizeof(Loader));
  if (loader == NULL) return NULL;
  loader->args = args;
  if (args->read(args->host, loader->what, sizeof(loader->what) - 1) < 0) {
    free(loader);
    snprintf(error->text, error->room, "cannot be read");
    return NULL;
  }
  if (strcmp(loader->what, "open overruns") == 0) memset(error->text, 'x', error->room + 64);
  return loader;
}

static int Next(void* state_of_it, const millrace_sink* sink, millrace_error* error) {
  Loader* loader = state_of_it;
  if (strcmp(loader->what, "read to null") == 0) {
    loader->args->read(loader->args->host, NULL, 8);
    return MILLRACE_NONE;
  }
  /* Anything else goes on for ever. */
  return Do(loader->what, sink, error);
}

static void CloseParser(void* parser) { (void)parser; }
static void CloseLoader(void* loader) { free(loader); }

static const millrace_parser kParser = {
    sizeof(millrace_parser), "HostileFeed", "Does what it must not.", NULL, 0, Open, Parse, CloseParser};
static const millrace_parser* const kParsers[] = {&kParser};
static const millrace_loader kLoader = {
    sizeof(millrace_loader), "hostile", ".hostile", "Does what it must not.", NULL, 0, OpenLoader, Next, CloseLoader};
static const millrace_loader* const kLoaders[] = {&kLoader};

MILLRACE_C_PLUGIN(kParsers, 1, kLoaders, 1);
