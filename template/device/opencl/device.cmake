# OpenCL 3.0: the loader, which finds the drivers at run time, and the kernels' sources, which are
# embedded in the library as text.
find_package(OpenCL 3.0 QUIET)
if(NOT OpenCL_FOUND)
  message(FATAL_ERROR
    "The device \"opencl\" needs the headers and the loader of OpenCL 3.0, which CMake does not find. "
    "On Debian and Ubuntu: apt-get install ocl-icd-opencl-dev opencl-headers "
    "(and a driver, such as pocl-opencl-icd, where the device is used). "
    "Elsewhere set OpenCL_INCLUDE_DIR and OpenCL_LIBRARY.")
endif()
target_link_libraries(${DEVICE_TARGET} PRIVATE OpenCL::OpenCL)
target_compile_definitions(${DEVICE_TARGET} PRIVATE
  CL_TARGET_OPENCL_VERSION=300
  DEVICE_BACKEND_NAME="${DEVICE_BACKEND_NAME}")

set(TEXT_DIALECT opencl)
include("${CMAKE_CURRENT_SOURCE_DIR}/shared/text/text.cmake")
include("${CMAKE_CURRENT_SOURCE_DIR}/shared/queues/queues.cmake")
