#include "runtime/scope.h"

#include <stdexcept>

#include "core/exception_text.h"

namespace millrace {

void Variable::CheckIs(const std::type_info& wanted) const {
  if (holder_ != nullptr && holder_->type() == wanted) return;
  const std::string held = holder_ == nullptr ? "nothing" : Demangled(holder_->type().name());
  throw std::invalid_argument("a variable that holds " + held + " was taken for one of " + Demangled(wanted.name()));
}

Variable* Scope::Var(std::string_view name) {
  auto it = vars_.find(name);
  if (it == vars_.end()) it = vars_.emplace(std::string(name), std::make_unique<Variable>(*device_)).first;
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
