// Between enumerations of the scenario language and those of the simulator.
#pragma once

namespace herdsim {

// Enumerators have the same order on both sides; where it is used, a static_assert on the last one of each shows that
// none was added to one side alone.
template <typename To, typename From>
To enum_cast(From value) {
  return static_cast<To>(static_cast<int>(value));
}

}  // namespace herdsim
