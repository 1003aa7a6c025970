// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/frame/capture.h"

#include <fcntl.h>
#include <pcap/pcap.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "hw/sim/base/clock.h"

namespace heddle::sim::frame {
namespace {

constexpr int kSnapBytes = 16384;

// Files of one name that are open at the same time.
constexpr int kMostFiles = 1000;

// `path` with a number before its suffix.
std::string Numbered(const std::string& path, int number) {
  const size_t name =
      path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  const size_t dot = path.rfind('.');
  const size_t at = dot == std::string::npos || dot <= name ? path.size() : dot;
  return path.substr(0, at) + '-' + std::to_string(number) + path.substr(at);
}

// An empty file that nobody else writes; a pipe or a device as it is.
Result<int> OpenOwn(const std::string& path) {
  for (int number = 1; number <= kMostFiles; ++number) {
    const std::string name = number == 1 ? path : Numbered(path, number);
    const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC,
                        S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
    if (fd < 0) {
      return Errno{errno};
    }
    struct stat file {};
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) {
      return fd;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, 0) == 0) {
      return fd;
    }
    const int error = errno;
    close(fd);
    if (error != EWOULDBLOCK) {
      return Errno{error};
    }
  }
  return Errno{EBUSY};
}

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
  const Result<int> fd = OpenOwn(path);
  if (!fd.ok()) {
    return fd.error();
  }
  std::FILE* const stream = fdopen(fd.value(), "wb");
  if (stream == nullptr) {
    const int error = errno;
    close(fd.value());
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
  header.ts.tv_sec = static_cast<time_t>(time_ns / base::kNsPerSecond);
  // With nanosecond precision this field holds nanoseconds.
  header.ts.tv_usec = static_cast<suseconds_t>(time_ns % base::kNsPerSecond);
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

}  // namespace heddle::sim::frame
