#include "sim/executor/op_marks.h"

#include <algorithm>

namespace herdsim {
namespace {

// From the highest bit: whether the word tells nothing; 13 bits of the block's number; 16 of the
// place in it; whether the op is awaited; whether what it waits for before the block is local, and
// 32 bits of how far back that is, if anything.
constexpr uint64_t kUntold = uint64_t{1} << 63;
constexpr int kNumberShift = 50, kPlaceShift = 34;
constexpr uint64_t kAwaited = uint64_t{1} << 33, kLocalBefore = uint64_t{1} << 32;
constexpr uint64_t kNotLocal = kUntold - 1;  // of every op that is not
constexpr uint32_t kMostNumbers = (1U << 13) - 1, kMostOps = 1U << 16;

}  // namespace

OpMarks::OpMarks(const Program& program, const std::vector<LocalFacts>& works)
    : program_(program),
      works_(works),
      words_(program.ops.size()),
      is_awaited_(program.ops.size(), 0) {
  size_t marked = 0;
  for (const Program::Block& block : program.blocks) {
    if (block.number >= kMostNumbers || block.ops > kMostOps) continue;
    mark_loose(marked, block.first_op);
    mark_block(block);
    marked = block.first_op + block.ops;
  }
  mark_loose(marked, program.ops.size());
}

bool OpMarks::are_telling(std::span<const uint64_t> words) {
  return std::none_of(words.begin(), words.end(),
                      [](uint64_t word) { return (word & kUntold) != 0; });
}

void OpMarks::await(size_t op) {
  is_awaited_[op] = 1;
  if (is_local(op)) words_[op] |= kAwaited;
}

void OpMarks::mark_loose(size_t begin, size_t end) {
  for (size_t o = begin; o < end; ++o) {
    words_[o] = is_local(o) ? kUntold : kNotLocal;
    if (is_local(o)) continue;
    for (const OpId before : program_.dependencies_of(program_.ops[o])) await(before.index());
  }
}

void OpMarks::mark_block(const Program::Block& block) {
  if (block.number >= patterns_.size()) patterns_.resize(block.number + 1);
  Pattern& pattern = patterns_[block.number];
  if (pattern.words.empty()) pattern = pattern_of(block);
  std::copy(pattern.words.begin(), pattern.words.end(), words_.begin() + block.first_op);
  std::copy(pattern.is_awaited.begin(), pattern.is_awaited.end(),
            is_awaited_.begin() + block.first_op);
  for (const Pattern::Outer& outer : pattern.outer) {
    const size_t op = block.first_op + outer.op;
    const size_t before = program_.dependencies_of(program_.ops[op])[outer.dependency].index();
    if (!is_local(op)) {
      await(before);
    } else {
      words_[op] |= (op - before) | (is_local(before) ? kLocalBefore : 0);
    }
  }
}

OpMarks::Pattern OpMarks::pattern_of(const Program::Block& block) const {
  Pattern pattern;
  pattern.is_awaited.assign(block.ops, 0);
  for (uint32_t o = 0; o < block.ops; ++o) {
    const size_t op = block.first_op + o;
    pattern.words.push_back(is_local(op) ? uint64_t{block.number} << kNumberShift |
                                               uint64_t{o} << kPlaceShift
                                         : kNotLocal);
    const std::span<const OpId> dependencies = program_.dependencies_of(program_.ops[op]);
    size_t outer = 0;
    for (uint32_t d = 0; d < dependencies.size(); ++d) {
      const size_t before = dependencies[d].index();
      if (before < block.first_op) {
        pattern.outer.push_back({o, d});
        ++outer;
      } else if (!is_local(op)) {
        pattern.is_awaited[before - block.first_op] = 1;
        if (is_local(before)) pattern.words[before - block.first_op] |= kAwaited;
      }
    }
    if (is_local(op) && outer > 1) pattern.words.back() = kUntold;
  }
  return pattern;
}

}  // namespace herdsim
