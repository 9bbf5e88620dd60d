# The Python modules for the device's tests: _device, and _simulator where the device has knobs of its own (bindings.cpp).
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
  OUTPUT_VARIABLE pybind11_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_package(pybind11 CONFIG QUIET)
if(NOT pybind11_FOUND)
  message(FATAL_ERROR "The device's tests need pybind11: ${Python_EXECUTABLE} -m pip install pybind11")
endif()

function(add_test_module name)
  pybind11_add_module(${name} MODULE NO_EXTRAS ${ARGN})
  target_include_directories(${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${DEVICE_DIR}")
  target_compile_options(${name} PRIVATE -O1)
  target_compile_definitions(${name} PRIVATE DEVICE_ENV_PREFIX="${DEVICE_ENV_PREFIX}")
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()

file(GLOB bindings_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/bindings/*.cpp")
add_test_module(_device ${bindings_sources})
target_link_libraries(_device PRIVATE ${DEVICE_LOADER})
# Of the tests, not of the build: --compile-no-warning-as-error lets a newer compiler warn.
target_compile_options(_device PRIVATE -Wall -Wextra)
set_target_properties(_device PROPERTIES COMPILE_WARNING_AS_ERROR ON)
if(EXISTS "${DEVICE_DIR}/bindings.cpp" AND NOT ${DEVICE_ENV_PREFIX}_DEVICE_LIBRARY)
  add_test_module(_simulator "${DEVICE_DIR}/bindings.cpp")
  target_link_libraries(_simulator PRIVATE ${DEVICE_TARGET})
  target_compile_options(_simulator PRIVATE ${DEVICE_WARNINGS})
endif()
