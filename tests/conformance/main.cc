// SPDX-License-Identifier: Apache-2.0
// Judges a provider by the requirements of the manual pages of libfabric.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/registry.h"
#include "tests/conformance/report.h"
#include "tests/conformance/requirements.h"
#include "tests/conformance/runner.h"

namespace heddle::conformance {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUse = 2;

struct BadUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::optional<std::string> required;
  std::string test;
  std::string json;
  bool list = false;
};

// `part` of `text` as the number of a requirement.
int ParseNumber(std::string_view part, const std::string& text) {
  int number = 0;
  const char* const end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, number);
  if (error != std::errc() || stop != end || number < 1 ||
      number > kRequirements) {
    throw BadUse("--require " + text + ": requirements are 1 to " +
                 std::to_string(kRequirements));
  }
  return number;
}

// The numbers of N[,N-M].
std::vector<int> ParseRequired(const std::string& text) {
  std::set<int> numbers;
  for (size_t start = 0; start <= text.size();) {
    const size_t comma = std::min(text.find(',', start), text.size());
    const std::string_view part(text.data() + start, comma - start);
    const size_t dash = part.find('-');
    const int first = ParseNumber(part.substr(0, dash), text);
    const int last = dash == std::string_view::npos
                         ? first
                         : ParseNumber(part.substr(dash + 1), text);
    if (last < first) {
      throw BadUse("--require " + text + ": an empty range");
    }
    for (int number = first; number <= last; ++number) {
      numbers.insert(number);
    }
    start = comma + 1;
  }
  return {numbers.begin(), numbers.end()};
}

std::vector<int> AllRequirements() {
  std::vector<int> all(static_cast<size_t>(kRequirements));
  std::iota(all.begin(), all.end(), 1);
  return all;
}

// Names of the providers that have something to offer.
std::string ListProviders() {
  fi_info* found = nullptr;
  std::set<std::string> names;
  if (fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &found) ==
      0) {
    for (const fi_info* info = found; info != nullptr; info = info->next) {
      names.insert(info->fabric_attr->prov_name);
    }
    fi_freeinfo(found);
  }
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

// The same by a child process, since this one never calls the library, with
// FI_PROVIDER set to `filter` or, if that is empty, unset.
std::string ListProvidersInChild(const std::string& filter) {
  int ends[2];
  if (pipe(ends) != 0) {
    throw std::runtime_error("no pipe");
  }
  (void)std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    (void)(filter.empty() ? unsetenv("FI_PROVIDER")
                          : setenv("FI_PROVIDER", filter.c_str(), 1));
    const std::string text = ListProviders();
    const bool written = write(ends[1], text.data(), text.size()) ==
                         static_cast<ssize_t>(text.size());
    std::_Exit(written ? 0 : 1);
  }
  (void)close(ends[1]);
  std::string text;
  char part[512];
  ssize_t bytes = 0;
  while ((bytes = read(ends[0], part, sizeof(part))) > 0) {
    text.append(part, static_cast<size_t>(bytes));
  }
  (void)close(ends[0]);
  (void)waitpid(child, nullptr, 0);
  return text;
}

bool Contains(const std::string& list, const std::string& name) {
  return (" " + list + " ").find(" " + name + " ") != std::string::npos;
}

void CheckProvider(const std::string& name) {
  if (!name.empty() && Contains(ListProvidersInChild(name), name)) {
    return;
  }
  throw BadUse(
      (name.empty() ? "no --provider" : "--provider " + name + ": none such") +
      "; there are: " + ListProvidersInChild(""));
}

// The requirements that the test shows.
std::vector<int> NumbersOf(const std::string& test) {
  for (const RegisteredTest& each : RegisteredTests()) {
    if (each.name == test) {
      return each.numbers;
    }
  }
  throw BadUse("--test " + test + ": none such; --list names them");
}

std::map<std::string, Outcome> RunTests(const std::vector<int>& chosen,
                                        const std::string& only) {
  const std::set<int> numbers(chosen.begin(), chosen.end());
  std::map<std::string, Outcome> outcomes;
  for (const RegisteredTest& test : RegisteredTests()) {
    if ((only.empty() || only == test.name) &&
        std::any_of(test.numbers.begin(), test.numbers.end(),
                    [&](int number) { return numbers.contains(number); })) {
      outcomes.emplace(test.name, RunTest(test.name));
    }
  }
  return outcomes;
}

int Run(const Options& options) {
  if (!options.test.empty() && options.required.has_value()) {
    throw BadUse("--test and --require exclude each other");
  }
  const std::vector<int> chosen =
      !options.test.empty()          ? NumbersOf(options.test)
      : options.required.has_value() ? ParseRequired(*options.required)
                                     : AllRequirements();
  if (options.list) {
    PrintList(MakeRows(chosen, {}));
    return 0;
  }
  const Settings& settings = CurrentSettings();
  CheckProvider(settings.provider);
  if (!options.json.empty() && !WriteJson(options.json, {})) {
    throw BadUse("--json " + options.json + ": cannot be written");
  }
  (void)setenv("FI_PROVIDER", settings.provider.c_str(), 1);
  std::printf("seed %u\n", static_cast<unsigned>(settings.seed));
  const std::vector<Row> rows =
      MakeRows(chosen, RunTests(chosen, options.test));
  PrintTable(rows);
  if (!options.json.empty() && !WriteJson(options.json, rows)) {
    throw std::runtime_error("--json " + options.json + ": cannot be written");
  }
  return AnyFailure(rows) ? kFailed : 0;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Judges a libfabric provider by the requirements of the manual pages.");
  Options options;
  Settings& settings = CurrentSettings();
  double limit_s = 60;
  double wait_s = 5;
  app.add_option("--provider", settings.provider,
                 "Name as fi_info prints it; sets FI_PROVIDER")
      ->envname("FI_PROVIDER");
  app.add_option("--require", options.required,
                 "Numbers of requirements: N[,N-M]");
  app.add_option("--test", options.test, "One test: Suite.Name");
  app.add_flag("--list", options.list,
               "Print the requirements and their tests");
  app.add_option("--json", options.json, "Write the verdicts to this file");
  app.add_option("--limit-s", limit_s, "Limit of a test in seconds")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--wait-s", wait_s,
                 "Limit of a wait in a test in seconds of processor time")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "Seed of random tests")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    throw BadUse(error.what());
  }
  const auto duration = [](double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  };
  settings.limit = duration(limit_s);
  settings.wait = duration(wait_s);
  int none = 1;
  ::testing::InitGoogleTest(&none, argv);
  return Run(options);
}

}  // namespace
}  // namespace heddle::conformance

int main(int argc, char** argv) try {
  return heddle::conformance::Main(argc, argv);
} catch (const std::exception& error) {
  (void)std::fprintf(stderr, "heddle-conformance: %s\n", error.what());
  return heddle::conformance::kBadUse;
} catch (...) {
  return heddle::conformance::kBadUse;
}
