// The corrections that public NCCL measurements on H100 clusters give to NCCL's own prediction.
//
// Each table is a SizeCurve (1 KiB, 2 KiB, ... 16 GiB) fitted to the source that its provenance
// names.
#pragma once

#include "sim/collectives/nccl_tuning.h"

namespace herdsim {

// Fills the corrections of a tuning whose constants are set.
void add_h100_corrections(NcclTuning& tuning);

}  // namespace herdsim
