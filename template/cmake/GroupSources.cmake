# Compiles a target's sources in groups, because parsing PyTorch's headers takes longer than
# compiling most files.
#
#   group_sources(<target> aten=cf core=m)
#
# A group has the files of one folder whose names begin with a range of letters. The letters after a
# folder's name are the first letters of its second group, its third and so on. So the group of a
# file depends on its name alone: a new file recompiles one group, and ccache finds the others,
# whichever features a project has. To divide a group that is too large, add a letter. All other
# folders with less than five files are one group together, and each larger one is a group of its
# own.
#
# Names in anonymous namespaces must be unique within a folder, and among the small folders. Groups
# include their files by relative paths (from CMake 4.0), so they are the same in every copy of the
# project. -DCMAKE_UNITY_BUILD=OFF compiles every file by itself.
function(group_sources target)
  if(DEFINED CMAKE_UNITY_BUILD AND NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(folders)
  foreach(source IN LISTS sources)
    get_filename_component(folder "${source}" DIRECTORY)
    get_filename_component(folder "${folder}" NAME)
    list(APPEND folders "${folder}")
  endforeach()
  foreach(source folder IN ZIP_LISTS sources folders)
    get_filename_component(name "${source}" NAME)
    set(neighbours ${folders})
    list(FILTER neighbours INCLUDE REGEX "^${folder}$")
    list(LENGTH neighbours count)
    if(count LESS 5)
      set(folder small)
    endif()
    set(first a)
    foreach(division IN LISTS ARGN)
      if(NOT division MATCHES "^${folder}=([a-z]+)$")
        continue()
      endif()
      string(REGEX MATCHALL "." initials "${CMAKE_MATCH_1}")
      foreach(initial IN LISTS initials)
        if(NOT name STRLESS initial)
          set(first ${initial})
        endif()
      endforeach()
    endforeach()
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${first}")
  endforeach()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_RELOCATABLE ON)
endfunction()
