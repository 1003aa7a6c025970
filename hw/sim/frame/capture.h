// SPDX-License-Identifier: Apache-2.0
// Capture of frames to a pcap file with nanosecond time stamps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "driver/result.h"

namespace heddle::sim::frame {

// One pcap file, written by libpcap. Complete after `Flush`, also if the
// process ends without closing it.
// Thread safety: none.
class Capture {
 public:
  // A file that another capture writes, in any process, is left to it: this one
  // gets a number before the suffix (run-2.pcap). Errors: the errno of creating
  // the file; EBUSY: there are too many.
  static Result<std::unique_ptr<Capture>> Open(const std::string& path);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void Add(std::span<const uint8_t> frame, uint64_t time_ns);
  void Flush();

 private:
  struct File;
  explicit Capture(std::unique_ptr<File> file);

  std::unique_ptr<File> file_;
};

}  // namespace heddle::sim::frame
