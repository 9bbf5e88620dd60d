# Finds the SDK and links it, for instance:
#
#   find_package(AcmeSDK REQUIRED)
#   target_link_libraries(${DEVICE_TARGET} PRIVATE AcmeSDK::runtime)
