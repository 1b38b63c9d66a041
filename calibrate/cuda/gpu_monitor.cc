#include "calibrate/cuda/gpu_monitor.h"

#include <dlfcn.h>

#include <array>

namespace herdsim::cuda {
namespace {

constexpr int kSmClock = 1;  // NVML_CLOCK_SM

template <class Function>
Function symbol(void* library, const char* name) {
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

GpuMonitor::GpuMonitor(const std::string& pci_bus_id)
    : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
  const auto init = symbol<int (*)()>(library_, "nvmlInit_v2");
  const auto find =
      symbol<int (*)(const char*, void**)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || find == nullptr || init() != 0 || find(pci_bus_id.c_str(), &device_) != 0)
    device_ = nullptr;
}

GpuMonitor::~GpuMonitor() {
  if (const auto shutdown = symbol<int (*)()>(library_, "nvmlShutdown"); shutdown != nullptr)
    shutdown();
  if (library_ != nullptr) dlclose(library_);
}

double GpuMonitor::clock_mhz() const {
  const auto clock = symbol<int (*)(void*, int, unsigned*)>(library_, "nvmlDeviceGetClockInfo");
  unsigned mhz = 0;
  return device_ != nullptr && clock != nullptr && clock(device_, kSmClock, &mhz) == 0 ? mhz : 0;
}

double GpuMonitor::power_limit() const {
  const auto limit = symbol<int (*)(void*, unsigned*)>(library_, "nvmlDeviceGetEnforcedPowerLimit");
  unsigned milliwatts = 0;
  return device_ != nullptr && limit != nullptr && limit(device_, &milliwatts) == 0
             ? milliwatts * 1e-3
             : 0;
}

double GpuMonitor::power() const {
  const auto usage = symbol<int (*)(void*, unsigned*)>(library_, "nvmlDeviceGetPowerUsage");
  unsigned milliwatts = 0;
  return device_ != nullptr && usage != nullptr && usage(device_, &milliwatts) == 0
             ? milliwatts * 1e-3
             : 0;
}

std::string GpuMonitor::driver() const {
  const auto version = symbol<int (*)(char*, unsigned)>(library_, "nvmlSystemGetDriverVersion");
  std::array<char, 96> text{};
  return version != nullptr && version(text.data(), text.size()) == 0 ? text.data() : "";
}

}  // namespace herdsim::cuda
