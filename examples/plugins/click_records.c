/* A file format in plain C: records of 24 bytes, little-endian: whether it was clicked and bought, as floats, then the
 * ids of user and item. Files are named *.clicks, and may be packed (*.clicks.gz). */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin/plugin_abi.h"

typedef struct Record {
  float click;
  float buy;
  uint64_t user;
  uint64_t item;
} Record;

typedef struct Loader {
  void* host;
  ptrdiff_t (*read)(void* host, char* bytes, size_t room);
} Loader;

static void* Open(const millrace_open_args* args, millrace_error* error) {
  Loader* loader = malloc(sizeof(Loader));
  if (loader == NULL) {
    snprintf(error->text, error->room, "no memory");
    return NULL;
  }
  loader->host = args->host;
  loader->read = args->read;
  return loader;
}

static int Next(void* state, const millrace_sink* sink, millrace_error* error) {
  const Loader* loader = state;
  Record record;
  size_t have = 0;
  while (have < sizeof(record)) {
    const ptrdiff_t got = loader->read(loader->host, (char*)&record + have, sizeof(record) - have);
    if (got < 0) return MILLRACE_FAILED;
    if (got == 0) break;
    have += (size_t)got;
  }
  if (have == 0) return MILLRACE_NONE;
  if (have < sizeof(record)) {
    snprintf(error->text, error->room, "%zu bytes, and a record has %zu", have, sizeof(record));
    return MILLRACE_FAILED;
  }
  sink->floats(sink->host, 0, &record.click, 1);
  sink->floats(sink->host, 1, &record.buy, 1);
  sink->ids(sink->host, 2, &record.user, 1);
  sink->ids(sink->host, 3, &record.item, 1);
  return MILLRACE_ROW;
}

static void Close(void* state) { free(state); }

static const millrace_loader kClicks = {
    sizeof(millrace_loader), "clicks", ".clicks", "Click and purchase, user and item.", NULL, 0, Open, Next, Close};
static const millrace_loader* const kLoaders[] = {&kClicks};

MILLRACE_C_PLUGIN(NULL, 0, kLoaders, 1);
