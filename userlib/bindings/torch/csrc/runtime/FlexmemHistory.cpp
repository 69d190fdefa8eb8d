// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemHistory.h"

#include <torch/csrc/profiler/combined_traceback.h>

#include <atomic>
#include <cstring>
#include <string>

namespace flexmem_torch {
namespace {

std::atomic<bool> wanted{false};
std::atomic<bool> wantsCpp{false};

// A stack trace, and its number of users.
struct Trace {
  std::shared_ptr<torch::CapturedTraceback> stack;
  std::atomic<int> users{1};
};

void hold(void* /*user*/, void* context) {
  ++static_cast<Trace*>(context)->users;
}

void release(void* /*user*/, void* context) {
  auto* trace = static_cast<Trace*>(context);
  if (!--trace->users) {
    delete trace;
  }
}

std::string line(const torch::unwind::Frame& frame) {
  return frame.filename + ":" + std::to_string(frame.lineno) + ":" +
      frame.funcname + "\n";
}

// One line for each frame, the innermost first.
std::string describe(Trace* trace) {
  const auto symbolized = torch::symbolize({trace->stack.get()});
  std::string text;
  for (const uint64_t index : symbolized.tracebacks.at(0)) {
    text += line(symbolized.all_frames.at(index));
  }
  return text;
}

bool isPython(const torch::unwind::Frame& frame) {
  // Python's name of code that is in no file begins with "<".
  return frame.filename.ends_with(".py") || frame.filename.starts_with("<");
}

// Whether the frame is of the code that takes the stack trace.
bool isUnwinder(const torch::unwind::Frame& frame) {
  return frame.funcname.find("torch::unwind") != std::string::npos ||
      frame.funcname.find("CapturedTraceback") != std::string::npos ||
      frame.funcname.find("flexmem_torch::Stack") != std::string::npos;
}

// The innermost Python frame, or else the innermost one that is not the
// unwinder's.
std::string describeRequester(Trace* trace) {
  const auto symbolized = torch::symbolize({trace->stack.get()});
  std::string other;
  for (const uint64_t index : symbolized.tracebacks.at(0)) {
    const auto& frame = symbolized.all_frames.at(index);
    if (isPython(frame)) {
      return line(frame);
    }
    if (other.empty() && !isUnwinder(frame)) {
      other = line(frame);
    }
  }
  return other;
}

size_t printWith(
    std::string (*function)(Trace*),
    void* context,
    char* text,
    size_t length) {
  std::string whole;
  try {
    whole = function(static_cast<Trace*>(context));
  } catch (const std::exception&) {
    // If the symbols cannot be read, the allocation must not fail.
    whole = "unknown";
  }
  if (length) {
    const size_t part = std::min(whole.size(), length - 1);
    std::memcpy(text, whole.data(), part);
    text[part] = '\0';
  }
  return whole.size();
}

size_t print(void* /*user*/, void* context, char* text, size_t length) {
  return printWith(describe, context, text, length);
}

} // namespace

size_t printRequester(
    void* /*user*/,
    void* context,
    char* text,
    size_t length) {
  return printWith(describeRequester, context, text, length);
}

const flexmem_cache_contexts stackContexts = {print, hold, release, nullptr};

thread_local const WithoutPython* WithoutPython::current = nullptr;

void recordStacks(bool enabled, bool cpp) {
  wantsCpp = cpp;
  wanted = enabled;
}

Stack::Stack() : context_(nullptr) {
  if (WithoutPython::current) {
    context_ = WithoutPython::current->stack.context();
    if (context_) {
      hold(nullptr, context_);
    }
  } else if (wanted) {
    context_ = new Trace{torch::CapturedTraceback::gather(
        /*python=*/true, /*script=*/true, wantsCpp)};
  }
}

Stack::~Stack() {
  if (context_) {
    release(nullptr, context_);
  }
}

} // namespace flexmem_torch
