# Vulkan 1.3: the loader, which finds the drivers at run time, and shaderc, which compiles the
# kernels at run time.
find_package(Vulkan 1.3 QUIET)
find_path(SHADERC_INCLUDE_DIR shaderc/shaderc.hpp HINTS ${Vulkan_INCLUDE_DIRS})

# Debian's shared and combined libraries of shaderc do not contain glslang and SPIRV-Tools.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_INCLUDES ${SHADERC_INCLUDE_DIR})
foreach(candidate IN ITEMS
    "shaderc_shared"
    "shaderc_combined"
    "shaderc"
    "shaderc_combined;-Wl,--start-group;SPIRV;glslang;MachineIndependent;GenericCodeGen;OSDependent;OGLCompiler;HLSL;-Wl,--end-group;SPIRV-Tools-opt;SPIRV-Tools"
    "shaderc_combined;glslang;SPIRV;SPIRV-Tools-opt;SPIRV-Tools")
  if(SHADERC_INCLUDE_DIR AND NOT SHADERC_LIBRARIES)
    set(CMAKE_REQUIRED_LIBRARIES ${candidate} Threads::Threads)
    unset(SHADERC_LINKS CACHE)
    check_cxx_source_compiles(
      "#include <shaderc/shaderc.hpp>
      int main() { return shaderc::Compiler().CompileGlslToSpv(\"\", shaderc_compute_shader, \"\").GetNumErrors(); }"
      SHADERC_LINKS)
    if(SHADERC_LINKS)
      set(SHADERC_LIBRARIES "${candidate}" CACHE STRING "What a library that uses shaderc is linked with")
    endif()
  endif()
endforeach()
unset(CMAKE_REQUIRED_INCLUDES)
unset(CMAKE_REQUIRED_LIBRARIES)

if(NOT Vulkan_FOUND OR NOT SHADERC_LIBRARIES)
  message(FATAL_ERROR
    "The device \"vulkan\" needs the headers and the loader of Vulkan 1.3, and shaderc, which CMake does not find. "
    "On Debian and Ubuntu: apt-get install libvulkan-dev libshaderc-dev glslang-dev spirv-tools "
    "(and a driver, such as mesa-vulkan-drivers, where the device is used). "
    "Elsewhere set Vulkan_INCLUDE_DIR, Vulkan_LIBRARY, SHADERC_INCLUDE_DIR and SHADERC_LIBRARIES.")
endif()
target_include_directories(${DEVICE_TARGET} SYSTEM PRIVATE ${SHADERC_INCLUDE_DIR})
target_link_libraries(${DEVICE_TARGET} PRIVATE Vulkan::Vulkan ${SHADERC_LIBRARIES})
# Hides the symbols of a static shaderc, because a driver may contain another version.
target_link_options(${DEVICE_TARGET} PRIVATE -Wl,--exclude-libs,ALL)
target_compile_definitions(${DEVICE_TARGET} PRIVATE DEVICE_BACKEND_NAME="${DEVICE_BACKEND_NAME}")
# Initializers of Vulkan's structs name only the fields that are not zero.
target_compile_options(${DEVICE_TARGET} PRIVATE -Wno-missing-field-initializers)

set(TEXT_DIALECT glsl)
include("${CMAKE_CURRENT_SOURCE_DIR}/shared/text/text.cmake")
include("${CMAKE_CURRENT_SOURCE_DIR}/shared/queues/queues.cmake")
