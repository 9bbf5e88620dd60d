# Writes OUTPUT, a C++ header with the text of each file of TEXTS. A string literal may have 65536 characters at least.
set(header "// Written by embed.cmake.\n#pragma once\n\n#include <string_view>\n\nnamespace sources {\n\n")
foreach(text IN LISTS TEXTS)
  get_filename_component(name "${text}" NAME_WE)
  file(READ "${text}" content)
  string(APPEND header "inline constexpr std::string_view ${name} = R\"cl(${content})cl\";\n\n")
endforeach()
string(APPEND header "}  // namespace sources\n")
file(WRITE "${OUTPUT}" "${header}")
