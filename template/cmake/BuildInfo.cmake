# Writes the build's settings to runtime/build_info.h and runtime/supported_dtypes.h for C++, and to
# _build.py for Python.
separate_arguments(DTYPES)
list(LENGTH DTYPES DTYPE_COUNT)
list(JOIN DTYPES "\", \"" DTYPE_NAMES)
set(DTYPE_NAMES "\"${DTYPE_NAMES}\"")

file(STRINGS "device/include/${BACKEND_NAME}/device/runtime.h" INTERFACE_VERSION REGEX "kInterfaceVersion = ")
string(REGEX MATCH "[0-9]+" INTERFACE_VERSION "${INTERFACE_VERSION}")

# Python packages whose import loads shared libraries that the device library needs. A device.cmake
# sets the property.
get_target_property(packages ${BACKEND_NAME}_device PYTHON_PACKAGES)
set(DEVICE_PACKAGES "")
if(packages)
  foreach(package IN LISTS packages)
    string(APPEND DEVICE_PACKAGES "\"${package}\", ")
  endforeach()
  string(STRIP "${DEVICE_PACKAGES}" DEVICE_PACKAGES)
endif()

configure_file(cmake/build_info.h.in "${CMAKE_CURRENT_BINARY_DIR}/include/runtime/build_info.h" @ONLY)
configure_file(cmake/supported_dtypes.h.in "${CMAKE_CURRENT_BINARY_DIR}/include/runtime/supported_dtypes.h" @ONLY)
configure_file(cmake/_build.py.in "${CMAKE_CURRENT_BINARY_DIR}/_build.py" @ONLY)
