#include "program/oneof_names.h"

namespace millrace {

std::string OneofNames(const google::protobuf::OneofDescriptor& oneof) {
  std::string names;
  const int count = oneof.field_count();
  for (int i = 0; i < count; ++i) names += (i == 0 ? "" : i + 1 < count ? ", " : " or ") + oneof.field(i)->name();
  return names;
}

}  // namespace millrace
