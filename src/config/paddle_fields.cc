#include "config/paddle_fields.h"

#include <google/protobuf/descriptor.h>

#include <array>
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

constexpr std::string_view kDump =
    "variables and parameters are not dumped; fetch_config prints them, and inspect shows batches";
constexpr std::string_view kServer = "there is no parameter server yet; one process holds all tables";
constexpr std::string_view kPipeline = "programs are not cut into sections yet";

// What Paddle would do with each of these changes the results or the files of a run, so that to read on would be a lie.
const std::array kUnsupported = {
    Unsupported{"use_cvm", [](const TrainerDesc& d) { return d.use_cvm(); }, "show and click are no part of rows here"},
    Unsupported{"no_cvm", [](const TrainerDesc& d) { return d.no_cvm(); }, "show and click are no part of rows here"},
    Unsupported{"dump_slot", [](const TrainerDesc& d) { return d.dump_slot(); }, kDump},
    Unsupported{"dump_fields_path", [](const TrainerDesc& d) { return !d.dump_fields_path().empty(); }, kDump},
    Unsupported{"dump_fields", [](const TrainerDesc& d) { return d.dump_fields_size() > 0; }, kDump},
    Unsupported{"dump_converter", [](const TrainerDesc& d) { return !d.dump_converter().empty(); }, kDump},
    Unsupported{"dump_param", [](const TrainerDesc& d) { return d.dump_param_size() > 0; }, kDump},
    Unsupported{"enable_random_dump", [](const TrainerDesc& d) { return d.enable_random_dump(); }, kDump},
    Unsupported{"scale_datanorm", [](const TrainerDesc& d) { return d.scale_datanorm() > 0; },
                "data_norm is not scaled by the batch"},
    Unsupported{"mpi_size", [](const TrainerDesc& d) { return d.mpi_size() > 1; }, "a job runs on one machine"},
    Unsupported{"copy_table_config", [](const TrainerDesc& d) { return d.copy_table_config().need_copy(); },
                "tables are not copied while training"},
    Unsupported{"adjust_ins_weight_config",
                [](const TrainerDesc& d) { return d.adjust_ins_weight_config().need_adjust(); },
                "instances all weigh the same"},
    Unsupported{"thread_barrier", [](const TrainerDesc& d) { return d.thread_barrier(); },
                "workers do not wait for each other between batches"},
    Unsupported{"use_ps_gpu", [](const TrainerDesc& d) { return d.use_ps_gpu(); }, "tables live in the host's memory"},
    Unsupported{"xpu_send_list", [](const TrainerDesc& d) { return d.xpu_send_list_size() > 0; }, kPipeline},
    Unsupported{"xpu_recv_list", [](const TrainerDesc& d) { return d.xpu_recv_list_size() > 0; }, kPipeline},
    Unsupported{"trainers", [](const TrainerDesc& d) { return d.trainers_size() > 1; }, "a job runs on one machine"},
    Unsupported{"fleet_desc", [](const TrainerDesc& d) { return !d.fleet_desc().empty(); }, kServer},
    Unsupported{"pull_dense_param", [](const TrainerDesc& d) { return d.has_pull_dense_param(); }, kServer},
    Unsupported{"downpour_param", [](const TrainerDesc& d) { return d.has_downpour_param(); }, kServer},
    Unsupported{"section_param", [](const TrainerDesc& d) { return d.has_section_param(); }, kPipeline},
    Unsupported{"heter_section_param", [](const TrainerDesc& d) { return d.has_heter_section_param(); }, kPipeline},
    Unsupported{"data_desc.rank_offset", [](const TrainerDesc& d) { return !d.data_desc().rank_offset().empty(); },
                "no operator here reads ranks within page views"},
    Unsupported{"data_desc.so_parser_name",
                [](const TrainerDesc& d) { return !d.data_desc().so_parser_name().empty(); },
                "parsers are not loaded from shared objects; write MultiSlot lines from a pipe_command"},
};

}  // namespace

void RejectUnsupportedFields(const TrainerDesc& desc, const FieldPositions& positions, Diagnostics* diagnostics) {
  for (const Unsupported& field : kUnsupported) {
    if (!field.is_set(desc)) continue;
    const std::string name(field.path.substr(field.path.rfind('.') + 1));
    diagnostics->Error(positions.Find(field.path), "not supported yet: " + name + "; " + std::string(field.why));
  }
}

bool IsInert(const google::protobuf::FieldDescriptor& field) {
  const std::string& type = field.containing_type()->name();
  if (type == "TrainerDesc") {
    // Worker counts, debug and the like are acted on; from use_cvm (8) to the parameters of other workers (105), only
    // check_nan_var_names and hogwild_param are.
    return field.number() >= TrainerDesc::kUseCvmFieldNumber && field.number() < TrainerDesc::kDataDescFieldNumber &&
           field.number() != TrainerDesc::kCheckNanVarNamesFieldNumber &&
           field.number() != TrainerDesc::kHogwildParamFieldNumber;
  }
  return type == "FetchConfig" && field.number() == FetchConfig::kMethodFieldNumber;
}

}  // namespace millrace
