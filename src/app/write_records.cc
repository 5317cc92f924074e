#include "app/write_records.h"

#include <cstdio>
#include <memory>
#include <string>

#include "core/same_file.h"
#include "reader/multiple_reader.h"
#include "reader/recordio.h"
#include "reader/tensor_spec_text.h"
#include "trainer/default_environment.h"

namespace millrace {
namespace {

constexpr size_t kReadAhead = 1024;

}  // namespace

Status WriteRecords(const WriteRecordsRequest& request, const std::stop_token& stop) {
  for (const std::string& file : request.files) {
    const std::string path = file.substr(file.starts_with("/") ? 0 : file.find(':') + 1);  // "csv:points.csv"
    if (!IsSamePlainFile(request.path, path)) continue;
    return InvalidConfig("--records: \"" + request.path + "\" is one of the files to read, and would be written over");
  }
  MR_ASSIGN(const Environment environment, MakeEnvironment(request.plugins));
  MR_ASSIGN(std::vector<TensorSpec> outputs, ParseTensorSpecs(request.outputs).Context("--outputs"));
  const OpenFilesOptions options{.files = request.files, .format = "", .threads = 1, .buffer_size = kReadAhead};
  MR_ASSIGN(const std::unique_ptr<MultipleReader> reader,
            MultipleReader::Create(options, environment.readers, std::move(outputs)));
  MR_ASSIGN(RecordIOWriter writer, RecordIOWriter::Create(request.path));
  std::vector<LoDTensor> record;
  while (true) {
    MR_ASSIGN(const bool more, reader->ReadNext(&record, stop));
    if (!more) break;
    MR_TRY(writer.Append(record));
  }
  MR_TRY(writer.Finish());
  std::fprintf(stderr, "%s: %llu records\n", request.path.c_str(), static_cast<unsigned long long>(writer.records()));
  return Status::Ok();
}

}  // namespace millrace
