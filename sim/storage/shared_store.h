// A store that several jobs save to, load from and read their data from, and what that gives each
// of them.
//
// Links: every host reaches the storage network through its client and its port, `Tenant::host`
// each way; the store itself is one link for both directions, with a peak for a while
// (sim/network/burst_link.h). The hosts of a job do the same at the same time, so one transfer
// stands for all of them and crosses the store as often as there are hosts. Hosts share the store
// max-min fairly, whichever job they are of. A byte written is `write_amplification` bytes to the
// store, a byte read is one.
//
// A save or load takes the longer of two times: moving its bytes, and creating or opening its files
// one after another in every directory (files / (directories * files a second)), which is a floor
// for many small files.
//
// Other jobs save at their own interval. Nobody knows how their saves lie relative to this job's,
// so a save of this job is timed at 32 evenly spaced phases of the others' and its mean is what
// weeks of training see.
//
//   const StoreTime t = save_time(store, tenant, others);
//   t.mean   // 54.6 s
//
// Sources: Llama 3 (arXiv:2407.21783): 240 PB on 7,500 servers, 2 TB/s sustained, 7 TB/s peak,
// bursts "for short durations"; how much credit a rest gives is not published. Tectonic (FAST'21):
// 10,000 metadata operations a second of one shard, Reed-Solomon 9 + 6.
#pragma once

#include <cstdint>
#include <span>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/network/burst_link.h"

namespace herdsim {

// Rates of at most 1 PB/s, of a host at most 1 TB/s: what the run multiplies stays in 64 bits.
struct SharedStore {
  Bandwidth sustained = gigabytes_per_second(2000);
  double burst_factor = 3.5;       // peak over sustained
  Duration burst = seconds(60);    // at the peak, after a rest
  double write_amplification = 1;  // to the hundredth
  double files_per_second = 1e4;   // created or opened in one directory

  Bandwidth peak() const;
};

// Of a link that each byte read crosses `crossings` times. Never full of credit where it has no
// peak. A rate or depth beyond 64 bits is none.
BurstRates burst_rates(const SharedStore& store, int64_t crossings);

// A job as the store sees it.
struct StoreTenant {
  int64_t hosts = 1;
  Bandwidth host = gigabytes_per_second(5);  // what one reaches, each way
  // Bounds of the whole job: what its save and load pipelines reach, and what its data loaders ask
  // for all the time.
  Bandwidth write_most, read_most, loading;
  Bytes bytes;                               // of a save, and of a load; 0: it does neither
  Duration interval = Duration::infinite();  // between the beginnings of two saves
  int64_t files = 0, directories = 1;        // of a save or load
};

struct StoreTime {
  Duration alone;             // with the store for itself
  Duration mean, worst;       // over the phases of other jobs' saves; `mean` equals `alone` where
                              // nothing is in the way
  double loaders_slowed = 0;  // share of its data that the job's own loaders miss meanwhile
};

// Of a save of `job`, which saves on and on, while its own loaders go on.
// Requires: bytes above zero; rates above zero, or zero where it does not load data.
StoreTime save_time(const SharedStore& store, const StoreTenant& job,
                    std::span<const StoreTenant> others);
// Of a load after a failure: the job neither saves nor reads data meanwhile.
StoreTime load_time(const SharedStore& store, const StoreTenant& job,
                    std::span<const StoreTenant> others);

}  // namespace herdsim
