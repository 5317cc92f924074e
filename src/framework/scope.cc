#include "framework/scope.h"

#include <glog/logging.h>

namespace millrace {

void Variable::CheckIs(const std::type_info& wanted) const {
  CHECK(holder_ != nullptr) << "an empty variable was read as " << wanted.name();
  CHECK(holder_->type() == wanted) << "a variable of " << holder_->type().name() << " was read as " << wanted.name();
}

Variable* Scope::Var(std::string_view name) {
  auto it = vars_.find(name);
  if (it == vars_.end()) it = vars_.emplace(std::string(name), std::make_unique<Variable>()).first;
  return it->second.get();
}

Variable* Scope::Find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
    if (auto it = scope->vars_.find(name); it != scope->vars_.end()) return it->second.get();
  }
  return nullptr;
}

std::vector<std::string> Scope::Names() const {
  std::vector<std::string> names;
  names.reserve(vars_.size());
  for (const auto& [name, var] : vars_) names.push_back(name);
  return names;
}

}  // namespace millrace
