# For a device with in-order queues, whose driver is asked whether a command has finished, as in OpenCL and Vulkan.
# Include this file in device.cmake. The sources define the functions of runtime.h for streams and events, and the
# groups graphs.h, failures.h and profiling.h. docs/features/kernel_texts.md lists what the device's folder defines for
# them.
file(GLOB queue_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.cpp")
target_sources(${DEVICE_TARGET} PRIVATE ${queue_sources})
