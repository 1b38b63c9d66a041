// Our network against SimGrid's: the same model by other people.
#include <gtest/gtest.h>

#ifdef HERDSIM_HAS_SIMGRID
#include <cmath>

#include "tests/sim/network/random_systems.h"
#include "tests/simgrid/simgrid_world.h"
#endif

namespace herdsim {
namespace {

#ifdef HERDSIM_HAS_SIMGRID

// Links of 1 to 100 GB/s, up to 24 flows over up to four of them, some with caps, starting over the
// time that a few of them take.
FlowSystem random_flow_system(Dice& dice) {
  FlowSystem system;
  const auto links = static_cast<size_t>(dice.between(1, 12));
  for (size_t l = 0; l < links; ++l) {
    system.capacities.push_back(gigabytes_per_second(dice.between(1, 100)));
  }
  for (int64_t f = dice.between(1, 24); f-- > 0;) {
    TimedFlow flow;
    for (int64_t hops = dice.between(1, 4); hops-- > 0;) {
      const LinkId link(static_cast<size_t>(dice.between(0, static_cast<int64_t>(links) - 1)));
      const bool crossed = std::any_of(flow.path.begin(), flow.path.end(),
                                       [&](const Crossing& c) { return c.link == link; });
      if (!crossed) flow.path.push_back({link});
    }
    flow.volume = megabytes(dice.between(1, 1000));
    flow.start = microseconds(dice.between(0, 50'000));
    flow.cap = dice.one_in(3) ? gigabytes_per_second(dice.between(1, 20)) : Bandwidth::unlimited();
    system.flows.push_back(std::move(flow));
  }
  return system;
}

TEST(SimGrid, ends_every_flow_when_our_network_does) {
  Dice dice(11);
  std::vector<FlowSystem> systems;
  for (int i = 0; i < 200; ++i) systems.push_back(random_flow_system(dice));
  const std::vector<double> ours = herdsim_ends(systems), theirs = simgrid_ends(systems);
  ASSERT_EQ(ours.size(), theirs.size());
  size_t flow = 0;
  for (size_t s = 0; s < systems.size(); ++s) {
    for (const TimedFlow& f : systems[s].flows) {
      const double taken = ours[flow] - f.start.seconds();
      EXPECT_NEAR(theirs[flow] - f.start.seconds(), taken, 1e-3 * taken)
          << "flow " << flow << " of system " << s;
      ++flow;
    }
  }
  EXPECT_GT(flow, 2000U);
}

#else

TEST(SimGrid, ends_every_flow_when_our_network_does) {
  GTEST_SKIP() << "libsimgrid-dev is not installed";
}

#endif

}  // namespace
}  // namespace herdsim
