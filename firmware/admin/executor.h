// SPDX-License-Identifier: Apache-2.0
// Executes admin commands on the NIC's tables.
#pragma once

#include <stdint.h>

#include "firmware/admin/field_check.h"
#include "firmware/admin/objects.h"
#include "firmware/base/hal.h"
#include "firmware/base/status.h"
#include "firmware/mgmt/table_port.h"
#include "firmware/net/neighbours.h"
#include "firmware/net/port.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/memory_key.h"

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

  // `key_secret` is what provider keys are hidden with.
  Executor(TablePort& tables, Port& port, Neighbours& neighbours, Switch& ports,
           uint64_t key_secret)
      : tables_(tables),
        port_(port),
        neighbours_(neighbours),
        switch_(ports),
        keys_(key_secret) {}

  // Values of registers `context_limits` and `region_limits`. Precondition:
  // nothing was created.
  void SetLimits(uint32_t context_limits, uint32_t region_limits);

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

  // The region that the command may have: kMaxRegions when there is none left.
  uint32_t ChooseRegion(const contract::AdminRegisterRegion& command) const;
  // A user key that a region has already.
  bool IsKeyTaken(uint64_t key) const;
  FieldCheck CheckRegion(const contract::AdminRegisterRegion& command);
  // A counter's number plus 1, or 0 for none.
  bool IsCounter(uint8_t plus_1);
  void UseCounter(uint8_t plus_1);
  void ReleaseCounter(uint8_t plus_1);
  void ReleaseCounters(const contract::TxCtxCfg& config);
  void ReleaseCounters(const contract::RxCtxCfg& config);

  FieldCheck CheckTx(const contract::AdminCreateTx& command);
  FieldCheck CheckRx(const contract::AdminCreateRx& command);
  bool IsIndexTaken(uint32_t endpoint, uint16_t resource_index) const;

  // Counts the context of `config` as a user of endpoint and queue, and the
  // opposite.
  template <typename Config>
  void Adopt(Context<Config>& context, uint32_t endpoint, const Config& config);
  template <typename Config>
  void Forget(Context<Config>& context);
  void Forget(Region& region);

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
  ObjectTable<Endpoint, kMaxEndpoints> endpoints_;
  ObjectTable<Cq, kMaxCqs> cqs_;
  ObjectTable<TxContext, kMaxTxContexts> tx_contexts_;
  ObjectTable<RxContext, kMaxRxContexts> rx_contexts_;
  ObjectTable<Counter, kMaxCounters> counters_;
  ObjectTable<Region, kMaxRegions> regions_;
  uint32_t next_region_ = 0;  // Where the search for a free one begins.
  Function function_ = 0;     // Whose command runs.
  Closing closing_;
  contract::AdminAnswer answer_;
  Status fault_;
};

}  // namespace heddle::firmware
