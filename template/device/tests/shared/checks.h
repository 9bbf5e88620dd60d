// Shared by the programs of these tests: named checks, and a line of output for each failed
// expectation.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <string_view>
#include <utility>

inline int failures = 0;

inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("%s\n", what);
  ++failures;
}

// Runs the check of this name, and returns the result of main.
inline int run_check(std::string_view name, std::initializer_list<std::pair<const char*, void (*)()>> checks) {
  for (const auto& [each, check] : checks) {
    if (name != each) continue;
    check();
    return failures;
  }
  std::printf("there is no such check\n");
  return 1;
}
