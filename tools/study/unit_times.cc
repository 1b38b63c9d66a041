#include "tools/study/unit_times.h"

#include <algorithm>
#include <bitset>
#include <limits>

#include "sim/base/check.h"

namespace herdsim {
namespace {

using Ticks = int64_t;
constexpr Ticks kUnreached = std::numeric_limits<Ticks>::min() / 4;

// A longer template's transfers add nothing.
constexpr size_t kMostSteps = 256;
using Steps = std::bitset<kMostSteps>;

class Template {
 public:
  Template(const WorkTemplate& steps, const LeastCosts& costs,
           const TypedVector<WorkId, Work>& works)
      : steps_(steps), costs_(costs), works_(works), size_(steps.size()), output_(size_ - 1) {}

  UnitTimes times() {
    walk();
    find_kernels();
    if (size_ <= kMostSteps) {
      order();
      add_transfers();
    }
    combine();
    return unit_;
  }

 private:
  const LeastTransfer& cost(size_t i) const { return costs_[steps_[i].work.index()]; }
  size_t stream(size_t i) const { return static_cast<size_t>(works_[steps_[i].work].stream); }
  bool is_kernel(size_t i) const { return works_[steps_[i].work].kind == WorkKind::kCompute; }
  bool waits(size_t i, size_t before) const { return i == before || before_[i][before]; }

  // Longest paths from the input, and from the first kernel's start.
  void walk() {
    std::array<Ticks, kStreams> free{}, free_after_first;
    free_after_first.fill(kUnreached);
    end_.resize(size_);
    from_first_.assign(size_, kUnreached);
    for (size_t i = 0; i < size_; ++i) {
      Ticks start = free[stream(i)], from = free_after_first[stream(i)];
      for (const int before : steps_[i].after) {
        if (before == kBefore) continue;
        start = std::max(start, end_[static_cast<size_t>(before)]);
        from = std::max(from, from_first_[static_cast<size_t>(before)]);
      }
      if (is_kernel(i) && !unit_.exists) {
        unit_.exists = true;
        unit_.lead = start;
        from = 0;
      }
      end_[i] = free[stream(i)] = start + cost(i).time;
      if (from > kUnreached) {
        from_first_[i] = free_after_first[stream(i)] = from + cost(i).time;
      }
    }
    HERDSIM_CHECK(unit_.exists) << "a template without a kernel";
  }

  // The longest path from each step's end to the output's end.
  std::vector<Ticks> paths_to_output() const {
    std::vector<Ticks> after(size_, kUnreached);
    std::array<Ticks, kStreams> next;  // of the step that follows on the stream, with its own time
    next.fill(kUnreached);
    after[output_] = 0;
    for (size_t i = size_; i-- > 0;) {
      after[i] = std::max(after[i], next[stream(i)]);
      if (after[i] == kUnreached) continue;
      const Ticks with_own = after[i] + cost(i).time;
      next[stream(i)] = with_own;
      for (const int before : steps_[i].after) {
        if (before == kBefore) continue;
        Ticks& known = after[static_cast<size_t>(before)];
        known = std::max(known, with_own);
      }
    }
    return after;
  }

  void find_kernels() {
    const std::vector<Ticks> to_output = paths_to_output();
    for (size_t i = 0; i < size_; ++i) {
      if (!is_kernel(i)) continue;
      last_kernel_ = i;
      unit_.kernels += cost(i).time;
      if (to_output[i] == kUnreached) continue;
      output_kernel_ = i;
      unit_.kernels_to_output = unit_.kernels;
      unit_.after_kernels = to_output[i];
    }
    unit_.leads_to_output = from_first_[output_] > kUnreached;
  }

  // Of each step, all that have ended when it starts.
  void order() {
    before_.resize(size_);
    std::array<size_t, kStreams> last;
    last.fill(size_);
    for (size_t i = 0; i < size_; ++i) {
      const auto follow = [&](size_t before) { (before_[i] |= before_[before]).set(before); };
      if (last[stream(i)] < size_) follow(last[stream(i)]);
      for (const int before : steps_[i].after) {
        if (before != kBefore) follow(static_cast<size_t>(before));
      }
      last[stream(i)] = i;
    }
  }

  // Transfers that share the kernels that can hide them, or could hide in each other.
  struct Together {
    std::vector<size_t> transfers;
    Steps kernels;
    uint32_t streams = 0;
  };

  Steps kernels_beside(size_t i) const {
    Steps beside;
    for (size_t k = 0; k < size_; ++k) {
      if (is_kernel(k) && !waits(i, k) && !waits(k, i)) beside.set(k);
    }
    return beside;
  }

  bool belong_together(const Together& group, size_t i, const Steps& kernels) const {
    if ((group.kernels & kernels).any()) return true;
    return std::any_of(group.transfers.begin(), group.transfers.end(), [&](size_t j) {
      return stream(i) != stream(j) && !waits(i, j) && !waits(j, i);
    });
  }

  std::vector<Together> grouped() const {
    std::vector<Together> groups;
    for (size_t i = 0; i < size_; ++i) {
      if (is_kernel(i) || cost(i).time == 0 || from_first_[i] == kUnreached) continue;
      Together joined{{i}, kernels_beside(i), 1U << stream(i)};
      for (auto group = groups.begin(); group != groups.end();) {
        if (!belong_together(*group, i, joined.kernels)) {
          ++group;
          continue;
        }
        joined.transfers.insert(joined.transfers.end(), group->transfers.begin(),
                                group->transfers.end());
        joined.kernels |= group->kernels;
        joined.streams |= group->streams;
        group = groups.erase(group);
      }
      groups.push_back(std::move(joined));
    }
    return groups;
  }

  // What those of the group add that `counts`.
  template <class Counts>
  void add(const Together& group, Counts counts, AddedTime& sum) const {
    LeastTransfer some;
    Ticks beside = 0;
    for (const size_t i : group.transfers) {
      if (!counts(i)) continue;
      some.time += cost(i).time;
      some.taken += cost(i).taken;
    }
    for (size_t k = 0; k < size_; ++k) beside += group.kernels[k] ? cost(k).time : 0;
    const bool is_one_stream = (group.streams & (group.streams - 1)) == 0;
    const bool shows = is_one_stream && some.time - beside > some.taken;
    sum.adds += shows ? some.time - beside : some.taken;
    if (shows) sum.idle += some.time;
    if (some.time > 0) sum.streams |= group.streams;
  }

  void add_transfers() {
    const auto before_last = [&](size_t i) { return waits(last_kernel_, i); };
    const auto before_awaited = [&](size_t i) {
      return unit_.kernels_to_output > 0 && waits(output_kernel_, i);
    };
    const auto is_behind = [&](size_t i) { return !before_last(i) && waits(output_, i); };
    for (const Together& group : grouped()) {
      add(group, before_last, unit_.to_last_kernel);
      add(group, before_awaited, unit_.to_output_kernel);
      add(group, is_behind, unit_.behind);
    }
    for (size_t i = 0; i < size_; ++i) {
      if (is_kernel(i) || cost(i).time == 0) continue;
      const bool is_inside = from_first_[i] > kUnreached;
      if (!waits(output_, i)) unit_.late_streams |= 1U << stream(i);
      if (is_inside && is_behind(i)) add_edge(i, unit_.behind_alone);
      if (!is_inside && before_awaited(i) && kernels_beside(i).none()) add_edge(i, unit_.ahead);
    }
  }

  void add_edge(size_t i, EdgeTransfers& edge) const {
    edge.least.time += cost(i).time;
    edge.least.taken += cost(i).taken;
    edge.streams |= 1U << stream(i);
  }

  // The longer of path and demand.
  void combine() {
    unit_.occupied = std::max(from_first_[last_kernel_], unit_.kernels + unit_.to_last_kernel.adds);
    // Zero where the first kernel does not lead to the output.
    if (unit_.leads_to_output) {
      unit_.rest =
          std::max(from_first_[output_],
                   unit_.kernels_to_output + unit_.to_output_kernel.adds + unit_.after_kernels);
    }
    unit_.tail = std::max(end_[last_kernel_], unit_.lead + unit_.occupied);
    unit_.whole = std::max(end_[output_], unit_.lead + unit_.rest);
  }

  const WorkTemplate& steps_;
  const LeastCosts& costs_;
  const TypedVector<WorkId, Work>& works_;
  const size_t size_, output_;
  UnitTimes unit_;
  std::vector<Ticks> end_, from_first_;
  std::vector<Steps> before_;
  size_t last_kernel_ = 0, output_kernel_ = 0;
};

AddedTime least(const AddedTime& a, const AddedTime& b) {
  return {std::min(a.adds, b.adds), std::max(a.idle, b.idle), a.streams | b.streams};
}

EdgeTransfers least(const EdgeTransfers& a, const EdgeTransfers& b) {
  return {{std::min(a.least.time, b.least.time), std::min(a.least.taken, b.least.taken)},
          a.streams | b.streams};
}

}  // namespace

UnitTimes unit_times(const WorkTemplate& steps, const LeastCosts& costs,
                     const TypedVector<WorkId, Work>& works) {
  return steps.empty() ? UnitTimes{} : Template(steps, costs, works).times();
}

UnitTimes least(const UnitTimes& a, const UnitTimes& b) {
  return {.exists = a.exists && b.exists,
          .lead = std::min(a.lead, b.lead),
          .whole = std::min(a.whole, b.whole),
          .rest = std::min(a.rest, b.rest),
          .occupied = std::min(a.occupied, b.occupied),
          .tail = std::min(a.tail, b.tail),
          .kernels = std::min(a.kernels, b.kernels),
          .kernels_to_output = std::min(a.kernels_to_output, b.kernels_to_output),
          .after_kernels = std::min(a.after_kernels, b.after_kernels),
          .leads_to_output = a.leads_to_output && b.leads_to_output,
          .to_last_kernel = least(a.to_last_kernel, b.to_last_kernel),
          .to_output_kernel = least(a.to_output_kernel, b.to_output_kernel),
          .behind = least(a.behind, b.behind),
          .behind_alone = least(a.behind_alone, b.behind_alone),
          .ahead = least(a.ahead, b.ahead),
          .late_streams = a.late_streams | b.late_streams};
}

void ChunkTimes::add(const UnitTimes& unit) {
  if (!unit.exists) return;
  const auto count = [this](const AddedTime& added) {
    idle_ += added.idle;
    streams_ |= added.streams;
    return added.adds;
  };
  if (!exists_) {
    exists_ = true;
    lead_ = unit.lead;
    rest_ = unit.rest;
    occupied_ = unit.occupied;
    whole_ = unit.whole;
    ahead_ = unit.ahead;
  } else {
    // The unit before goes on with kernels that its output does not wait for.
    const Ticks hidden = last_.kernels - last_.kernels_to_output;
    AddedTime ahead{unit.ahead.least.taken, 0, unit.ahead.streams};
    const LeastTransfer& least = unit.ahead.least;
    const bool is_alone =
        unit.ahead.has_one_stream() && (last_.late_streams & ~unit.ahead.streams) == 0;
    if (is_alone && least.time - hidden > least.taken) {
      ahead = {least.time - hidden, least.time, unit.ahead.streams};
    }
    demand_ += flows_ ? count(last_.behind) + count(ahead) : 0;
    occupied_ = std::max(rest_ + unit.tail, demand_ + unit.kernels + unit.to_last_kernel.adds);
    rest_ += unit.whole;
    if (unit.kernels_to_output > 0) {
      rest_ = std::max(rest_, demand_ + unit.kernels_to_output + unit.to_output_kernel.adds +
                                  unit.after_kernels);
    }
    whole_ = std::max(whole_ + unit.whole, lead_ + rest_);
  }
  to_output_ = unit.kernels_to_output > 0
                   ? demand_ + unit.kernels_to_output + unit.to_output_kernel.adds
                   : 0;
  demand_ += unit.kernels + count(unit.to_last_kernel);
  flows_ = flows_ && unit.leads_to_output;
  last_ = unit;
}

}  // namespace herdsim
