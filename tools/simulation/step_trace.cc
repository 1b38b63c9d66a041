#include "tools/simulation/step_trace.h"

#include <algorithm>
#include <map>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

class NameTable {
 public:
  uint32_t id(const std::string& name) {
    const auto [at, inserted] = ids_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    if (inserted) names_.push_back(name);
    return at->second;
  }
  std::vector<std::string> take() { return std::move(names_); }

 private:
  std::map<std::string, uint32_t> ids_;
  std::vector<std::string> names_;
};

// Sender and receiver of one message agree on this number: who receives, and which op.
uint64_t flow_number(RankId receiver, OpId receive) {
  return mix64(uint64_t{receiver.index()} << 32 | receive.index()) | 1;
}

std::string pass_name(const Work& work, const Kernel& kernel) {
  const GemmShape* gemm = std::get_if<GemmShape>(&kernel.work);
  if (gemm != nullptr && gemm->pass == GemmPass::kDgrad) return kernel.name + " dgrad";
  if (gemm != nullptr && gemm->pass == GemmPass::kWgrad) return kernel.name + " wgrad";
  const AttentionShape* attention = std::get_if<AttentionShape>(&kernel.work);
  if (attention != nullptr && attention->pass == AttentionPass::kBackward) {
    return kernel.name + " backward";
  }
  return work.kernels.size() == 1 ? work.name : kernel.name;
}

Flops flops_of(const Kernel& kernel) {
  const double repeats = kernel.repeats;
  if (const auto* gemm = std::get_if<GemmShape>(&kernel.work)) return gemm->flops() * repeats;
  if (const auto* shape = std::get_if<AttentionShape>(&kernel.work)) return shape->flops() * repeats;
  return Flops();
}

// Messages of two directions may be on the wire to one rank at once, but a lane shows one thing at a time: each arrival
// is shown from the end of the one before it. The send has the whole time on the wire.
void queue_arrivals(std::vector<Span>& spans, size_t first) {
  const auto begin = spans.begin() + static_cast<ptrdiff_t>(first);
  const auto arrivals = std::stable_partition(
      begin, spans.end(), [](const Span& span) { return span.stream != Stream::kReceive; });
  std::stable_sort(arrivals, spans.end(),
                   [](const Span& a, const Span& b) { return a.end < b.end; });
  Instant free = Instant::start();
  for (auto span = arrivals; span != spans.end(); ++span) {
    span->begin = std::max(span->begin, free);
    free = span->end;
  }
}

class TraceBuilder {
 public:
  TraceBuilder(const OpGraph& graph, const CostedGraph& costs, StepTrace& trace)
      : graph_(graph), costs_(costs), trace_(trace) {}

  void add_rank(RankId rank, const std::vector<OpSpan>& spans) {
    const Program& program = graph_.programs[graph_.program_of(rank)];
    const size_t first = trace_.spans.size();
    for (const OpSpan& span : spans) {
      const Op& op = program.ops[span.op.index()];
      const Work& work = graph_.works[op.work];
      if (work.kind == WorkKind::kCompute) {
        add_kernels(rank, op, work, span);
      } else {
        add_transfer(rank, op, work, span);
      }
    }
    queue_arrivals(trace_.spans, first);
    std::stable_sort(trace_.spans.begin() + static_cast<ptrdiff_t>(first), trace_.spans.end(),
                     [](const Span& a, const Span& b) {
                       return std::pair(a.stream, a.begin) < std::pair(b.stream, b.begin);
                     });
  }

  std::vector<std::string> names() { return names_.take(); }

 private:
  Span blank(RankId rank, const Op& op, const Work& work) {
    Span span;
    span.rank = rank;
    span.stream = work.stream;
    span.micro_batch = op.micro_batch;
    span.chunk = op.chunk;
    span.phase = op.phase;
    return span;
  }

  void add_kernels(RankId rank, const Op& op, const Work& work, const OpSpan& whole) {
    const WorkCost& cost = costs_.works[op.work];
    Duration nominal;
    for (const KernelLine& line : cost.kernels) nominal += line.time;
    const Duration length = whole.end - whole.begin;
    Duration before;
    Instant at = whole.begin;
    for (size_t k = 0; k < work.kernels.size(); ++k) {
      before += cost.kernels[k].time;
      const bool last = k + 1 == work.kernels.size();
      const Instant end =
          last ? whole.end
               : whole.begin + nanoseconds(static_cast<int64_t>(
                                   static_cast<double>(length.nanoseconds()) * before.seconds() /
                                   nominal.seconds()));
      Span span = blank(rank, op, work);
      span.begin = at;
      span.end = end;
      span.name = names_.id(pass_name(work, work.kernels[k]));
      span.flops = flops_of(work.kernels[k]);
      trace_.spans.push_back(span);
      at = end;
    }
    if (!work.kernels.empty()) return;
    Span span = blank(rank, op, work);
    span.begin = whole.begin;
    span.end = whole.end;
    span.name = names_.id(work.name);
    trace_.spans.push_back(span);
  }

  void add_transfer(RankId rank, const Op& op, const Work& work, const OpSpan& whole) {
    Span span = blank(rank, op, work);
    span.begin = whole.begin;
    span.end = whole.end;
    span.name = names_.id(work.name);
    span.bytes = work.bytes;
    if (work.kind == WorkKind::kSend) {
      span.flow = flow_number(graph_.grid.with(rank, Axis::kPp, op.peer.index()), op.receive);
    } else if (work.kind == WorkKind::kReceive) {
      span.flow = flow_number(rank, whole.op);
    }
    trace_.spans.push_back(span);
  }

  const OpGraph& graph_;
  const CostedGraph& costs_;
  StepTrace& trace_;
  NameTable names_;
};

// An arrow needs both its ends: numbers that occur once are taken away.
void drop_open_flows(std::vector<Span>& spans) {
  std::map<uint64_t, int> ends;
  for (const Span& span : spans) {
    if (span.flow != 0) ++ends[span.flow];
  }
  for (Span& span : spans) {
    if (span.flow != 0 && ends[span.flow] != 2) span.flow = 0;
  }
}

}  // namespace

StepTrace make_step_trace(const Scenario& scenario, const OpGraph& graph, const CostedGraph& costs,
                          const FoldedJob& job, const Fabric& fabric,
                          const TypedVector<RankId, GpuId>& placement,
                          const std::vector<RankId>& ranks, const std::vector<RankClassId>& traced,
                          const StepOutcome& outcome) {
  StepTrace trace;
  trace.title = scenario.name;
  TraceBuilder builder(graph, costs, trace);
  for (const RankId rank : ranks) {
    const RankCoordinates at = coordinates_of(rank, scenario.plan);
    const GpuId gpu = placement[rank];
    RankPlace place;
    place.rank = rank;
    place.host = static_cast<int64_t>(fabric.host_of(gpu).index());
    place.pod = static_cast<int64_t>(gpu.index()) / scenario.cluster.gpus_per_pod;
    place.gpu_in_host = static_cast<int64_t>(gpu.index() % fabric.gpus_per_host());
    place.tp = at.tp;
    place.cp = at.cp;
    place.pp = at.pp;
    place.dp = at.dp;
    trace.ranks.push_back(place);
    const RankClassId c(job.class_of_rank[rank.index()]);
    const auto slot = std::find(traced.begin(), traced.end(), c) - traced.begin();
    builder.add_rank(rank, outcome.spans[static_cast<size_t>(slot)]);
  }
  trace.names = builder.names();
  drop_open_flows(trace.spans);
  return trace;
}

std::vector<RankId> sampled_ranks(const Scenario& scenario) {
  std::vector<RankId> ranks;
  const auto add_replica = [&](int64_t dp) {
    for (int64_t pp = 0; pp < scenario.plan.pp; ++pp) {
      ranks.push_back(rank_at({.pp = pp, .dp = dp}, scenario.plan));
    }
  };
  add_replica(0);
  for (const Degradation& part : scenario.cluster.degraded) {
    if (part.gpu < 0) continue;  // a switch or its uplinks
    const RankId rank(static_cast<size_t>(part.gpu));
    add_replica(coordinates_of(rank, scenario.plan).dp);
    ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace herdsim
