// compile() and run() of text.cpp, written as a vendor would write them: by the host's compiler, for the "chip" of the
// starter.

// Each kernel is a library of its own. A GPU converts halves by instructions.
void* compile(const Kernel& kernel, const Grid&) {
  std::string source = kernel.source;
  const auto replace = [&source](const std::string& old, const std::string& text) {
    source.replace(source.find(old), old.size(), text);
  };
  replace(R"(asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));)",
          "bits = std::bit_cast<ushort>(static_cast<_Float16>(value));");
  replace(R"(asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));)", "value = std::bit_cast<_Float16>(bits);");
  const bool has_barriers = source.find("BARRIER()") != source.rfind("BARRIER()");

  char folder[] = "/tmp/kernel-XXXXXX";
  const std::string file = std::string(mkdtemp(folder)) + "/kernel";
  std::ofstream(file + ".cpp") << "#include \"cuda.h\"\n"
                               << define_lines(kernel.options) << source
                               << "extern \"C\" void start(Size grid, Size block, void** arguments) { run("
                               << kernel.function << ", grid, block, " << has_barriers << ", arguments); }\n";
  const std::string command =
      "c++ -std=c++20 -O1 -w -fPIC -shared -ffp-contract=off -I" HOST_CUDA " -o " + file + ".so " + file + ".cpp";
  if (std::system(command.c_str()) != 0) throw sdk::error(ErrorCode::kUnsupported, command);
  void* start = dlsym(dlopen((file + ".so").c_str(), RTLD_NOW | RTLD_LOCAL), "start");
  std::filesystem::remove_all(folder);
  return start;
}

void run(Stream stream, void* program, const Grid& grid, std::span<const Argument> arguments) {
  std::vector<std::vector<std::byte>> values;
  for (const Argument& argument : arguments) {
    const auto* bytes = static_cast<const std::byte*>(argument.bytes);
    std::vector<std::byte>& value = values.emplace_back(bytes, bytes + argument.size);
    void* address = nullptr;
    if (argument.kind == Argument::Kind::kAddress) {
      std::memcpy(&address, bytes, sizeof(address));
      if (address != nullptr) address = sdk::chip_of(stream).memory.find(address, 1);
    }
    if (argument.kind == Argument::Kind::kAddress || argument.kind == Argument::Kind::kFault) {
      std::memcpy(value.data(), &address, sizeof(address));
    }
  }
  const auto work = [program, grid, values = std::move(values)]() mutable {
    std::vector<void*> addresses;
    for (auto& value : values) addresses.push_back(value.data());
    Size groups, members;
    for (size_t dim = 0; dim < 3; ++dim) {
      members[dim] = static_cast<unsigned>(grid.local[dim]);
      groups[dim] = static_cast<unsigned>(grid.global[dim] / grid.local[dim]);
    }
    reinterpret_cast<void (*)(Size, Size, void**)>(program)(groups, members, addresses.data());
  };
  sdk::chip_of(stream).push(stream, work);
}
