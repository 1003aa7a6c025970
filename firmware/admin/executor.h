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

namespace heddle::firmware {

// One command at a time. A destruction takes several steps: the context is
// disabled, a drain token follows everything it started, and only when the
// token has returned is the command answered; afterwards the NIC touches the
// context's memory no more.
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

  Executor(TablePort& tables, Port& port, Neighbours& neighbours, Switch& ports)
      : tables_(tables), port_(port), neighbours_(neighbours), switch_(ports) {}

  // Value of register `context_limits`. Precondition: nothing was created.
  void SetLimits(uint32_t context_limits);

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
  // The context whose drain token is under way.
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
  Progress ResolveNextHop(const contract::AdminResolveNextHop& command);
  Progress ReleaseNextHop(const contract::AdminCommand& command);
  Progress Destroy(const contract::AdminCommand& command);
  Progress DestroyEndpoint(uint32_t index);
  Progress DestroyCq(uint32_t index);

  template <typename Contexts>
  Progress StartClosing(Contexts& contexts, contract::Table table,
                        uint32_t index);
  template <typename Contexts>
  Progress CloseFirst(Contexts& contexts, contract::Table table);

  FieldCheck CheckTx(const contract::AdminCreateTx& command);
  FieldCheck CheckRx(const contract::AdminCreateRx& command);
  bool IsIndexTaken(uint32_t endpoint, uint16_t resource_index) const;

  // Counts the context of `config` as a user of endpoint and queue, and the
  // opposite.
  template <typename Config>
  void Adopt(Context<Config>& context, uint32_t endpoint, const Config& config);
  template <typename Config>
  void Forget(Context<Config>& context);

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
  uint32_t vectors_ = 0;
  ObjectTable<Endpoint, kMaxEndpoints> endpoints_;
  ObjectTable<Cq, kMaxCqs> cqs_;
  ObjectTable<TxContext, kMaxTxContexts> tx_contexts_;
  ObjectTable<RxContext, kMaxRxContexts> rx_contexts_;
  Function function_ = 0;  // Whose command runs.
  Closing closing_;
  contract::AdminAnswer answer_;
  Status fault_;
};

}  // namespace heddle::firmware
