// Measures a list of probes, each until its median is known well enough, and keeps what it has.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/harness/backend.h"
#include "calibrate/harness/measurement_store.h"

namespace herdsim {

struct ProbeResult {
  Probe probe;
  SeriesSummary summary;
  std::string stopped;
  bool kept = false;  // found in the database
  // What it did a second, by the mean of the last batch of samples; 0 where it is kept, or does
  // none.
  double flops_per_second = 0, bytes_per_second = 0;
};

struct CalibrationProgress {
  size_t done = 0, probes = 0;
  double seconds = 0, seconds_left = 0;               // at the pace of what was measured so far
  std::string probe;                                  // the one that was just done
  double flops_per_second = 0, bytes_per_second = 0;  // of it, as in ProbeResult
};

struct CalibrationPlan {
  std::vector<Probe> probes;
  StoppingRule rule;
  MeasurementStore* store = nullptr;  // of the leader; null: nothing is kept
  std::function<double()> clock;      // seconds
  double most_seconds = 1e18;  // no probe begins later; those after it are left for the next call
  std::function<void(const CalibrationProgress&)> on_progress;  // may be empty
};

struct NotMeasured {
  std::string probe;  // probe_key()
  std::string reason;
};

struct CalibrationResult {
  std::vector<ProbeResult> results;
  std::vector<NotMeasured> refused;  // probes that the device cannot do
  // Probes that the device was asked to do and failed at. They are not kept: the next call tries
  // them again.
  std::vector<NotMeasured> failed;
  size_t left = 0;  // probes that the time did not reach, neither measured nor kept
};

// Each probe once, in order, until the time is over; what is kept in the store costs none and is
// always taken. A probe that fails leaves the others alone, while the device can still do anything.
// Throws: what the store throws and Backend::recover; what was measured before is kept, and the
// next call with that store refuses the probe at which the device was lost. With
// several processes also what Backend::time throws, since the others wait in it.
CalibrationResult calibrate(Backend& backend, const CalibrationPlan& plan);

// A grid that covers what layers of a model ask for, in sizes the device does in a fraction of a
// second: `largest_flops` and `largest_bytes` bound a probe. A collective of every kind and size
// where there are several ranks. The quick grid is the first part of the full one, and in each part
// the kinds take turns: a list that is cut short anywhere still covers every kind.
std::vector<Probe> default_probes(const DeviceFacts& facts, int64_t ranks, double largest_flops,
                                  Bytes largest_bytes, bool quick);

// Launch and peak first, then one of each kind in turn, each kind in its own order: what is cut
// short anywhere still covers every kind.
std::vector<Probe> in_turn(const std::vector<Probe>& probes);

}  // namespace herdsim
