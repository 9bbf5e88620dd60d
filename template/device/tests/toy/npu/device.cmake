# The arithmetic of the kernels is the reference's.
file(GLOB reference_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/reference/*.cpp")
target_sources(${DEVICE_TARGET} PRIVATE ${reference_sources})
target_compile_options(${DEVICE_TARGET} PRIVATE -fno-math-errno -fno-trapping-math -ffp-contract=off)
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set_target_properties(${DEVICE_TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  set_source_files_properties(${runtime_sources} ${kernel_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endif()
