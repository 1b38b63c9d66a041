#include "workloads/work_template.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace herdsim {

int TemplateBuilder::compute(std::string name, std::vector<Kernel> kernels,
                             std::vector<int> after) {
  if (kernels.empty()) return after.empty() ? kBefore : after.back();
  if (pending_ != kNone) after.push_back(std::exchange(pending_, kNone));
  Work work;
  work.kind = WorkKind::kCompute;
  work.name = std::move(name);
  work.kernels = std::move(kernels);
  return add(std::move(work), std::move(after));
}

int TemplateBuilder::tensor(CollectiveKind kind, Bytes bytes, std::vector<int> after) {
  if (spec_.plan.tp == 1) return after.back();
  const bool copies = spec_.software.tp_copy_bytes > 0 && kind != CollectiveKind::kAllReduce;
  if (copies && kind == CollectiveKind::kReduceScatter) after = {copy(bytes, std::move(after))};
  const int done = collective(Communicator::kTensor, Stream::kTp, TimeTerm::kExposedTp, kind, bytes,
                              std::move(after));
  return copies && kind == CollectiveKind::kAllGather ? copy(bytes, {done}) : done;
}

int TemplateBuilder::context(CollectiveKind kind, Bytes bytes, std::vector<int> after) {
  if (spec_.plan.cp == 1) return after.back();
  return collective(Communicator::kContext, Stream::kCp, TimeTerm::kExposedCp, kind, bytes,
                    std::move(after));
}

int TemplateBuilder::expert(CollectiveKind kind, Bytes bytes, std::vector<int> after) {
  if (spec_.plan.ep == 1) return after.back();
  return collective(Communicator::kExpert, Stream::kEp, TimeTerm::kExposedEp, kind, bytes,
                    std::move(after));
}

int TemplateBuilder::token_exchange(Bytes copies, std::vector<int> after) {
  const int done = expert(CollectiveKind::kAllToAll, copies, std::move(after));
  if (spec_.plan.ep > 1 && spec_.software.expert_dispatch_once) {
    const ModelArchitecture& m = spec_.model;
    works_[steps_.back().work].routing = {.experts = m.experts,
                                          .per_token = m.experts_per_token,
                                          .groups = m.expert_groups,
                                          .groups_per_token = m.expert_groups_per_token};
  }
  return done;
}

int TemplateBuilder::host(std::string name, double microseconds, std::vector<int> after) {
  if (microseconds <= 0) return after.back();
  Work work;
  work.kind = WorkKind::kHost;
  work.stream = Stream::kHost;
  work.name = std::move(name);
  work.host_floor = seconds_rounded_up(microseconds * 1e-6);
  return add(std::move(work), std::move(after));
}

// A product on a rank's own rows, and on those of the ranks before and behind it.
std::pair<Kernel, Kernel> TemplateBuilder::split_by_owner(const Kernel& product) const {
  const int64_t tp = spec_.plan.tp, pieces = std::min<int64_t>(tp - 1, 2);
  Kernel own = product, rest = product;
  auto& first = std::get<GemmShape>(own.work);
  auto& others = std::get<GemmShape>(rest.work);
  first.m /= tp;
  others.m = (others.m - first.m) / pieces;
  rest.repeats *= static_cast<double>(pieces);
  return {std::move(own), std::move(rest)};
}

int TemplateBuilder::gather_then(std::string name, Bytes input, std::vector<Kernel> kernels,
                                 std::vector<int> after) {
  if (!spec_.splits_sequence()) return compute(std::move(name), std::move(kernels), after);
  if (spec_.software.tp_overlap == TpOverlap::kNone) {
    const int gathered = tensor(CollectiveKind::kAllGather, input, after);
    if (!spec_.software.tp_own_tokens_first || spec_.plan.tp == 1) {
      return compute(std::move(name), std::move(kernels), {gathered});
    }
    const auto [own, rest] = split_by_owner(kernels.front());
    kernels.front() = rest;
    const int ahead = compute(name + ", own tokens", {own}, std::move(after));
    return compute(std::move(name), std::move(kernels), {gathered, ahead});
  }
  const Bytes chunk = input / spec_.software.tp_overlap_chunks;
  const int first = tensor(CollectiveKind::kAllGather, chunk, std::move(after));
  const int rest = tensor(CollectiveKind::kAllGather, input - chunk, {first});
  const int done = compute(std::move(name), std::move(kernels), {first});
  pending_ = rest;
  return done;
}

int TemplateBuilder::then_reduce(std::string name, Bytes output, std::vector<Kernel> kernels,
                                 std::vector<int> after) {
  if (!spec_.splits_sequence()) {
    return tensor(CollectiveKind::kAllReduce, spec_.activation(),
                  {compute(std::move(name), std::move(kernels), std::move(after))});
  }
  if (spec_.software.tp_overlap == TpOverlap::kNone) {
    return tensor(CollectiveKind::kReduceScatter, output,
                  {compute(std::move(name), std::move(kernels), std::move(after))});
  }
  const auto chunks = static_cast<double>(spec_.software.tp_overlap_chunks);
  const Bytes last_chunk = output / spec_.software.tp_overlap_chunks;
  std::vector<Kernel> rest = kernels;
  for (Kernel& kernel : kernels) kernel.repeats /= chunks;
  for (Kernel& kernel : rest) kernel.repeats *= 1 - 1 / chunks;
  const int head = compute(name, std::move(kernels), std::move(after));
  const int most = tensor(CollectiveKind::kReduceScatter, output - last_chunk, {head});
  const int tail = compute(std::move(name), std::move(rest), {head});
  return tensor(CollectiveKind::kReduceScatter, last_chunk, {most, tail});
}

int TemplateBuilder::copy(Bytes tensor, std::vector<int> after) {
  const double moved = static_cast<double>(tensor.count()) / 2 * spec_.software.tp_copy_bytes;
  return compute("copy",
                 {{"copy", TimeTerm::kMemoryBound,
                   MemoryTraffic{Bytes(std::llround(moved)), spec_.software.forward.stream}}},
                 std::move(after));
}

int TemplateBuilder::collective(Communicator communicator, Stream stream, TimeTerm term,
                                CollectiveKind kind, Bytes bytes, std::vector<int> after) {
  Work work;
  work.kind = WorkKind::kCollective;
  work.stream = stream;
  work.name = std::string(collective_kind_name(kind));
  work.exposed_as = term;
  work.communicator = communicator;
  work.collective = kind;
  work.bytes = bytes;
  return add(std::move(work), std::move(after));
}

int TemplateBuilder::add(Work work, std::vector<int> after) {
  steps_.push_back({works_.push_back(std::move(work)), std::move(after)});
  return last();
}

}  // namespace herdsim
