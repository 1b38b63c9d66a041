#include "sim/checkpoint/checkpoint_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace herdsim {
namespace {

constexpr TierRow kRemoteAsync{.medium = Medium::kRemote, .blocking = Blocking::kCopy};

std::vector<CheckpointPolicy> make_rows() {
  return {
      {.name = "none",
       .help = "nothing is saved: every failure starts the run over",
       .tiers = {},
       .source = ""},
      {.name = "sync",
       .help = "training waits until the remote store has it",
       .tiers = {{.medium = Medium::kRemote, .blocking = Blocking::kWholeWrite}},
       .source = "the old practice; BLOOM: 40 s in every 3 h"},
      {.name = "async",
       .help = "training waits for the copy to host memory; the write goes on behind it",
       .tiers = {kRemoteAsync},
       .source = "ByteCheckpoint, NSDI'25; PyTorch DCP"},
      {.name = "in-memory",
       .help = "every step to host memory with a copy on a peer, and async to the remote store",
       .tiers = {{.medium = Medium::kHostMemory,
                  .blocking = Blocking::kOverlapped,
                  .every_steps = 1},
                 kRemoteAsync},
       .source = "Gemini, SOSP'23; ByteRobust, SOSP'25"},
      {.name = "tiered",
       .help = "a peer's HBM every step, where processes live on; host memory every 5 steps, NVMe "
               "every 25, the remote store by the interval",
       .tiers = {{.medium = Medium::kHbmCopy, .blocking = Blocking::kOverlapped, .every_steps = 1},
                 {.medium = Medium::kHostMemory, .blocking = Blocking::kCopy, .every_steps = 5},
                 {.medium = Medium::kNvme, .blocking = Blocking::kOverlapped, .every_steps = 25},
                 kRemoteAsync},
       .evidence = Evidence::kAssumed,
       .source =
           "HBM every step: FT-HSDP, arXiv:2602.00277, but as a copy for state that is shared "
           "out; two buffers, hidden transfers and the other intervals (within 1-10 and 10-50 "
           "steps) are assumed"},
      {.name = "local-disk",
       .help =
           "every 25 steps to the host's own disks, lost with the host; the remote store by the "
           "interval",
       .tiers = {{.medium = Medium::kNvme, .blocking = Blocking::kCopy, .every_steps = 25},
                 kRemoteAsync},
       .evidence = Evidence::kAssumed,
       .source = "interval assumed within 10-50 steps"},
      {.name = "peer-replica",
       .help = "another data-parallel replica holds the state; the remote store by the interval",
       .tiers = {{.medium = Medium::kPeerHbm, .blocking = Blocking::kOverlapped, .every_steps = 1},
                 kRemoteAsync},
       .source = "FT-HSDP, arXiv:2602.00277; AWS checkpointless recovery"},
      {.name = "incremental",
       .help = "async, one full snapshot in 8, a quarter of the bytes otherwise",
       .tiers = {{.medium = Medium::kRemote,
                  .blocking = Blocking::kCopy,
                  .full_every = 8,
                  .delta_fraction = 0.25}},
       .evidence = Evidence::kAssumed,
       .source = "Check-N-Run, arXiv:2010.08679; the fraction is assumed"},
      {.name = "just-in-time",
       .help = "healthy replicas save when one fails; async to the remote store for the rest",
       .tiers = {kRemoteAsync},
       .just_in_time = true,
       .source = "Just-in-time checkpointing, EuroSys'24"},
  };
}

// Beyond the limit no save lasts as long as a tick.
Bandwidth gigabytes_a_second(double rate, double most = 1e6) {
  return bytes_per_second(std::min(rate, most) * 1e9);
}

double gigabytes_of(Bytes bytes) { return static_cast<double>(bytes.count()) * 1e-9; }

// Seconds to move what a tier writes, and to read it back; and what training loses meanwhile, as a
// share of the write.
struct Moves {
  double write = 0, read = 0, slowed = 0;
};

// Half a tick less, so that rounding it up again adds none.
double seconds_of(Duration whole_ticks) {
  return (static_cast<double>(whole_ticks.nanoseconds()) - 0.5) * 1e-9;
}

// A save or load of the remote store, unless somebody has measured it.
Moves remote_moves(const CheckpointSize& size, const StorageModel& storage, Duration interval,
                   std::span<const StoreTenant> others) {
  const SharedStore store = shared_store(storage);
  const StoreTenant job = store_tenant(size, storage, interval);
  const StoreTime save = save_time(store, job, others);
  Moves moves{.write = storage.planning_s + storage.wait_s + seconds_of(save.mean),
              .read = seconds_of(load_time(store, job, others).mean),
              .slowed = save.loaders_slowed};
  if (storage.measured_save_s > 0) moves.write = storage.measured_save_s;
  if (storage.measured_load_s > 0) moves.read = storage.measured_load_s;
  return moves;
}

Moves moves_of(Medium medium, const CheckpointSize& size, const StorageModel& storage,
               Duration interval, std::span<const StoreTenant> others) {
  const double total = gigabytes_of(size.total);
  const double per_gpu = total / static_cast<double>(size.gpus);
  const double per_host = per_gpu * static_cast<double>(size.gpus_per_host);
  switch (medium) {
    case Medium::kPeerHbm:
      return {.write = 0, .read = storage.attach_s + per_gpu / storage.peer_gb_per_s_per_gpu};
    case Medium::kHbmCopy:
    case Medium::kHostMemory: {
      const double copy = per_gpu / storage.peer_gb_per_s_per_gpu;
      return {.write = copy, .read = storage.attach_s + copy};
    }
    case Medium::kNvme: {
      const double disk = per_host / storage.nvme_gb_per_s_per_host;
      return {.write = disk, .read = storage.attach_s + disk};
    }
    case Medium::kRemote:
      return remote_moves(size, storage, interval, others);
  }
  return {};
}

CheckpointTier costed(const TierRow& row, const CheckpointSize& size, const StorageModel& storage,
                      Duration interval, std::span<const StoreTenant> others) {
  const Moves moves = moves_of(row.medium, size, storage, interval, others);
  double copy_out =
      gigabytes_of(size.total) / static_cast<double>(size.gpus) / storage.copy_out_gb_per_s_per_gpu;
  if (row.medium == Medium::kRemote && storage.measured_block_s > 0)
    copy_out = storage.measured_block_s;
  CheckpointTier tier;
  tier.medium = row.medium;
  tier.follows_interval = row.every_steps == 0;
  tier.period_steps = std::max<int64_t>(row.every_steps, 1);
  tier.full_every = row.full_every;
  const double saves = static_cast<double>(row.full_every);
  const double mean_write = moves.write * (1 + (saves - 1) * row.delta_fraction) / saves;
  tier.load = seconds_rounded_up(moves.read);
  tier.delta_load =
      row.full_every > 1 ? seconds_rounded_up(moves.read * row.delta_fraction) : Duration::zero();
  switch (row.blocking) {
    case Blocking::kWholeWrite:
      tier.block = seconds_rounded_up(storage.measured_block_s > 0 ? storage.measured_block_s
                                                                   : copy_out + moves.write);
      break;
    case Blocking::kCopy:
      tier.block = seconds_rounded_up(copy_out + moves.slowed * mean_write);
      tier.persist = seconds_rounded_up(moves.write);
      break;
    case Blocking::kOverlapped:
      tier.block = row.medium == Medium::kHostMemory
                       ? seconds_rounded_up(storage.memory_save_block_s)
                       : Duration::zero();
      tier.persist = seconds_rounded_up(moves.write);
      break;
  }
  tier.delta_persist = seconds_rounded_up(moves.write * row.delta_fraction);
  if (row.blocking == Blocking::kWholeWrite) tier.delta_persist = Duration::zero();
  return tier;
}

int64_t steps_covering(Duration time, Duration step) {
  return std::max<int64_t>(1, (time + step - nanoseconds(1)).nanoseconds() / step.nanoseconds());
}

int64_t steps_nearest(Duration time, Duration step) {
  return std::max<int64_t>(
      1, (time + nanoseconds(step.nanoseconds() / 2)).nanoseconds() / step.nanoseconds());
}

}  // namespace

const std::vector<CheckpointPolicy>& checkpoint_policies() {
  static const std::vector<CheckpointPolicy> rows = make_rows();
  return rows;
}

const CheckpointPolicy* find_checkpoint_policy(std::string_view name) {
  for (const CheckpointPolicy& row : checkpoint_policies()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

SharedStore shared_store(const StorageModel& storage) {
  return {
      .sustained = gigabytes_a_second(storage.shared_cap_gb_per_s * (1 - storage.background_share)),
      .burst_factor = storage.burst_factor,
      .burst = seconds_rounded_up(storage.burst_s),
      .write_amplification = storage.write_amplification,
      .files_per_second = storage.files_per_second};
}

StoreTenant store_tenant(const CheckpointSize& size, const StorageModel& storage,
                         Duration interval) {
  constexpr double kBitsAByte = 8, kMostOfHost = 1e3;
  return {
      .hosts = (size.gpus + size.gpus_per_host - 1) / size.gpus_per_host,
      .host = gigabytes_a_second(
          std::min(storage.client_gb_per_s, storage.frontend_gbit_per_s / kBitsAByte), kMostOfHost),
      .write_most = gigabytes_a_second(storage.write_gb_per_s),
      .read_most = gigabytes_a_second(storage.read_gb_per_s),
      .loading = gigabytes_a_second(storage.data_loading_gb_per_s),
      .bytes = size.total,
      .interval = interval,
      .files = size.gpus * storage.files_per_gpu,
      .directories = storage.directories};
}

CheckpointPlan plan_checkpoints(const CheckpointPolicy& policy, Duration interval,
                                const CheckpointSize& size, const StorageModel& storage,
                                Duration step_time, std::span<const StoreTenant> others) {
  CheckpointPlan plan;
  plan.just_in_time = policy.just_in_time;
  for (const TierRow& row : policy.tiers) {
    CheckpointTier tier = costed(row, size, storage, interval, others);
    const Duration wanted = tier.follows_interval ? interval : step_time * tier.period_steps;
    const std::string_view medium = kMediumNames[static_cast<size_t>(tier.medium)];
    if (tier.persist > wanted) {
      plan.warnings.push_back(
          fmt::format("checkpoint.interval_s: a save to the {} takes {:.1f} s, longer than its "
                      "interval of {:.1f} s; saves "
                      "queue, so each starts when the one before it is durable",
                      medium, tier.persist.seconds(), wanted.seconds()));
    } else if (tier.block > wanted) {
      plan.warnings.push_back(
          fmt::format("checkpoint.interval_s: training stops {:.1f} s for a save to the {}, longer "
                      "than its interval of {:.1f} s; "
                      "most of the time is spent saving",
                      tier.block.seconds(), medium, wanted.seconds()));
    }
    if (!tier.follows_interval)
      tier.period_steps = std::max(tier.period_steps, steps_covering(tier.persist, step_time));
    plan.tiers.push_back(tier);
    if (tier.medium == Medium::kHbmCopy) {
      constexpr int64_t kBuffers = 2;
      plan.hbm_a_gpu = Bytes(kBuffers * ((size.total.count() + size.gpus - 1) / size.gpus));
    }
  }
  set_interval(plan, interval, step_time);
  return plan;
}

void drop_hbm_copies(CheckpointPlan& plan) {
  std::erase_if(plan.tiers, [](const CheckpointTier& t) { return t.medium == Medium::kHbmCopy; });
  plan.hbm_a_gpu = Bytes(0);
}

void set_interval(CheckpointPlan& plan, Duration interval, Duration step_time) {
  for (CheckpointTier& tier : plan.tiers) {
    if (!tier.follows_interval) continue;
    tier.period_steps =
        std::max(steps_nearest(interval, step_time), steps_covering(tier.persist, step_time));
  }
}

}  // namespace herdsim
