// Runs a package of AOTInductor on the device, without Python, on an input of ones:
//
//   aot model.pt2 2 3 6 6
#include <ATen/ops/ones.h>
#include <c10/core/DeviceType.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <vector>

int main(int count, char** arguments) try {
  if (count < 2) {
    std::cerr << "usage: aot PACKAGE [SIZE]...\n";
    return EXIT_FAILURE;
  }
  // In Python, importing torch does this.
  c10::register_privateuse1_backend(BACKEND_NAME);
  std::vector<int64_t> sizes;
  for (int i = 2; i < count; ++i) sizes.push_back(std::atoll(arguments[i]));

  torch::inductor::AOTIModelPackageLoader model(arguments[1]);
  const auto results = model.run({at::ones(sizes, at::device(at::Device(BACKEND_NAME)))});

  const auto first = results.at(0).to(at::kCPU, at::kFloat).contiguous();
  for (int64_t i = 0; i < first.numel(); ++i) std::cout << first.const_data_ptr<float>()[i] << '\n';
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return EXIT_FAILURE;
}
