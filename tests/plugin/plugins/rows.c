/* A loader of the C tier for datasets: files that name their columns, and give of each any number of values. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin_abi.h"

enum { kMostColumns = 16, kMostValues = 64, kRoom = 4096 };

typedef struct Loader {
  void* host;
  ptrdiff_t (*read)(void* host, char* bytes, size_t room);
  char key; /* that every byte behind "ROWS" is mixed with */
  char bytes[kRoom];
  size_t at;
  size_t end;
  size_t columns;
  size_t to[kMostColumns]; /* the column that is asked for; SIZE_MAX: none */
} Loader;

/* As many of `size` bytes as there are; -1 when they did not come. */
static ptrdiff_t Take(Loader* loader, void* to, size_t size) {
  size_t have = 0;
  while (have < size) {
    if (loader->at == loader->end) {
      const ptrdiff_t got = loader->read(loader->host, loader->bytes, kRoom);
      if (got < 0) return -1;
      if (got == 0) break;
      loader->at = 0;
      loader->end = (size_t)got;
    }
    ((char*)to)[have++] = (char)(loader->bytes[loader->at++] ^ loader->key);
  }
  return (ptrdiff_t)have;
}

static void* Open(const millrace_open_args* args, millrace_error* error) {
  Loader* loader = calloc(1, sizeof(Loader));
  if (loader == NULL) return NULL;
  loader->host = args->host;
  loader->read = args->read;
  char magic[4] = {0};
  if (Take(loader, magic, 4) != 4 || memcmp(magic, "ROWS", 4) != 0) {
    snprintf(error->text, error->room, "it does not begin with ROWS");
    free(loader);
    return NULL;
  }
  loader->key = (char)atoi(args->attrs[0].value);
  uint8_t count = 0;
  if (Take(loader, &count, 1) != 1 || count > kMostColumns) {
    snprintf(error->text, error->room, "%d columns; is the key right?", count);
    free(loader);
    return NULL;
  }
  loader->columns = count;
  for (size_t i = 0; i < count; ++i) {
    uint8_t size = 0;
    char name[256] = {0};
    loader->to[i] = SIZE_MAX;
    if (Take(loader, &size, 1) != 1 || Take(loader, name, size) != size) continue;
    for (size_t c = 0; c < args->column_count; ++c) {
      if (strcmp(name, args->columns[c].name) == 0) loader->to[i] = c;
    }
  }
  return loader;
}

static int Next(void* state, const millrace_sink* sink, millrace_error* error) {
  Loader* loader = state;
  for (size_t i = 0; i < loader->columns; ++i) {
    uint8_t head[2] = {0}; /* kind, count */
    const ptrdiff_t got = Take(loader, head, 2);
    if (got == 0 && i == 0) return MILLRACE_NONE;
    uint64_t ids[kMostValues];
    float floats[kMostValues];
    const int is_ids = head[0] == MILLRACE_IDS;
    const size_t size = (is_ids ? sizeof(uint64_t) : sizeof(float)) * head[1];
    if (got != 2 || head[1] > kMostValues ||
        Take(loader, is_ids ? (void*)ids : (void*)floats, size) != (ptrdiff_t)size) {
      snprintf(error->text, error->room, "column %zu is cut off", i);
      return MILLRACE_FAILED;
    }
    if (loader->to[i] == SIZE_MAX) continue;
    if (is_ids) {
      sink->ids(sink->host, loader->to[i], ids, head[1]);
    } else {
      sink->floats(sink->host, loader->to[i], floats, head[1]);
    }
  }
  return MILLRACE_ROW;
}

static void Close(void* state) { free(state); }

static const millrace_attr_info kAttrs[] = {{"key", NULL, "what bytes are mixed with"}};
static const millrace_loader kLoader = {
    sizeof(millrace_loader), "rows", ".rows", "Columns with names.", kAttrs, 1, Open, Next, Close};
static const millrace_loader* const kLoaders[] = {&kLoader};
MILLRACE_C_PLUGIN(NULL, 0, kLoaders, 1);
