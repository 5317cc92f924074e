#pragma once

#include <string>
#include <vector>

namespace millrace {

class TableAccessorParameter;

/// What is wrong with an accessor.
struct AccessorProblem {
  std::string path;  ///< from the accessor on: "embed_sgd_param.name"
  std::string what;
};

/// A SparseAccessor: its rows count as those of CtrCommonAccessor do, and nobody sees the counts but the table.
bool HidesCounts(const TableAccessorParameter& accessor);

/// What an accessor cannot be: a class or a rule that there is not, settings that its rule does not look at, what is
/// not supported. Numbers out of range are not among it (FindOutOfRange). Any thread.
std::vector<AccessorProblem> FindAccessorProblems(const TableAccessorParameter& accessor);

}  // namespace millrace
