// Devices, memory, streams, events and copies of bytes, made of your SDK's. runtime.h says what each function promises,
// the comments here how to begin.
//
// Until a function is written it throws, and says so. One that is deleted is absent: whoever needs it is told its name.
#include <string>

#include <@name@/device/runtime.h>

namespace torch_@name@::device {
namespace {

// Goes away with the last function that is not written.
[[noreturn]] void not_written(const char* function) {
  throw Error(ErrorCode::kUnsupported,
              std::string("@SHOUT@: ") + function + " is not written yet: write it in device/@device@/runtime.cpp");
}

}  // namespace
@functions@
}  // namespace torch_@name@::device
