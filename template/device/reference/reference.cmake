# The reference kernels, for a device that uses them: its device.cmake includes this file.
file(GLOB_RECURSE reference_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.cpp")
target_sources(${DEVICE_TARGET} PRIVATE ${reference_sources})

# Kernels do not read errno or floating-point flags. With these options loops over sqrt and floor
# use vectors, and without contraction results are the same on every processor.
target_compile_options(${DEVICE_TARGET} PRIVATE -fno-math-errno -fno-trapping-math -ffp-contract=off)

# Compiled in groups of files, so that headers are parsed once per group. -DCMAKE_UNITY_BUILD=OFF
# compiles every file by itself.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set_source_files_properties(${device_sources} PROPERTIES UNITY_GROUP families)
  set_source_files_properties(${runtime_sources} PROPERTIES UNITY_GROUP runtime)
  foreach(source IN LISTS reference_sources)
    get_filename_component(name "${source}" NAME)
    if(name MATCHES "^(unary|cursor|conversion|elementwise|fill|copy|sequence)")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP reference_unary)
    elseif(name MATCHES "^(binary|ternary)")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP reference_binary)
    else()
      get_filename_component(folder "${source}" DIRECTORY)
      get_filename_component(folder "${folder}" NAME)
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}")
    endif()
  endforeach()
  set_target_properties(${DEVICE_TARGET} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_RELOCATABLE ON)
endif()
