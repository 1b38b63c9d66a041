// What a GPU is: its driver's and libraries' words, and its data sheet's.
#pragma once

#include "calibrate/cuda/gpu_monitor.h"
#include "calibrate/harness/backend.h"

namespace herdsim::cuda {

// Throws: SpecError where this program has no code for the device.
DeviceFacts gpu_facts(const GpuMonitor& monitor, int device);

// By what copies from one device to another go, and how fast that is at most.
void add_peer_link(const GpuMonitor& monitor, int device, int peer, DeviceFacts& facts);

// As CUDA prints it.
std::string pci_bus_id(int device);

}  // namespace herdsim::cuda
