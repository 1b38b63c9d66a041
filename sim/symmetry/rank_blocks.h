// Blocks of neighbouring ranks that are alike by their places.
//
// Where ranks fill hosts in order and the GPUs of a host are wired alike, turn every aligned block
// of n consecutive ranks at once: rank n q + t becomes rank n q + (t + 1) mod n, and with it its
// GPU, its NIC and, on rails, its ToR; everything above stays. As long as the ranks of a block
// differ in one coordinate that no message changes (tensor parallel, as a rule), each transfer
// becomes another of its lane and each link another as fast. So one of those that turning makes of
// each other stands for all (an *orbit*; its first member is listed), and a map of 1/n of the job
// has the classes of the whole, to the bit: what a listed transfer or link sees of an orbit it sees
// as often as the sizes of the two say.
//
//   AlikeGpus alike = alike_gpus(machine);                    // once a machine
//   RankBlocks blocks = rank_blocks(graph.grid, alike);       // {.ranks = 8} under TP 8
//   JobMap map = map_lanes(graph.grid, pattern, machine, shapes, blocks);
//
// A slow GPU or NIC, ranks in another order or uneven work within a block leave blocks of one rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/fabric/fabric.h"
#include "sim/opgraph/op_graph.h"
#include "sim/symmetry/machine.h"

namespace herdsim {

// How many consecutive ranks, at most, can be turned, and how many ToRs their NICs are cabled to.
struct AlikeGpus {
  size_t ranks = 1, tors = 1;
};

// Complexity: O(ranks).
AlikeGpus alike_gpus(const Machine& machine);

// The default says nothing: every rank, group and link is an orbit of one.
struct RankBlocks {
  size_t ranks = 1;
  std::array<uint32_t, kLinkKinds> links = all_ones();  // in an orbit, by kind

  size_t links_of(LinkKind kind) const { return links[static_cast<size_t>(kind)]; }
  // How many groups are in an orbit: one that holds whole blocks is turned in itself.
  size_t groups_of(const RankGrid& grid, Communicator c) const {
    return ranks == 1 || grid.holds_whole_blocks(c) ? 1 : ranks;
  }

 private:
  static constexpr std::array<uint32_t, kLinkKinds> all_ones() {
    std::array<uint32_t, kLinkKinds> ones{};
    ones.fill(1);
    return ones;
  }
};

RankBlocks rank_blocks(const RankGrid& grid, const AlikeGpus& alike);

// Whether the ranks of each block have the same share of all uneven work.
bool is_even_in_blocks(std::span<const UnevenLoad> loads, size_t block);

}  // namespace herdsim
