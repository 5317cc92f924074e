#include "table/ctr_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/hash.h"
#include "core/numbers.h"
#include "model.pb.h"
#include "program/ctr_accessor.h"
#include "program/field_traits.h"
#include "program/model_defaults.h"

namespace millrace {
namespace {

/// A row with the largest embedx and the rules with the most state: Adam twice.
constexpr size_t kMostFloats =
    CtrRows::kEmbedx + CtrRows::kMostEmbedx + CtrRows::kCounters + 4 + 2 * CtrRows::kMostEmbedx + 2;
constexpr size_t kCopiesAhead = 8;

/// An integer in [1, 2^24], exact as a float.
float NumberOf(uint64_t key) { return static_cast<float>((Mix64(key) >> 40) + 1); }

Result<RowInitializer> UniformStart(const TableDesc& desc, const CtrRule& rule, uint64_t seed) {
  Initializer uniform;
  uniform.set_uniform(rule.initial_range());
  return RowInitializer::Create(uniform, desc.name(), seed);
}

Status CheckAccessor(const TableAccessorParameter& accessor) {
  for (const OutOfRange& wrong : FindOutOfRange(accessor)) return InvalidConfig(wrong.Where() + ": " + wrong.what);
  for (const AccessorProblem& problem : FindAccessorProblems(accessor)) {
    return InvalidConfig(problem.path + ": " + problem.what);
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<CtrRows>> CtrRows::Create(const TableDesc& desc, uint64_t seed) {
  const TableAccessorParameter& accessor = desc.accessor();
  MR_TRY(CheckAccessor(accessor));
  MR_ASSIGN(std::unique_ptr<CtrRule> embed, MakeCtrRule(accessor.embed_sgd_param(), 1).Context("embed_sgd_param"));
  MR_ASSIGN(std::unique_ptr<CtrRule> embedx,
            MakeCtrRule(accessor.embedx_sgd_param(), accessor.embedx_dim()).Context("embedx_sgd_param"));
  MR_ASSIGN(const RowInitializer start_embed, UniformStart(desc, *embed, seed));
  MR_ASSIGN(const RowInitializer start_embedx, UniformStart(desc, *embedx, seed));
  return std::unique_ptr<CtrRows>(new CtrRows(desc, std::move(embed), std::move(embedx), start_embed, start_embedx));
}

CtrRows::CtrRows(const TableDesc& desc, std::unique_ptr<CtrRule> embed, std::unique_ptr<CtrRule> embedx,
                 const RowInitializer& start_embed, const RowInitializer& start_embedx)
    : RowPolicy(DimOf(desc), DimOf(desc) + static_cast<int>(kCounters + embed->state_floats() + embedx->state_floats()),
                CopiesOfRow::kApart),
      name_(desc.name()),
      embed_(std::move(embed)),
      embedx_(std::move(embedx)),
      start_embed_(start_embed),
      start_embedx_(start_embedx),
      worth_{desc.accessor().ctr_accessor_param().nonclk_coeff(), desc.accessor().ctr_accessor_param().click_coeff()},
      embedx_threshold_(static_cast<float>(desc.accessor().embedx_threshold())),
      decay_(desc.accessor().ctr_accessor_param().show_click_decay_rate()),
      delete_threshold_(desc.accessor().ctr_accessor_param().delete_threshold()),
      delete_after_days_(desc.accessor().ctr_accessor_param().delete_after_unseen_days()),
      base_threshold_(desc.accessor().ctr_accessor_param().base_threshold()),
      delta_threshold_(desc.accessor().ctr_accessor_param().delta_threshold()),
      delta_keep_days_(desc.accessor().ctr_accessor_param().delta_keep_days()),
      show_scale_(desc.accessor().ctr_accessor_param().show_scale()),
      zero_init_(desc.accessor().ctr_accessor_param().zero_init()) {}

void CtrRows::Start(uint64_t key, float* row) const {
  std::fill_n(row, dim(), 0.0F);
  if (!zero_init_) start_embed_.Fill(key, row + kEmbed, 1);
  StartState(key, row);
}

void CtrRows::StartState(uint64_t key, float* row) const {
  const bool has_embedx = std::any_of(row + kEmbedx, row + dim(), [](float w) { return w != 0; });
  row[unseen_days()] = 0;
  row[delta_score()] = 0;
  row[embedx_from()] = has_embedx ? 0 : NumberOf(key);
  embed_->StartState(row + embed_state());
  embedx_->StartState(row + embedx_state());
}

void CtrRows::ShowUnknown(uint64_t, float* weights) const { std::fill_n(weights, dim(), 0.0F); }

Status CtrRows::Check(std::span<const float> gradients) const {
  if (!show_scale_) return Status::Ok();
  for (size_t at = 0; at < gradients.size(); at += static_cast<size_t>(dim())) {
    if (gradients[at + kShow] > 0) continue;
    return BadData(
        "table \"" + name_ + "\": the examples of a row have " + ShortestNumber(gradients[at + kShow]) +
        " shows, and show_scale divides gradients by them: give each example one or more, or set show_scale: false");
  }
  return Status::Ok();
}

void CtrRows::Update(const racy::Kernels& kernels, const RowStep& step, float* const* rows, const float* gradients,
                     size_t count) const {
  const auto floats = static_cast<size_t>(row_floats());
  std::array<float, kMostFloats> row;
  for (size_t i = 0; i < count; ++i) {
    if (i + kCopiesAhead < count) {
      for (size_t f = 0; f < floats; f += 16) __builtin_prefetch(rows[i + kCopiesAhead] + f, 1, 3);
    }
    kernels.copy_row(rows[i], row.data(), floats);
    UpdateOne(step.examples, gradients + i * static_cast<size_t>(dim()), row.data());
    kernels.copy_row(row.data(), rows[i], floats);
  }
}

void CtrRows::UpdateOne(float examples, const float* gradient, float* row) const {
  const float show = gradient[kShow];
  const float click = gradient[kClick];
  row[kShow] += show;
  row[kClick] += click;
  row[delta_score()] += worth_.Of(show, click);
  row[unseen_days()] = 0;
  const float scale = show_scale_ ? show : 1;
  const float of_embed = gradient[kEmbed] * examples;
  embed_->Update(&of_embed, scale, row + kEmbed, row + embed_state());
  if (row[embedx_from()] == 0) {
    std::array<float, kMostEmbedx> of_embedx;
    for (size_t d = 0; d < embedx_dim(); ++d) of_embedx[d] = gradient[kEmbedx + d] * examples;
    embedx_->Update(of_embedx.data(), scale, row + kEmbedx, row + embedx_state());
  } else if (worth_.Of(row[kShow], row[kClick]) >= embedx_threshold_) {
    start_embedx_.Fill(static_cast<uint64_t>(row[embedx_from()]), row + kEmbedx, static_cast<int>(embedx_dim()));
    row[embedx_from()] = 0;
  }
}

bool CtrRows::Ages(float* row) const {
  row[kShow] *= decay_;
  row[kClick] *= decay_;
  if (worth_.Of(row[kShow], row[kClick]) < delete_threshold_ || row[unseen_days()] > delete_after_days_) return true;
  row[unseen_days()] += 1;
  return false;
}

void CtrRows::AppendNumbers(const float* row, std::vector<float>* numbers) const {
  const auto append = [&](size_t begin, size_t count) {
    numbers->insert(numbers->end(), row + begin, row + begin + count);
  };
  append(unseen_days(), 2);
  append(kShow, kEmbedx);
  append(embed_state(), embed_->state_floats());
  if (!HasEmbedx(row)) return;
  append(kEmbedx, embedx_dim());
  append(embedx_state(), embedx_->state_floats());
}

bool CtrRows::TakeNumbers(uint64_t key, std::span<const float> numbers, float* row) const {
  if (numbers.size() != least_numbers() && numbers.size() != most_numbers()) return false;
  Start(key, row);
  const float* from = numbers.data();
  const auto take = [&](size_t begin, size_t count) {
    std::copy_n(from, count, row + begin);
    from += count;
  };
  take(unseen_days(), 2);
  take(kShow, kEmbedx);
  take(embed_state(), embed_->state_floats());
  if (numbers.size() == least_numbers()) return true;
  take(kEmbedx, embedx_dim());
  for (size_t i = 0; i < embedx_->state_floats(); ++i) {
    if (std::isfinite(from[i])) row[embedx_state() + i] = from[i];
  }
  row[embedx_from()] = 0;
  return true;
}

bool CtrRows::IsIn(TableContent content, const float* row) const {
  if (content != TableContent::kBase && content != TableContent::kDelta) return true;
  const float least_growth = content == TableContent::kDelta ? delta_threshold_ : 0;
  return worth_.Of(row[kShow], row[kClick]) >= base_threshold_ && row[delta_score()] >= least_growth &&
         row[unseen_days()] <= delta_keep_days_;
}

std::string CtrRows::Describe() const {
  return "CtrCommonAccessor embed: " + embed_->Describe() + " embedx: " + embedx_->Describe();
}

}  // namespace millrace
