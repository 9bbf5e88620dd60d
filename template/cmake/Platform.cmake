# The platforms on which this project is built and tested.
if(NOT "${CMAKE_SYSTEM_NAME} ${CMAKE_SYSTEM_PROCESSOR}" MATCHES "^Linux (x86_64|aarch64)$")
  message(FATAL_ERROR
    "${BACKEND_NAME} builds for Linux on x86-64 and aarch64, not for ${CMAKE_SYSTEM_NAME} on ${CMAKE_SYSTEM_PROCESSOR}: "
    "build it on one of those, for example in a container.")
endif()
