# The simulator's kernels are the reference kernels, run by its streams. OpenBLAS is optional and comes from the Python
# package scipy-openblas32; without it a plain kernel multiplies matrices, and linear algebra is declined.
file(GLOB reference_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/reference/*.cpp")
target_sources(${DEVICE_TARGET} PRIVATE ${reference_sources})

# Kernels never read errno or floating-point flags, which lets loops over sqrt and floor use vectors; without contraction
# results are the same on every processor.
target_compile_options(${DEVICE_TARGET} PRIVATE -fno-math-errno -fno-trapping-math -ffp-contract=off)

# Compiled in groups, which share the reading of headers. -DCMAKE_UNITY_BUILD=OFF compiles every file by itself.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set_source_files_properties(${runtime_sources} PROPERTIES UNITY_GROUP runtime)
  foreach(source IN LISTS reference_sources)
    get_filename_component(name "${source}" NAME)
    if(name MATCHES "^(unary|cursor|conversion|elementwise|fill|copy|sequence)")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP reference_unary)
    elseif(name MATCHES "^(binary|ternary)")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP reference_binary)
    elseif(name MATCHES "^(fft|linalg)")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP reference_linalg)
    elseif(name MATCHES "^(attention|quantize|sample|scaled_matmul|serving)")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP reference_serving)
    else()
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP reference_rest)
    endif()
  endforeach()
  set_target_properties(${DEVICE_TARGET} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_RELOCATABLE ON)
endif()

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
  set_source_files_properties(
    "${CMAKE_CURRENT_LIST_DIR}/kernels/gemms.cpp" "${CMAKE_CURRENT_LIST_DIR}/kernels/lapack.cpp" PROPERTIES
    COMPILE_DEFINITIONS HAVE_OPENBLAS
    INCLUDE_DIRECTORIES "${openblas_include}")
  target_link_libraries(${DEVICE_TARGET} PRIVATE "${openblas_lib}/libscipy_openblas.so")
  # In site-packages OpenBLAS is a neighbour of this project's Python package. Where it is not, in an environment on top of
  # another, Python finds it. No folder of this machine is written down: on another one, it may be anybody's.
  set_property(TARGET ${DEVICE_TARGET} APPEND PROPERTY INSTALL_RPATH "$ORIGIN/../../scipy_openblas32/lib")
  set_property(TARGET ${DEVICE_TARGET} PROPERTY PYTHON_PACKAGES scipy_openblas32)
endif()
