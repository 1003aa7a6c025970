// SPDX-License-Identifier: Apache-2.0
#include "hw/sim/nic/nic_model.h"

#include <bit>
#include <cstring>
#include <utility>

#include "Vheddle_nic.h"
#include "hw/contract/gen/heddle_contract.h"
#include "hw/sim/model/model_stopped.h"
#include "verilated.h"
#if HEDDLE_SIM_TRACE
#include "verilated_fst_c.h"
#endif

namespace heddle::sim::nic {
namespace {

constexpr int kResetCycles = 8;

// Ports wider than 64 bits are arrays of words, the others integers; both are
// little-endian bytes on the hosts this runs on.
template <typename Port>
const uint8_t* Bytes(const Port& port) {
  // NOLINTNEXTLINE: the bytes of a port.
  return reinterpret_cast<const uint8_t*>(&port);
}

template <typename Port>
void Store(Port& port, const uint8_t* bytes) {
  std::memcpy(&port, bytes, sizeof(port));
}

}  // namespace

struct NicModel::Pins {
  VerilatedContext context;
  std::unique_ptr<Vheddle_nic> model;
#if HEDDLE_SIM_TRACE
  std::unique_ptr<VerilatedFstC> trace;
#endif
  const uint64_t trace_from_time;  // Half cycles.

  Pins(const std::string& trace_path, uint64_t trace_from_cycle)
      : trace_from_time(2 * trace_from_cycle) {
    // No pool of threads that would do nothing and take the host's signals.
    context.threads(1);
#if HEDDLE_SIM_TRACE
    context.traceEverOn(!trace_path.empty());
    model = std::make_unique<Vheddle_nic>(&context);
    if (!trace_path.empty()) {
      constexpr int kAllLevels = 99;
      trace = std::make_unique<VerilatedFstC>();
      model->trace(trace.get(), kAllLevels);
      trace->open(trace_path.c_str());
    }
#else
    static_cast<void>(trace_path);
    model = std::make_unique<Vheddle_nic>(&context);
#endif
  }
  ~Pins() {
#if HEDDLE_SIM_TRACE
    if (trace != nullptr) {
      trace->close();
    }
#endif
    // Verilator 5.006 takes scopes out of the context that this thread used
    // last, which may be that of a model already gone.
    Verilated::threadContextp(&context);
    model.reset();
    Verilated::threadContextp(nullptr);
  }
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  void Eval(uint8_t level) {
    context.timeInc(1);
    model->clk_i = level;
    model->eval();
#if HEDDLE_SIM_TRACE
    if (trace != nullptr && context.time() >= trace_from_time) {
      trace->dump(context.time());
    }
#endif
  }
};

uint32_t NicModel::BusBytes() {
  return sizeof(std::declval<Vheddle_nic>().m_axi_wdata_o);
}

NicModel::NicModel(const NicModelOptions& options, pins::HostMemory* memory,
                   pins::MacLink* mac, InterruptSink interrupt)
    : memory_(memory),
      mac_(mac),
      interrupt_(std::move(interrupt)),
      pins_(std::make_unique<Pins>(options.trace, options.trace_from_cycle)) {
  try {
    pins_->model->rst_ni = 0;
    for (int i = 0; i < kResetCycles; ++i) {
      pins_->Eval(0);
      pins_->Eval(1);
    }
    pins_->model->rst_ni = 1;
  } catch (const model::ModelStopped& stopped) {
    Fail(stopped.what());
  }
}

NicModel::~NicModel() {
  if (!failed()) {
    pins_->model->final();
  }
}

void NicModel::Fail(const std::string& reason) {
  if (failure_.empty()) {
    failure_ = "cycle " + std::to_string(cycles_) + ": " + reason;
    FlushTrace();
  }
}

void NicModel::FlushTrace() {
#if HEDDLE_SIM_TRACE
  if (pins_->trace != nullptr) {
    pins_->trace->flush();
  }
#endif
}

void NicModel::StartManagement(bool write, uint32_t address, uint32_t value) {
  pins_->model->mgmt_write_i = write;
  pins_->model->mgmt_addr_i = static_cast<uint16_t>(address);
  pins_->model->mgmt_wdata_i = value;
  management_busy_ = true;
  management_result_.reset();
}

std::optional<uint32_t> NicModel::TakeManagement() {
  return std::exchange(management_result_, std::nullopt);
}

void NicModel::Drive(bool tick) {
  Vheddle_nic& pins = *pins_->model;
  pins.tick_i = tick;
  const pins::AxiToDevice& memory = memory_->Drive();
  pins.m_axi_arready_i = memory.ar_ready;
  pins.m_axi_awready_i = memory.aw_ready;
  pins.m_axi_wready_i = memory.w_ready;
  pins.m_axi_rvalid_i = memory.r_valid;
  if (memory.r_valid) {
    pins.m_axi_rid_i = memory.r_id;
    pins.m_axi_rresp_i = static_cast<uint8_t>(memory.r_response);
    pins.m_axi_rlast_i = memory.r_last;
    Store(pins.m_axi_rdata_i, memory.r_data.data());
  }
  pins.m_axi_bvalid_i = memory.b_valid;
  pins.m_axi_bid_i = memory.b_id;
  pins.m_axi_bresp_i = static_cast<uint8_t>(memory.b_response);

  const pins::BarToDevice& bar = bar_.Drive();
  pins.s_axi_awvalid_i = bar.aw_valid;
  pins.s_axi_awaddr_i = bar.aw_address;
  pins.s_axi_awlen_i = 0;
  pins.s_axi_wvalid_i = bar.w_valid;
  Store(pins.s_axi_wdata_i, Bytes(bar.w_data));
  pins.s_axi_wstrb_i = bar.w_strobe;
  pins.s_axi_wlast_i = 1;
  pins.s_axi_bready_i = 1;
  pins.s_axi_arvalid_i = bar.ar_valid;
  pins.s_axi_araddr_i = bar.ar_address;
  pins.s_axi_arlen_i = 0;
  pins.s_axi_rready_i = 1;

  pins.mgmt_valid_i = management_busy_;
  pins.msix_ready_i = 1;

  pins.tx_axis_tready_i = mac_->TransmitReady();
  pins::MacBeat beat;
  const bool received = mac_->Receive(&beat);
  pins.rx_axis_tvalid_i = received;
  if (received) {
    Store(pins.rx_axis_tdata_i, beat.data.data());
    const uint64_t keep = beat.bytes >= pins::kMaxBusBytes
                              ? ~uint64_t{0}
                              : (uint64_t{1} << beat.bytes) - 1;
    Store(pins.rx_axis_tkeep_i, Bytes(keep));
    pins.rx_axis_tlast_i = beat.last;
    pins.rx_axis_tuser_i = beat.last && beat.error;
  }
  active_ = tick || received || management_busy_;
}

void NicModel::SampleMemory() {
  const Vheddle_nic& pins = *pins_->model;
  pins::AxiFromDevice device;
  device.ar_valid = pins.m_axi_arvalid_o;
  device.ar_id = pins.m_axi_arid_o;
  device.ar_address = pins.m_axi_araddr_o;
  device.ar_len = pins.m_axi_arlen_o;
  device.ar_size = pins.m_axi_arsize_o;
  device.ar_burst = pins.m_axi_arburst_o;
  device.ar_user = pins.m_axi_aruser_o;
  device.r_ready = pins.m_axi_rready_o;
  device.aw_valid = pins.m_axi_awvalid_o;
  device.aw_id = pins.m_axi_awid_o;
  device.aw_address = pins.m_axi_awaddr_o;
  device.aw_len = pins.m_axi_awlen_o;
  device.aw_size = pins.m_axi_awsize_o;
  device.aw_burst = pins.m_axi_awburst_o;
  device.aw_user = pins.m_axi_awuser_o;
  device.w_valid = pins.m_axi_wvalid_o;
  device.w_data = Bytes(pins.m_axi_wdata_o);
  std::memcpy(&device.w_strobe, Bytes(pins.m_axi_wstrb_o),
              sizeof(pins.m_axi_wstrb_o));
  device.w_last = pins.m_axi_wlast_o;
  device.b_ready = pins.m_axi_bready_o;
  memory_->Sample(device);
  if (memory_->broken()) {
    Fail("host memory: " + memory_->protocol_error());
  }
}

void NicModel::SampleStreams() {
  const Vheddle_nic& pins = *pins_->model;
  if (pins.tx_axis_tvalid_o && pins.tx_axis_tready_i) {
    uint64_t keep = 0;
    std::memcpy(&keep, Bytes(pins.tx_axis_tkeep_o),
                sizeof(pins.tx_axis_tkeep_o));
    mac_->Transmit(
        {Bytes(pins.tx_axis_tdata_o), static_cast<size_t>(std::popcount(keep))},
        pins.tx_axis_tlast_o);
    active_ = true;
  }
  if (pins.msix_valid_o && pins.msix_ready_i) {
    interrupt_(pins.msix_vector_o);
    active_ = true;
  }
}

void NicModel::Sample() {
  const Vheddle_nic& pins = *pins_->model;
  SampleMemory();
  SampleStreams();
  pins::BarFromDevice bar;
  bar.aw_ready = pins.s_axi_awready_o;
  bar.w_ready = pins.s_axi_wready_o;
  bar.b_valid = pins.s_axi_bvalid_o;
  bar.b_response = static_cast<pins::AxiResponse>(pins.s_axi_bresp_o);
  bar.ar_ready = pins.s_axi_arready_o;
  bar.r_valid = pins.s_axi_rvalid_o;
  std::memcpy(bar.r_data.data(), Bytes(pins.s_axi_rdata_o), sizeof(bar.r_data));
  bar.r_response = static_cast<pins::AxiResponse>(pins.s_axi_rresp_o);
  active_ = active_ || !bar_.quiet();
  bar_.Sample(bar);
  if (management_busy_ && pins.mgmt_ready_o) {
    management_result_ = pins.mgmt_rdata_o;
    management_busy_ = false;
  }
  management_event_ = pins.mgmt_event_o;
  deadline_.reset();
  if (pins.deadline_valid_o) {
    deadline_ = pins.deadline_o;
  }
  quiet_ = pins.idle_o && !active_ && memory_->quiet();
}

void NicModel::Report() {
  const Vheddle_nic& pins = *pins_->model;
  const bool bar2_write = pins.s_axi_awvalid_i && pins.s_axi_awready_o &&
                          pins.s_axi_awaddr_i >= pins::kBar2Address;
  const bool push = pins.s_axi_awaddr_i % contract::kDoorbellPageBytes >=
                    contract::kPushWindowOffset;
  observer_({.doorbell = bar2_write && !push,
             .push = bar2_write && push,
             .tx_beat = pins.tx_axis_tvalid_o && pins.tx_axis_tready_i,
             .rx_last_beat = pins.rx_axis_tvalid_i && pins.rx_axis_tlast_i,
             .write_address = pins.m_axi_awvalid_o && pins.m_axi_awready_i,
             .address = pins.m_axi_awaddr_o});
}

bool NicModel::Cycle(bool tick) {
  if (failed()) {
    return false;
  }
  try {
    Drive(tick);
    pins_->Eval(0);
    Sample();
    if (observer_) {
      Report();
    }
    pins_->Eval(1);
    ++cycles_;
  } catch (const model::ModelStopped& stopped) {
    Fail(stopped.what());
  }
  return !failed();
}

}  // namespace heddle::sim::nic
