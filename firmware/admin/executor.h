// SPDX-License-Identifier: Apache-2.0
// Executes admin commands on the NIC's tables.
#pragma once

#include <stdint.h>

#include "firmware/admin/field_check.h"
#include "firmware/admin/limits.h"
#include "firmware/admin/objects.h"
#include "firmware/base/hal.h"
#include "firmware/base/status.h"
#include "firmware/mgmt/table_port.h"
#include "firmware/net/neighbours.h"
#include "firmware/net/port.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/memory_key.h"
#include "hw/contract/split_number.h"

namespace heddle::firmware {

// One command at a time. A destruction takes several steps: the context, region
// or counter is disabled, a drain token follows everything it started, and only
// when the token has returned is the command answered; afterwards the NIC
// touches its memory no more.
//
// Every field is checked before anything changes: a refused command leaves no
// trace. The answer to a bad field is `invalid` (or `not_found` for a missing
// object) with its byte offset in `detail`.
//
// Thread safety: none; the control program is single-threaded.
class Executor {
 public:
  enum class Progress : uint8_t {
    kAnswered,  // `answer()` is complete.
    kRunning,   // Call `Continue` in a later step.
    kPending,   // The neighbours answer it; others may be executed meanwhile.
    kFailed,    // Hardware did not do its part; `fault()` says which.
  };

  // What the program is connected to; all of it outlives the executor.
  struct Parts {
    TablePort& tables;
    Port& port;
    Neighbours& neighbours;
    Switch& ports;
    ObjectMemory& memory;
  };

  // `key_secret` is what provider keys are hidden with.
  Executor(const Parts& parts, uint64_t key_secret)
      : tables_(parts.tables),
        port_(parts.port),
        neighbours_(parts.neighbours),
        switch_(parts.ports),
        keys_(key_secret),
        endpoints_(parts.memory),
        cqs_(parts.memory),
        tx_contexts_(parts.memory),
        rx_contexts_(parts.memory),
        counters_(parts.memory),
        regions_(parts.memory) {}

  // Preconditions: nothing was created, `limits` are legal.
  void SetLimits(const Limits& limits);

  // Starts `command` of `function`. Precondition: none runs.
  Progress Execute(const contract::AdminCommand& command, Function function);

  // Looks after the destruction that `Execute` or `TearDown` started.
  Progress Continue();

  // Destroys the objects of all functions, contexts first, in the order of
  // `Continue`. kAnswered when nothing is left. Precondition: none runs.
  Progress TearDown();

  const contract::AdminAnswer& answer() const { return answer_; }
  Status fault() const { return fault_; }

 private:
  // The object whose drain token is under way.
  struct Closing {
    contract::Table table = contract::Table::kNone;
    uint32_t index = 0;
  };

  Progress Dispatch(const contract::AdminCommand& command);
  Progress CreateEndpoint(const contract::AdminCreateEndpoint& command);
  Progress CreateCq(const contract::AdminCreateCq& command);
  Progress CreateTx(const contract::AdminCreateTx& command);
  Progress CreateRx(const contract::AdminCreateRx& command);
  Progress SetTiming(const contract::AdminSetTiming& command);
  Progress QueryPort(const contract::AdminCommand& command);
  Progress ClosePdcs(const contract::AdminCommand& command);
  Progress ResolveNextHop(const contract::AdminResolveNextHop& command);
  Progress ReleaseNextHop(const contract::AdminCommand& command);
  Progress RegisterRegion(const contract::AdminRegisterRegion& command);
  Progress CreateCounter(const contract::AdminCreateCounter& command);
  Progress Destroy(const contract::AdminCommand& command);
  Progress DestroyEndpoint(uint32_t index);
  Progress DestroyCq(uint32_t index);
  Progress DestroyCounter(uint32_t index);

  // Makes entry `index` what `disabled` says and sends the token behind it.
  template <typename Config>
  Progress StartClosing(contract::Table table, uint32_t index,
                        const Config& disabled);
  // Begins to close one more object; kAnswered when there is none.
  Progress CloseFirst();

  // The region that the command may have: that limit when there is none left.
  uint32_t ChooseRegion(const contract::AdminRegisterRegion& command);
  // A user key that a region has already.
  bool IsKeyTaken(uint64_t key) const;
  FieldCheck CheckRegion(const contract::AdminRegisterRegion& command);
  // A counter's number plus 1, or 0 for none.
  bool IsCounter(uint16_t plus_1);
  void UseCounter(uint16_t plus_1);
  void ReleaseCounter(uint16_t plus_1);
  // Calls `use` with each counter that a context names.
  template <typename Use>
  static void ForEachCounter(const contract::TxCtxCfg& config, Use use);
  template <typename Use>
  static void ForEachCounter(const contract::RxCtxCfg& config, Use use);

  FieldCheck CheckTx(const contract::AdminCreateTx& command);
  FieldCheck CheckRx(const contract::AdminCreateRx& command);
  // The fields of a context that matches, zero in others.
  static void CheckMatching(const contract::AdminCreateRx& command,
                            FieldCheck* check);
  // Flags of receive contexts that the device has.
  uint8_t RxFlags() const;
  // `tagged`: in the space of tagged sends.
  bool IsIndexTaken(uint32_t endpoint, uint16_t resource_index,
                    bool tagged) const;

  // Counts the context of `config` as a user of endpoint and queue, and the
  // opposite.
  template <typename Table, typename Config>
  void Adopt(Table& table, uint32_t index, uint32_t endpoint,
             const Config& config);
  template <typename Table>
  void ForgetContext(Table& table, uint32_t index);
  void ForgetRegion(uint32_t index);

  Progress Answer(contract::AdminStatus status, uint32_t detail);
  Progress Created(uint32_t object);
  Progress Refuse(const FieldCheck& check) {
    return Answer(check.status(), check.byte_offset());
  }
  Progress Fail(Status fault);

  TablePort& tables_;
  Port& port_;
  Neighbours& neighbours_;
  Switch& switch_;
  const contract::KeyMaker keys_;
  uint32_t vectors_ = 0;
  uint32_t capability_ = 0;  // As in `Limits`.
  ObjectTable<Endpoint, kMaxEndpoints> endpoints_;
  ObjectTable<Cq, kMaxCqs> cqs_;
  ObjectTable<TxContext, kMaxTxContexts> tx_contexts_;
  ObjectTable<RxContext, kMaxRxContexts> rx_contexts_;
  ObjectTable<Counter, kMaxCounters> counters_;
  ObjectTable<Region, kMaxRegions> regions_;
  Function function_ = 0;  // Whose command runs.
  Closing closing_;
  contract::AdminAnswer answer_;
  Status fault_;
};

template <typename Use>
void Executor::ForEachCounter(const contract::TxCtxCfg& config, Use use) {
  use(contract::JoinBytes(config.counter_send, config.counter_send_high));
  use(contract::JoinBytes(config.counter_read, config.counter_read_high));
  use(contract::JoinBytes(config.counter_write, config.counter_write_high));
}

template <typename Use>
void Executor::ForEachCounter(const contract::RxCtxCfg& config, Use use) {
  use(contract::JoinBytes(config.counter_recv, config.counter_recv_high));
  use(contract::JoinBytes(config.counter_remote_read,
                          config.counter_remote_read_high));
  use(contract::JoinBytes(config.counter_remote_write,
                          config.counter_remote_write_high));
}

}  // namespace heddle::firmware
