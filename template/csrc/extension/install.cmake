# The headers and the CMake package of code that is built against the installed backend.
install(FILES csrc/extension/extension.h csrc/extension/stable.h DESTINATION ${PACKAGE}/include/${BACKEND_NAME})

set(config_dir "${CMAKE_CURRENT_BINARY_DIR}/share/cmake/${PACKAGE}")
configure_file(csrc/extension/config.cmake.in "${config_dir}/${PACKAGE}-config.cmake" @ONLY)
install(FILES "${config_dir}/${PACKAGE}-config.cmake" cmake/find_torch.py DESTINATION ${PACKAGE}/share/cmake/${PACKAGE})
