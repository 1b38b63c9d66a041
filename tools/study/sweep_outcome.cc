#include "tools/study/sweep_outcome.h"

#include <cstring>
#include <type_traits>

#include "sim/base/check.h"

namespace herdsim {
namespace {

// Both visit the same fields in the same order, so that neither can forget one.
class ByteWriter {
 public:
  template <class... Fields>
  void operator()(const Fields&... fields) {
    (one(fields), ...);
  }
  std::string bytes;

 private:
  template <class Field>
  requires std::is_trivially_copyable_v<Field>
  void one(const Field& field) {
    bytes.append(reinterpret_cast<const char*>(&field), sizeof field);
  }
  void one(const std::string& text) {
    one(text.size());
    bytes += text;
  }
  template <class Item>
  void one(const std::vector<Item>& items) {
    one(items.size());
    for (const Item& item : items) one(item);
  }
  void one(const Metric& metric) { (*this)(metric.name, metric.value, metric.unit); }
  void one(const StageMemory& m);
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  template <class... Fields>
  void operator()(Fields&... fields) {
    (one(fields), ...);
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  std::string_view take(size_t count) {
    HERDSIM_CHECK(count <= bytes_.size()) << "an outcome that is cut off";
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  template <class Field>
  requires std::is_trivially_copyable_v<Field>
  void one(Field& field) { std::memcpy(&field, take(sizeof field).data(), sizeof field); }
  void one(std::string& text) {
    size_t size = 0;
    one(size);
    text = take(size);
  }
  template <class Item>
  void one(std::vector<Item>& items) {
    size_t size = 0;
    one(size);
    items.resize(size);
    for (Item& item : items) one(item);
  }
  void one(Metric& metric) { (*this)(metric.name, metric.value, metric.unit); }
  void one(StageMemory& m);

  std::string_view bytes_;
};

template <class Archive, class Memory>
void visit_memory(Archive& archive, Memory& m) {
  archive(m.stage, m.peak, m.moment, m.weights, m.gradients, m.optimizer, m.activations, m.logits,
          m.communication, m.overhead);
}
void ByteWriter::one(const StageMemory& m) { visit_memory(*this, m); }
void ByteReader::one(StageMemory& m) { visit_memory(*this, m); }

template <class Archive, class Step>
void visit_step(Archive& archive, Step& r) {
  archive(r.scenario, r.gpus, r.step_time, r.tokens_per_step, r.model_flops_causal,
          r.model_flops_full, r.peak, r.dtype, r.account_rank_nanoseconds, r.stage_account,
          r.memory, r.memory_capacity, r.class_account, r.simulated_ranks, r.events, r.wall_seconds,
          r.warnings);
}

template <class Archive, class Outcome>
void visit(Archive& archive, Outcome& o) {
  auto& record = o.record;
  archive(o.point, o.failed_because, o.skipped_because, o.scenario, record.command,
          record.effective_spec, record.seed, record.version, record.profile,
          record.profile_provenance, record.recorded_at, record.kind, record.fingerprint,
          record.sweep_point->sweep, record.sweep_point->point, o.metrics);
  visit_step(archive, o.step);
}

}  // namespace

std::string to_bytes(const SweepOutcome& outcome) {
  HERDSIM_CHECK(outcome.record.sweep_point.has_value()) << "an outcome of no sweep";
  ByteWriter writer;
  visit(writer, outcome);
  return std::move(writer.bytes);
}

SweepOutcome outcome_from_bytes(std::string_view bytes) {
  SweepOutcome outcome;
  outcome.record.sweep_point.emplace();
  ByteReader reader(bytes);
  visit(reader, outcome);
  HERDSIM_CHECK(reader.is_at_end()) << "an outcome with more behind it";
  return outcome;
}

}  // namespace herdsim
