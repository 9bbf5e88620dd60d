# Compiles the device library from DEVICE_DIR, the folder of the chosen device.
if(NOT EXISTS "${DEVICE_DIR}/runtime.cpp")
  message(FATAL_ERROR
    "There is no device in ${DEVICE_DIR}: ${DEVICE_DIR}/runtime.cpp is missing. "
    "Set ${DEVICE_ENV_PREFIX}_DEVICE to a folder of ${CMAKE_CURRENT_SOURCE_DIR} that has one, such as \"simulator\", "
    "or to the absolute path of yours.")
endif()

find_package(Threads REQUIRED)
include(families.cmake)

# CONFIGURE_DEPENDS: a file that is added is part of the next build.
file(GLOB runtime_sources CONFIGURE_DEPENDS "${DEVICE_DIR}/*.cpp")
list(REMOVE_ITEM runtime_sources "${DEVICE_DIR}/testing.cpp")

# Everything in kernels/ is compiled, so that a family may be split into several files.
file(GLOB kernel_sources CONFIGURE_DEPENDS "${DEVICE_DIR}/kernels/*.cpp")
set(native "")
set(unsupported "")
foreach(family IN LISTS DEVICE_FAMILIES)
  if("${DEVICE_DIR}/kernels/${family}.cpp" IN_LIST kernel_sources)
    list(APPEND native ${family})
  else()
    list(APPEND unsupported ${family})
    list(APPEND kernel_sources "${CMAKE_CURRENT_SOURCE_DIR}/unsupported/${family}.cpp")
  endif()
endforeach()

add_library(${DEVICE_TARGET} SHARED interface.cpp ${runtime_sources} ${kernel_sources})
target_include_directories(${DEVICE_TARGET}
  PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/include"
  PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${DEVICE_DIR}")
target_compile_features(${DEVICE_TARGET} PUBLIC cxx_std_20)
target_compile_options(${DEVICE_TARGET} PRIVATE -Wall -Wextra -Werror)
target_compile_definitions(${DEVICE_TARGET} PRIVATE DEVICE_ENV_PREFIX="${DEVICE_ENV_PREFIX}")
target_link_libraries(${DEVICE_TARGET} PRIVATE Threads::Threads)
# An entry point that nobody implements is an error here, by name, not when the library is loaded.
target_link_options(${DEVICE_TARGET} PRIVATE -Wl,-z,defs)
set_target_properties(${DEVICE_TARGET} PROPERTIES
  CXX_EXTENSIONS OFF
  CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON)

include("${DEVICE_DIR}/device.cmake" OPTIONAL)

list(JOIN native " " native)
list(JOIN unsupported " " unsupported)
message(STATUS "Device: ${DEVICE_DIR}")
message(STATUS "  native families:      ${native}")
message(STATUS "  unsupported families: ${unsupported}")
