// What the programs of these tests have in common: checks that have names, and a line for each thing that does not
// hold.
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

// Runs the check of this name, and gives what main returns.
inline int run_check(std::string_view name, std::initializer_list<std::pair<const char*, void (*)()>> checks) {
  for (const auto& [each, check] : checks) {
    if (name != each) continue;
    check();
    return failures;
  }
  std::printf("there is no such check\n");
  return 1;
}
