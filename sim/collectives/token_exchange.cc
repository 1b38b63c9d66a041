#include "sim/collectives/token_exchange.h"

#include <algorithm>
#include <cmath>

namespace herdsim {
namespace {

// Of `places` that hold `things` evenly, how many have one of `drawn` things drawn without
// replacement.
double places_hit(double places, double things, double drawn) {
  const double elsewhere = things - things / places;
  if (elsewhere < drawn) return places;
  // C(elsewhere, drawn) / C(things, drawn), of numbers that need not be whole.
  const double missed = std::exp(std::lgamma(elsewhere + 1) - std::lgamma(elsewhere - drawn + 1) -
                                 std::lgamma(things + 1) + std::lgamma(things - drawn + 1));
  return places * (1 - missed);
}

}  // namespace

double places_of_token(const TokenRouting& routing, int64_t places) {
  const auto n = static_cast<double>(places);
  auto things = static_cast<double>(routing.experts);
  auto drawn = static_cast<double>(routing.per_token);
  if (routing.groups_per_token > 0 && routing.groups_per_token < routing.groups) {
    const auto groups = static_cast<double>(routing.groups);
    const auto open = static_cast<double>(routing.groups_per_token);
    const double hit = places_hit(open, things * open / groups, drawn);
    if (n <= groups) {
      things = groups;
      drawn = hit;
    } else {
      // Each group lies on several places: those of the open ones are drawn from.
      return std::clamp(places_hit(n * open / groups, things * open / groups, drawn), 1.0, drawn);
    }
  }
  return std::clamp(places_hit(n, things, drawn), 1.0, std::min(n, drawn));
}

Bytes once_a_place(Bytes copies, const TokenRouting& routing, const GroupShape& group) {
  if (routing.experts == 0 || group.ranks <= 1) return copies;
  const double places = places_of_token(routing, group.nodes > 1 ? group.nodes : group.ranks);
  const double share = places / static_cast<double>(routing.per_token);
  return Bytes(static_cast<int64_t>(std::ceil(static_cast<double>(copies.count()) * share)));
}

}  // namespace herdsim
