// The names of the data types, as scenarios and profiles write them.
#pragma once

#include <array>
#include <string_view>

#include "sim/models/kernel.h"

namespace herdsim {

constexpr std::array<std::string_view, 4> kDataTypeNames = {"BF16", "FP8", "FP16", "FP32"};

constexpr std::string_view data_type_name(DataType type) {
  return kDataTypeNames[static_cast<size_t>(type)];
}

}  // namespace herdsim
