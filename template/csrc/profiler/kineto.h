// Kineto's interface for profilers of other devices, and PyTorch's registry of them. PyTorch has it from 2.12; before,
// USE_KINETO stays undefined and this folder is empty.
#pragma once

#if __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)

#define USE_KINETO
#define KINETO_NAMESPACE libkineto
#define FMT_HEADER_ONLY  // as PyTorch is built: its libraries do not export fmt's functions

// The order matters: output_base.h needs what libkineto.h declares.
// clang-format off
#include <libkineto.h>
#include <output_base.h>
// clang-format on
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#endif
