# Finds PyTorch's headers and libraries in the installed wheel, as the imported targets torch::cpu and torch::python.
#
# find_package(Torch) is not used, because it requires a CUDA toolkit if the wheel was built for
# CUDA.
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)

# find_torch.py does not import the package, which would take a second and requires a working
# installation.
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/find_torch.py"
  OUTPUT_VARIABLE torch_found OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE torch_missing ERROR_QUIET)
if(torch_missing)
  message(FATAL_ERROR
    "PyTorch is not installed for ${Python_EXECUTABLE}: install it first, for example with 'pip install torch', and "
    "build with 'pip install --no-build-isolation .'.")
endif()
list(GET torch_found 0 TORCH_DIR)
list(GET torch_found 1 TORCH_VERSION)

string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_minor "${TORCH_VERSION}")
if(torch_minor VERSION_LESS TORCH_OLDEST OR torch_minor VERSION_GREATER TORCH_NEWEST)
  message(FATAL_ERROR
    "PyTorch ${TORCH_VERSION} is installed, but this backend builds with PyTorch ${TORCH_OLDEST} to ${TORCH_NEWEST}: "
    "install one of those, or update this project from its template.")
endif()
message(STATUS "PyTorch ${TORCH_VERSION} in ${TORCH_DIR}")

add_library(torch::cpu INTERFACE IMPORTED)
target_include_directories(torch::cpu SYSTEM INTERFACE
  "${TORCH_DIR}/include" "${TORCH_DIR}/include/torch/csrc/api/include")
# Kineto's headers, which PyTorch's profiler headers include by their bare names.
if(EXISTS "${TORCH_DIR}/include/kineto")
  target_include_directories(torch::cpu SYSTEM INTERFACE "${TORCH_DIR}/include/kineto")
endif()
# PyTorch's own headers then include the headers of single operators only, which shortens compilation.
target_compile_definitions(torch::cpu INTERFACE AT_PER_OPERATOR_HEADERS)
target_link_libraries(torch::cpu INTERFACE
  "${TORCH_DIR}/lib/libc10.so" "${TORCH_DIR}/lib/libtorch_cpu.so" "${TORCH_DIR}/lib/libtorch.so")

add_library(torch::python INTERFACE IMPORTED)
target_link_libraries(torch::python INTERFACE torch::cpu "${TORCH_DIR}/lib/libtorch_python.so")
