// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/capture.h"

#include <fcntl.h>
#include <pcap/pcap.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "hw/sim/clock.h"

namespace heddle::sim {
namespace {

constexpr int kSnapBytes = 16384;

}  // namespace

struct Capture::File {
  pcap_t* pcap = nullptr;
  pcap_dumper_t* dumper = nullptr;
  bool dirty = false;

  ~File() {
    if (dumper != nullptr) {
      pcap_dump_close(dumper);
    }
    if (pcap != nullptr) {
      pcap_close(pcap);
    }
  }
};

Capture::Capture(std::unique_ptr<File> file) : file_(std::move(file)) {}

Capture::~Capture() = default;

Result<std::unique_ptr<Capture>> Capture::Open(const std::string& path) {
  auto file = std::make_unique<File>();
  file->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapBytes,
                                                    PCAP_TSTAMP_PRECISION_NANO);
  if (file->pcap == nullptr) {
    return Errno{ENOMEM};
  }
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                      S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  if (fd < 0) {
    return Errno{errno};
  }
  std::FILE* const stream = fdopen(fd, "wb");
  if (stream == nullptr) {
    const int error = errno;
    close(fd);
    return Errno{error};
  }
  file->dumper = pcap_dump_fopen(file->pcap, stream);
  if (file->dumper == nullptr) {
    std::fclose(stream);
    return Errno{EIO};
  }
  pcap_dump_flush(file->dumper);
  return std::unique_ptr<Capture>(new Capture(std::move(file)));
}

void Capture::Add(std::span<const uint8_t> frame, uint64_t time_ns) {
  pcap_pkthdr header{};
  header.ts.tv_sec = static_cast<time_t>(time_ns / kNsPerSecond);
  // With nanosecond precision this field holds nanoseconds.
  header.ts.tv_usec = static_cast<suseconds_t>(time_ns % kNsPerSecond);
  header.caplen = static_cast<bpf_u_int32>(frame.size());
  header.len = header.caplen;
  // NOLINTNEXTLINE: the dumper is the first argument in libpcap's callback
  // form.
  pcap_dump(reinterpret_cast<u_char*>(file_->dumper), &header, frame.data());
  file_->dirty = true;
}

void Capture::Flush() {
  if (file_->dirty) {
    pcap_dump_flush(file_->dumper);
    file_->dirty = false;
  }
}

}  // namespace heddle::sim
