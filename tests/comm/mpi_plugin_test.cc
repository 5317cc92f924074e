#include "comm/mpi_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "paths.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSigns[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"};

TEST(MpiPlugin, ALauncherIsSeenByItsEnvironment) {
  for (const char* name : kSigns) unsetenv(name);
  EXPECT_FALSE(StartedByLauncher());
  for (const char* name : kSigns) {
    setenv(name, "0", 1);
    EXPECT_TRUE(StartedByLauncher()) << name;
    unsetenv(name);
  }
}

TEST(MpiPlugin, SigcontOfMpirunBeginsTheEndOfARankWhereItDoesNotLetASuspendedOneGoOn) {
  constexpr const char* kForwards = "OMPI_MCA_orte_forward_job_control";
  constexpr const char* kPause = "OMPI_MCA_odls_base_sigkill_timeout";
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", kForwards, kPause}) unsetenv(name);
  setenv("PMIX_RANK", "0", 1);  // another launcher's
  EXPECT_EQ(TimeBehindSigcont(), std::nullopt);
  unsetenv("PMIX_RANK");
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_EQ(TimeBehindSigcont(), std::chrono::seconds(2));
  setenv(kPause, "30", 1);
  EXPECT_EQ(TimeBehindSigcont(), std::chrono::seconds(60));
  setenv(kForwards, "0", 1);
  EXPECT_EQ(TimeBehindSigcont(), std::chrono::seconds(60));
  setenv(kForwards, "1", 1);
  EXPECT_EQ(TimeBehindSigcont(), std::nullopt);
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", kForwards, kPause}) unsetenv(name);
}

TEST(MpiPlugin, OneOfAnotherVersionIsRefused) {
  const auto opened = OpenMpiPlugin(TestPluginDir() + "/libother_mpi.so");
  EXPECT_EQ(opened.status().code(), StatusCode::kInvalidConfig);
  EXPECT_THAT(opened.status().message(),
              HasSubstr("belongs to another Millrace: it is of \"Millrace 0.0.1, compiler 1\""));
}

TEST(MpiPlugin, WhatIsNotThereOrNoLibraryIsRefused) {
  EXPECT_EQ(OpenMpiPlugin("/nowhere/libmillrace_mpi.so").status().code(), StatusCode::kNotFound);
  const Status no_library = OpenMpiPlugin(SourceDir() + "/README.md").status();
  EXPECT_EQ(no_library.code(), StatusCode::kNotFound);
  EXPECT_THAT(no_library.message(), HasSubstr("install openmpi-bin"));
}

}  // namespace
}  // namespace millrace
