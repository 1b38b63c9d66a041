// Clock, power and links of a GPU by NVML, loaded at run time: a machine without its driver still
// builds and starts, and a driver that lacks a call answers as if nothing were known.
#pragma once

#include <optional>
#include <string>

#include "calibrate/harness/backend.h"

namespace herdsim::cuda {

class GpuMonitor {
 public:
  // `pci_bus_id` as CUDA prints it.
  explicit GpuMonitor(const std::string& pci_bus_id);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  double clock_mhz() const;  // of the multiprocessors; 0 where NVML is not there
  // Watts that the board draws, over about the last second; 0 where not known.
  double power() const;
  Slowdown slowdown() const;   // what holds the clock down now
  double power_limit() const;  // watts; 0 where not known
  std::string driver() const;  // "580.65.06", or empty
  // Bytes a second of the PCIe link, each way, as board and slot allow; 0 where not known.
  double pcie_rate() const;
  // Whether NVLink joins the two; nothing where NVML does not tell.
  std::optional<bool> has_nvlink_to(const GpuMonitor& other) const;

 private:
  // Whether the call is there and succeeds.
  template <class... Arguments>
  bool ask(const char* call, Arguments... arguments) const;
  unsigned number(const char* call) const;  // of this GPU; 0 where not known

  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace herdsim::cuda
