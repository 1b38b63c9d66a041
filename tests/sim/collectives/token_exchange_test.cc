#include "sim/collectives/token_exchange.h"

#include <gtest/gtest.h>

#include <bit>

namespace herdsim {
namespace {

// Mean over all draws of `per_token` experts, and of all groups where they come from some, of the
// places that have one.
double enumerated(const TokenRouting& r, int64_t places) {
  const auto draws_of = [](int64_t things, int64_t drawn, auto&& body) {
    for (uint32_t draw = 0; draw < (1U << things); ++draw) {
      if (std::popcount(draw) == drawn) body(draw);
    }
  };
  double sum = 0, count = 0;
  const int64_t groups = r.groups > 0 ? r.groups : 1;
  const int64_t open = r.groups_per_token > 0 ? r.groups_per_token : groups;
  draws_of(groups, open, [&](uint32_t opened) {
    uint32_t allowed = 0;
    for (int64_t e = 0; e < r.experts; ++e) {
      if ((opened >> (e * groups / r.experts) & 1) != 0) allowed |= 1U << e;
    }
    draws_of(r.experts, r.per_token, [&](uint32_t drawn) {
      if ((drawn & ~allowed) != 0) return;
      uint32_t at = 0;
      for (int64_t e = 0; e < r.experts; ++e) {
        if ((drawn >> e & 1) != 0) at |= 1U << (e * places / r.experts);
      }
      sum += std::popcount(at);
      ++count;
    });
  });
  return sum / count;
}

TEST(TokenExchange, goes_to_as_many_places_as_counting_every_draw_says) {
  for (const int64_t experts : {4, 8, 16}) {
    for (int64_t k = 1; k <= experts / 2; ++k) {
      for (int64_t places = 1; places <= experts; places *= 2) {
        const TokenRouting routing{.experts = experts, .per_token = k};
        EXPECT_NEAR(places_of_token(routing, places), enumerated(routing, places), 1e-9)
            << k << " of " << experts << " over " << places;
      }
    }
  }
}

// The groups that experts hit are drawn on average, not one by one: 3 % at most.
TEST(TokenExchange, goes_to_the_places_of_a_few_groups_where_its_experts_come_from_them) {
  for (const int64_t open : {1, 2, 4}) {
    for (int64_t k = 1; k <= 4 * open && k <= 8; ++k) {
      for (int64_t places = 1; places <= 16; places *= 2) {
        const TokenRouting routing{
            .experts = 16, .per_token = k, .groups = 4, .groups_per_token = open};
        const double counted = enumerated(routing, places);
        EXPECT_NEAR(places_of_token(routing, places), counted, 0.03 * counted)
            << k << " of " << open << " groups over " << places;
        if (places == 4) {
          EXPECT_LE(places_of_token(routing, places), static_cast<double>(open));
        }
      }
    }
  }
}

TEST(TokenExchange, sends_no_more_than_a_copy_an_expert_and_more_over_more_places) {
  const Bytes copies = mebibytes(64);
  for (const TokenRouting& routing :
       {TokenRouting{.experts = 8, .per_token = 2}, TokenRouting{.experts = 128, .per_token = 8},
        TokenRouting{.experts = 256, .per_token = 8, .groups = 8, .groups_per_token = 4}}) {
    Bytes before;
    for (int64_t nodes = 2; nodes <= 64; nodes *= 2) {
      const Bytes sent = once_a_place(copies, routing, {.ranks = 8 * nodes, .nodes = nodes});
      EXPECT_GE(sent, before);
      EXPECT_LE(sent, copies);
      EXPECT_GE(sent, copies / routing.per_token);
      before = sent;
    }
    EXPECT_EQ(once_a_place(copies, {}, {.ranks = 16, .nodes = 2}), copies);
    EXPECT_EQ(once_a_place(copies, routing, {}), copies);
  }
}

}  // namespace
}  // namespace herdsim
