# Find the SDK of your chip and link it, for instance:
#
#   find_package(AcmeSDK REQUIRED)
#   target_link_libraries(${DEVICE_TARGET} PRIVATE AcmeSDK::runtime)
#
# Libraries of a Python package are loaded by its import:
#
#   set_property(TARGET ${DEVICE_TARGET} PROPERTY PYTHON_PACKAGES acme_sdk)
