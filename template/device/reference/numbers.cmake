# The conversion of numbers to elements (conversion.h) alone, which compiles in two seconds.
target_sources(${DEVICE_TARGET} PRIVATE "${CMAKE_CURRENT_LIST_DIR}/conversion.cpp")
