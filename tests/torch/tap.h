// SPDX-License-Identifier: GPL-2.0
// TAP output of the test programs.
#pragma once

#include <cstdio>
#include <string>

inline int tapCount = 0;
inline int tapFailures = 0;

inline void expect(bool holds, const std::string& what) {
  std::printf("%sok %d - %s\n", holds ? "" : "not ", ++tapCount, what.c_str());
  std::fflush(stdout);
  tapFailures += !holds;
}

// Prints the last line. Returns the exit status.
inline int tapEnd() {
  std::printf("1..%d\n", tapCount);
  return tapFailures != 0;
}
