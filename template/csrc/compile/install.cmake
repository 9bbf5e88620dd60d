# Headers for C++ code that Inductor generates, in the folders where Inductor looks for a device's
# headers.
install(FILES csrc/compile/shim.h DESTINATION ${PACKAGE}/include/${BACKEND_NAME} RENAME aoti.h)
install(FILES csrc/compile/aoti_include.h
  DESTINATION ${PACKAGE}/include/torch/csrc/inductor/aoti_include RENAME ${BACKEND_NAME}.h)
install(FILES csrc/compile/cpp_wrapper_include.h
  DESTINATION ${PACKAGE}/include/torch/csrc/inductor/cpp_wrapper RENAME ${BACKEND_NAME}.h)
