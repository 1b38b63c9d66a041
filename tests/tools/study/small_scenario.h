// A job of 8 GPUs whose step simulates in about a millisecond.
#pragma once

#include <string>
#include <vector>

namespace herdsim {

inline const std::vector<std::string>& small_sets() {
  static const std::vector<std::string> kSets = {"gpus=8",
                                                 "parallel.dp=",
                                                 "model.layers=4",
                                                 "training.sequence_length=1024",
                                                 "recovery.spares=0",
                                                 "training.global_batch=16"};
  return kSets;
}
inline constexpr char kSmallScenario[] = "llama3-8b-1024";

}  // namespace herdsim
