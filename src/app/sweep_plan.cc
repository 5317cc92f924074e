#include "app/sweep_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "config/changed_fields.h"
#include "config/checker.h"
#include "config/overrides.h"
#include "config/text_file.h"
#include "config/text_parser.h"
#include "core/hash.h"
#include "core/lower_case.h"
#include "core/numbers.h"
#include "core/rng.h"
#include "sweep.pb.h"
#include "trainer_desc.pb.h"

namespace millrace {
namespace {

constexpr size_t kMostTrials = 10000;

std::string FieldAt(int field) { return "field[" + std::to_string(field) + "]"; }

/// What `assignment` does to `*job`, told as mistakes of the sweep: at `path_place` where its path is wrong, at
/// `value_place` where its value is. False when the path is.
bool TryAssignment(const std::string& assignment, size_t path_length, TrainerDesc* job, const std::string& path_place,
                   const std::string& value_place, Checker* check) {
  Diagnostics diagnostics;
  FieldPositions positions;
  ApplyOverride(assignment, 1, job, &diagnostics, &positions);
  for (const Diagnostics::Entry& entry : diagnostics.entries()) {
    if (entry.severity != Diagnostics::Severity::kError) continue;
    const bool is_of_path = static_cast<size_t>(entry.where.column) <= path_length;
    check->Error(is_of_path ? path_place : value_place, entry.message);
    if (is_of_path) return false;
  }
  return true;
}

/// A drawn number as --set takes it, with as many digits as its name shows: four, behind those that all numbers of the
/// range begin with. Rounding leads to no number beyond the range.
std::string DrawnText(double value, const SweepRange& range) {
  if (range.integer()) return std::to_string(std::llround(value));
  const double largest = std::max(std::abs(range.from()), std::abs(range.to()));
  const double shared = std::floor(std::log10(largest / (range.to() - range.from())));
  constexpr int kDigits = 4;
  constexpr double kMostShared = std::numeric_limits<double>::max_digits10 - kDigits;
  const int digits = kDigits + static_cast<int>(std::clamp(shared, 0.0, kMostShared));
  const std::string text = GeneralNumber(value, digits);
  double rounded = value;
  (void)ReadWhole(text, &rounded);
  if (rounded < range.from()) return ExactNumber(range.from());
  if (rounded > range.to()) return ExactNumber(range.to());
  return text;
}

std::string Drawn(const SweepField& field, Rng* rng) {
  if (field.value_size() > 0)
    return field.value(static_cast<int>(rng->Below(static_cast<uint64_t>(field.value_size()))));
  const SweepRange& range = field.range();
  if (range.integer() && range.scale() == SweepRange::LINEAR) {
    const auto count = static_cast<uint64_t>(range.to() - range.from()) + 1;
    return DrawnText(range.from() + static_cast<double>(rng->Below(count)), range);
  }
  const double share = rng->Uniform();
  const double value = range.scale() == SweepRange::LOG ? range.from() * std::pow(range.to() / range.from(), share)
                                                        : range.from() + share * (range.to() - range.from());
  return DrawnText(std::clamp(value, range.from(), range.to()), range);
}

void CheckRange(const SweepRange& range, const std::string& path, Checker* check) {
  if (!range.has_from()) check->Missing(path, "from", "a range needs from, its smallest value");
  if (!range.has_to()) check->Missing(path, "to", "a range needs to, its largest value");
  if (!range.has_from() || !range.has_to()) return;
  constexpr double kMost = 1e15;  // whole numbers beyond have neighbours that are no doubles
  if (!(range.from() < range.to()) || !(std::abs(range.from()) <= kMost) || !(std::abs(range.to()) <= kMost)) {
    check->Error(path + ".to", "a range goes from a number up to a larger one, neither beyond 1e15, not from " +
                                   ExactNumber(range.from()) + " to " + ExactNumber(range.to()));
    return;
  }
  if (range.scale() == SweepRange::LOG && range.from() <= 0) {
    check->Error(path + ".from", "a LOG range is of numbers above 0, not " + ExactNumber(range.from()));
  }
  const bool is_whole = std::floor(range.from()) == range.from() && std::floor(range.to()) == range.to();
  if (range.integer() && !is_whole) check->Error(path + ".from", "a range of whole numbers begins and ends with one");
}

void CheckField(const SweepDesc& desc, int number, const TrainerDesc& job, Checker* check) {
  const SweepField& field = desc.field(number);
  const std::string at = FieldAt(number);
  if (field.path().empty()) {
    check->Missing(at, "path", "a field needs a path, as --set names it: \"model.optimizer.adagrad.lr\"");
    return;
  }
  if (field.path().find('=') != std::string::npos) {
    check->Error(at + ".path", "a path names a field, without a value: \"model.optimizer.adagrad.lr\"");
    return;
  }
  if (field.path() == "output.dir") {
    check->Error(at + ".path",
                 "each training has a folder of its own in --output_dir: output.dir is no field of a sweep");
    return;
  }
  if (field.path() == "seed" && desc.seeds_size() > 0) {
    check->Error(at + ".path", "seeds says which seeds there are: leave out one of the two");
  }
  if (field.path() == "epochs" && desc.has_halving()) {
    check->Error(at + ".path", "halving says after which epochs trainings end: leave out one of the two");
  }
  if (field.value_size() > 0 && field.has_range()) {
    check->Error(at + ".range", "a field has values or a range, not both");
    return;
  }
  if (field.value_size() == 0 && !field.has_range()) {
    if (!check->has_errors()) check->Error(at, "the field needs values, value: [\"...\", \"...\"], or a range");
    return;
  }
  if (field.has_range()) {
    CheckRange(field.range(), at + ".range", check);
    if (desc.search() == SweepDesc::GRID) {
      check->Error(at + ".range", "a range is drawn from, and a grid has all values: give values, or search: RANDOM");
    }
    if (check->has_errors()) return;
    Rng rng(desc.draw_seed());
    TrainerDesc changed = job;
    TryAssignment(field.path() + "=" + Drawn(field, &rng), field.path().size(), &changed, at + ".path", at + ".range",
                  check);
    return;
  }
  // The same number may be written in several ways: jobs are compared, not texts.
  std::map<uint64_t, std::string> values;  ///< by a hash of the job
  for (int i = 0; i < field.value_size(); ++i) {
    const std::string place = ElementPath(at + ".value", static_cast<size_t>(i));
    const std::string assignment = field.path() + "=" + field.value(i);
    const int mistakes = check->errors();
    TrainerDesc changed = job;
    if (!TryAssignment(assignment, field.path().size(), &changed, at + ".path", place, check)) return;
    if (check->errors() > mistakes) continue;
    const auto [same, is_new] = values.insert({XxHash64(changed.SerializePartialAsString()), field.value(i)});
    if (is_new) continue;
    check->Error(place, same->second == field.value(i)
                            ? "the value " + field.value(i) + " is there already"
                            : "the value " + field.value(i) + " is there already, as " + same->second);
  }
}

/// Seeds are a list, and look like a number where there is one of them.
void CheckSeeds(const SweepDesc& desc, Checker* check) {
  if (desc.seeds_size() == 1) {
    const uint64_t only = desc.seeds(0);
    constexpr uint64_t kFew = 9;
    std::string list = "1, 2";
    for (uint64_t seed = 3; seed <= only && only <= kFew; ++seed) list += ", " + std::to_string(seed);
    const std::string number = std::to_string(only);
    check->Error("seeds[0]",
                 "seeds lists them, and does not say how many there are: a list has two or more, as in seeds: [" +
                     list + "]. For the seed " + number + " alone leave seeds out and say --set seed=" + number);
  }
  std::set<uint64_t> seeds;
  for (int i = 0; i < desc.seeds_size(); ++i) {
    if (seeds.insert(desc.seeds(i)).second) continue;
    check->Error(ElementPath("seeds", static_cast<size_t>(i)),
                 "the seed " + std::to_string(desc.seeds(i)) +
                     " is there already: the same training would count twice in the mean");
  }
}

void CheckSweep(const SweepDesc& desc, const TrainerDesc& job, const FieldPositions& positions, Checker* check) {
  check->Ranges(desc);
  if (desc.field_size() == 0 && desc.seeds_size() == 0) {
    check->Error("", "a sweep needs fields: field { path: \"model.optimizer.adagrad.lr\" value: [\"0.01\", \"0.1\"] }");
  }
  std::set<std::string> paths;
  for (int i = 0; i < desc.field_size(); ++i) {
    CheckField(desc, i, job, check);
    if (!paths.insert(desc.field(i).path()).second) check->Error(FieldAt(i) + ".path", "the field is there already");
  }
  if (desc.search() == SweepDesc::GRID) {
    for (const char* path : {"draws", "draw_seed"}) {
      if (positions.Has(path))
        check->Error(path, std::string(path) + " is for search: RANDOM; a grid has all combinations");
    }
  }
  CheckSeeds(desc, check);
  if (!desc.has_halving()) return;
  if (job.has_incremental()) {
    check->Error("halving", "a round of halving ends after epochs, and the job has days (incremental)");
  } else if (desc.halving().first_epochs() >= job.epochs()) {
    check->Error("halving", "the first round would be the whole training: first_epochs is " +
                                std::to_string(desc.halving().first_epochs()) +
                                ", and the job has epochs: " + std::to_string(job.epochs()));
  }
  if (job.eval().filelist().empty() && job.eval().set().empty())
    check->Error("halving", "halving compares evaluations, and the job has no eval");
}

/// A value as a part of a file's name: "[128, 64]" becomes "128_64".
std::string NamePart(const std::string& value) {
  std::string part;
  for (const char c : value) {
    const bool stays = IsLetterOrDigit(c) || c == '.' || c == '-' || c == '+' || c == '_';
    if (stays) {
      part += c;
    } else if (!part.empty() && part.back() != '_') {
      part += '_';
    }
  }
  while (part.ends_with('_')) part.pop_back();
  return part;
}

/// Gives a trial its name and overrides; a name that another has, or that is long, ends in a number of its own.
void AddTrial(const std::vector<std::string>& shorts, const SweepDesc& desc, const std::vector<std::string>& values,
              std::set<std::string>* names, std::vector<SweepTrial>* trials) {
  SweepTrial trial;
  std::string exact;
  for (size_t i = 0; i < values.size(); ++i) {
    trial.name += (i == 0 ? "" : ",") + NamePart(shorts[i]) + "=" + NamePart(values[i]);
    trial.overrides.push_back(desc.field(static_cast<int>(i)).path() + "=" + values[i]);
    exact += trial.overrides.back() + "\n";
  }
  if (trial.name.empty()) trial.name = "job";
  constexpr size_t kLongest = 120;
  if (trial.name.size() > kLongest || names->contains(trial.name)) {
    const std::string start = trial.name.substr(0, kLongest) + ",";
    for (uint64_t number = Fnv1a64(exact) % 1'000'000; trial.name.size() > kLongest || names->contains(trial.name);
         ++number) {
      trial.name = start + std::to_string(number);
      if (!names->contains(trial.name)) break;
    }
  }
  names->insert(trial.name);
  trials->push_back(std::move(trial));
}

/// All combinations, the last field's values one after the other. False when there are too many.
bool AllCombinations(const SweepDesc& desc, std::vector<std::vector<std::string>>* all) {
  *all = {{}};
  for (const SweepField& field : desc.field()) {
    std::vector<std::vector<std::string>> longer;
    if (all->size() * static_cast<size_t>(field.value_size()) > kMostTrials) return false;
    for (const auto& values : *all) {
      for (const std::string& value : field.value()) {
        longer.push_back(values);
        longer.back().push_back(value);
      }
    }
    *all = std::move(longer);
  }
  return true;
}

std::vector<std::vector<std::string>> DrawnCombinations(const SweepDesc& desc) {
  std::vector<std::vector<std::string>> drawn;
  std::set<std::vector<std::string>> known;
  Rng rng(desc.draw_seed());
  // Where there are few combinations most draws come again: some more than there are find all but surely.
  const int most_draws = 50 * desc.draws();
  for (int draw = 0; draw < most_draws && static_cast<int>(drawn.size()) < desc.draws(); ++draw) {
    std::vector<std::string> values;
    for (const SweepField& field : desc.field()) values.push_back(Drawn(field, &rng));
    if (known.insert(values).second) drawn.push_back(std::move(values));
  }
  return drawn;
}

}  // namespace

Sweep::Sweep() : desc(std::make_unique<SweepDesc>()) {}
Sweep::~Sweep() = default;
Sweep::Sweep(Sweep&&) noexcept = default;
Sweep& Sweep::operator=(Sweep&&) noexcept = default;

Status Sweep::Mistake(const std::string& path, const std::string& message) const {
  Diagnostics diagnostics = sources;
  diagnostics.Error(positions.Find(path), message);
  return diagnostics.ToStatus();
}

Result<Sweep> ReadSweepText(std::string origin, std::string text, const TrainerDesc& job) {
  Sweep sweep;
  Diagnostics diagnostics;
  const int source = diagnostics.AddSource(std::move(origin), std::move(text));
  sweep.positions.Set("", {source, 0, 0, 0});
  const bool is_intact = ParseText(source, "", sweep.desc.get(), &diagnostics, &sweep.positions);
  if (is_intact) {
    const KnownNames none;
    Checker check(none, sweep.positions, &diagnostics);
    CheckSweep(*sweep.desc, job, sweep.positions, &check);
  }
  MR_TRY(diagnostics.ToStatus());
  std::vector<std::vector<std::string>> combinations;
  if (sweep.desc->search() == SweepDesc::RANDOM) {
    combinations = DrawnCombinations(*sweep.desc);
  } else if (!AllCombinations(*sweep.desc, &combinations)) {
    diagnostics.Error(sweep.positions.Find("field"),
                      "the grid has more than " + std::to_string(kMostTrials) +
                          " combinations: leave values out, or draw some by search: RANDOM");
    return diagnostics.ToStatus();
  }
  std::vector<std::string> paths;
  for (const SweepField& field : sweep.desc->field()) paths.push_back(field.path());
  const std::vector<std::string> shorts = ShortPaths(paths);
  std::set<std::string> names;
  for (const auto& values : combinations) AddTrial(shorts, *sweep.desc, values, &names, &sweep.trials);
  sweep.sources = diagnostics.SourcesAlone();
  return sweep;
}

Result<Sweep> ReadSweep(const std::string& file, const TrainerDesc& job) {
  Result<std::string> text = ReadTextFile(file);
  if (!text.ok()) return std::move(text).status().Context(file);
  return ReadSweepText(file, std::move(text).value(), job);
}

std::vector<int> HalvingEpochs(int first, int factor, int epochs) {
  std::vector<int> ends;
  for (int64_t end = first; end < epochs; end *= factor) ends.push_back(static_cast<int>(end));
  ends.push_back(epochs);
  return ends;
}

}  // namespace millrace
