// SPDX-License-Identifier: GPL-2.0
// The test programs print TAP.
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

// The last line; returns the exit status.
inline int tapEnd() {
  std::printf("1..%d\n", tapCount);
  return tapFailures != 0;
}
