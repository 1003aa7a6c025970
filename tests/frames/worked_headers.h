// SPDX-License-Identifier: Apache-2.0
// Headers of the worked frames as the contract's C++ types, either way.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/contract/gen/heddle_wire.h"
#include "tests/frames/worked.h"

namespace heddle::test {

// Calls v(name, field) for each field that may be stated.
template <typename V>
void Fields(contract::wire::PdsRequest& h, V v) {
  v("type", h.type), v("next_hdr", h.next_hdr), v("retx", h.retx);
  v("ar", h.ar), v("syn", h.syn), v("clear_psn_offset", h.clear_psn_offset);
  v("psn", h.psn), v("spdcid", h.spdcid), v("dpdcid", h.dpdcid);
  v("pdc_info", h.pdc_info), v("psn_offset", h.psn_offset);
}
template <typename V>
void Fields(contract::wire::PdsAck& h, V v) {
  v("type", h.type), v("next_hdr", h.next_hdr), v("m", h.m);
  v("retx", h.retx), v("p", h.p), v("req", h.req);
  v("ack_psn_offset", h.ack_psn_offset), v("cack_psn", h.cack_psn);
  v("spdcid", h.spdcid), v("dpdcid", h.dpdcid);
}
template <typename V>
void Fields(contract::wire::PdsNack& h, V v) {
  v("type", h.type), v("next_hdr", h.next_hdr), v("m", h.m);
  v("retx", h.retx), v("nt", h.nt), v("nack_code", h.nack_code);
  v("vendor_code", h.vendor_code), v("nack_psn", h.nack_psn);
  v("spdcid", h.spdcid), v("dpdcid", h.dpdcid), v("payload", h.payload);
}
template <typename V>
void Fields(contract::wire::PdsCp& h, V v) {
  v("type", h.type), v("cp_type", h.cp_type), v("isrod", h.isrod);
  v("retx", h.retx), v("ar", h.ar), v("syn", h.syn);
  v("probe_opaque", h.probe_opaque), v("psn", h.psn), v("spdcid", h.spdcid);
  v("dpdcid", h.dpdcid), v("payload", h.payload);
}
template <typename V>
void Fields(contract::wire::SesStd& h, V v) {
  v("opcode", h.opcode), v("ver", h.ver), v("dc", h.dc), v("ie", h.ie);
  v("rel", h.rel), v("hd", h.hd), v("eom", h.eom), v("som", h.som);
  v("message_id", h.message_id), v("ri_generation", h.ri_generation);
  v("job_id", h.job_id), v("pid_on_fep", h.pid_on_fep);
  v("resource_index", h.resource_index), v("buffer_offset", h.buffer_offset);
  v("initiator", h.initiator), v("match_bits", h.match_bits);
  v("header_data", h.header_data), v("payload_length", h.payload_length);
  v("message_offset", h.message_offset), v("request_length", h.request_length);
}
template <typename V>
void Fields(contract::wire::SesResponse& h, V v) {
  v("list", h.list), v("opcode", h.opcode), v("ver", h.ver);
  v("return_code", h.return_code), v("message_id", h.message_id);
  v("ri_generation", h.ri_generation), v("job_id", h.job_id);
  v("modified_length", h.modified_length);
}
template <typename V>
void Fields(contract::wire::SesResponseData& h, V v) {
  v("list", h.list), v("opcode", h.opcode), v("ver", h.ver);
  v("return_code", h.return_code);
  v("response_message_id", h.response_message_id), v("job_id", h.job_id);
  v("read_request_message_id", h.read_request_message_id);
  v("payload_length", h.payload_length),
      v("modified_length", h.modified_length);
  v("message_offset", h.message_offset);
}

// The types' names in the contract.
template <typename Visit>
void EachHeader(const WorkedFrame& frame, Visit visit) {
  namespace wire = contract::wire;
  const auto one = [&](const char* name, auto header) {
    if (HasHeader(frame, name)) {
      visit(name, header);
    }
  };
  one("pds_request", wire::PdsRequest());
  one("pds_ack", wire::PdsAck());
  one("pds_nack", wire::PdsNack());
  one("pds_cp", wire::PdsCp());
  one("ses_std", wire::SesStd());
  one("ses_response", wire::SesResponse());
  one("ses_response_data", wire::SesResponseData());
}

// The frame's headers hold what it is said to hold.
inline void ExpectStatedValues(const WorkedFrame& frame,
                               const std::vector<uint8_t>& packet) {
  EachHeader(frame, [&](std::string_view name, auto empty) {
    const size_t at = name.starts_with("ses_") ? frame.ses - frame.pds : 0;
    ASSERT_GE(packet.size(), at + empty.kBytes);
    auto header = decltype(empty)::Decode(packet.data() + at);
    Fields(header, [&](const char* field, auto value) {
      // A signed one is extended on both sides.
      const auto found = static_cast<uint64_t>(static_cast<int64_t>(value));
      EXPECT_EQ(found, WorkedValue(frame, name, field)) << name << '.' << field;
    });
  });
}

// The frame's packet, encoded from the values that it is said to hold.
inline std::vector<uint8_t> EncodeStatedValues(const WorkedFrame& frame) {
  std::vector<uint8_t> packet;
  EachHeader(frame, [&](std::string_view name, auto header) {
    Fields(header, [&](const char* field, auto& value) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(
          WorkedValue(frame, name, field));
    });
    packet.resize(packet.size() + header.kBytes);
    header.Encode(packet.data() + packet.size() - header.kBytes);
  });
  const std::vector<uint8_t> payload = FromHex(frame.payload);
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

}  // namespace heddle::test
