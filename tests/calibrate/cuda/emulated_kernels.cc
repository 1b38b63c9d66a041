// The own kernels, compiled for the processor.
#include "tests/calibrate/cuda/emulated_gpu.h"
//
#include "calibrate/cuda/cuda_kernels.cu"
