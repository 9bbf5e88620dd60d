# The simulator's kernels are the reference kernels, run by its streams. OpenBLAS is optional and comes from the Python
# package scipy-openblas32; without it a plain kernel multiplies matrices.
file(GLOB reference_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/reference/*.cpp")
target_sources(${DEVICE_TARGET} PRIVATE ${reference_sources})

find_package(Python REQUIRED COMPONENTS Interpreter)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c
    "import scipy_openblas32 as blas; print(blas.get_include_dir(), blas.get_lib_dir(), sep=';')"
  OUTPUT_VARIABLE openblas OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
  RESULT_VARIABLE openblas_missing)
if(openblas_missing)
  message(STATUS "OpenBLAS: not found (pip install scipy-openblas32 makes matmul faster)")
else()
  list(GET openblas 0 openblas_include)
  list(GET openblas 1 openblas_lib)
  message(STATUS "OpenBLAS: ${openblas_lib}")
  set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/kernels/matmul.cpp" PROPERTIES
    COMPILE_DEFINITIONS HAVE_OPENBLAS
    INCLUDE_DIRECTORIES "${openblas_include}")
  target_link_libraries(${DEVICE_TARGET} PRIVATE "${openblas_lib}/libscipy_openblas.so")
  # Installed beside or below this project's Python package, OpenBLAS is its neighbour in site-packages.
  set_property(TARGET ${DEVICE_TARGET} APPEND PROPERTY INSTALL_RPATH
    "$ORIGIN/../scipy_openblas32/lib" "$ORIGIN/../../scipy_openblas32/lib")
endif()
