# The arithmetic of the kernels is the reference's.
include("${CMAKE_CURRENT_SOURCE_DIR}/reference/reference.cmake")
