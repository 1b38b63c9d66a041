// How often a token crosses a link on its way to its experts.
//
// A plain all-to-all carries a copy of a token for every expert that it visits. A dispatcher made
// for experts (DeepEP, HybridEP) sends it once to each host that has some of them and there once to
// each GPU; results are summed before they travel back the same way. With E experts shared out
// evenly over n places and k of them drawn without replacement, a token goes to
//
//   n (1 - C(E - E / n, k) / C(E, k))
//
// places on average. Where a token's experts come from L of G groups of experts only (DeepSeek-V3,
// arXiv:2412.19437, section 2.1.2), it is the groups that are drawn: first how many of the L its
// experts hit, then on how many places these lie.
//
//   once_a_place(copies, {.experts = 256, .per_token = 8, .groups = 8, .groups_per_token = 4},
//   group)
#pragma once

#include "sim/collectives/collective.h"

namespace herdsim {

// 0 experts: every copy travels.
struct TokenRouting {
  int64_t experts = 0;
  int64_t per_token = 0;
  int64_t groups = 0, groups_per_token = 0;  // 0: experts of any group
};

// At least 1 and at most `places` and `per_token`. Requires: experts, per_token and places >= 1.
double places_of_token(const TokenRouting& routing, int64_t places);

// Of an all-to-all's bytes with a copy of each token for every expert, those that travel: over
// hosts where the group spans several, else over GPUs. Inside a host NVLink passes on what arrives
// as fast as NICs bring it, while the copies of a token at most double or quadruple: it is not what
// limits.
Bytes once_a_place(Bytes copies, const TokenRouting& routing, const GroupShape& group);

}  // namespace herdsim
