#include "calibrate/harness/benchmark_series.h"

#include <benchmark/benchmark.h>

#include <sstream>
#include <stdexcept>

namespace herdsim {
namespace {

constexpr const char* kFlops = "flops";
constexpr const char* kBytes = "bytes";

// Takes the one run that there is; what the library would print goes nowhere, what it complains of
// is kept.
class Collector : public benchmark::BenchmarkReporter {
 public:
  Collector() {
    SetOutputStream(&ignored_);
    SetErrorStream(&complaints_);
  }
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      run_ = run;
      reported_ = true;
    }
  }

  // Throws: std::runtime_error where the library ran nothing, or the benchmark met a fault.
  const Run& run() const {
    if (!reported_) throw std::runtime_error("Google Benchmark ran nothing: " + complaints_.str());
    if (run_.error_occurred) throw std::runtime_error(run_.error_message);
    return run_;
  }

 private:
  std::ostringstream ignored_, complaints_;
  Run run_;
  bool reported_ = false;
};

struct RegisteredAlone {
  RegisteredAlone() { benchmark::ClearRegisteredBenchmarks(); }
  ~RegisteredAlone() { benchmark::ClearRegisteredBenchmarks(); }
  RegisteredAlone(const RegisteredAlone&) = delete;
  RegisteredAlone& operator=(const RegisteredAlone&) = delete;
};

benchmark::Counter rate(double of_one_run) {
  return {of_one_run, benchmark::Counter::kIsIterationInvariantRate};
}

double value_of(const benchmark::UserCounters& counters, const char* name) {
  const auto found = counters.find(name);
  return found == counters.end() ? 0 : found->second.value;
}

}  // namespace

SampleBatch time_by_benchmark(const std::string& name, const ProbeWork& work, int64_t samples,
                              const std::function<Sample()>& take) {
  SampleBatch batch;
  batch.samples.reserve(static_cast<size_t>(samples));
  // Exceptions must not pass through the library, which would be left in the middle of a run.
  const auto body = [&](benchmark::State& state) {
    for ([[maybe_unused]] auto iteration : state) {
      try {
        batch.samples.push_back(take());
      } catch (const std::exception& error) {
        state.SkipWithError(error.what());
        break;
      }
      state.SetIterationTime(batch.samples.back().seconds);
    }
    if (work.flops > 0) state.counters[kFlops] = rate(work.flops);
    if (work.bytes > 0) state.counters[kBytes] = rate(work.bytes);
  };
  const RegisteredAlone alone;
  // Repetitions and the least time may also come from the environment.
  benchmark::RegisterBenchmark(name.c_str(), body)
      ->UseManualTime()
      ->Iterations(samples)
      ->Repetitions(1);
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector, ".");
  const auto& run = collector.run();
  batch.mean_seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
  batch.flops_per_second = value_of(run.counters, kFlops);
  batch.bytes_per_second = value_of(run.counters, kBytes);
  return batch;
}

}  // namespace herdsim
