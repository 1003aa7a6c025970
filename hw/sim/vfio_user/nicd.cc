// SPDX-License-Identifier: Apache-2.0
// heddle-nicd: serves simulated NIC functions to virtual machines.
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver/sim_factory.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/device/settings.h"
#include "hw/sim/vfio_user/function_server.h"
#include "hw/sim/vfio_user/function_switch.h"

namespace heddle::sim::vfio_user {
namespace {

struct Arguments {
  std::vector<std::string> settings;  // NAME=VALUE.
  std::vector<std::string> sockets;
  pci::ConfigOptions config;
  std::string device{contract::kSoftKind.name};
  bool all_on = false;
};

int Complain(const std::string& what) {
  std::fprintf(stderr, "heddle-nicd: %s\n", what.c_str());
  return EXIT_FAILURE;
}

// The settings split for the simulator.
std::vector<std::pair<std::string, std::string>> Split(
    const std::vector<std::string>& settings) {
  std::vector<std::pair<std::string, std::string>> split;
  split.reserve(settings.size());
  for (const std::string& setting : settings) {
    const size_t at = setting.find('=');
    split.emplace_back(setting.substr(0, at), setting.substr(at + 1));
  }
  return split;
}

void Describe(CLI::App& app, Arguments* arguments) {
  app.description(
      "Serves the functions of a simulated NIC to virtual machines over "
      "vfio-user, each on its UNIX socket: the first is the physical function, "
      "the others its virtual ones, which exist while SR-IOV control of the "
      "first enables them. Prints a line when all are ready; ends at SIGTERM "
      "or SIGINT.");
  app.footer(
      "qemu-system-x86_64 ... -object "
      "memory-backend-memfd,id=m,size=1G,share=on -machine memory-backend=m "
      "-device "
      "'{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":"
      "\"SOCKET\"}}'\nEnd it by SIGTERM: if it is killed while a guest waits "
      "for an answer, QEMU 11 aborts. See docs/vfio.md.");
  app.add_option("-s,--set", arguments->settings,
                 "Setting of the devices: address, wire, loss, ... (as heddle "
                 "params lists them for soft and rtl, in lower case)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.find('=') == std::string::npos
                       ? "'" + text + "' is not NAME=VALUE"
                       : std::string();
          },
          ""));
  app.add_option("-d,--device", arguments->device, "Kind of the devices")
      ->check(CLI::IsMember({"soft", "rtl"}))
      ->capture_default_str();
  app.add_flag("--all-on", arguments->all_on,
               "Enable the virtual functions from the start (QEMU hides SR-IOV "
               "from its guests)");
  app.add_option("sockets", arguments->sockets, "Paths of the sockets")
      ->type_name("SOCKET")
      ->required();
}

const contract::DeviceKind& KindOf(const Arguments& arguments) {
  return *contract::FindKind(contract::kDeviceKinds, arguments.device);
}

struct Functions {
  // Switches of the virtual ones; outlive the physical one, which sets them.
  std::vector<std::unique_ptr<FunctionSwitch>> switches;
  std::vector<std::unique_ptr<FunctionServer>> servers;
};

// All of them, or a complaint.
Functions Open(const Arguments& arguments, const device::DeviceOptions& options,
               std::string* complaint) {
  Functions functions;
  for (size_t i = 1; i < arguments.sockets.size(); ++i) {
    functions.switches.push_back(
        std::make_unique<FunctionSwitch>(arguments.all_on));
  }
  for (const std::string& socket : arguments.sockets) {
    const bool physical = functions.servers.empty();
    pci::ConfigOptions config = arguments.config;
    config.virtual_functions =
        physical ? static_cast<uint16_t>(functions.switches.size()) : 0;
    config.virtual_device = contract::kPciVirtualDevice;
    if (!physical) {
      config.device = contract::kPciVirtualDevice;
    }
    auto function =
        NicFunction::Open(options, config, complaint, KindOf(arguments));
    if (!function.ok()) {
      complaint->insert(0, socket + ": ");
      return functions;
    }
    if (physical && !arguments.all_on) {
      std::vector<FunctionSwitch*> all;
      for (const auto& power : functions.switches) {
        all.push_back(power.get());
      }
      function.value()->OnVirtualFunctions([all](uint16_t active) {
        for (size_t i = 0; i < all.size(); ++i) {
          all[i]->Set(i < active);
        }
      });
    }
    auto server =
        FunctionServer::Open(socket, std::move(function.value()), complaint);
    if (!server.ok()) {
      return functions;
    }
    functions.servers.push_back(std::move(server.value()));
  }
  complaint->clear();
  return functions;
}

int Serve(const Arguments& arguments) {
  std::vector<HeddleSimOption> options;
  const auto named = Split(arguments.settings);
  options.reserve(named.size());
  for (const auto& [name, value] : named) {
    options.push_back({.name = name.c_str(), .value = value.c_str()});
  }
  std::string message;
  const auto settings =
      device::ParseSettings(KindOf(arguments), options, &message);
  if (!settings.ok()) {
    return Complain(message);
  }
  // One that ends the process is taken here, not by any thread.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);

  std::string complaint;
  Functions functions = Open(arguments, settings.value(), &complaint);
  auto& servers = functions.servers;
  if (!complaint.empty()) {
    return Complain(complaint);
  }
  const base::OwnedFd stop(eventfd(0, EFD_CLOEXEC));
  std::vector<std::thread> threads;
  threads.reserve(servers.size());
  for (size_t i = 0; i < servers.size(); ++i) {
    FunctionSwitch* const power =
        i == 0 ? nullptr : functions.switches[i - 1].get();
    threads.emplace_back(
        [&servers, &stop, power, i] { servers[i]->Run(stop.get(), power); });
  }
  std::printf("heddle-nicd: serving %zu function%s\n", servers.size(),
              servers.size() == 1 ? "" : "s");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ending, &signal);
  constexpr uint64_t kOne = 1;
  [[maybe_unused]] const ssize_t told = write(stop.get(), &kOne, sizeof(kOne));
  for (std::thread& thread : threads) {
    thread.join();
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace heddle::sim::vfio_user

int main(int count, char** words) {
  namespace contract = heddle::contract;
  using heddle::sim::vfio_user::Complain;
  try {
    CLI::App app;
    heddle::sim::vfio_user::Arguments arguments;
    arguments.config.vendor = contract::kPciVendor;
    arguments.config.device = contract::kPciDevice;
    heddle::sim::vfio_user::Describe(app, &arguments);
    try {
      app.parse(count, words);
    } catch (const CLI::ParseError& error) {
      constexpr int kBadUsage = 2;
      return app.exit(error) == 0 ? EXIT_SUCCESS : kBadUsage;
    }
    return heddle::sim::vfio_user::Serve(arguments);
  } catch (const std::exception& exception) {
    return Complain(exception.what());
  }
}
