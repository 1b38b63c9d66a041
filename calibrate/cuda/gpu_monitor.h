// Clock and power of a GPU by NVML, loaded at run time: a machine without its driver still builds
// and starts.
#pragma once

#include <string>

namespace herdsim::cuda {

class GpuMonitor {
 public:
  // `pci_bus_id` as CUDA prints it.
  explicit GpuMonitor(const std::string& pci_bus_id);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  double clock_mhz() const;  // of the multiprocessors; 0 where NVML is not there
  double power()
      const;  // watts that the board draws, over about the last second; 0 where not known
  double power_limit() const;  // watts; 0 where not known
  std::string driver() const;  // "580.65.06", or empty

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace herdsim::cuda
