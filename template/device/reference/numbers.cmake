# Only the conversion of numbers to elements (conversion.h), which compiles in two seconds.
target_sources(${DEVICE_TARGET} PRIVATE "${CMAKE_CURRENT_LIST_DIR}/conversion.cpp")
