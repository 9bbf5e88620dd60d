// Devices, memory, streams, events and copies of bytes, by your SDK. runtime.h says what each function has to do, the
// comments here how to begin.
//
// A function throws until it is written. If you delete one, callers get an error with its name.
#include <string>

#include <@name@/device/runtime.h>

namespace torch_@name@::device {
namespace {

// Remove this with the last function that uses it.
[[noreturn]] void not_written(const char* function) {
  throw Error(ErrorCode::kUnsupported,
              std::string("@SHOUT@: ") + function + " is not written yet: write it in device/@device@/runtime.cpp");
}

}  // namespace
@functions@
}  // namespace torch_@name@::device
