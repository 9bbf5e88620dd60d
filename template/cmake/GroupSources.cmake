# Compiles a target's sources in groups of neighbours: reading PyTorch's headers takes longer than most files do.
#
# A group never spans folders, so it is the same whichever features a project has, and ccache finds it again. Names in
# anonymous namespaces must differ within a folder. Groups include their files by relative paths (from CMake 4.0), so that
# they are the same in every copy of the project. -DCMAKE_UNITY_BUILD=OFF compiles every file by itself.
function(group_sources target size)
  if(DEFINED CMAKE_UNITY_BUILD AND NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  set(previous "")
  foreach(source IN LISTS sources)
    get_filename_component(folder "${source}" DIRECTORY)
    get_filename_component(folder "${folder}" NAME)
    if(NOT folder STREQUAL previous)
      set(previous "${folder}")
      set(position 0)
    endif()
    math(EXPR group "${position} / ${size}")
    math(EXPR position "${position} + 1")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_RELOCATABLE ON)
endfunction()
