#include "sim/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace herdsim {
namespace {

using ::testing::ElementsAre;

Instant instant(int64_t ns) { return Instant::from_nanoseconds(ns); }

TEST(Engine, events_of_one_instant_run_in_the_order_they_were_scheduled) {
  Engine engine;
  std::vector<int> ran;
  for (int i = 0; i < 100; ++i) engine.at(instant(7), [&ran, i] { ran.push_back(i); });
  engine.at(instant(3), [&ran] { ran.push_back(-1); });
  engine.run();
  ASSERT_EQ(ran.size(), 101u);
  for (int i = 0; i < 101; ++i) EXPECT_EQ(ran[static_cast<size_t>(i)], i - 1);
  EXPECT_EQ(engine.now(), instant(7));
  EXPECT_EQ(engine.events_run(), 101);
}

TEST(Engine, an_event_scheduled_for_now_runs_after_those_already_waiting_for_now) {
  Engine engine;
  std::vector<char> ran;
  engine.at(instant(5), [&] {
    ran.push_back('a');
    engine.at(engine.now(), [&] { ran.push_back('c'); });
  });
  engine.at(instant(5), [&] { ran.push_back('b'); });
  engine.run();
  EXPECT_THAT(ran, ElementsAre('a', 'b', 'c'));
}

TEST(Engine, cancelling_twice_or_late_or_nothing_is_harmless) {
  Engine engine;
  int ran = 0;
  EXPECT_FALSE(engine.cancel(EventId()));
  const EventId first = engine.at(instant(1), [&] { ++ran; });
  const EventId second = engine.at(instant(2), [&] { ++ran; });
  EXPECT_TRUE(engine.cancel(second));
  EXPECT_FALSE(engine.cancel(second));
  engine.run();
  EXPECT_FALSE(engine.cancel(first));
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(engine.pending(), 0u);
}

TEST(Engine, an_event_cannot_cancel_itself_while_it_runs) {
  Engine engine;
  EventId self;
  std::optional<bool> answer;
  self = engine.at(instant(1), [&] { answer = engine.cancel(self); });
  engine.run();
  EXPECT_EQ(answer, false);
}

TEST(Engine, the_id_of_a_reused_slot_never_names_the_newcomer) {
  Engine engine;
  std::vector<EventId> old;
  int ran = 0;
  for (int i = 0; i < 1000; ++i) {
    old.push_back(engine.at(instant(1), [] {}));
    ASSERT_TRUE(engine.cancel(old.back()));
  }
  engine.at(instant(1), [&] { ++ran; });
  for (const EventId id : old) EXPECT_FALSE(engine.cancel(id));
  engine.run();
  EXPECT_EQ(ran, 1);
}

TEST(Engine, settle_hooks_run_once_an_instant_after_its_last_event) {
  Engine engine;
  std::vector<std::pair<int64_t, char>> ran;
  const auto note = [&](char what) { ran.emplace_back(engine.now().nanoseconds(), what); };
  engine.on_settle([&] { note('s'); });
  for (int i = 0; i < 3; ++i) {
    engine.at(instant(4), [&] {
      note('e');
      engine.request_settle();
    });
  }
  engine.at(instant(4), [&] { engine.at(engine.now(), [&] { note('l'); }); });
  engine.at(instant(6), [&] { note('q'); });  // does not ask
  engine.run();
  EXPECT_THAT(ran, ElementsAre(std::pair(4, 'e'), std::pair(4, 'e'), std::pair(4, 'e'),
                               std::pair(4, 'l'), std::pair(4, 's'), std::pair(6, 'q')));
  EXPECT_EQ(engine.settles_run(), 1);
}

TEST(Engine, what_a_settle_hook_schedules_for_the_same_instant_runs_and_settles_again) {
  Engine engine;
  std::vector<char> ran;
  engine.on_settle([&] {
    ran.push_back('s');
    if (ran.size() == 1) {
      engine.at(engine.now(), [&] {
        ran.push_back('e');
        engine.request_settle();
      });
    }
  });
  engine.request_settle();
  engine.at(instant(9), [&] { ran.push_back('z'); });
  engine.run();
  EXPECT_THAT(ran, ElementsAre('s', 'e', 's', 'z'));
}

TEST(Engine, run_until_includes_its_limit_settles_it_and_stands_there) {
  Engine engine;
  std::vector<int> ran;
  engine.on_settle([&] { ran.push_back(0); });
  for (const int t : {1, 5, 9}) {
    engine.at(instant(t), [&ran, &engine, t] {
      ran.push_back(t);
      engine.request_settle();
    });
  }
  engine.run_until(instant(5));
  EXPECT_THAT(ran, ElementsAre(1, 0, 5, 0));
  engine.run_until(instant(7));
  EXPECT_EQ(engine.now(), instant(7));
  engine.at(instant(8), [&] { ran.push_back(8); });  // between the clock and the next event
  engine.run();
  EXPECT_THAT(ran, ElementsAre(1, 0, 5, 0, 8, 9, 0));
  EXPECT_EQ(engine.now(), instant(9));
}

TEST(Engine, an_event_at_never_stays_pending_and_does_not_run) {
  Engine engine;
  bool ran = false;
  const EventId id = engine.after(Duration::infinite(), [&] { ran = true; });
  engine.run();
  EXPECT_FALSE(ran);
  EXPECT_EQ(engine.now(), Instant::start());
  EXPECT_EQ(engine.pending(), 1u);
  EXPECT_TRUE(engine.cancel(id));
}

TEST(Engine, a_cancelled_event_does_not_hold_back_what_is_scheduled_before_its_time) {
  Engine engine;
  std::vector<int> ran;
  const EventId first = engine.at(instant(100), [] {});
  engine.at(instant(200), [&] { ran.push_back(200); });
  engine.run_until(instant(50));  // the queue has looked at 100
  EXPECT_TRUE(engine.cancel(first));
  engine.run_until(instant(60));  // ... and now at 200
  engine.at(instant(150), [&] { ran.push_back(150); });
  engine.at(instant(70), [&] { ran.push_back(70); });
  engine.run();
  EXPECT_THAT(ran, ElementsAre(70, 150, 200));
}

TEST(Engine, an_exception_of_a_callback_leaves_the_rest_pending) {
  Engine engine;
  bool ran = false;
  engine.at(instant(1), [] { throw std::runtime_error("stop"); });
  engine.at(instant(2), [&] { ran = true; });
  EXPECT_THROW(engine.run(), std::runtime_error);
  EXPECT_FALSE(ran);
  engine.run();
  EXPECT_TRUE(ran);
}

TEST(EngineDeathTest, scheduling_in_the_past_is_a_program_error) {
  Engine engine;
  engine.run_until(instant(10));
  EXPECT_DEATH(engine.at(instant(9), [] {}), "past");
}

// The engine anyone would write first: it is the definition of what the fast one must do.
class ToyEngine {
 public:
  uint64_t at(int64_t when, int label) {
    events_.emplace(std::pair(when, ++sequence_), label);
    return sequence_;
  }
  bool cancel(uint64_t id) {
    return std::erase_if(events_, [&](const auto& e) { return e.first.second == id; }) > 0;
  }
  std::optional<std::pair<int64_t, int>> next(int64_t limit) {
    if (events_.empty() || events_.begin()->first.first > limit) return std::nullopt;
    const std::pair result(events_.begin()->first.first, events_.begin()->second);
    events_.erase(events_.begin());
    return result;
  }
  size_t pending() const { return events_.size(); }

 private:
  std::map<std::pair<int64_t, uint64_t>, int> events_;
  uint64_t sequence_ = 0;
};

TEST(Engine, agrees_with_a_sorted_map_under_random_operations) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    Engine engine;
    ToyEngine toy;
    std::vector<std::pair<EventId, uint64_t>> ids;
    std::vector<std::pair<int64_t, int>> ran;
    int label = 0;
    for (int round = 0; round < 300; ++round) {
      // Odd seeds are sparse, so that the queue often holds little but the dead.
      for (uint32_t i = below(seed % 2 == 1 ? 3 : 20); i-- > 0;) {
        // Mostly near and often tied; sometimes far, so that all of the queue's depth is used.
        const int64_t when =
            engine.now().nanoseconds() + (below(4) == 0 ? below(1u << 30) : below(8));
        const int name = label++;
        ids.emplace_back(engine.at(instant(when),
                                   [&ran, &engine, name] {
                                     ran.emplace_back(engine.now().nanoseconds(), name);
                                   }),
                         toy.at(when, name));
      }
      // More cancels than survivors, so that sweeps of the queue happen.
      for (uint32_t i = below(15); i-- > 0 && !ids.empty();) {
        const uint32_t recent = std::min(30u, static_cast<uint32_t>(ids.size()));
        const auto [fast, slow] = ids[ids.size() - 1 - below(recent)];
        ASSERT_EQ(engine.cancel(fast), toy.cancel(slow)) << "seed " << seed;
      }
      const int64_t limit =
          engine.now().nanoseconds() + (below(20) == 0 ? below(1u << 29) : below(12));
      ran.clear();
      engine.run_until(instant(limit));
      std::vector<std::pair<int64_t, int>> expected;
      while (const auto event = toy.next(limit)) expected.push_back(*event);
      ASSERT_EQ(ran, expected) << "seed " << seed << " round " << round;
      ASSERT_EQ(engine.pending(), toy.pending());
    }
    ran.clear();
    engine.run();
    std::vector<std::pair<int64_t, int>> expected;
    while (const auto event = toy.next(INT64_MAX - 1)) expected.push_back(*event);
    ASSERT_EQ(ran, expected) << "seed " << seed;
  }
}

}  // namespace
}  // namespace herdsim
