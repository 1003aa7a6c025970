// SPDX-License-Identifier: Apache-2.0
// Neighbours on the link, and the next-hop table made of them.
#pragma once

#include <stdint.h>

#include "firmware/base/hal.h"
#include "firmware/base/status.h"
#include "firmware/mgmt/slow_path.h"
#include "firmware/mgmt/table_port.h"
#include "firmware/mgmt/timer.h"
#include "firmware/net/neighbour_packet.h"
#include "hw/contract/gen/heddle_contract.h"

namespace heddle::firmware {

// Finds the MAC address behind a fabric address: the neighbour itself on the
// link, else the gateway, by the board's prefix. Each neighbour is one next hop
// and keeps its number while somebody uses it; one that nobody uses is kept
// until its place is needed.
//
// A neighbour whose address was confirmed long ago is asked again: behind the
// users' back while there are some, before it is handed out otherwise. A hop in
// use keeps its last known address when nobody answers; UET's own timers then
// decide about the peer.
//
// With a board that does not resolve (a virtual wire that forwards by fabric
// address) next hop 0 stands for everybody and is valid from the start.
//
// Questions for our own address are answered in either case.
//
// Thread safety: none; the control program is single-threaded.
class Neighbours {
 public:
  static constexpr uint32_t kMaxWaiting = 256;

  // Borrows the board, which outlives it.
  Neighbours(TablePort& tables, SlowPath& slow_path, Timer& timer,
             const Board& board);

  // Begins with an empty table. Precondition: no drain runs.
  Status Start();

  enum class Outcome : uint8_t {
    kKnown,    // `hop`; one use is taken.
    kPending,  // `TakeAnswer` brings the command's answer.
    kNoRoute,  // Not on the link, and there is no gateway.
    kFull,     // Every next hop is in use.
  };
  // Finds the next hop of `address` for command `id`.
  // Precondition: `IsUnicast(address)`.
  Outcome Resolve(uint16_t id, const FabricAddress& address, uint32_t& hop);

  // Gives one use back; false when the hop has none.
  bool Release(uint32_t hop);

  // Family of the port.
  bool ipv6() const { return self_.address.ipv6; }

  // An address of the port's family that a peer can have.
  bool IsUnicast(const FabricAddress& address) const;

  // Looks at the waiting slow-path frame, and at the alarm.
  void ServeFrame();
  void ServeTimer();

  // Writes what has changed to the next-hop table; answers of pending commands
  // become available behind that. Precondition: no drain runs.
  Status Flush();

  // Forgets the commands that are pending; they get no answer.
  void Abandon();

  // Answer of a command that was pending; false when there is none.
  bool TakeAnswer(contract::AdminAnswer& answer);

 private:
  enum class State : uint8_t {
    kFree,
    kIncomplete,  // No address is known.
    kReachable,   // Confirmed not long ago, as of `confirmed`.
    kStale,       // Known, but not confirmed.
    kSelf,        // Ourselves.
  };

  struct Neighbour {
    FabricAddress address;
    uint64_t mac = 0;
    uint32_t uses = 0;
    uint32_t waiting = 0;    // Commands that wait for it.
    uint32_t confirmed = 0;  // Time of the last confirmation.
    uint32_t released = 0;   // Order in which the unused became so.
    uint32_t due = 0;        // Time of the next question, while `asking`.
    uint8_t tries = 0;       // Questions left.
    bool asking = false;
    bool dirty = false;  // Its next hop is not written yet.
    State state = State::kFree;

    bool usable() const {
      return state == State::kReachable || state == State::kStale ||
             state == State::kSelf;
    }
  };

  struct Waiting {
    uint16_t id = 0;
    uint16_t hop = 0;
    contract::AdminStatus status = contract::AdminStatus::kOk;
    enum class Stage : uint8_t {
      kFree,
      kAsking,
      kAnswered
    } stage = Stage::kFree;
  };

  static constexpr uint32_t kHops = contract::kNextHops;
  static constexpr uint32_t kFirstHop = 1;  // 0 is the static one.

  bool IsOnLink(const FabricAddress& address) const;
  Neighbour* Find(const FabricAddress& address);
  Neighbour* Allocate(const FabricAddress& address);
  uint32_t IndexOf(const Neighbour& neighbour) const {
    return static_cast<uint32_t>(&neighbour - hops_);
  }
  Outcome Wait(uint16_t id, Neighbour& neighbour);
  void BeginAsking(Neighbour& neighbour);
  void Ask(Neighbour& neighbour, uint32_t now);
  void GiveUp(Neighbour& neighbour);
  void Learn(Neighbour& neighbour, const NeighbourPacket& packet);
  void Confirm(Neighbour& neighbour);
  void Forget(Neighbour& neighbour);
  void Settle(Neighbour& neighbour, contract::AdminStatus status);
  void SetAlarm();

  TablePort& tables_;
  SlowPath& slow_path_;
  Timer& timer_;
  const Board& board_;
  const LinkIdentity self_;
  uint32_t retry_ticks_ = 1;
  uint32_t reachable_ticks_ = 1;
  uint32_t releases_ = 0;
  uint32_t dirty_ = 0;    // How many neighbours are.
  uint32_t pending_ = 0;  // Places of `waiting_` in use.
  Neighbour hops_[kHops];
  Waiting waiting_[kMaxWaiting];
};

}  // namespace heddle::firmware
