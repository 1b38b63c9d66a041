#include "workloads/memory/memory_footprint.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "workloads/layer_parameters.h"

namespace herdsim {
namespace {

// Units of parameters gathered, or of gradients waiting for their reduction, at one time: one in
// use and one under way.
constexpr double kUnitsInFlight = 2;

Bytes whole_bytes(double count) { return Bytes(std::llround(count)); }

double as_double(int64_t n) { return static_cast<double>(n); }

StageParameters layer_of(const ModelArchitecture& model, const ParallelPlan& plan,
                         bool with_experts) {
  const LayerParameters p = layer_parameters(model, plan, with_experts);
  return {as_double(p.matrices), as_double(p.whole), as_double(p.experts)};
}

// Ranks that share what they would otherwise replicate.
struct Shards {
  double dense = 1, experts = 1;
};

// Where two stages hold the same chunks, both share their state out.
Shards shards_of(const MemoryQuestion& q) {
  const bool mirrored = q.schedule.layout == ChunkLayout::kBidirectional && !q.plan.is_hybrid();
  const double copies = mirrored ? 2 : 1;
  return {copies * as_double(q.plan.shards()), copies * as_double(q.plan.expert_copies())};
}

double sharded(const StageParameters& p, const Shards& s) {
  return (p.matrices + p.norms) / s.dense + p.experts / s.experts;
}

// Reduced to the shard after every micro-batch; otherwise summed up whole until the last one.
bool shards_gradients(const MemoryQuestion& q) {
  const bool by_unit = q.plan.shard == Sharding::kZero2 || q.plan.shard == Sharding::kZero3;
  return by_unit && !q.software.dp_reduces_once;
}

double weight_bytes(const StageParameters& p, DataType precision) {
  switch (precision) {
    case DataType::kBf16:
    case DataType::kFp16:
      return 2 * p.total();
    case DataType::kFp32:
      return 4 * p.total();
    case DataType::kFp8:
      return 4 * (p.matrices + p.experts) + 2 * p.norms;
  }
  return 0;
}

// Embedding, head and last norm.
double outside_layers(const ModelArchitecture& model, const ParallelPlan& plan,
                      const StageLayout& layout) {
  StageLayout ends = layout;
  ends.layers.assign(layout.layers.size(), 0);
  return stage_parameters(model, plan, ends).total();
}

// What is there for the whole step.
struct State {
  double weights = 0, gradients = 0, optimizer = 0, communication = 0;
};

int64_t communicators(const ParallelPlan& plan) {
  int64_t count = plan.ranks() > 1 ? 1 : 0;
  for (const int64_t degree : {plan.tp, plan.cp, plan.pp, plan.dp, plan.ep}) {
    if (degree > 1) ++count;
  }
  return count;
}

// Whole tensors of tensor-parallel transfers.
double transfer_tensors(const MemoryQuestion& q, double count) {
  if (q.plan.tp == 1 || !q.plan.sequence_parallel) return 0;
  return count * 2 * as_double(q.tokens() * q.model.hidden);
}

// Of a sharded optimizer, after its step: what a rank sends and what it gets, each in one flat
// buffer.
double flat_gather(const MemoryQuestion& q, const StageLayout& layout) {
  const bool gathers = q.plan.shard == Sharding::kZero1 || q.plan.shard == Sharding::kZero2;
  if (!q.software.parameter_gather_flat || !gathers) return 0;
  const StageParameters p = stage_parameters(q.model, q.plan, layout);
  const double element = as_double(bytes_per_element(q.software.parameter_gather_type));
  return element * (p.total() + sharded(p, shards_of(q)));
}

State state_of(const MemoryQuestion& q, const StageLayout& layout) {
  const StageParameters p = stage_parameters(q.model, q.plan, layout);
  const StageParameters layer = layer_of(q.model, q.plan, q.model.is_moe());
  const Shards shards = shards_of(q);
  const double in_shards = sharded(p, shards);
  const bool gathers = q.plan.shard == Sharding::kZero3;
  const double gradient = as_double(bytes_per_element(q.software.gradient_accumulation_type));
  const double reduced = as_double(bytes_per_element(q.software.gradient_reduce_type));

  State state;
  if (!gathers) state.weights = weight_bytes(p, q.training.precision);
  state.gradients = gradient * (shards_gradients(q) ? in_shards : p.total());
  if (q.plan.dp * q.plan.cp > 1) state.gradients += q.software.gradient_bucket_bytes * p.total();
  state.optimizer = q.training.optimizer_state_bytes() *
                    (q.plan.shard == Sharding::kNone ? p.total() : in_shards);

  state.communication = as_double(communicators(q.plan) * q.assumptions.communicator.count());
  if (q.plan.pp > 1) {
    // An activation and a gradient, each on its way in and on its way out.
    const bool split = q.plan.sequence_parallel && q.plan.tp > 1;
    state.communication +=
        4 * 2 * as_double(q.tokens() * q.model.hidden) / (split ? as_double(q.plan.tp) : 1.0);
  }
  // What a host far ahead of its GPU leaves behind and cannot use again yet.
  state.communication += transfer_tensors(q, q.software.transfer_tensors_in_flight);
  if (gathers || shards_gradients(q)) {
    const double layers = std::min(kUnitsInFlight, as_double(layout.total_layers()));
    const double units = layers * layer.total() + outside_layers(q.model, q.plan, layout);
    const double gathered = as_double(bytes_per_element(q.software.parameter_gather_type));
    state.communication += units * ((gathers ? gathered : 0) + reduced);
  }
  return state;
}

// What passes of one local chunk hold. Whole bytes: what a backward pass frees is exactly what its
// forward pass added.
struct ChunkMemory {
  Bytes kept, kept_logits;
  Bytes forward, forward_logits;  // transients
  Bytes backward, backward_logits;
  // That stay for a weight gradient at the end: what the head reads, and the gradient of the
  // logits.
  Bytes deferred, deferred_logits;
  // What the backward pass has written when it ends, in place of what it had kept.
  Bytes gradient_copies;
};

// Of one chunk of a stage, with the embedding and the head where they are.
StageParameters chunk_parameters(const MemoryQuestion& q, const StageLayout& layout, size_t chunk) {
  StageLayout one = layout;
  one.layers = {layout.layers[chunk]};
  one.first_layer = {layout.first_layer[chunk]};
  const auto here = static_cast<int64_t>(chunk);
  if (one.embedding_chunk != here) one.embedding_chunk.reset();
  if (one.head_chunk != here) one.head_chunk.reset();
  return stage_parameters(q.model, q.plan, one);
}

ChunkMemory chunk_memory(const MemoryQuestion& q, const StageLayout& layout, size_t chunk) {
  const double tokens = as_double(q.tokens());
  ChunkMemory m;
  if (q.software.gradient_copy_bytes > 0) {
    m.gradient_copies =
        whole_bytes(q.software.gradient_copy_bytes * chunk_parameters(q, layout, chunk).total());
  }
  for (int64_t l = 0; l < layout.layers[chunk]; ++l) {
    const int64_t layer = layout.first_layer[chunk] + l;
    const LayerActivations a =
        layer_activations(q.model, q.plan, q.training, q.software,
                          {.recomputes = q.training.layer_recomputes(layer, l),
                           .with_experts = q.model.layer_has_experts(layer)});
    m.kept += whole_bytes(tokens * a.kept);
    m.forward = std::max(m.forward, whole_bytes(tokens * a.forward));
    m.backward = std::max(m.backward, whole_bytes(tokens * a.backward));
  }
  if (layout.head_chunk == static_cast<int64_t>(chunk)) {
    const auto tp = as_double(q.plan.tp);
    const bool split = q.plan.sequence_parallel || q.plan.tp == 1;
    const double logits =
        tokens * as_double(q.model.vocab) / (q.software.tp_gathers_logits ? 1.0 : tp);
    const double last_norm = tokens * 4 * as_double(q.model.hidden) / (split ? tp : 1.0);
    m.kept += whole_bytes(last_norm);
    m.kept_logits = whole_bytes(4 * logits);
    // One kernel a step of it moves 28 bytes a logit and more.
    constexpr double kStepByStep = 28;
    const bool fused =
        q.software.logit_stream == StreamClass::kFused && q.software.logit_bytes < kStepByStep;
    m.forward_logits = whole_bytes((fused ? 2 : 6) * logits);
    m.backward_logits = whole_bytes(2 * logits);
    m.deferred = whole_bytes(last_norm / 2);
    m.deferred_logits = whole_bytes(2 * logits);
  }
  return m;
}

// The step of one stage, pass by pass.
class Walk {
 public:
  // Of the head, `deferred` weight gradients wait for the end.
  Walk(std::vector<ChunkMemory> chunks, int64_t deferred)
      : chunks_(std::move(chunks)), deferrals_left_(deferred) {}

  struct Held {
    Pass pass;
    Bytes activations, logits, gradient_copies;

    Bytes sum() const { return activations + logits + gradient_copies; }
  };

  // What is held while the pass runs.
  Held run(const Pass& pass) {
    const ChunkMemory& chunk = chunks_[static_cast<size_t>(pass.chunk)];
    const bool forward = pass.kind == PassKind::kForward;
    if (forward) {
      kept_ += chunk.kept;
      kept_logits_ += chunk.kept_logits;
    }
    Held held{pass, kept_ + (forward ? chunk.forward : chunk.backward),
              kept_logits_ + (forward ? chunk.forward_logits : chunk.backward_logits), Bytes()};
    if (pass.kind == PassKind::kBackward || pass.kind == PassKind::kBackwardWeight) {
      kept_ -= chunk.kept;
      kept_logits_ -= chunk.kept_logits;
      const Held end{pass, kept_, kept_logits_, chunk.gradient_copies};
      if (end.sum() > held.sum()) held = end;
      if (chunk.deferred_logits > Bytes(0) && deferrals_left_ > 0) {
        --deferrals_left_;
        kept_ += chunk.deferred;
        kept_logits_ += chunk.deferred_logits;
      }
    }
    return held;
  }

 private:
  std::vector<ChunkMemory> chunks_;
  int64_t deferrals_left_;
  Bytes kept_, kept_logits_;
};

Walk walk_of(const MemoryQuestion& q, int64_t stage) {
  HERDSIM_CHECK(static_cast<int64_t>(q.layouts.size()) == q.shape.stages) << "one layout a stage";
  const StageLayout& layout = q.layouts[static_cast<size_t>(stage)];
  std::vector<ChunkMemory> chunks;
  for (size_t c = 0; c < layout.layers.size(); ++c) chunks.push_back(chunk_memory(q, layout, c));
  return Walk(std::move(chunks), deferred_head_gradients(q.model, q.software, q.plan, q.schedule,
                                                         q.shape.micro_batches));
}

// The parts and their sum while a pass runs.
StageMemory sum_up(const MemoryQuestion& q, const State& state, const Walk::Held& held) {
  StageMemory memory;
  memory.weights = whole_bytes(state.weights);
  memory.gradients = whole_bytes(state.gradients) + held.gradient_copies;
  memory.optimizer = whole_bytes(state.optimizer);
  memory.activations = held.activations;
  memory.logits = held.logits;
  memory.communication = whole_bytes(state.communication);
  // Communicators allocate beside the caching allocator.
  const Bytes served = memory.weights + memory.gradients + memory.optimizer + memory.activations +
                       memory.logits + memory.communication -
                       communicators(q.plan) * q.assumptions.communicator;
  memory.overhead = q.assumptions.device_context +
                    whole_bytes(q.assumptions.fragmentation * as_double(served.count()));
  memory.peak = memory.weights + memory.gradients + memory.optimizer + memory.activations +
                memory.logits + memory.communication + memory.overhead;
  return memory;
}

}  // namespace

StageParameters stage_parameters(const ModelArchitecture& model, const ParallelPlan& plan,
                                 const StageLayout& layout) {
  StageParameters p;
  for (size_t chunk = 0; chunk < layout.layers.size(); ++chunk) {
    for (int64_t l = 0; l < layout.layers[chunk]; ++l) {
      const StageParameters layer =
          layer_of(model, plan, model.layer_has_experts(layout.first_layer[chunk] + l));
      p.matrices += layer.matrices;
      p.norms += layer.norms;
      p.experts += layer.experts;
    }
  }
  const double vocabulary = as_double(model.embedding_parameters()) / as_double(plan.tp);
  if (layout.embedding_chunk) p.matrices += vocabulary;
  if (layout.head_chunk) {
    p.norms += as_double(model.hidden);
    if (!(model.tied_embeddings && layout.embedding_chunk)) p.matrices += vocabulary;
  }
  return p;
}

StageMemory stage_memory(const MemoryQuestion& q, int64_t stage) {
  Walk walk = walk_of(q, stage);
  Walk::Held peak;
  for (const Pass& pass : q.schedule.order(q.shape, stage)) {
    const Walk::Held held = walk.run(pass);
    if (held.sum() > peak.sum()) peak = held;
  }
  StageMemory memory = sum_up(q, state_of(q, q.layouts[static_cast<size_t>(stage)]), peak);
  memory.stage = stage;
  memory.moment = describe(peak.pass, chunks_per_stage(q.schedule, q.shape));
  StageMemory at_gather = memory_at_gather(q, stage);
  return at_gather.peak > memory.peak ? at_gather : memory;
}

StageMemory memory_at_gather(const MemoryQuestion& q, int64_t stage) {
  const StageLayout& layout = q.layouts[static_cast<size_t>(stage)];
  State state = state_of(q, layout);
  // Of the pool of whole tensors the one gathered into each way is left.
  constexpr double kGatheredInto = 2;
  const double pool = q.software.transfer_tensors_in_flight;
  const double reused = std::max(0.0, pool - kGatheredInto);
  state.communication += flat_gather(q, layout) - transfer_tensors(q, reused);
  StageMemory memory = sum_up(q, state, {});
  memory.stage = stage;
  memory.moment = "the gather of updated parameters";
  return memory;
}

std::vector<Bytes> memory_by_pass(const MemoryQuestion& q, int64_t stage) {
  Walk walk = walk_of(q, stage);
  const State state = state_of(q, q.layouts[static_cast<size_t>(stage)]);
  std::vector<Bytes> held;
  for (const Pass& pass : q.schedule.order(q.shape, stage)) {
    held.push_back(sum_up(q, state, walk.run(pass)).peak);
  }
  return held;
}

std::vector<StageMemory> memory_footprint(const MemoryQuestion& question) {
  std::vector<StageMemory> stages;
  for (int64_t stage = 0; stage < question.shape.stages; ++stage) {
    stages.push_back(stage_memory(question, stage));
  }
  return stages;
}

}  // namespace herdsim
