// SPDX-License-Identifier: Apache-2.0
// Parameters, logging and strings of libheddle.so.1, through its exports.
#include <gtest/gtest.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace heddle::test {
namespace {

const bool environment_is_set = [] {
  setenv("FI_LOG_LEVEL", "info", 1);
  setenv("FI_LOG_SUBSYS", "core,cq", 1);
  setenv("FI_LOG_INTERVAL", "1000000", 1);
  setenv("FI_HEDDLE_SEED", "42", 1);
  return true;
}();

fi_provider MakeProvider() {
  fi_provider provider = {};
  provider.name = "other";
  return provider;
}

struct Listed {
  fi_param_type type;
  std::string help;
  std::string value;
};

std::map<std::string, Listed> ListParameters() {
  fi_param* parameters = nullptr;
  int count = 0;
  EXPECT_EQ(fi_getparams(&parameters, &count), 0);
  std::map<std::string, Listed> listed;
  for (int index = 0; index < count; ++index) {
    const fi_param& each = parameters[index];
    listed[each.name] = {each.type, each.help_string,
                         each.value != nullptr ? each.value : ""};
  }
  fi_freeparams(parameters);
  return listed;
}

TEST(Parameters, AllSettingsAreListedWithTheirValue) {
  const auto listed = ListParameters();
  for (const char* name :
       {"DEVICE",       "IP",         "WIRE",        "PAYLOAD_MTU",
        "CAPTURE",      "TRACE",      "STATISTICS",  "LOSS",
        "DUPLICATE",    "REORDER",    "CORRUPT",     "BAD_FCS",
        "ECN",          "DELAY_NS",   "JITTER_NS",   "RATE_GBPS",
        "QUEUE_BYTES",  "ECN_BYTES",  "RX_LOSS",     "RX_ECN_BYTES",
        "NEIGHBOURS",   "SEED",       "RTO_NS",      "DEAD_NS",
        "BOUNCE_LIMIT", "SIM_PATH",   "JOB_ID",      "PDC_IDLE_NS",
        "VF_TOKEN",     "CWND_BYTES", "BASE_RTT_NS", "READ_AGAIN",
        "ADDRESSING"}) {
    EXPECT_EQ(listed.count(std::string("FI_HEDDLE_") + name), 1U) << name;
  }
  const Listed& seed = listed.at("FI_HEDDLE_SEED");
  EXPECT_EQ(seed.type, FI_PARAM_SIZE_T);
  EXPECT_EQ(seed.value, "42");
  EXPECT_NE(seed.help.find("Takes 0 to"), std::string::npos);
  EXPECT_NE(seed.help.find("(default: 1)"), std::string::npos);
  EXPECT_EQ(listed.count("FI_LOG_LEVEL"), 1U);
  EXPECT_EQ(listed.count("FI_PROVIDER"), 1U);
}

TEST(Parameters, DefinedOnesAreReadByType) {
  fi_provider provider = MakeProvider();
  ASSERT_EQ(fi_param_define(&provider, "number", FI_PARAM_INT, "A %s", "n"), 0);
  ASSERT_EQ(fi_param_define(&provider, "flag", FI_PARAM_BOOL, "A flag"), 0);
  ASSERT_EQ(fi_param_define(&provider, "text", FI_PARAM_STRING, "A text"), 0);
  ASSERT_EQ(fi_param_define(&provider, "size", FI_PARAM_SIZE_T, "A size"), 0);
  EXPECT_EQ(ListParameters().at("FI_OTHER_NUMBER").help, "other: A n");
  int number = 7;
  EXPECT_EQ(fi_param_get_int(&provider, "number", &number), -FI_ENODATA);
  EXPECT_EQ(number, 7);
  setenv("FI_OTHER_NUMBER", "-12", 1);
  EXPECT_EQ(fi_param_get_int(&provider, "number", &number), 0);
  EXPECT_EQ(number, -12);
  setenv("FI_OTHER_NUMBER", "12x", 1);
  EXPECT_EQ(fi_param_get_int(&provider, "number", &number), -FI_EINVAL);
  setenv("FI_OTHER_FLAG", "Yes", 1);
  EXPECT_EQ(fi_param_get_bool(&provider, "flag", &number), 0);
  EXPECT_EQ(number, 1);
  setenv("FI_OTHER_TEXT", "hello", 1);
  char* text = nullptr;
  EXPECT_EQ(fi_param_get_str(&provider, "text", &text), 0);
  EXPECT_STREQ(text, "hello");
  setenv("FI_OTHER_SIZE", "18446744073709551615", 1);
  size_t size = 0;
  EXPECT_EQ(fi_param_get_size_t(&provider, "size", &size), 0);
  EXPECT_EQ(size, SIZE_MAX);
}

TEST(Parameters, WhatIsNotDefinedIsRefused) {
  fi_provider provider = MakeProvider();
  int number = 0;
  EXPECT_EQ(fi_param_get_int(&provider, "never", &number), -FI_ENOENT);
  EXPECT_EQ(fi_param_get_int(&provider, nullptr, &number), -FI_EINVAL);
  EXPECT_EQ(fi_param_define(&provider, nullptr, FI_PARAM_INT, "x"), -FI_EINVAL);
  EXPECT_EQ(fi_getparams(nullptr, nullptr), -FI_EINVAL);
  fi_freeparams(nullptr);
}

TEST(Logging, LevelAndSubsystemFilter) {
  const fi_provider provider = MakeProvider();
  EXPECT_EQ(fi_log_enabled(&provider, FI_LOG_WARN, FI_LOG_CORE), 1);
  EXPECT_EQ(fi_log_enabled(&provider, FI_LOG_INFO, FI_LOG_CQ), 1);
  EXPECT_EQ(fi_log_enabled(&provider, FI_LOG_DEBUG, FI_LOG_CORE), 0);
  EXPECT_EQ(fi_log_enabled(&provider, FI_LOG_WARN, FI_LOG_MR), 0);
}

TEST(Logging, LineHasTheUsualForm) {
  const fi_provider provider = MakeProvider();
  testing::internal::CaptureStderr();
  fi_log(&provider, FI_LOG_INFO, FI_LOG_CQ, "Function", 12, "number %d\n", 5);
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.find("libfabric:"), 0U);
  const std::string tail = "::other:cq:Function():12<info> number 5\n";
  ASSERT_GE(line.size(), tail.size());
  EXPECT_EQ(line.substr(line.size() - tail.size()), tail);
}

TEST(Logging, RateLimitedLineIsReadyOncePerInterval) {
  const fi_provider provider = MakeProvider();
  uint64_t showtime = 0;
  EXPECT_EQ(fi_log_ready(&provider, FI_LOG_INFO, FI_LOG_CQ, &showtime), 1);
  EXPECT_EQ(fi_log_ready(&provider, FI_LOG_INFO, FI_LOG_CQ, &showtime), 0);
}

TEST(Strings, BufferOfTheCallerIsNotOverrun) {
  const uint64_t caps = FI_MSG | FI_SEND;
  char buffer[8];
  memset(buffer, 'x', sizeof(buffer));
  EXPECT_EQ(fi_tostr_r(buffer, 7, &caps, FI_TYPE_CAPS), buffer);
  EXPECT_STREQ(buffer, "FI_MSG");
  EXPECT_EQ(buffer[7], 'x');
  EXPECT_EQ(fi_tostr_r(buffer, 0, &caps, FI_TYPE_CAPS), nullptr);
  EXPECT_EQ(fi_tostr(nullptr, FI_TYPE_CAPS), nullptr);
}

TEST(Open, NothingIsOpenedByNameYet) {
  struct fid* fid = nullptr;
  EXPECT_EQ(
      fi_open(FI_VERSION(1, 17), "mr_cache", nullptr, 0, 0, &fid, nullptr),
      -FI_ENOSYS);
}

TEST(OpenFabric, OnlyOursIsThere) {
  char other[] = "tcp";
  char name[] = "heddle-default";
  fi_fabric_attr attr = {};
  fid_fabric* fabric = nullptr;
  EXPECT_EQ(fi_fabric(&attr, &fabric, nullptr), -FI_EINVAL);
  attr.name = name;
  attr.prov_name = other;
  EXPECT_EQ(fi_fabric(&attr, &fabric, nullptr), -FI_ENODEV);
  EXPECT_EQ(fi_fabric(nullptr, &fabric, nullptr), -FI_EINVAL);
}

}  // namespace
}  // namespace heddle::test
