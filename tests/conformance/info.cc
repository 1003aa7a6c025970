// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/info.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cstring>

#include "tests/conformance/runner.h"

namespace heddle::conformance {

std::vector<const fi_info*> Answer::own() const& {
  std::vector<const fi_info*> entries;
  for (const fi_info* info = infos.get(); info != nullptr; info = info->next) {
    if (info->fabric_attr->prov_name == CurrentSettings().provider) {
      entries.push_back(info);
    }
  }
  return entries;
}

char* CopyText(const std::string& text) {
  return strdup(text.c_str());
}

InfoPointer MakeEmptyHints() {
  InfoPointer hints(fi_allocinfo());
  hints->fabric_attr->prov_name = CopyText(CurrentSettings().provider);
  return hints;
}

InfoPointer MakeHints(uint64_t caps) {
  InfoPointer hints = MakeEmptyHints();
  hints->caps = caps;
  hints->mode = kModes;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = kMrModes;
  return hints;
}

Answer GetInfo(const fi_info* hints, const Query& query) {
  Answer answer;
  fi_info* found = nullptr;
  answer.result = fi_getinfo(query.version, query.node, query.service,
                             query.flags, hints, &found);
  answer.infos.reset(found);
  return answer;
}

std::string NumericHost(const void* address, size_t bytes) {
  const auto* const socket_address = static_cast<const sockaddr*>(address);
  char text[NI_MAXHOST] = "";
  if (bytes < sizeof(sa_family_t) ||
      (socket_address->sa_family != AF_INET &&
       socket_address->sa_family != AF_INET6) ||
      getnameinfo(socket_address, static_cast<socklen_t>(bytes), text,
                  sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return text;
}

std::string NumericHost(const fi_info& info) {
  const bool ip = info.addr_format == FI_SOCKADDR ||
                  info.addr_format == FI_SOCKADDR_IN ||
                  info.addr_format == FI_SOCKADDR_IN6;
  return ip && info.src_addr != nullptr
             ? NumericHost(info.src_addr, info.src_addrlen)
             : "";
}

}  // namespace heddle::conformance
