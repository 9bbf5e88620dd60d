# The families of kernels.h: one source file of this name in every implementation, and one in unsupported/.
set(DEVICE_FAMILIES
  fill
  copy
  sequence
  unary
  binary
  ternary
  reduce
  matmul
  random
  unscale
  update_scale
)
