#pragma once

#include <string>
#include <vector>

#include "program/op_list.h"
#include "program/op_range.h"
#include "program/op_registry.h"
#include "program/section_cut.h"

namespace millrace {

/// Fuses the operators of each section of a program apart, and puts the parts together again in their order. One
/// thread.
class SectionFusion {
 public:
  /// `parts` say how `ops` are cut, and outlive the object.
  SectionFusion(const OpList& ops, const std::vector<SectionPart>& parts);

  /// As ApplyFusionPasses, section by section: what another section names is kept.
  Status Run(VarMetas& vars, const OpRegistry& registry, const std::vector<std::string>& fetches);

  /// All operators, and where each part is among them.
  OpList Take(std::vector<OpRange>* ranges) &&;

 private:
  Status FuseSection(int section, VarMetas& vars, const OpRegistry& registry, const std::vector<std::string>& fetches);

  const std::vector<SectionPart>& parts_;
  std::vector<OpList> lists_;  ///< by part
};

}  // namespace millrace
