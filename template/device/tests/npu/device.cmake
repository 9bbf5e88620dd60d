# The kernels use the arithmetic of the reference.
include("${CMAKE_CURRENT_SOURCE_DIR}/reference/reference.cmake")
