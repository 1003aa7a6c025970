// SPDX-License-Identifier: Apache-2.0
// A Heddle device's classes for the data path.
#pragma once

#include "host/lib/backend/device.h"
#include "host/lib/backend/model.h"
#include "host/lib/nic/address_table.h"
#include "host/lib/nic/cq.h"
#include "host/lib/nic/match_queue.h"
#include "host/lib/nic/rx_queue.h"
#include "host/lib/nic/statistics.h"
#include "host/lib/nic/tx_queue.h"

namespace heddle::nic {

inline constexpr backend::Backend kBackend = {
    .name = "nic",
    .statistics = {
        .count = StatisticCount, .name = StatisticName, .help = StatisticHelp}};

struct Model {
  using Transmit = TxQueue;
  using Receive = RxQueue;
  using Match = MatchQueue;
  using PeerTable = AddressTable;
  using Queue = Cq;
};
static_assert(backend::MatchingModel<Model>);

}  // namespace heddle::nic
