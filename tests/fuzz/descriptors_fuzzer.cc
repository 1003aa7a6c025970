// SPDX-License-Identifier: Apache-2.0
// A process that writes anything into the rings, the address vector, the
// doorbells and the push windows that it was given.
//
// An input is a byte for the form of the frames, then operations.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "hw/contract/gen/heddle_contract.h"
#include "tests/fuzz/fuzz_nic.h"
#include "tests/fuzz/isolated.h"
#include "tests/fuzz/reader.h"

namespace heddle::fuzz {
namespace {

using contract::Completion;
using contract::RxDesc;
using contract::Status;
using contract::TxDesc;

constexpr uint32_t kSlots = OpenEndpoint::kSlots;
constexpr uint32_t kMaxSteps = 400;
constexpr uint32_t kMaxOperations = 256;
constexpr uint64_t kNowhere = 0x1000;  // Never mapped.
constexpr uint32_t kPageBytes = contract::kDoorbellPageBytes;

class Run {
 public:
  explicit Run(Scene& scene)
      : scene_(scene), nic_(scene.nic), victim_(scene.victim) {
    // Slots never written are descriptors too.
    tx_contexts_[0] = kSlots;
    rx_contexts_[0] = kSlots;
  }

  void Execute(Reader input) {
    for (uint32_t i = 0; i < kMaxOperations && !input.empty(); ++i) {
      Operation(&input);
      nic_.CheckAlive();
    }
    if (ChosenSabotage() == Sabotage::kDma) {
      nic_.memory().Unmap(victim_.tx_ring.iova(), victim_.tx_ring.bytes());
      RingTx(static_cast<uint16_t>(tx_tail_ + 1));
    }
    scene_.ComeToRest(false);
    Collect();
    scene_.Probe(1);
    scene_.Finish(announced_, invited_);
  }

 private:
  // Where a descriptor may point.
  uint64_t Address(Reader* input) {
    const uint8_t where = input->Byte();
    switch (where % 4) {
      case 0:
        return scene_.source.iova() + uint64_t{where} * 16;
      case 1:
        return scene_.target.iova() + uint64_t{where} * 512;
      case 2:  // Its end is not mapped.
        return scene_.target.iova() + scene_.target.bytes() - where;
      default:
        return where < 128 ? kNowhere + where : input->Double();
    }
  }

  void WriteTx(Reader* input, uint8_t code) {
    const auto position = static_cast<uint16_t>(tx_written_);
    TxDesc desc{.opcode = contract::Opcode::kSend,
                .flags = contract::kTxFlagCompletion,
                .position = position,
                .op_context = 1000U + position};
    switch (code >> 3 & 3) {
      case 0:
        desc.flags |= contract::kTxFlagInline;
        desc.length = input->Byte() % 20;
        break;
      case 1:
        desc.flags |= contract::kTxFlagInlineExt;
        desc.length = input->Byte();
        desc.ext_slots = static_cast<uint8_t>((desc.length + 63) / 64);
        break;
      default:
        desc.segments = 1;
        desc.local_iova = Address(input);
        desc.length = input->Half();
        desc.local_length = desc.length;
        break;
    }
    std::array<uint8_t, sizeof(TxDesc)> bytes;
    std::memcpy(bytes.data(), &desc, sizeof(desc));
    Spoil(input, code, bytes);
    std::memcpy(&desc, bytes.data(), sizeof(desc));
    const bool in_place = (code & 0x80) == 0;
    const uint32_t slot =
        in_place ? tx_written_ % kSlots : input->Below(kSlots);
    victim_.tx_ring.entries<TxDesc>(kSlots)[slot] = desc;
    victim_.tx_ring.Accept();
    tx_written_ += in_place ? 1 : 0;
    Announce(desc);
  }

  void Announce(const TxDesc& desc) {
    announced_.push_back(
        {desc.local_iova, std::max<uint64_t>(desc.length, desc.local_length)});
    tx_contexts_[desc.op_context] += kSlots;  // A slot may be read again.
  }

  void WriteRx(Reader* input, uint8_t code) {
    const auto position = static_cast<uint16_t>(rx_written_);
    RxDesc desc{.position = position,
                .length = input->Half(),
                .op_context = 2000U + position,
                .local_iova = Address(input)};
    std::array<uint8_t, sizeof(RxDesc)> bytes;
    std::memcpy(bytes.data(), &desc, sizeof(desc));
    Spoil(input, code, bytes);
    std::memcpy(&desc, bytes.data(), sizeof(desc));
    const bool in_place = (code & 0x80) == 0;
    const uint32_t slot =
        in_place ? rx_written_ % kSlots : input->Below(kSlots);
    victim_.rx_ring.entries<RxDesc>(kSlots)[slot] = desc;
    victim_.rx_ring.Accept();
    rx_written_ += in_place ? 1 : 0;
    announced_.push_back({desc.local_iova, desc.length});
    invited_.push_back(announced_.back());
    rx_contexts_[desc.op_context] += kSlots;
  }

  // Changes some bytes, or all.
  static void Spoil(Reader* input, uint8_t code, std::span<uint8_t> bytes) {
    const uint32_t how = code >> 5 & 3;
    if (how == 3) {
      const auto raw = input->Bytes(bytes.size());
      std::copy(raw.begin(), raw.end(), bytes.begin());
      return;
    }
    for (uint32_t i = 0; i < how; ++i) {
      const uint8_t at = input->Byte();
      bytes[at % bytes.size()] = input->Byte();
    }
  }

  void WritePeer(Reader* input, uint8_t code) {
    const uint32_t index = code >> 3 & 3;
    std::array<uint8_t, sizeof(contract::AvEntry)> bytes;
    auto& entry =
        victim_.av.entries<contract::AvEntry>(OpenEndpoint::kPeers)[index];
    std::memcpy(bytes.data(), &entry, sizeof(entry));
    Spoil(input, static_cast<uint8_t>(code | 0x20), bytes);
    std::memcpy(&entry, bytes.data(), sizeof(entry));
    victim_.av.Accept();
  }

  void RingTx(uint16_t tail) {
    // One that runs ahead of the ring publishes what is written there later.
    published_ += static_cast<uint16_t>(tail - tx_tail_);
    tx_tail_ = tail;
    nic_.Ring((contract::kTxPageFirst + victim_.tx) * kPageBytes +
                  contract::kDoorbellTailOffset,
              tail);
  }

  void RingRx(uint16_t tail) {
    posted_ += static_cast<uint16_t>(tail - rx_tail_);
    rx_tail_ = tail;
    nic_.Ring((contract::kRxPageFirst + victim_.rx) * kPageBytes +
                  contract::kDoorbellTailOffset,
              tail);
  }

  void PushSlot(Reader* input, uint8_t code) {
    std::array<uint64_t, 8> slot;
    std::memcpy(slot.data(),
                &victim_.tx_ring.entries<TxDesc>(
                    kSlots)[(tx_written_ - 1 + (code >> 3 & 1)) % kSlots],
                sizeof(slot));
    if ((code & 0x10) != 0) {
      const auto raw = input->Bytes(sizeof(slot));
      std::copy(raw.begin(), raw.end(),
                reinterpret_cast<uint8_t*>(slot.data()));
    }
    TxDesc desc;
    std::memcpy(static_cast<void*>(&desc), slot.data(), sizeof(slot));
    Announce(desc);
    uint32_t offset = contract::kPushWindowOffset +
                      desc.position % contract::kPushWindowSlots * 64;
    if ((code & 0x20) != 0) {  // Elsewhere, not even aligned to a slot.
      offset = std::min<uint32_t>(
          contract::kPushWindowOffset + input->Byte() * 8,
          kPageBytes - sizeof(slot));  // The next page is another's.
    }
    const uint32_t page = (contract::kTxPageFirst + victim_.tx) * kPageBytes;
    nic_.Push(page + offset, slot, (code & 0x40) != 0);
    if ((code & 0x80) != 0) {
      PushExtensions(page, desc, (code & 0x40) != 0);
    }
  }

  // The slots of the ring that a descriptor calls its payload.
  void PushExtensions(uint32_t page, const TxDesc& desc, bool words) {
    for (uint32_t i = 1; i <= desc.ext_slots % 4U; ++i) {
      const uint32_t position = desc.position + i;
      std::array<uint64_t, 8> slot;
      std::memcpy(slot.data(),
                  &victim_.tx_ring.entries<TxDesc>(kSlots)[position % kSlots],
                  sizeof(slot));
      nic_.Push(page + contract::kPushWindowOffset +
                    position % contract::kPushWindowSlots * 64,
                slot, words);
    }
  }

  // A write to a page of the victim: tails, operations, consumer counts and
  // offsets where nothing is.
  void RingAnywhere(Reader* input, uint8_t code) {
    const std::array<uint32_t, 4> pages = {
        contract::kTxPageFirst + victim_.tx,
        contract::kRxPageFirst + victim_.rx,
        contract::kCqPageFirst + victim_.tx_cq,
        contract::kCqPageFirst + victim_.rx_cq};
    const uint32_t page = pages[code >> 3 & 3];
    const uint32_t offset =
        (code & 0x80) != 0 ? input->Half() % kPageBytes / 8 * 8
        : code >> 5 & 1    ? contract::kDoorbellOpOffset
                           : contract::kDoorbellCqConsumerOffset;
    uint64_t value = input->Byte();
    if ((code & 0x40) != 0) {
      value |= input->Double() << 8;
    } else {
      value |= uint64_t{input->Byte()} << 32;
    }
    if (offset == contract::kDoorbellTailOffset && page == pages[0]) {
      RingTx(static_cast<uint16_t>(value));
    } else if (offset == contract::kDoorbellTailOffset && page == pages[1]) {
      RingRx(static_cast<uint16_t>(value));
    } else if (offset < contract::kPushWindowOffset || page != pages[0]) {
      nic_.Ring(page * kPageBytes + offset, value);
    }
  }

  void Operation(Reader* input) {
    const uint8_t code = input->Byte();
    switch (code % 8) {
      case 0:
        WriteTx(input, code);
        break;
      case 1:
        WriteRx(input, code);
        break;
      case 2:
        WritePeer(input, code);
        break;
      case 3:
        RingTx(static_cast<uint16_t>(
            (code & 0x80) != 0 ? input->Half()
                               : tx_written_ + (code >> 3) - (code > 64)));
        break;
      case 4:
        RingRx(static_cast<uint16_t>(
            (code & 0x80) != 0 ? input->Half()
                               : rx_written_ + (code >> 3) - (code > 64)));
        break;
      case 5:
        PushSlot(input, code);
        break;
      case 6:
        RingAnywhere(input, code);
        break;
      default:
        nic_.Step((code >> 3) * kMaxSteps / 31);
        break;
    }
  }

  void Collect() {
    Completion completion;
    while (victim_.TakeTx(&completion)) {
      Take(completion, contract::CompletionKind::kTx, &tx_contexts_,
           &published_, "transmit");
    }
    while (victim_.TakeRx(&completion)) {
      Take(completion, contract::CompletionKind::kRx, &rx_contexts_, &posted_,
           "receive");
    }
  }

  // Each completion is of a descriptor that was published.
  static void Take(const Completion& completion, contract::CompletionKind kind,
                   std::map<uint64_t, uint32_t>* contexts, uint32_t* published,
                   const std::string& name) {
    if (completion.kind != kind) {
      throw Broken("a " + name + " completion of the other kind");
    }
    if (ChosenSabotage() == Sabotage::kCompletion) {
      *published = 0;
    }
    if (*published == 0) {
      throw Broken("more " + name + " completions than descriptors published");
    }
    --*published;
    uint64_t context = completion.op_context;
    if (ChosenSabotage() == Sabotage::kInvented) {
      context = ~context;
    }
    // Of a slot whose contents are not believed nothing is returned.
    const bool believed = completion.status == Status::kOk || context != 0;
    const auto found = contexts->find(context);
    if (believed && (found == contexts->end() || found->second == 0)) {
      throw Broken("a " + name + " completion of nothing that was posted");
    }
    if (believed) {
      --found->second;
    }
  }

  Scene& scene_;
  FuzzNic& nic_;
  OpenEndpoint& victim_;
  uint32_t tx_written_ = 0, rx_written_ = 0;  // Slots, in order.
  uint16_t tx_tail_ = 0, rx_tail_ = 0;        // As rung last.
  uint32_t published_ = 0, posted_ = 0;       // Slots not yet completed.
  // How often a descriptor with this context may complete.
  std::map<uint64_t, uint32_t> tx_contexts_, rx_contexts_;
  std::vector<Range> announced_, invited_;
};

}  // namespace
}  // namespace heddle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::fuzz::Reader input({data, size});
  heddle::fuzz::Scene& scene = heddle::fuzz::SceneOf(input.Byte());
  heddle::fuzz::RunIsolated(scene.nic,
                            [&] { heddle::fuzz::Run(scene).Execute(input); });
  return 0;
}
