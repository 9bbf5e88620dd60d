# Uses ccache if it is installed, with settings for precompiled headers, and so that it finds the
# objects of another copy of the project whose build folder has the same relative path.
find_program(CCACHE ccache)
if(CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_NOHASHDIR=1
    "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}"
    "${CCACHE}")
  # ccache must see the macros that a precompiled header defines.
  add_compile_options(-fpch-preprocess)
endif()
