#include "tools/study/closed_forms.h"

#include <cmath>

#include "sim/base/check.h"

namespace herdsim {
namespace {

constexpr double kSecondsADay = 86'400;

// Up to the next whole; what misses a whole by rounding alone is that whole.
int64_t whole_from(double value) { return static_cast<int64_t>(std::ceil(value * (1 - 1e-12))); }

double busy_bubble(int64_t stages, int64_t micro_batches, int64_t virtual_stages) {
  return static_cast<double>(stages - 1) / static_cast<double>(virtual_stages * micro_batches);
}

}  // namespace

double flops_per_byte(FlopRate compute, Bandwidth link) {
  HERDSIM_CHECK(link > Bandwidth()) << "a link without bandwidth";
  return compute.per_second() / static_cast<double>(link.bytes_per_second());
}

double data_parallel_tokens_bound(double alpha, double axes) { return alpha / axes; }

double tensor_parallel_limit(double ffn, double alpha, double axes) { return axes * ffn / alpha; }
double tensor_parallel_least_ffn(double ways, double alpha, double axes) {
  return ways * alpha / axes;
}

MeshSplit optimal_split(double tokens, double ffn, double gpus, double alpha_fsdp, double alpha_tp,
                        double axes_ratio) {
  const double fsdp = std::sqrt(tokens / ffn * gpus * (alpha_tp / alpha_fsdp) * axes_ratio);
  return {.fsdp = fsdp, .tp = gpus / fsdp};
}
double fsdp_and_tp_tokens_bound(double alpha_fsdp, double alpha_tp, double ffn, double axes) {
  return alpha_fsdp * alpha_tp / (axes * ffn);
}

double bubble_share(int64_t stages, int64_t micro_batches, int64_t virtual_stages) {
  const double busy = busy_bubble(stages, micro_batches, virtual_stages);
  return busy / (1 + busy);
}
double bubble_slowdown(int64_t stages, int64_t more, int64_t fewer, int64_t virtual_stages) {
  return (1 + busy_bubble(stages, more, virtual_stages)) /
         (1 + busy_bubble(stages, fewer, virtual_stages));
}

double largest_model_parameters(Bytes memory, const StateLedger& ledger) {
  return static_cast<double>(memory.count()) / ledger.bytes_a_parameter();
}
int64_t least_gpus_for_state(double parameters, Bytes memory, const StateLedger& ledger) {
  return whole_from(parameters / largest_model_parameters(memory, ledger));
}

double training_flops(double parameters, double tokens) { return 6 * parameters * tokens; }
double training_days(double flops, double gpus, double flops_per_gpu) {
  return flops / (gpus * flops_per_gpu) / kSecondsADay;
}
int64_t gpus_for_days(double flops, double days, double flops_per_gpu) {
  return whole_from(flops / (days * kSecondsADay * flops_per_gpu));
}
double rate_for_days(double flops, double gpus, double days) {
  return flops / (gpus * days * kSecondsADay);
}

}  // namespace herdsim
