# OpenCL 3.0: the loader, which finds the drivers at run time, and the kernels' sources, which go into the library as text.
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

# The reference says which operations exist for which types, and turns numbers into elements. Its loops are not called.
file(GLOB_RECURSE reference_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/reference/*.cpp")
target_sources(${DEVICE_TARGET} PRIVATE ${reference_sources})
target_compile_options(${DEVICE_TARGET} PRIVATE -ffp-contract=off)

# kernels/NAME.cl becomes the string sources::NAME of sources.h, and is written again when it changes.
file(GLOB kernel_texts CONFIGURE_DEPENDS "${DEVICE_DIR}/kernels/*.cl")
set(embedded "${CMAKE_CURRENT_BINARY_DIR}/opencl/sources.h")
add_custom_command(
  OUTPUT "${embedded}"
  COMMAND "${CMAKE_COMMAND}" "-DTEXTS=${kernel_texts}" "-DOUTPUT=${embedded}" -P "${DEVICE_DIR}/embed.cmake"
  DEPENDS ${kernel_texts} "${DEVICE_DIR}/embed.cmake"
  VERBATIM)
target_sources(${DEVICE_TARGET} PRIVATE "${embedded}")
target_include_directories(${DEVICE_TARGET} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}")
