# Writes OUTPUT, a C++ header with the text of each file of TEXTS, and that of DIALECT. Compilers
# support string literals of at least 65536 characters.
set(header "// Written by embed.cmake.\n#pragma once\n\n#include <string_view>\n\nnamespace sources {\n\n")
foreach(text IN LISTS TEXTS DIALECT)
  get_filename_component(name "${text}" NAME_WE)
  if(text STREQUAL DIALECT)
    set(name dialect)
  endif()
  file(READ "${text}" content)
  string(APPEND header "inline constexpr std::string_view ${name} = R\"kernel(${content})kernel\";\n\n")
endforeach()
string(APPEND header "}  // namespace sources\n")
file(WRITE "${OUTPUT}" "${header}")
