// SPDX-License-Identifier: Apache-2.0
// The NIC receives what it should not: its own frames lost, doubled, late or
// changed, replayed ones, packets that were never sent, answers to READs that
// were not asked for, and noise.
//
// An input is a byte for the form of the frames and the mode of the messages,
// then operations.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "driver/queue/doorbells.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/contract/gen/heddle_wire.h"
#include "tests/fuzz/frame_edit.h"
#include "tests/fuzz/fuzz_nic.h"
#include "tests/fuzz/isolated.h"
#include "tests/fuzz/reader.h"

namespace heddle::fuzz {
namespace {

using contract::Completion;
using contract::Status;

constexpr size_t kMaxSeen = 32;
// Together fewer than the buffers: a send without one would wait for ever.
constexpr size_t kMaxFrames = 32;  // Made up by one input.
constexpr size_t kMaxSends = 28;
constexpr uint32_t kMaxSteps = 400;  // In one operation.
constexpr uint32_t kBufferStride = 4096;
constexpr uint32_t kBuffers = Scene::kTargetBytes / kBufferStride;
constexpr uint32_t kBufferBytes = 4000;  // The rest stays as it is.
constexpr uint32_t kMaxMessage = kBufferBytes;
constexpr uint32_t kForgedTries = 4;
constexpr size_t kMaxReads = 16;
constexpr uint32_t kReadStride = 4096;

class Run {
 public:
  explicit Run(Scene& scene)
      : scene_(scene),
        nic_(scene.nic),
        victim_(scene.victim),
        results_(nic_, "read results", kMaxReads * kReadStride) {
    contract::AdminRegisterRegion region = {};
    region.iova = scene_.source.iova();
    region.length = Scene::kSourceBytes;
    region.job_id = Scene::kVictimJob;
    region.flags =
        contract::kRegionFlagRemoteRead | contract::kRegionFlagProviderKey;
    const auto grant = nic_.admin().RegisterRegion(region);
    if (!grant.ok()) {
      throw Broken("a region of the source is refused");
    }
    key_ = grant.value().key;
    nic_.on_sent = [this](sim::frame::Frame frame) { Sent(std::move(frame)); };
  }
  FuzzNic& nic() { return nic_; }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Real traffic, for frames to replay and change.
  void WarmUp() {
    for (uint32_t i = 0; i < 4; ++i) {
      Post(kBufferBytes);
    }
    Send(8, 0, contract::kTxFlagCompletion);
    Send(3000, 0, contract::kTxFlagCompletion);
    Send(100, 0, contract::kTxFlagCompletion | contract::kTxFlagHeaderData);
    Read(2000);
    if (!nic_.Settle(Scene::kSettleLimit)) {
      throw Broken("the NIC does not come to rest after its first messages");
    }
    Collect();
  }

  void Execute(Reader input) {
    while (!input.empty()) {
      Operation(&input);
      nic_.CheckAlive();
    }
    for (auto& held : held_) {
      nic_.Deliver(std::move(held));
    }
    held_.clear();
    rules_.clear();
    // Whoever waits for a buffer gets one.
    while (posted_.size() < kBuffers) {
      Post(kBufferBytes);
    }
    if (ChosenSabotage() == Sabotage::kDma) {
      nic_.memory().Unmap(scene_.target.iova(), scene_.target.bytes());
      Send(64, 0, contract::kTxFlagCompletion);
    }
    scene_.ComeToRest();
    Collect();
    Judge();
    scene_.Probe(forged_ ? kForgedTries : 1);
    // Nothing is blocked: all that was named is mapped. Buffers not completed
    // may hold parts of messages; completed ones are the host's again.
    std::vector<Range> invited;
    for (const Buffer& buffer : posted_) {
      if (!buffer.done) {
        invited.push_back({scene_.target.iova() + buffer.offset, buffer.bytes});
      }
    }
    scene_.Finish({}, invited);
    results_.Check({});
  }

 private:
  struct Message {
    uint32_t bytes;
    uint64_t offset;  // In the source.
    uint8_t flags;
    bool to_self;
    bool read = false;
    size_t result = 0;  // Of a READ: where its data go.
    bool completed = false;
    bool delivered = false;
  };
  struct Buffer {
    uint64_t offset;
    uint32_t bytes;
    bool done = false;
  };
  struct Rule {
    enum class Action : uint8_t { kPass, kDrop, kTwice, kHold, kEdit, kError };
    Action action;
    std::vector<uint8_t> edit;
  };

  void Post(uint32_t bytes) {
    const size_t index = posted_.size();
    if (index >= kBuffers) {
      return;  // Each buffer once: its contents stay to be judged.
    }
    const uint64_t offset = index * kBufferStride;
    posted_.push_back({offset, bytes});
    victim_.rx_ring.entries<contract::RxDesc>(OpenEndpoint::kSlots)[index] = {
        .position = static_cast<uint16_t>(index),
        .length = posted_.back().bytes,
        .op_context = index,
        .local_iova = scene_.target.iova() + offset};
    victim_.rx_ring.Accept();
    heddle::Ring(RxTailDoorbell(nic_, victim_.rx), posted_.size());
  }

  void Send(uint32_t bytes, uint32_t peer, uint8_t flags) {
    const size_t index = sent_.size();
    if (index >= kMaxSends) {
      return;
    }
    const uint64_t offset = index * 64;
    sent_.push_back({bytes, offset, flags, peer == 0});
    contract::TxDesc desc{.opcode = contract::Opcode::kSend,
                          .flags = flags,
                          .position = static_cast<uint16_t>(index),
                          .peer = peer,
                          .length = bytes,
                          .op_context = index,
                          .header_data = index * 0x0101010101010101};
    if (bytes != 0 && bytes <= contract::kInlineBytes) {
      desc.flags |= contract::kTxFlagInline;
      std::memcpy(reinterpret_cast<std::byte*>(&desc) + contract::kInlineOffset,
                  scene_.source.data() + offset, bytes);
    } else if (bytes != 0) {
      desc.segments = 1;
      desc.local_iova = scene_.source.iova() + offset;
      desc.local_length = bytes;
    }
    victim_.tx_ring.entries<contract::TxDesc>(OpenEndpoint::kSlots)[index] =
        desc;
    victim_.tx_ring.Accept();
    heddle::Ring(TxTailDoorbell(nic_, victim_.tx), sent_.size());
  }

  void Read(uint32_t bytes) {
    const size_t index = sent_.size();
    if (index >= kMaxSends || reads_ == kMaxReads) {
      return;
    }
    const uint64_t offset = index * 64;
    const size_t result = reads_++ * kReadStride;
    sent_.push_back({.bytes = bytes,
                     .offset = offset,
                     .flags = contract::kTxFlagCompletion,
                     .to_self = false,
                     .read = true,
                     .result = result});
    victim_.tx_ring.entries<contract::TxDesc>(OpenEndpoint::kSlots)[index] = {
        .opcode = contract::Opcode::kRead,
        .flags = contract::kTxFlagCompletion,
        .position = static_cast<uint16_t>(index),
        .length = bytes,
        .segments = static_cast<uint8_t>(bytes != 0 ? 1 : 0),
        .op_context = index,
        .match_bits = key_,
        .remote_offset = offset,
        .local_iova = results_.iova() + result,
        .local_length = bytes};
    victim_.tx_ring.Accept();
    heddle::Ring(TxTailDoorbell(nic_, victim_.tx), sent_.size());
  }

  bool IsReturnData(const sim::frame::Frame& frame) const {
    const size_t at = Layout(nic_.form()).pds;
    if (frame.size() < at + contract::wire::PdsRequest::kBytes) {
      return false;
    }
    const auto pds = contract::wire::PdsRequest::Decode(frame.data() + at);
    return pds.type == contract::PdsType::kRodReq &&
           pds.next_hdr == contract::NextHdr::kResponseData;
  }

  // Data of a READ come once more, as the next of their PDC or near it: good
  // frames with PSNs of their own.
  void AnswerAgain(Reader* input) {
    const uint8_t which = input->Byte();
    const uint8_t where = input->Byte();
    std::vector<const sim::frame::Frame*> answers;
    for (const sim::frame::Frame& frame : seen_) {
      if (IsReturnData(frame)) {
        answers.push_back(&frame);
      }
    }
    if (answers.empty()) {
      return;
    }
    sim::frame::Frame frame =
        *answers[answers.size() - 1 - which % answers.size()];
    uint8_t* const at = frame.data() + Layout(nic_.form()).pds;
    auto pds = contract::wire::PdsRequest::Decode(at);
    uint32_t& next = next_answer_[pds.dpdcid];
    pds.psn = next + (where & 7U) - (where >> 3 & 7U);
    pds.ar = where >> 6 & 1;
    pds.retx = where >> 7;
    if (static_cast<int32_t>(pds.psn - next) >= 0) {
      next = pds.psn + 1;
    }
    pds.Encode(at);
    FixCrc(nic_.form(), &frame);
    forged_ = true;
    nic_.Deliver(std::move(frame));
  }

  void Sent(sim::frame::Frame frame) {
    if (IsReturnData(frame)) {
      const auto pds = contract::wire::PdsRequest::Decode(
          frame.data() + Layout(nic_.form()).pds);
      const auto [at, first] =
          next_answer_.try_emplace(pds.dpdcid, pds.psn + 1);
      if (!first && static_cast<int32_t>(pds.psn - at->second) >= 0) {
        at->second = pds.psn + 1;
      }
    }
    if (seen_.size() == kMaxSeen) {
      seen_.erase(seen_.begin() + kMaxSeen / 2);  // The first ones stay.
    }
    seen_.push_back(frame);
    Rule rule{Rule::Action::kPass, {}};
    if (!rules_.empty()) {
      rule = std::move(rules_.front());
      rules_.pop_front();
    }
    switch (rule.action) {
      case Rule::Action::kDrop:
        break;
      case Rule::Action::kTwice:
        nic_.Return(frame);
        nic_.Return(frame);
        break;
      case Rule::Action::kHold:
        held_.push_back(std::move(frame));
        break;
      case Rule::Action::kEdit: {
        Reader edit(rule.edit);
        forged_ |= Edit(nic_.form(), &edit, &frame);
        nic_.Deliver(std::move(frame));
        break;
      }
      case Rule::Action::kError:
        nic_.Deliver(std::move(frame), true);
        break;
      default:
        nic_.Return(std::move(frame));
        break;
    }
  }

  void Operation(Reader* input) {
    const uint8_t code = input->Byte();
    switch (code % 8) {
      case 0:
      case 1: {
        const uint32_t bytes =
            (code & 0x80) != 0 ? input->Half() % kMaxMessage : input->Byte();
        Send(bytes, (code >> 3 & 7) == 7 ? 1 : 0,
             static_cast<uint8_t>(
                 ((code & 0x40) != 0 ? 0 : contract::kTxFlagCompletion) |
                 ((code & 0x20) != 0 ? contract::kTxFlagHeaderData : 0) |
                 ((code & 0x18) == 0x18 ? contract::kTxFlagDeliveryComplete
                                        : 0)));
        break;
      }
      case 2:
        if ((code & 0x60) == 0x60) {
          Read((code & 0x80) != 0 ? input->Half() % kMaxMessage
                                  : input->Byte());
          break;
        }
        for (uint32_t i = 0; i <= (code >> 3 & 3U); ++i) {
          Post((code & 0x80) != 0 ? input->Byte() : kBufferBytes);
        }
        break;
      case 3: {
        Rule rule{static_cast<Rule::Action>((code >> 3) % 6), {}};
        if (rule.action == Rule::Action::kEdit && ++made_ <= kMaxFrames) {
          const auto bytes = input->Bytes(input->Below(24));
          rule.edit.assign(bytes.begin(), bytes.end());
        }
        if (rules_.size() < kMaxSeen) {
          rules_.push_back(std::move(rule));
        }
        break;
      }
      case 4: {  // An earlier frame, changed.
        if (++made_ > kMaxFrames) {
          break;
        }
        sim::frame::Frame frame = seen_[input->Byte() % seen_.size()];
        Edit(nic_.form(), input, &frame);
        forged_ = true;
        nic_.Deliver(std::move(frame));
        break;
      }
      case 5: {  // A packet that the NIC did not send.
        if (++made_ > kMaxFrames) {
          break;
        }
        sim::frame::Frame frame =
            MakePacket(nic_.form(), input, Request(code >> 3));
        if ((code & 0x40) != 0) {  // From somebody else.
          frame[Layout(nic_.form()).l4 - 5] ^= 8;
          FixCrc(nic_.form(), &frame);
          FixIpChecksum(nic_.form(), &frame);
        }
        if ((code & 0x80) != 0) {
          Edit(nic_.form(), input, &frame);
        }
        forged_ = true;
        nic_.Deliver(std::move(frame));
        break;
      }
      case 6: {  // Noise, alone or behind good addresses.
        if (++made_ > kMaxFrames) {
          break;
        }
        if ((code & 0x18) == 0x18) {
          AnswerAgain(input);
          break;
        }
        sim::frame::Frame frame;
        if ((code & 0x80) != 0) {
          frame.assign(seen_.front().begin(),
                       seen_.front().begin() + ((code & 0x40) != 0 ? 14 : 34));
        }
        const auto bytes = input->Bytes(input->Byte());
        frame.insert(frame.end(), bytes.begin(), bytes.end());
        nic_.Deliver(std::move(frame), (code & 0x20) != 0);
        break;
      }
      default:
        if ((code & 0x80) != 0) {
          for (auto& held : held_) {
            nic_.Return(std::move(held));
          }
          held_.clear();
        }
        nic_.Step((code >> 3 & 0xfU) * kMaxSteps / 15);
        break;
    }
  }

  // The `index`th request among the frames seen, counted from the last.
  const sim::frame::Frame& Request(uint32_t index) const {
    const size_t at = Layout(nic_.form()).pds;
    std::vector<const sim::frame::Frame*> requests;
    for (const sim::frame::Frame& frame : seen_) {
      if (frame.size() > at + 56 && frame[at] >> 3 < 4) {
        requests.push_back(&frame);
      }
    }
    return *requests[requests.size() - 1 - index % 4 % requests.size()];
  }

  void Collect() {
    Completion completion;
    while (victim_.TakeTx(&completion)) {
      TakeTx(completion);
      if (ChosenSabotage() == Sabotage::kCompletion) {
        TakeTx(completion);
      }
    }
    while (victim_.TakeRx(&completion)) {
      TakeRx(completion);
      if (ChosenSabotage() == Sabotage::kInvented) {
        completion.op_context = posted_.size();
        TakeRx(completion);
      }
    }
  }

  void TakeTx(const Completion& completion) {
    if (completion.op_context >= sent_.size()) {
      throw Broken("a transmit completion of nothing that was posted");
    }
    Message& message = sent_[completion.op_context];
    if (message.completed) {
      throw Broken("two completions of one send");
    }
    message.completed = true;
    if (message.read) {
      TakeResult(completion, message);
    }
    released_ = std::max<uint64_t>(released_, completion.queue_head);
    if (completion.status == Status::kOk &&
        (message.flags & contract::kTxFlagCompletion) == 0) {
      throw Broken("a completion that was not asked for");
    }
  }

  // The buffer of a READ is the host's again.
  void TakeResult(const Completion& completion, const Message& message) {
    if (completion.status == Status::kOk && !forged_ &&
        std::memcmp(results_.data() + message.result,
                    scene_.source.data() + message.offset,
                    message.bytes) != 0) {
      throw Broken("a read brought other data");
    }
    results_.Accept(message.result, message.bytes);
  }

  void TakeRx(const Completion& completion) {
    if (completion.op_context >= posted_.size()) {
      throw Broken("a receive completion of nothing that was posted");
    }
    Buffer& buffer = posted_[completion.op_context];
    if (buffer.done) {
      throw Broken("two completions of one receive buffer");
    }
    buffer.done = true;
    if (completion.length > buffer.bytes) {
      throw Broken("a receive completion longer than its buffer");
    }
    const std::byte* const data = scene_.target.data() + buffer.offset;
    const bool whole = completion.status == Status::kOk ||
                       completion.status == Status::kTruncated;
    // The rest of the buffer may have been written by a message in error only.
    if (whole && !forged_) {
      MatchMessage(completion, data);
      scene_.target.Accept(buffer.offset, completion.length);
    } else {
      scene_.target.Accept(buffer.offset, buffer.bytes);
    }
  }

  // Messages arrive each once; on ROD in the order in which they were sent.
  void MatchMessage(const Completion& completion, const std::byte* data) {
    for (size_t i = next_; i < sent_.size(); ++i) {
      Message& message = sent_[i];
      if (!message.delivered && message.to_self &&
          message.bytes == completion.message_length &&
          std::memcmp(data, scene_.source.data() + message.offset,
                      completion.length) == 0) {
        message.delivered = true;
        next_ = nic_.form().rud ? 0 : i + 1;
        return;
      }
    }
    throw Broken("a message arrived that nobody sent");
  }

  // Everything asked for has ended.
  void Judge() {
    for (const Message& message : sent_) {
      if ((message.flags & contract::kTxFlagCompletion) != 0 &&
          !message.completed) {
        throw Broken("a send without its completion");
      }
    }
    if (std::max(released_, victim_.tx_released()) != sent_.size()) {
      throw Broken("the NIC keeps slots of the transmit ring");
    }
  }

  Scene& scene_;
  FuzzNic& nic_;
  OpenEndpoint& victim_;
  std::vector<Message> sent_;
  std::vector<Buffer> posted_;
  std::vector<sim::frame::Frame> seen_;
  std::deque<Rule> rules_;
  std::vector<sim::frame::Frame> held_;
  size_t made_ = 0;
  size_t next_ = 0;
  Watched results_;
  uint64_t key_ = 0;
  size_t reads_ = 0;
  std::map<uint16_t, uint32_t> next_answer_;  // PSNs, by PDCID.
  uint64_t released_ = 0;                     // By completions.
  bool forged_ = false;
};

// A quarter of the first bytes means RUD.
bool IsRud(uint8_t form) {
  return (form & 0xc) == 4;
}

Run& RunOf(uint8_t form) {
  static auto* const runs = new std::array<std::unique_ptr<Run>, kScenes>;
  const bool rud = IsRud(form);
  auto& run = (*runs)[SceneNumber(form, rud)];
  if (run == nullptr) {
    run = std::make_unique<Run>(SceneOf(form, rud));
    try {
      run->WarmUp();
    } catch (const Broken& broken) {
      std::fprintf(stderr, "PROPERTY: %s\n", broken.what());
      std::abort();
    }
  }
  return *run;
}

}  // namespace
}  // namespace heddle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::fuzz::Reader input({data, size});
  const uint8_t form = input.Byte();
  heddle::fuzz::Run& run = heddle::fuzz::RunOf(form);
  heddle::fuzz::RunIsolated(run.nic(), [&] { run.Execute(input); });
  return 0;
}
