#include "reader/builtin_formats.h"

#include "reader/csv_reader.h"
#include "reader/feature_reader.h"
#include "reader/jpeg_reader.h"
#include "reader/libsvm_reader.h"
#include "reader/reader_registry.h"
#include "reader/recordio.h"

namespace millrace {

Status RegisterBuiltinFormats(ReaderRegistry& registry) {
  MR_TRY(registry.Add(CsvFormat()));
  MR_TRY(registry.Add(LibsvmFormat()));
  MR_TRY(registry.Add(RecordIOFormat()));
  MR_TRY(registry.Add(TfRecordFormat()));
  MR_TRY(registry.Add(OfRecordFormat()));
  return registry.Add(JpegFormat());
}

}  // namespace millrace
