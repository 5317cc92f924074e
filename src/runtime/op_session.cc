#include "runtime/op_session.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "program/var_meta.h"

namespace millrace {

Result<std::unique_ptr<OpSession>> OpSession::Create(const std::vector<OpDesc>& ops, const VarMetas& inputs,
                                                     const OpRegistry& registry, const FrameOptions& options) {
  std::unique_ptr<OpSession> session(new OpSession);
  ProgramDesc program;
  BlockDesc* block = program.add_blocks();
  for (const auto& [name, meta] : inputs) {
    VarDesc* var = block->add_vars();
    var->set_name(name);
    var->mutable_type()->set_type(meta.kind);
    const bool sparse = meta.kind == VarType::SELECTED_ROWS;
    if (!sparse) var->mutable_type()->mutable_lod_tensor()->set_lod_level(meta.lod_level);
    VarType::TensorDesc* tensor = sparse ? var->mutable_type()->mutable_selected_rows()
                                         : var->mutable_type()->mutable_lod_tensor()->mutable_tensor();
    tensor->set_data_type(ToVarType(meta.dtype));
    for (const int64_t size : meta.dims.sizes()) tensor->add_dims(size);
    Variable* variable = session->root_.Var(name);
    if (sparse) {
      var->set_persistable(true);
      variable->GetMutable<SelectedRows>();
    } else {
      // Parameters are allocated before kernels are created.
      Tensor* value = variable->GetMutable<Tensor>();
      const auto sizes = meta.dims.sizes();
      var->set_persistable(std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; }));
      if (var->persistable()) {
        std::memset(value->ResizeRaw(meta.dtype, meta.dims), 0,
                    static_cast<size_t>(meta.dims.numel()) * SizeOf(meta.dtype));
      }
    }
  }
  std::set<std::string> declared;
  for (const OpDesc& op : ops) {
    *block->add_ops() = op;
    for (const OpDesc::Var& output : op.outputs()) {
      for (const std::string& name : output.arguments()) {
        if (inputs.contains(name) || name == kEmptyVar || !declared.insert(name).second) continue;
        VarDesc* var = block->add_vars();
        var->set_name(name);
        var->mutable_type()->set_type(VarType::LOD_TENSOR);
        var->mutable_type()->mutable_lod_tensor()->mutable_tensor()->set_data_type(VarType::FP32);
      }
    }
  }
  CompileOptions compile;
  compile.fuse = false;
  MR_ASSIGN(session->executable_,
            Executable::Compile(std::make_shared<const ProgramDesc>(std::move(program)), registry, compile));
  MR_ASSIGN(session->frame_, Frame::Create(*session->executable_, nullptr, session->root_, options));
  return session;
}

void OpSession::SetLod(const std::string& name, std::vector<uint32_t> lod) {
  std::vector<uint32_t>& kept = lods_[name];
  kept = std::move(lod);
  tensor(name)->set_lod(kept);
}

Status OpSession::Run(int64_t step) {
  RunContext context;
  context.step = step;
  return frame_->Run(context);
}

}  // namespace millrace
