// What of its ops a part of a program is known by again.
//
// Parts of programs are compared to find those that are alike (local_order.h). Most ops came in as
// blocks (Program::Block), of which it is known that they are: the word of such an op names its
// block and its place there, and holds what differs between alike blocks. So two parts of the same
// words are alike, without a look at their ops. The opposite does not hold: words of ops outside
// blocks, and of others that one word cannot tell, are like no word.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/opgraph/op_graph.h"

namespace herdsim {

// Of a work on a rank. All works of a stream are local, or none is.
struct LocalFacts {
  uint8_t stream = 0;
  bool is_local = false;
  bool is_transfer = false;
  bool is_uneven = false;  // ranks and micro-batches have more or less of it
  friend bool operator==(const LocalFacts&, const LocalFacts&) = default;
};

class OpMarks {
 public:
  // `works`, by work.
  OpMarks(const Program& program, const std::vector<LocalFacts>& works);

  // Whether an op that is not local waits for it.
  bool is_awaited(size_t op) const { return is_awaited_[op] != 0; }

  // Words of `ops` ops. Where those of two parts of programs are the same, for the same `works`:
  // they have the same local works at the same places, as many dependencies and equally far back,
  // on ops that are local or not, and the same of them are awaited.
  std::span<const uint64_t> words(size_t first, size_t ops) const {
    return std::span(words_).subspan(first, ops);
  }
  static bool are_telling(std::span<const uint64_t> words);

 private:
  // Of blocks of one number: what each of them has.
  struct Pattern {
    std::vector<uint64_t> words;
    std::vector<uint8_t> is_awaited;
    struct Outer {
      uint32_t op = 0, dependency = 0;  // in the block; of the op
    };
    std::vector<Outer> outer;  // dependencies on ops before the block
  };

  bool is_local(size_t op) const { return works_[program_.ops[op].work.index()].is_local; }
  void mark_loose(size_t begin, size_t end);
  void mark_block(const Program::Block& block);
  Pattern pattern_of(const Program::Block& block) const;
  void await(size_t op);

  const Program& program_;
  const std::vector<LocalFacts>& works_;
  std::vector<Pattern> patterns_;  // by number of the block; of those not met empty
  std::vector<uint64_t> words_;
  std::vector<uint8_t> is_awaited_;
};

}  // namespace herdsim
