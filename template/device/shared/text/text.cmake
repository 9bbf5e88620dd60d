# For a device that compiles its kernels from text. Set TEXT_DIALECT to the name of a .kernel file
# in the device's folder or in dialects/, then include this file in device.cmake. The device defines
# the functions of device.h, and gets the families of families/.
set(text_folder "${CMAKE_CURRENT_LIST_DIR}")
file(GLOB text_sources CONFIGURE_DEPENDS "${text_folder}/*.cpp" "${text_folder}/families/*.cpp")

# The reference defines which operations exist for which types, and converts numbers to elements.
# Its loops are not called.
file(GLOB_RECURSE reference_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/reference/*.cpp")
target_sources(${DEVICE_TARGET} PRIVATE ${text_sources} ${reference_sources})
target_compile_options(${DEVICE_TARGET} PRIVATE -ffp-contract=off)

# kernels/NAME.kernel, here and in the device's folder, becomes the string sources::NAME of
# sources.h, and is generated again when the file changes. The dialect is sources::dialect.
file(GLOB kernel_texts CONFIGURE_DEPENDS "${text_folder}/kernels/*.kernel" "${DEVICE_DIR}/kernels/*.kernel")
set(dialect "${DEVICE_DIR}/${TEXT_DIALECT}.kernel")
if(NOT EXISTS "${dialect}")
  set(dialect "${text_folder}/dialects/${TEXT_DIALECT}.kernel")
endif()
set(embedded "${CMAKE_CURRENT_BINARY_DIR}/text/sources.h")
add_custom_command(
  OUTPUT "${embedded}"
  COMMAND "${CMAKE_COMMAND}" "-DTEXTS=${kernel_texts}" "-DDIALECT=${dialect}" "-DOUTPUT=${embedded}"
    -P "${text_folder}/embed.cmake"
  DEPENDS ${kernel_texts} "${dialect}" "${text_folder}/embed.cmake"
  VERBATIM)
target_sources(${DEVICE_TARGET} PRIVATE "${embedded}")
target_include_directories(${DEVICE_TARGET} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/text")
