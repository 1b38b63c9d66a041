#include "workloads/parameter_buckets.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace herdsim {
namespace {

class BucketBuilder {
 public:
  BucketBuilder(const WorkloadSpec& spec, const StepWork& work, TypedVector<WorkId, Work>& works)
      : spec_(spec), work_(work), works_(works) {}

  ChunkBuckets chunk(const std::vector<UnitKind>& units, double size) {
    ChunkBuckets out;
    out.of_unit.resize(units.size());
    // From the last unit to the first, as gradients come; numbered from the back, turned round
    // below.
    size_t buckets = 0;
    double filled = 0;
    for (size_t u = units.size(); u-- > 0;) {
      out.of_unit[u] = buckets;
      const UnitParameters p = unit_parameters(spec_, units[u]);
      filled += static_cast<double>(p.dense + p.experts);
      if (filled >= size || u == 0) {
        ++buckets;
        filled = 0;
      }
    }
    for (size_t& bucket : out.of_unit) bucket = buckets - 1 - bucket;
    for (size_t b = 0, u = 0; b < buckets; ++b) {
      std::vector<UnitKind> together;
      for (; u < units.size() && out.of_unit[u] == b; ++u) together.push_back(units[u]);
      const Merged& merged = merged_of(together);
      out.gather.push_back(merged.gather);
      out.reduce.push_back(merged.reduce);
    }
    return out;
  }

 private:
  struct Merged {
    std::vector<WorkId> gather, reduce;
  };

  const Merged& merged_of(const std::vector<UnitKind>& units) {
    const auto [at, is_new] = merged_.try_emplace(units);
    if (is_new) at->second = {together(units, work_.gather), together(units, work_.reduce)};
    return at->second;
  }

  // One collective for those of the units over the same ranks, in the order in which they first
  // come.
  std::vector<WorkId> together(const std::vector<UnitKind>& units,
                               const std::array<std::vector<WorkId>, kUnitKinds>& of_unit) {
    if (units.size() == 1) return of_unit[static_cast<size_t>(units.front())];
    std::vector<Work> merged;
    for (const UnitKind unit : units) {
      for (const WorkId id : of_unit[static_cast<size_t>(unit)]) {
        const Work& work = works_[id];
        const auto same = std::find_if(merged.begin(), merged.end(), [&](const Work& other) {
          return other.communicator == work.communicator && other.collective == work.collective;
        });
        if (same == merged.end()) {
          merged.push_back(work);
          continue;
        }
        same->bytes += work.bytes;
        same->name = work.name.substr(0, work.name.find(' ')) + " bucket";
      }
    }
    std::vector<WorkId> out;
    for (Work& work : merged) out.push_back(works_.push_back(std::move(work)));
    return out;
  }

  const WorkloadSpec& spec_;
  const StepWork& work_;
  TypedVector<WorkId, Work>& works_;
  std::map<std::vector<UnitKind>, Merged> merged_;
};

}  // namespace

std::vector<ChunkBuckets> parameter_buckets(const WorkloadSpec& spec,
                                            const std::vector<std::vector<UnitKind>>& units,
                                            const StepWork& work,
                                            TypedVector<WorkId, Work>& works) {
  const SoftwareStack& software = spec.software;
  const double size =
      std::max(software.dp_bucket_parameters, software.dp_bucket_parameters_per_rank *
                                                  static_cast<double>(spec.plan.dp * spec.plan.cp));
  BucketBuilder builder(spec, work, works);
  std::vector<ChunkBuckets> out;
  for (size_t c = 0; c < units.size(); ++c) {
    const bool whole = size > 0 && software.dp_bucket_whole_chunks && c > 0;
    out.push_back(builder.chunk(units[c], whole ? std::numeric_limits<double>::infinity() : size));
  }
  return out;
}

}  // namespace herdsim
