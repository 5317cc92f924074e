#include "config/paddle_fields.h"

#include <google/protobuf/descriptor.h>

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "trainer_desc.pb.h"

namespace millrace {
namespace {

struct Unsupported {
  std::string_view path;
  bool (*is_set)(const TrainerDesc&);
  std::string_view why;
};

constexpr std::string_view kServer =
    "what a parameter server keeps is model.table and model.optimizer beside program here; "
    "scripts/export_from_paddle.py "
    "writes them from a fleet job";
constexpr std::string_view kCvm =
    "rows of a table with an accessor have show and click, and use_cvm is a field of the embedding layer that reads it";
constexpr std::string_view kMachines = "a program is not cut over several machines";

// What Paddle would do with each of these changes the results or the files of a run, so that to read on would be a lie.
const std::array kUnsupported = {
    Unsupported{"dump_slot", [](const TrainerDesc& d) { return d.dump_slot(); }, kServer},
    Unsupported{"mpi_size", [](const TrainerDesc& d) { return d.mpi_size() > 1; },
                "a launcher says how many ranks there are: mpirun -n"},
    Unsupported{"thread_barrier", [](const TrainerDesc& d) { return d.thread_barrier(); },
                "workers do not wait for each other between batches"},
    Unsupported{"use_ps_gpu", [](const TrainerDesc& d) { return d.use_ps_gpu(); }, "tables live in the host's memory"},
    Unsupported{"xpu_send_list", [](const TrainerDesc& d) { return d.xpu_send_list_size() > 0; }, kMachines},
    Unsupported{"xpu_recv_list", [](const TrainerDesc& d) { return d.xpu_recv_list_size() > 0; }, kMachines},
    Unsupported{"trainers", [](const TrainerDesc& d) { return d.trainers_size() > 1; },
                "a launcher says how many ranks there are: mpirun -n"},
    Unsupported{"fleet_desc", [](const TrainerDesc& d) { return !d.fleet_desc().empty(); }, kServer},
    Unsupported{"pull_dense_param", [](const TrainerDesc& d) { return d.has_pull_dense_param(); }, kServer},
    Unsupported{"downpour_param", [](const TrainerDesc& d) { return d.has_downpour_param(); }, kServer},
    Unsupported{"heter_section_param", [](const TrainerDesc& d) { return d.has_heter_section_param(); }, kMachines},
    Unsupported{"data_desc.rank_offset", [](const TrainerDesc& d) { return !d.data_desc().rank_offset().empty(); },
                "no operator here reads ranks within page views"},
    Unsupported{"data_desc.so_parser_name",
                [](const TrainerDesc& d) { return !d.data_desc().so_parser_name().empty(); },
                "a parser in a shared object is a plugin here: plugins names its file, and data_desc.name the parser"},
};

// Settings of Paddle's DownpourWorker, which other workers do not look at: jobs of those train alike without.
const std::array kDownpourOnly = {
    Unsupported{"use_cvm", [](const TrainerDesc& d) { return d.use_cvm(); }, kCvm},
    Unsupported{"no_cvm", [](const TrainerDesc& d) { return d.no_cvm(); }, kCvm},
    Unsupported{"scale_datanorm", [](const TrainerDesc& d) { return d.scale_datanorm() > 0; },
                "gradients of data_norm are as the program has them"},
    Unsupported{"copy_table_config", [](const TrainerDesc& d) { return d.copy_table_config().need_copy(); },
                "tables are not copied while they are trained"},
    Unsupported{"adjust_ins_weight_config",
                [](const TrainerDesc& d) { return d.adjust_ins_weight_config().need_adjust(); },
                "weights follow from show counts, which rows do not keep"},
};

}  // namespace

void RejectUnsupportedFields(const TrainerDesc& desc, const FieldPositions& positions, Diagnostics* diagnostics) {
  for (const Unsupported& field : kUnsupported) {
    if (!field.is_set(desc)) continue;
    const std::string name(field.path.substr(field.path.rfind('.') + 1));
    diagnostics->Error(positions.Find(field.path), "not supported yet: " + name + "; " + std::string(field.why));
  }
  for (const Unsupported& field : kDownpourOnly) {
    if (!field.is_set(desc)) continue;
    const std::string name(field.path);
    if (desc.device_worker_name().starts_with("Downpour")) {
      diagnostics->Error(positions.Find(field.path), "not supported yet: " + name + "; " + std::string(field.why));
    } else {
      diagnostics->Warning(positions.Find(field.path), name + " has no effect with a " + desc.device_worker_name() +
                                                           ", as in Paddle: " + std::string(field.why));
    }
  }
}

bool IsInert(const google::protobuf::FieldDescriptor& field) {
  const std::string& type = field.containing_type()->name();
  if (type == "TrainerDesc") {
    // Worker counts, debug and the like are acted on; from use_cvm (8) to the parameters of other workers (105), only
    // these are.
    static const std::set<int> kActedOn = {
        TrainerDesc::kDumpFieldsPathFieldNumber,     TrainerDesc::kDumpFieldsFieldNumber,
        TrainerDesc::kDumpConverterFieldNumber,      TrainerDesc::kDumpParamFieldNumber,
        TrainerDesc::kDumpFileNumFieldNumber,        TrainerDesc::kCheckNanVarNamesFieldNumber,
        TrainerDesc::kEnableRandomDumpFieldNumber,   TrainerDesc::kRandomWithLineidFieldNumber,
        TrainerDesc::kDumpIntervalFieldNumber,       TrainerDesc::kUserDefineDumpFilenameFieldNumber,
        TrainerDesc::kIsDumpInSimpleModeFieldNumber, TrainerDesc::kDumpFieldsModeFieldNumber,
        TrainerDesc::kDumpNumDecimalsFieldNumber,    TrainerDesc::kHogwildParamFieldNumber,
        TrainerDesc::kSectionParamFieldNumber};
    return field.number() >= TrainerDesc::kUseCvmFieldNumber && field.number() < TrainerDesc::kDataDescFieldNumber &&
           !kActedOn.contains(field.number());
  }
  return type == "FetchConfig" && field.number() == FetchConfig::kMethodFieldNumber;
}

}  // namespace millrace
