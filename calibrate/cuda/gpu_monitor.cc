#include "calibrate/cuda/gpu_monitor.h"

#include <dlfcn.h>

#include <array>

namespace herdsim::cuda {
namespace {

constexpr int kSmClock = 1;     // NVML_CLOCK_SM
constexpr int kNvlinkCaps = 2;  // NVML_P2P_CAPS_INDEX_NVLINK

// nvmlClocksEventReasons, called throttle reasons before driver 535.
constexpr unsigned long long kPowerReasons = 0x4 | 0x80;        // software cap, power brake
constexpr unsigned long long kHeatReasons = 0x8 | 0x20 | 0x40;  // hardware, software, hardware

// A lane's gigabytes a second by generation, after line coding.
constexpr std::array<double, 7> kLaneRate = {0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};

}  // namespace

template <class... Arguments>
bool GpuMonitor::ask(const char* call, Arguments... arguments) const {
  if (library_ == nullptr) return false;
  const auto found = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, call));
  return found != nullptr && found(arguments...) == 0;
}

GpuMonitor::GpuMonitor(const std::string& pci_bus_id)
    : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  if (!ask("nvmlInit_v2") || !ask("nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &device_))
    device_ = nullptr;
}

GpuMonitor::~GpuMonitor() {
  ask("nvmlShutdown");
  if (library_ != nullptr) dlclose(library_);
}

unsigned GpuMonitor::number(const char* call) const {
  unsigned value = 0;
  return device_ != nullptr && ask(call, device_, &value) ? value : 0;
}

double GpuMonitor::clock_mhz() const {
  unsigned mhz = 0;
  return device_ != nullptr && ask("nvmlDeviceGetClockInfo", device_, kSmClock, &mhz) ? mhz : 0;
}

double GpuMonitor::power() const { return number("nvmlDeviceGetPowerUsage") * 1e-3; }

double GpuMonitor::power_limit() const { return number("nvmlDeviceGetEnforcedPowerLimit") * 1e-3; }

Slowdown GpuMonitor::slowdown() const {
  unsigned long long reasons = 0;
  const bool known =
      device_ != nullptr && (ask("nvmlDeviceGetCurrentClocksEventReasons", device_, &reasons) ||
                             ask("nvmlDeviceGetCurrentClocksThrottleReasons", device_, &reasons));
  if (!known) return Slowdown::kNone;
  if ((reasons & kHeatReasons) != 0) return Slowdown::kHeat;
  return (reasons & kPowerReasons) != 0 ? Slowdown::kPower : Slowdown::kNone;
}

double GpuMonitor::pcie_rate() const {
  const unsigned generation = number("nvmlDeviceGetMaxPcieLinkGeneration");
  const unsigned lanes = number("nvmlDeviceGetMaxPcieLinkWidth");
  return generation < kLaneRate.size() ? kLaneRate[generation] * 1e9 * lanes : 0;
}

std::optional<bool> GpuMonitor::has_nvlink_to(const GpuMonitor& other) const {
  int status = 0;
  if (device_ == nullptr || other.device_ == nullptr ||
      !ask("nvmlDeviceGetP2PStatus", device_, other.device_, kNvlinkCaps, &status))
    return std::nullopt;
  return status == 0;
}

std::string GpuMonitor::driver() const {
  std::array<char, 96> text{};
  constexpr unsigned kLength = text.size();
  return ask("nvmlSystemGetDriverVersion", text.data(), kLength) ? text.data() : "";
}

}  // namespace herdsim::cuda
