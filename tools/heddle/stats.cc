// SPDX-License-Identifier: Apache-2.0
// heddle stats: counters of a device, or of a program that has one.
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_heddle.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "hw/contract/gen/heddle_text.h"
#include "tools/heddle/command.h"

namespace heddle::tool {
namespace {

struct Statistic {
  std::string name;
  uint64_t value;
  std::string help;
};
using Statistics = std::vector<Statistic>;

// ----------------------------------------------------- of a device opened here

struct CloseFid {
  void operator()(fid_fabric* fabric) const { fi_close(&fabric->fid); }
  void operator()(fid_domain* domain) const { fi_close(&domain->fid); }
};

void Require(int status, const std::string& what) {
  if (status != 0) {
    throw CommandError(what + ": " + fi_strerror(-status) +
                       "; run `heddle info` for details");
  }
}

Statistics ReadDevice() {
  fi_info* found = nullptr;
  Require(fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), nullptr,
                     nullptr, 0, nullptr, &found),
          "no device is offered");
  const std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info(found,
                                                              &fi_freeinfo);
  const std::string name = info->domain_attr->name;
  fid_fabric* fabric = nullptr;
  Require(fi_fabric(info->fabric_attr, &fabric, nullptr),
          "fabric " + std::string(info->fabric_attr->name));
  const std::unique_ptr<fid_fabric, CloseFid> fabric_owner(fabric);
  fid_domain* domain = nullptr;
  Require(fi_domain(fabric, info.get(), &domain, nullptr), "device " + name);
  const std::unique_ptr<fid_domain, CloseFid> domain_owner(domain);
  void* table = nullptr;
  Require(fi_open_ops(&domain->fid, FI_HEDDLE_STATISTICS, 0, &table, nullptr),
          "statistics of device " + name);
  auto* const ops = static_cast<fi_heddle_ops_statistics*>(table);
  std::vector<uint64_t> values(ops->count(&domain->fid));
  const ssize_t read = ops->read(&domain->fid, values.data(), values.size());
  Require(read < 0 ? static_cast<int>(read) : 0,
          "statistics of device " + name);
  Statistics statistics;
  for (size_t i = 0; i < static_cast<size_t>(read); ++i) {
    statistics.push_back(
        {ops->name(&domain->fid, i), values[i], ops->help(&domain->fid, i)});
  }
  return statistics;
}

// ---------------------------------------------- of programs, from what they
// left

std::string HelpOf(const std::string& name) {
  for (const contract::text::Value& value : contract::text::kStatisticValues) {
    if (name == value.name) {
      return value.doc;
    }
  }
  return {};  // A count of the simulation.
}

// Lines of `name value`; those of several devices are added up.
Statistics Parse(std::istream& lines, const std::string& source) {
  Statistics statistics;
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    Statistic statistic;
    if (!(words >> statistic.name >> statistic.value) ||
        !(words >> std::ws).eof()) {
      throw CommandError(source + ": line " + std::to_string(number) +
                         " is not `name value`; specify a file written "
                         "with FI_HEDDLE_STATISTICS");
    }
    auto same = statistics.begin();
    while (same != statistics.end() && same->name != statistic.name) {
      ++same;
    }
    if (same != statistics.end()) {
      same->value += statistic.value;
    } else {
      statistic.help = HelpOf(statistic.name);
      statistics.push_back(std::move(statistic));
    }
  }
  return statistics;
}

Statistics ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw CommandError(path + ": cannot be read (" + std::strerror(errno) +
                       "); give a file that FI_HEDDLE_STATISTICS named");
  }
  Statistics statistics = Parse(file, path);
  if (statistics.empty()) {
    throw CommandError(path +
                       ": is empty; a program writes it when it closes "
                       "its device");
  }
  return statistics;
}

// Exit code of a shell for a program that cannot be run.
constexpr int kNotRun = 127;

// Exit code of the program, as a shell has it.
int Run(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execvp(arguments[0], arguments.data());
    std::fprintf(stderr, "heddle: %s: cannot be run (%s); specify a program\n",
                 arguments[0], std::strerror(errno));
    _exit(kNotRun);
  }
  int status = 0;
  pid_t ended = -1;
  while (child > 0 && (ended = waitpid(child, &status, 0)) < 0 &&
         errno == EINTR) {
  }
  if (child < 0 || ended < 0) {
    throw CommandError(command[0] + ": cannot be run (" + std::strerror(errno) +
                       "); free some memory");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Runs the program; its devices, when closed, write to memory of ours.
Statistics ReadProgram(const std::vector<std::string>& command, int* status) {
  const int memory = memfd_create("heddle-stats", 0);
  if (memory < 0) {
    throw CommandError(std::string("memory for statistics: ") +
                       std::strerror(errno) + "; free some memory");
  }
  // Not the number alone: the program may close or reuse it.
  const std::string path =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(memory);
  setenv("FI_HEDDLE_STATISTICS", path.c_str(), 1);
  *status = Run(command);
  std::ifstream lines(path);
  Statistics statistics = Parse(lines, command[0]);
  close(memory);
  return statistics;
}

// ----------------------------------------------------------------------- print

void Print(const Statistics& statistics, bool all) {
  for (const Statistic& statistic : statistics) {
    if (all || statistic.value != 0) {
      std::printf("%-22s %12" PRIu64 "  %s\n", statistic.name.c_str(),
                  statistic.value, statistic.help.c_str());
    }
  }
}

void PrintJson(const Statistics& statistics) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const Statistic& statistic : statistics) {
    values[statistic.name] = statistic.value;
  }
  const nlohmann::ordered_json out = {{"statistics", values}};
  std::printf("%s\n", out.dump(2).c_str());
}

}  // namespace

int ShowStats(const StatsOptions& options) {
  int status = kOk;
  Statistics statistics;
  if (!options.command.empty()) {
    statistics = ReadProgram(options.command, &status);
    if (status == kNotRun && statistics.empty()) {
      return status;  // The warning was printed.
    }
    if (statistics.empty()) {
      std::fprintf(stderr,
                   "heddle: %s: closed no Heddle device; check that it "
                   "uses this provider, and that it closes its domain\n",
                   options.command[0].c_str());
      return status != 0 ? status : kFailed;
    }
  } else {
    statistics = options.file.empty() ? ReadDevice() : ReadFile(options.file);
  }
  if (options.json) {
    PrintJson(statistics);
  } else {
    Print(statistics, options.all);
  }
  return status;
}

}  // namespace heddle::tool
