// Work of which ranks have unequal shares: tokens at experts, and attention over documents of
// different lengths.
//
// Experts: in every group that shares out experts one rank has Training::expert_load() times the
// mean and the others what is left. Which one it is does not matter: all of them meet in the
// all-to-all after each layer.
//
// Documents: lengths are drawn from a log-normal distribution and packed into sequences, the last
// one cut. A token attends to its own document only, so a sequence costs the sum of l^2 / 2 instead
// of s^2 / 2, each differently, and a context rank (chunks i and 2 CP - 1 - i of the sequence) its
// part of it. Every replica draws its own sequences, so no two replicas are alike any more; ranks
// that share a sequence still are.
#pragma once

#include "sim/opgraph/op_graph.h"
#include "workloads/workload_spec.h"

namespace herdsim {

// Tokens of a document in the mean, none shorter than one or longer than the sequence: a sequence
// has about its length over this of them. Requires: documents.mean_tokens > 0.
double mean_packed_tokens(const DocumentLengths& documents, int64_t sequence_length);

// Share of the causal triangle that documents leave of a sequence, in the mean. Requires:
// documents.mean_tokens > 0. Ensures: a value in (0, 1]; the same for the same arguments.
double mean_document_mask(const DocumentLengths& documents, int64_t sequence_length);

// Of every rank, over that of the mean rank; empty where all have the same.
UnevenLoad expert_load(const WorkloadSpec& spec, const RankGrid& grid);
UnevenLoad document_load(const WorkloadSpec& spec, const RankGrid& grid);

}  // namespace herdsim
