// SPDX-License-Identifier: Apache-2.0
#include "host/lib/ofi/statistics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include "driver/device/device_info.h"
#include "host/lib/core/log.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::ofi {
namespace {

using contract::Statistic;

// Name of a counter as in the contract; null for a number not in use.
// NOLINTNEXTLINE(readability-function-size): one case per counter.
const char* Name(Statistic statistic) {
  switch (statistic) {
    case Statistic::kTxFrames:
      return "tx_frames";
    case Statistic::kTxBytes:
      return "tx_bytes";
    case Statistic::kRxFrames:
      return "rx_frames";
    case Statistic::kRxBytes:
      return "rx_bytes";
    case Statistic::kTxMessages:
      return "tx_messages";
    case Statistic::kRxMessages:
      return "rx_messages";
    case Statistic::kTxRequests:
      return "tx_requests";
    case Statistic::kTxRetransmissions:
      return "tx_retransmissions";
    case Statistic::kTxAcks:
      return "tx_acks";
    case Statistic::kTxNacks:
      return "tx_nacks";
    case Statistic::kRxAcks:
      return "rx_acks";
    case Statistic::kRxNacks:
      return "rx_nacks";
    case Statistic::kRxRequests:
      return "rx_requests";
    case Statistic::kRxDuplicates:
      return "rx_duplicates";
    case Statistic::kRxOutOfOrder:
      return "rx_out_of_order";
    case Statistic::kRxRefused:
      return "rx_refused";
    case Statistic::kTimeouts:
      return "timeouts";
    case Statistic::kDeadPeers:
      return "dead_peers";
    case Statistic::kDropMacError:
      return "drop_mac_error";
    case Statistic::kDropOverflow:
      return "drop_overflow";
    case Statistic::kDropTruncated:
      return "drop_truncated";
    case Statistic::kDropEthertype:
      return "drop_ethertype";
    case Statistic::kDropIpHeader:
      return "drop_ip_header";
    case Statistic::kDropIpChecksum:
      return "drop_ip_checksum";
    case Statistic::kDropIpAddress:
      return "drop_ip_address";
    case Statistic::kDropUdpPort:
      return "drop_udp_port";
    case Statistic::kDropUdpChecksum:
      return "drop_udp_checksum";
    case Statistic::kDropCrc:
      return "drop_crc";
    case Statistic::kDropPdsType:
      return "drop_pds_type";
    case Statistic::kDropSes:
      return "drop_ses";
    case Statistic::kDropPdcid:
      return "drop_pdcid";
    case Statistic::kDropPsn:
      return "drop_psn";
    case Statistic::kDmaReadErrors:
      return "dma_read_errors";
    case Statistic::kDmaWriteErrors:
      return "dma_write_errors";
    case Statistic::kTxDescriptors:
      return "tx_descriptors";
    case Statistic::kTxBadDescriptors:
      return "tx_bad_descriptors";
    case Statistic::kInterrupts:
      return "interrupts";
    case Statistic::kSlowPathRx:
      return "slow_path_rx";
    case Statistic::kSlowPathTx:
      return "slow_path_tx";
  }
  return nullptr;
}

std::string Line(Device& device) {
  std::string line = "{\"device\": \"" + device.name() + "\"";
  for (uint32_t i = 0; i < contract::kBar0StatisticsCount; ++i) {
    const auto statistic = static_cast<Statistic>(i);
    if (const char* name = Name(statistic); name != nullptr) {
      line += std::string(", \"") + name +
              "\": " + std::to_string(ReadStatistic(device, statistic));
    }
  }
  return line + "}\n";
}

}  // namespace

void AppendStatistics(Device& device, const std::string& path) noexcept {
  try {
    const std::string line = Line(device);
    const int file =
        open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
             S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
    const bool written = file >= 0 && write(file, line.data(), line.size()) ==
                                          static_cast<ssize_t>(line.size());
    if (!written) {
      core::Log(core::LogLevel::kWarn, core::LogSubsystem::kDomain,
                "statistics of %s not written to %s: %s", device.name().c_str(),
                path.c_str(), std::strerror(errno));
    }
    if (file >= 0) {
      (void)close(file);
    }
  } catch (const std::bad_alloc&) {
    core::Log(core::LogLevel::kWarn, core::LogSubsystem::kDomain,
              "statistics not written: out of memory");
  }
}

}  // namespace heddle::ofi
