// Precompiled: the headers that nearly every file of csrc/ needs, and those that take longest to compile.
#pragma once

#include <ATen/Context.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
