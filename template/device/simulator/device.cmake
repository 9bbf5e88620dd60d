# The simulator's kernels are the reference kernels, run by its streams. OpenBLAS is optional and
# comes from the Python package scipy-openblas32. Without it, a plain kernel multiplies matrices,
# and linear algebra is unsupported.
include("${CMAKE_CURRENT_SOURCE_DIR}/reference/reference.cmake")

find_package(Python REQUIRED COMPONENTS Interpreter)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c
    "import scipy_openblas32 as blas; print(blas.get_include_dir(), blas.get_lib_dir(), sep=';')"
  OUTPUT_VARIABLE openblas OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
  RESULT_VARIABLE openblas_missing)
if(openblas_missing)
  message(STATUS "OpenBLAS: not found (pip install scipy-openblas32 makes matmul faster and linear algebra native)")
else()
  list(GET openblas 0 openblas_include)
  list(GET openblas 1 openblas_lib)
  message(STATUS "OpenBLAS: ${openblas_lib}")
  target_compile_definitions(${DEVICE_TARGET} PRIVATE HAVE_OPENBLAS)
  target_include_directories(${DEVICE_TARGET} PRIVATE "${openblas_include}")
  target_link_libraries(${DEVICE_TARGET} PRIVATE "${openblas_lib}/libscipy_openblas.so")
  # In site-packages, OpenBLAS is next to this project's Python package. If it is not, as in nested
  # environments, Python finds it. No absolute path of this machine is stored: on another machine,
  # another user could own that folder.
  set_property(TARGET ${DEVICE_TARGET} APPEND PROPERTY INSTALL_RPATH "$ORIGIN/../../scipy_openblas32/lib")
  set_property(TARGET ${DEVICE_TARGET} PROPERTY PYTHON_PACKAGES scipy_openblas32)
endif()
