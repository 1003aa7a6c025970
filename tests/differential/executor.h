// SPDX-License-Identifier: Apache-2.0
// Executes one side's share of a stream and tells what it sees.
#pragma once

#include <rdma/fi_eq.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tests/differential/fabric_side.h"
#include "tests/differential/stream.h"
#include "tests/differential/trace.h"

namespace heddle::differential {

// Where the rest of the run is, for the executor.
struct Surroundings {
  std::function<void(const Event&)> tell;
  // Whether all sides may go on from a sync; cheap enough to be polled.
  std::function<bool()> may_go_on;
  std::function<void()> say_settling;
  std::function<void(bool up)> set_link;
  std::function<void()> reset_nic;
  std::function<uint64_t()> now_ns;  // The same clock for all sides.
  std::function<void()> rest;        // There was nothing to do.
  std::function<void()> die;         // As by SIGKILL; does not return.
};

// Every buffer is the executor's own, filled so that a byte out of place
// shows. Thread safety: none.
class Executor {
 public:
  // Its share from operation `first` on; what comes before was another's.
  Executor(uint32_t side, const Stream& stream, uint32_t first,
           Surroundings surroundings);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs to the end of the stream. Throws SetupFailure.
  void Run();

 private:
  // One operation that was posted, alive until the next sync.
  struct Posted {
    uint32_t number = 0;
    uint32_t endpoint = 0;
    bool receives = false;
    bool reads = false;
    bool peeks = false;     // No message is received.
    bool flushes = false;   // Not of the stream: `PostFlush`.
    bool reported = false;  // A completion is owed.
    bool complete = false;
    bool failed = false;
    bool over = false;     // Its endpoint was closed.
    bool matched = false;  // fi_cancel found that a message had taken it.
    // Of a receive that is complete: how far its message may reach, the digest
    // of so much, and whether all behind is untouched.
    size_t reach = 0;
    uint64_t digest = 0;
    bool clean = false;
    // The messages in a buffer of many.
    struct Part {
      size_t offset = 0;
      size_t bytes = 0;
      uint64_t digest = 0;
    };
    bool many = false;
    std::vector<Part> parts;
    std::vector<uint8_t> buffer;
    fid_mr* region = nullptr;
    // Distinct for every operation; its address is the context.
    fi_context context = {};
  };

  void Execute(uint32_t number);
  int64_t Call(uint32_t number, const Operation& operation);
  int64_t PostReceive(uint32_t number, const Operation& operation);
  // Waits for the answer, too.
  int64_t Peek(uint32_t number, const Operation& operation);
  // Receives or drops the messages of the claims that are due now, or of all.
  void TakeClaimed(bool all);
  void TakeClaimed(Posted* claim, const Operation& operation);
  // Source of a receive or peek.
  fi_addr_t SourceOf(const Operation& operation) const;
  int64_t PostSend(uint32_t number, const Operation& operation);
  int64_t PostRma(uint32_t number, const Operation& operation);
  uint64_t KeyFor(uint32_t number, const Operation& operation) const;
  int64_t CallInvalid(const Operation& operation);
  int64_t CloseEndpoint(uint32_t index);
  int64_t Reset();
  // Closes everything that is open; nothing of it is there afterwards.
  void CloseAll();
  // Opens everything as it is from operation `number` on.
  void Open(uint32_t number);
  // Calls `post` until it takes the operation or has refused it for too long.
  int64_t Retry(const std::function<int64_t()>& post);

  std::unique_ptr<Posted> MakePosted(uint32_t number,
                                     const Operation& operation);
  void Register(const Operation& operation, Posted* posted);
  void Keep(std::unique_ptr<Posted> posted);

  // Reads what has completed; whether there was anything. Throws SetupFailure.
  bool Poll();
  // The same; false with -FI_EIO, which a NIC that was reset answers.
  bool PollAlive(bool* any);
  void OnCompletion(const fi_cq_tagged_entry& entry, fi_addr_t source);
  // The end of a peek that found a message.
  void OnFound(const Posted& posted, Event event, size_t bytes);
  // One that has ended is posted no more.
  void CountSpare(const Posted& posted);
  void OnError();
  Posted* Find(const void* context);
  void Examine(Posted* posted, Event* event);
  void ExamineMany(Posted* posted, Event* event, const void* address);

  void Wait();
  void Unplug();
  void MeetOther();
  void Settle();
  // Whether every send and write has ended, as far as counters tell.
  bool Counted();
  // Whether what was injected into the peers' memory is visible there; posts
  // what it takes to know.
  bool Flushed();
  bool MatchedEnded() const;
  int64_t PostFlush(uint32_t index, const Place& peer);
  void PostSpares();
  // One more at the endpoint; false if its queue is full.
  bool PostSpare(uint32_t index, bool tagged);
  // They would match before the stream's own.
  void CancelTaggedSpares();
  void TellReads();
  void TellRestarts();
  void TellMemory();
  // Whether a receive's buffer is not as it was at its completion.
  static bool HasChanged(const Posted& posted);
  void Forget();

  const uint32_t side_;
  const Stream& stream_;
  const History history_;
  const Surroundings surroundings_;
  const uint32_t first_;
  const bool tags_;
  std::unique_ptr<FabricSide> fabric_;
  std::vector<std::unique_ptr<Posted>> posted_;  // In the order of posting.
  std::unordered_map<const void*, Posted*> contexts_;
  uint32_t spare_bytes_ = 0;  // Of a spare receive: any message fits.
  std::array<std::vector<const void*>, kEndpoints> receives_;
  std::array<uint32_t, kEndpoints> spares_ = {};
  std::array<uint32_t, kEndpoints> tagged_spares_ = {};
  // Claims whose message was found and is not taken yet.
  struct Claim {
    Posted* posted = nullptr;
    uint32_t wait = 0;  // For so many operations of this side.
  };
  std::vector<Claim> claims_;
  std::array<uint64_t, kEndpoints> counted_ = {};  // Sends, writes accepted.
  // Endpoints with injected writes to a place that no flush followed yet.
  std::array<std::array<bool, kMaxPlaces>, kEndpoints> unflushed_ = {};
  std::array<std::vector<uint8_t>, kAreas> told_memory_;
  uint64_t told_restarts_ = 0;
  uint32_t next_spare_ = kSpareBase;
  uint32_t next_tagged_spare_ = kTaggedSpareBase;
};

}  // namespace heddle::differential
