# Compiles the device library from DEVICE_DIR, the folder of the chosen device.
if(NOT EXISTS "${DEVICE_DIR}/runtime.cpp")
  message(FATAL_ERROR
    "There is no device in ${DEVICE_DIR}: ${DEVICE_DIR}/runtime.cpp is missing. "
    "Set ${DEVICE_ENV_PREFIX}_DEVICE to a folder of ${CMAKE_CURRENT_SOURCE_DIR} that has one, such as \"starter\", "
    "or to the absolute path of yours.")
endif()

find_package(Threads REQUIRED)

# CONFIGURE_DEPENDS: a file that is added is part of the next build. All files in the folder are compiled: a family
# exists if one of them defines its function.
file(GLOB runtime_sources CONFIGURE_DEPENDS "${DEVICE_DIR}/*.cpp")
file(GLOB_RECURSE device_sources CONFIGURE_DEPENDS "${DEVICE_DIR}/*.cpp")
list(REMOVE_ITEM runtime_sources "${DEVICE_DIR}/bindings.cpp")
list(REMOVE_ITEM device_sources "${DEVICE_DIR}/bindings.cpp")

# Warnings do not stop the build unless CMAKE_COMPILE_WARNING_AS_ERROR is set, because compilers differ in them.
# Compilers of other languages have other options. C structs of an SDK are often initialized in part.
set(DEVICE_WARNINGS "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers>")

add_library(${DEVICE_TARGET} SHARED glue.cpp ${device_sources})
target_include_directories(${DEVICE_TARGET} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}/include")
# The folders' own headers are found by #include "..." alone: device/vulkan/vulkan.h does not hide <vulkan/vulkan.h>.
foreach(folder IN ITEMS "${CMAKE_CURRENT_SOURCE_DIR}" "${DEVICE_DIR}")
  target_compile_options(${DEVICE_TARGET} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:SHELL:-iquote \"${folder}\">")
  target_include_directories(${DEVICE_TARGET} PRIVATE "$<$<NOT:$<COMPILE_LANGUAGE:C,CXX>>:${folder}>")
endforeach()
target_compile_features(${DEVICE_TARGET} PUBLIC cxx_std_20)
target_compile_options(${DEVICE_TARGET} PRIVATE ${DEVICE_WARNINGS})
target_compile_definitions(${DEVICE_TARGET} PRIVATE DEVICE_ENV_PREFIX="${DEVICE_ENV_PREFIX}")
set_source_files_properties(glue.cpp PROPERTIES
  COMPILE_DEFINITIONS DEVICE_TABLE=${DEVICE_TARGET}_table
  # Functions are weak symbols, whose address is null if they are absent.
  COMPILE_OPTIONS -Wno-address
  SKIP_UNITY_BUILD_INCLUSION ON)
target_link_libraries(${DEVICE_TARGET} PRIVATE Threads::Threads)
# A missing function of the SDK is an error of the link, with its name, and not of the import.
target_link_options(${DEVICE_TARGET} PRIVATE -Wl,-z,defs)
set_target_properties(${DEVICE_TARGET} PROPERTIES
  CXX_EXTENSIONS OFF
  CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON)

include("${DEVICE_DIR}/device.cmake" OPTIONAL)

message(STATUS "Device: ${DEVICE_DIR}")
