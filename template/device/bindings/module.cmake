# The Python module of the device's tests, _device. It loads the device library at run time (library.cpp).
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
  OUTPUT_VARIABLE pybind11_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_package(pybind11 CONFIG QUIET)
if(NOT pybind11_FOUND)
  message(FATAL_ERROR "The device's tests need pybind11: ${Python_EXECUTABLE} -m pip install pybind11")
endif()

file(GLOB bindings_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/bindings/*.cpp")
# Only the loader's objects: as a linked library, it would add the device that is built beside it.
pybind11_add_module(_device MODULE NO_EXTRAS ${bindings_sources} $<TARGET_OBJECTS:${DEVICE_LOADER}>)
target_include_directories(_device PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/include")
target_compile_features(_device PRIVATE cxx_std_20)
target_compile_options(_device PRIVATE -O1 -Wall -Wextra)
target_compile_definitions(_device PRIVATE
  DEVICE_ENV_PREFIX="${DEVICE_ENV_PREFIX}"
  DEVICE_TABLE=${DEVICE_TARGET}_table
  DEVICE_LIBRARY_NAME="${CMAKE_SHARED_LIBRARY_PREFIX}${DEVICE_TARGET}${CMAKE_SHARED_LIBRARY_SUFFIX}")
target_link_libraries(_device PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(_device PROPERTIES
  CXX_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}"
  # The folder of a device library that is built beside it.
  BUILD_RPATH "$ORIGIN"
  # The module belongs to the tests, so warnings are errors; --compile-no-warning-as-error permits those of a newer
  # compiler.
  COMPILE_WARNING_AS_ERROR ON)
# functions.cpp takes half of the time, so it is compiled beside the others.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set_source_files_properties("${CMAKE_CURRENT_SOURCE_DIR}/bindings/functions.cpp" PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(_device PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0 UNITY_BUILD_RELOCATABLE ON)
endif()
