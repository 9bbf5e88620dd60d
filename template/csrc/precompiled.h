// Precompiled: what nearly every file of csrc/ needs, and what takes longest to read.
#pragma once

#include <ATen/Context.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
