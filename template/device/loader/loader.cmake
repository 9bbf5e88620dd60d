# Compiles the loader and the layers, which go into everything that calls the device.
file(GLOB layer_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/layers/*.cpp")
file(GLOB loader_sources CONFIGURE_DEPENDS
  "${CMAKE_CURRENT_SOURCE_DIR}/loader/*.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/layers/*.cpp"
  "${CMAKE_CURRENT_SOURCE_DIR}/layers/*/*.cpp")
# An object library, because functions that only the Python modules call must be in the library too. It is built only if
# a target uses it: a device that is built alone does not.
add_library(${DEVICE_LOADER} OBJECT EXCLUDE_FROM_ALL ${loader_sources})
target_include_directories(${DEVICE_LOADER} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/include")
target_compile_features(${DEVICE_LOADER} PUBLIC cxx_std_20)
# -O1 is enough for this code, which has few loops. See the comment on host_options in CMakeLists.txt for the build
# time. The table is a weak symbol, whose address is null if it is absent.
target_compile_options(${DEVICE_LOADER} PRIVATE -Wall -Wextra -Wno-address $<$<CONFIG:Release>:-O1>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-ipa-modref -fno-ipa-pure-const -fno-ipa-ra -fno-ipa-reference>)
# Each launch of a device with plans goes through this file.
set_source_files_properties("${CMAKE_CURRENT_SOURCE_DIR}/layers/plans.cpp" PROPERTIES
  COMPILE_OPTIONS $<$<CONFIG:Release>:-O2>)
# A debug build checks the preconditions of the headers from the start.
target_compile_definitions(${DEVICE_LOADER} PRIVATE
  DEVICE_ENV_PREFIX="${DEVICE_ENV_PREFIX}"
  BACKEND_NAME="${DEVICE_BACKEND_NAME}"
  DEVICE_TABLE=${DEVICE_TARGET}_table
  DEFAULT_LAYERS="$<$<AND:$<CONFIG:Debug>,$<BOOL:${layer_sources}>>:validate>")
# Compiled as one file, which reads the headers once. The layers are compiled separately, because each file has its own
# functions below the layer (layers/below.h).
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set_source_files_properties(${layer_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${DEVICE_LOADER} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0 UNITY_BUILD_RELOCATABLE ON)
endif()
set_target_properties(${DEVICE_LOADER} PROPERTIES
  CXX_EXTENSIONS OFF
  POSITION_INDEPENDENT_CODE ON)
# The library is linked for its table alone, which is a weak symbol, so the linker must be told to keep it.
if(TARGET ${DEVICE_TARGET})
  target_link_libraries(${DEVICE_LOADER} PUBLIC -Wl,--push-state,--no-as-needed ${DEVICE_TARGET} -Wl,--pop-state)
endif()
