// When to write a checkpoint, and what fraction of the time is useful: the closed forms the
// campaign is tested against.
//
// Notation, all in seconds: M mean time between failures (lambda = 1/M), u restart, D useful time
// between two checkpoints, w time a checkpoint stops the job, P time until it is durable. ETTR is
// useful time over elapsed time.
//
//   young_interval({.mtbf = 11'135, .write = 10});                                  // 472 s
//   ettr_exact({.mtbf = 11'135, .restart = 600, .interval = 300, .write = 0.6});    // 0.9343
//
// Valid for 0 < M, D and 0 <= w, u, P. The first-order forms assume lambda (u + D/2) << 1 and go
// below zero outside it (they are clamped at 0); the exact ones hold everywhere for exponential
// failures. Sources: Young 1974; Daly 2006; Kokolis et al. arXiv:2410.21680 (form 1); the rest is
// renewal-reward and written out beside each function.
#pragma once

#include <span>

namespace herdsim {

struct CheckpointProblem {
  double mtbf = 0;      // M
  double restart = 0;   // u
  double interval = 0;  // D
  double write = 0;     // w
  double persist = 0;   // P
};

// sqrt(2 w M).
double young_interval(const CheckpointProblem& p);
// Daly's higher-order optimum: sqrt(2 w M) (1 + sqrt(w/2M)/3 + w/18M) - w for w < 2M, otherwise M.
double daly_interval(const CheckpointProblem& p);
// sqrt(2 w (M + u)): Young with the restart inside the period between failures.
double young_interval_with_restart(const CheckpointProblem& p);
// w + sqrt(w^2 + 2 w (M + u)): the period counts the write itself (SPARe, arXiv:2603.00357;
// arXiv:2410.18124).
double period_including_write(const CheckpointProblem& p);

// (1 - lambda (u + D/2 + P)) / (1 + w/D): Kokolis et al., first order; P extends it to asynchronous
// checkpoints, which are usable only once durable.
double ettr_first_order(const CheckpointProblem& p);
// D / ((e^{lambda (D + w)} - 1)(M + u)): exponential failures that strike only while the job is up.
double ettr_exact(const CheckpointProblem& p);
// D / (M e^{lambda u} (e^{lambda (D + w)} - 1)): restarts can fail too, and start over.
double ettr_exact_failing_restarts(const CheckpointProblem& p);
// M / (M + u): no checkpoint cost and no lost work; any law of mean M (renewal reward).
double ettr_renewal(const CheckpointProblem& p);
// 1 - lambda (s + u/replicas): replica-level fault tolerance; all stall for `stall`, one replica of
// the data-parallel dimension is away for `restart`.
double ettr_replica_level(const CheckpointProblem& p, double stall, double replicas);

// One checkpoint tier: it serves failures of rate 1/problem.mtbf that no lower tier survives.
struct CheckpointTierProblem {
  CheckpointProblem problem;
  double detection = 0;
};
// Sum over tiers of lambda (d + u + D/2 + P) + w/D, as a share of the time.
double tiered_loss(std::span<const CheckpointTierProblem> tiers);

// Time lost to one silent corruption: latency + u + D/2; everything since the onset is thrown away.
double corruption_loss(const CheckpointProblem& p, double latency);

// How often a restart is attempted until one holds, e^{u/M}.
double attempts_per_recovery(const CheckpointProblem& p);

}  // namespace herdsim
