// The profiles of the catalogue, made from public measurements: which files of which source mean
// what, one recipe a device.
//
// Data folder: a copy of the public tables named in the sources of each profile (aiconfigurator/,
// nccl_logs/, flash_attention/, liger/). The same folder gives the same profile.
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit/cross_validation.h"
#include "sim/models/device_profile.h"

namespace herdsim {

struct DeviceFit {
  DeviceProfile profile;
  std::vector<ErrorSummary> errors;  // cross-validated; empty unless asked for
};

// Names of the catalogue, in the order in which they are made.
const std::vector<std::string>& fitted_devices();

// Throws: SpecError where the name is unknown or a file of the recipe cannot be read.
DeviceFit fit_device(const std::string& name, const std::string& data_folder, bool cross_validate);

// Errors as an aligned table, one group a line, with goals.
std::string error_table_text(const std::vector<ErrorSummary>& errors);

}  // namespace herdsim
