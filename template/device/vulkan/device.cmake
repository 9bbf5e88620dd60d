# Vulkan 1.3: the loader, which finds the drivers at run time.
find_package(Vulkan 1.3 QUIET)
if(NOT Vulkan_FOUND)
  message(FATAL_ERROR
    "The device \"vulkan\" needs the headers and the loader of Vulkan 1.3, which CMake does not find. "
    "On Debian and Ubuntu: apt-get install libvulkan-dev "
    "(and a driver, such as mesa-vulkan-drivers, where the device is used). "
    "Elsewhere set Vulkan_INCLUDE_DIR and Vulkan_LIBRARY.")
endif()
target_link_libraries(${DEVICE_TARGET} PRIVATE Vulkan::Vulkan)
target_compile_definitions(${DEVICE_TARGET} PRIVATE DEVICE_BACKEND_NAME="${DEVICE_BACKEND_NAME}")
# Structs of Vulkan's are given the fields that are not zero.
target_compile_options(${DEVICE_TARGET} PRIVATE -Wno-missing-field-initializers)
