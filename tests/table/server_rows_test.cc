#include "table/server_rows.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/decompress.h"
#include "core/file.h"
#include "core/gzip_member.h"
#include "model.pb.h"
#include "table/counted_table.h"
#include "table/table_factory.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kAdam[] = "optimizer { adam { lr: 0.1 beta1: 0.9 beta2: 0.999 } }";
constexpr char kSgd[] = "optimizer { sgd { lr: 0.5 } }";

std::unique_ptr<SparseTable> MakeTable(int dim, const std::string& optimizer) {
  TableDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: \"t\" dim: " + std::to_string(dim) + " init { uniform: 0.1 } " + optimizer, &desc));
  return TableFactory::Builtin().Create(desc, 3).value();
}

std::vector<float> Row(SparseTable& table, uint64_t key) {
  RowBatch batch;
  EXPECT_TRUE(table.Pull(std::vector<uint64_t>{key}, PullMode::kReadOnly, &batch).ok());
  return {batch.weights()[0], batch.weights()[0] + table.shape().dim};
}

void Push(SparseTable& table, uint64_t key, const std::vector<float>& gradient) {
  RowBatch batch;
  ASSERT_TRUE(table.Pull(std::vector<uint64_t>{key}, PullMode::kInsert, &batch).ok());
  ASSERT_TRUE(table.Push(batch, gradient, {0.1F, nullptr}).ok());
}

class ServerRowsTest : public testing::Test {
 protected:
  std::string folder() const { return folder_.path() + "/000"; }
  void Write(const std::string& name, const std::string& bytes) {
    fs::create_directories(folder());
    std::ofstream(folder() + "/" + name) << bytes;
  }
  std::string ErrorOf(int dim, const std::string& optimizer) {
    return LoadServerRows(folder(), MakeTable(dim, optimizer).get()).message();
  }

 private:
  TempDir folder_ = TempDir::Create("server_rows").value();
};

// What Paddle 2.6.2 wrote for dim 8 with Adam, of an id that was updated 6 times.
constexpr char kOfPaddle[] =
    "1 0 0 0.7 7 0 0.0213489 -0.022572 3.93445e-05 0.478297 0.993021 -0.0351587 0.0485359 0.0130785 -0.00591891 "
    "0.0732007 0.0780082 0.0322928 -0.00566288 -0.040336 0.0223864 -0.0213556 -0.0511282 -0.0319821 0.00663739 "
    "6.36574e-06 0.000101831 4.83747e-05 3.48927e-05 0.000180299 5.17095e-05 2.52364e-05 0.531441 0.994015\n";

TEST_F(ServerRowsTest, WhatPaddleWroteIsReadAndWritten) {
  Write("part-000-00000.gz", GzipMember(""));
  Write("part-000-00001.gz", GzipMember(kOfPaddle));
  const auto table = MakeTable(8, kAdam);
  ASSERT_TRUE(LoadServerRows(folder(), table.get()).ok());
  EXPECT_EQ(table->stats().rows, 1);
  EXPECT_THAT(Row(*table, 1),
              ElementsAre(FloatEq(0.0213489F), FloatEq(-0.0351587F), FloatEq(0.0485359F), FloatEq(0.0130785F),
                          FloatEq(-0.00591891F), FloatEq(0.0732007F), FloatEq(0.0780082F), FloatEq(0.0322928F)));
  const std::string written = folder() + "_again";
  ASSERT_TRUE(SaveServerRows(*table, written).ok());
  EXPECT_EQ(ServerTableFiles(written).value().size(), kServerShards);
  const auto again = MakeTable(8, kAdam);
  ASSERT_TRUE(LoadServerRows(written, again.get()).ok());
  // State, too: the next update is the same.
  for (SparseTable* each : {table.get(), again.get()}) Push(*each, 1, std::vector<float>(8, 0.25F));
  EXPECT_EQ(Row(*table, 1), Row(*again, 1));
}

// What Paddle 2.6.2 wrote for CtrCommonAccessor with embedx_dim 8: with embedx, and of a row that is not worth it yet.
constexpr char kCountedRow[] =
    "0 0 0 10.3 22 9 -0.0102707 0.0284253 0.161978 0.0357957 -0.127609 0.0289271 -0.023777 -0.066856 -0.0479025 "
    "0.176615 -0.0470118 -0.00865186 0.0253143 -0.050032 0.0411246 -0.0237768 0.0228477 -0.0442118 0.000143219 "
    "1.12385e-05 4.415e-05 0.000138283 0.000122176 7.75265e-05 2.89106e-05 0.000110045 0.729 0.997003\n";
constexpr char kWithoutEmbedx[] = "60 0 3 6.4 19 5 0.0205082 0.0637605\n";

std::unique_ptr<SparseTable> CountedByServers(const std::string& accessor = "") {
  TableDesc desc;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "name: \"t\" accessor { embedx_dim: 8 embedx_threshold: 9 embed_sgd_param { name: \"SparseAdaGradSGDRule\" } "
      "embedx_sgd_param { name: \"SparseAdamSGDRule\" } " +
          accessor + " }",
      &desc));
  return TableFactory::Builtin().Create(desc, 3).value();
}

std::string SavedWhole(const SparseTable& table) {
  std::ostringstream out;
  EXPECT_TRUE(table.Save(kAllShards, TableContent::kAll, out).ok());
  return std::move(out).str();
}

TEST_F(ServerRowsTest, RowsThatCountAreReadWholeAndWrittenBackEqual) {
  Write("part-000-00000.gz", GzipMember(kCountedRow));
  Write("part-000-00060.gz", GzipMember(kWithoutEmbedx));
  for (const char* accessor : {"", "accessor_class: \"SparseAccessor\""}) {
    const auto table = CountedByServers(accessor);
    ASSERT_TRUE(LoadServerRows(folder(), table.get()).ok());
    const CountedRows counted = AsCounted(table.get())->Count().value();
    EXPECT_EQ(counted.rows, 2);
    EXPECT_EQ(counted.with_embedx, 1);
    EXPECT_EQ(counted.shows, 41);
    EXPECT_EQ(counted.clicks, 14);
    const std::string written = folder() + "_again";
    ASSERT_TRUE(SaveServerRows(*table, written).ok());
    std::string text;
    for (const char* part : {"00000", "00060"}) {
      const std::string path = written + "/part-000-" + part + ".gz";
      const auto file = Decompress(OpenFile(path).value(), path);
      std::string bytes(4096, ' ');
      bytes.resize(file->Read(bytes, {}).value());
      text += bytes;
    }
    EXPECT_EQ(text, std::string(kCountedRow) + kWithoutEmbedx);
    const auto again = CountedByServers(accessor);
    ASSERT_TRUE(LoadServerRows(written, again.get()).ok());
    EXPECT_EQ(SavedWhole(*again), SavedWhole(*table));
  }
}

// What Paddle 2.6.2 wrote for dim 1, whose rows have a state of no other weights: powers, or the mean of nothing.
TEST_F(ServerRowsTest, RowsOfOneWeightAreReadWithTheStateOfNoneAndWrittenWithIt) {
  const std::string adam = "2 0 0 0.1 1 0 0.0499996 -0.00450034 2.02528e-06 0.81 0.998001 0.9 0.999\n";
  const std::string adagrad = "2 0 0 0.1 1 0 0.00225017 0.0020253 -nan\n";
  const auto file_of = [](const std::string& folder) {
    const std::string path = folder + "/part-000-00002.gz";
    const auto file = Decompress(OpenFile(path).value(), path);
    std::string bytes(4096, ' ');
    bytes.resize(file->Read(bytes, {}).value());
    return bytes;
  };
  const auto counted = [](const std::string& rule) {
    TableDesc desc;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "name: \"t\" accessor { accessor_class: \"SparseAccessor\" embedx_dim: 0 embedx_threshold: 0 embed_sgd_param { "
        "name: \"" +
            rule + "\" } embedx_sgd_param { name: \"" + rule + "\" } }",
        &desc));
    return TableFactory::Builtin().Create(desc, 3).value();
  };
  Write("part-000-00002", adam);
  const auto with_powers = counted("SparseAdamSGDRule");
  ASSERT_TRUE(LoadServerRows(folder(), with_powers.get()).ok());
  ASSERT_TRUE(SaveServerRows(*with_powers, folder() + "_adam").ok());
  EXPECT_EQ(file_of(folder() + "_adam"), adam);
  const auto plain = MakeTable(1, kAdam);
  ASSERT_TRUE(LoadServerRows(folder(), plain.get()).ok());
  EXPECT_THAT(Row(*plain, 2), ElementsAre(FloatEq(0.0499996F)));
  ASSERT_TRUE(SaveServerRows(*plain, folder() + "_plain").ok());
  EXPECT_THAT(file_of(folder() + "_plain"), testing::MatchesRegex("2 0 0 0 0 0( [^ ]+){7}\n"));

  Write("part-000-00002", adagrad);
  const auto with_sum = counted("SparseAdaGradSGDRule");
  ASSERT_TRUE(LoadServerRows(folder(), with_sum.get()).ok());
  ASSERT_TRUE(SaveServerRows(*with_sum, folder() + "_adagrad").ok());
  EXPECT_EQ(file_of(folder() + "_adagrad"), "2 0 0 0.1 1 0 0.00225017 0.0020253 0\n");
  const auto sums = MakeTable(1, "optimizer { adagrad { lr: 0.1 } }");
  ASSERT_TRUE(LoadServerRows(folder(), sums.get()).ok());
  EXPECT_THAT(Row(*sums, 2), ElementsAre(FloatEq(0.00225017F)));
  Write("part-000-00002", "2 0 0 0.1 1 0 0.00225017 -nan 0\n");
  EXPECT_THAT(LoadServerRows(folder(), with_sum.get()).message(), HasSubstr("\"-nan\" is no finite number"));
}

TEST_F(ServerRowsTest, ARowOfAnotherAccessorIsToldWithItsPlace) {
  Write("part-000-00000", std::string(kWithoutEmbedx) + "61 0 3 6.4 19 5 0.0205082 0.0637605 0.1\n");
  EXPECT_THAT(LoadServerRows(folder(), CountedByServers().get()).message(),
              HasSubstr("part-000-00000:2: the row of id 61 has 8 numbers behind it, not the 7 or, with embedx, 33 "));
  Write("part-000-00000", "61\n");
  EXPECT_THAT(LoadServerRows(folder(), CountedByServers().get()).message(), HasSubstr("has 0 numbers"));
}

TEST_F(ServerRowsTest, ManyRowsComeBackWhole) {
  for (const int dim : {1, 2, 5}) {
    for (const char* rule : {kSgd, kAdam}) {
      const auto table = MakeTable(dim, rule);
      for (uint64_t key = 0; key < 3000; ++key) {
        Push(*table, key * 0x9E3779B97F4A7C15ULL, std::vector<float>(static_cast<size_t>(dim), 0.01F));
      }
      const std::string place = folder() + "_" + std::to_string(dim) + rule[12];
      ASSERT_TRUE(SaveServerRows(*table, place).ok());
      const auto again = MakeTable(dim, rule);
      const Status loaded = LoadServerRows(place, again.get());
      ASSERT_TRUE(loaded.ok()) << loaded.message();
      EXPECT_EQ(again->stats().rows, 3000);
      for (uint64_t key = 0; key < 3000; key += 7) {
        EXPECT_EQ(Row(*again, key * 0x9E3779B97F4A7C15ULL), Row(*table, key * 0x9E3779B97F4A7C15ULL));
      }
    }
  }
}

TEST_F(ServerRowsTest, AnAdagradTableTakesWeightsOfBothRules) {
  const std::string adagrad = "optimizer { adagrad { lr: 0.1 } }";
  Write("part-000-00000", "5 0 0 0 1 0 0.5 9 0.25 0.125 9\n");    // a sum a row
  Write("part-001-00000", "6 0 0 0 1 0 0.5 9 0.75 0.125 9 9\n");  // a sum a weight
  const auto table = MakeTable(3, adagrad);
  ASSERT_TRUE(LoadServerRows(folder(), table.get()).ok());
  EXPECT_THAT(Row(*table, 5), ElementsAre(0.5F, 0.25F, 0.125F));
  EXPECT_THAT(Row(*table, 6), ElementsAre(0.5F, 0.75F, 0.125F));
  EXPECT_THAT(SaveServerRows(*table, folder() + "_x").message(), HasSubstr("adagrad counts other sums"));
}

TEST_F(ServerRowsTest, TextOfAnyFormIsTakenAndWhatIsNoneIsToldWithItsPlace) {
  Write("part-000-00000", "5 0 0 0 1 0 0.5\t0.25 \r\n18446744073709551615 0 0 0 1 0 1e-3 -2");
  const auto table = MakeTable(2, kSgd);
  ASSERT_TRUE(LoadServerRows(folder(), table.get()).ok());
  EXPECT_THAT(Row(*table, ~uint64_t{0}), ElementsAre(0.001F, -2.0F));

  Write("part-000-00000", "5 0 0 0 1 0 0.5 0.25\n6 0 0 0 1 0 0.5\n");
  EXPECT_THAT(ErrorOf(2, kSgd), HasSubstr("part-000-00000:2: the row of id 6 has 6 numbers behind it, not the 7"));
  Write("part-000-00000", "5 0 0 0 1 0 0.5 nan\n");
  EXPECT_THAT(ErrorOf(2, kSgd), HasSubstr("part-000-00000:1: \"nan\" is no finite number"));
  Write("part-000-00000", "-5 0 0 0 1 0 0.5 1\n");
  EXPECT_THAT(ErrorOf(2, kSgd), HasSubstr("\"-5\" is no id"));
  Write("part-000-00000", "\n");
  EXPECT_THAT(ErrorOf(2, kSgd), HasSubstr("part-000-00000:1: "));
  Write("part-000-00000", "5 0 0 0 1 0 1 1\n");
  Write("part-000-00001", "5 0 0 0 1 0 1 1\n");
  EXPECT_THAT(ErrorOf(2, kSgd), HasSubstr("id 5 has two rows"));
  Write("part-000-00001", GzipMember("5 0 0 0 1 0 1 1\n").substr(0, 20));
  EXPECT_THAT(ErrorOf(2, kSgd), HasSubstr("unexpected end"));
  EXPECT_THAT(ErrorOf(2, "optimizer { ftrl { } }"), HasSubstr("Paddle's servers have no rule ftrl"));
}

TEST_F(ServerRowsTest, AFolderWithoutPartsIsNotFound) {
  EXPECT_FALSE(LoadServerRows(folder(), MakeTable(2, kSgd).get()).ok());
  Write("other", "");
  EXPECT_THAT(ErrorOf(2, kSgd), HasSubstr("has no file part-SERVER-SHARD"));
  Write("part-000-00000", "");
  EXPECT_EQ(ErrorOf(2, kSgd), "");
}

TEST_F(ServerRowsTest, DenseValuesAreTheFirstOfTheirLines) {
  Write("part-000.gz", GzipMember("1 2 3\n4 5 6\n"));
  Write("part-001.gz", GzipMember("7\n"));
  EXPECT_THAT(ReadServerDense(folder()).value(), ElementsAre(1.0F, 4.0F, 7.0F));
  Write("part-001.gz", "\n");
  EXPECT_THAT(ReadServerDense(folder()).status().message(), HasSubstr("part-001.gz:1: no value"));
}

}  // namespace
}  // namespace millrace
