// SPDX-License-Identifier: GPL-2.0
// Tests that need the driver, on a PF or VF of 2 GiB:
// - Processes that share the device get unused memory of each other.
// - A forked worker does not free its parent's memory.
// - A reset of the device ends a process that has tensors, with a message, but not a process without tensors.
// Prints TAP.
// usage: driver FILE      writing 1 to FILE resets the device
#include "model.h"
#include "tap.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int64_t kMiB = 1 << 20;
// Two tensors of this size fill the device.
constexpr int64_t kMost = 1000 * kMiB;

struct Pipe {
  Pipe() {
    TORCH_CHECK(!pipe(ends.data()));
  }
  // Lets a process continue that waits in take().
  void give() const {
    TORCH_CHECK(write(ends[1], "!", 1) == 1);
  }
  bool take() const {
    char byte = 0;
    return read(ends[0], &byte, 1) == 1;
  }
  // Closes this process's copy of the other process's end, so that take() returns if the other process dies.
  void keep(int end) {
    TORCH_CHECK(!close(ends[!end]));
  }
  std::array<int, 2> ends{};
};

// A child process that runs a function when it is told to. It is forked before this process uses the device, because
// later a child could not use the device.
struct Process {
  template <class Function>
  explicit Process(Function run) : id(fork()) {
    TORCH_CHECK(id >= 0);
    begin.keep(id ? 1 : 0);
    ready.keep(id ? 0 : 1);
    if (!id) {
      dup2(fileno(error), STDERR_FILENO);
      _exit(begin.take() && run(*this) ? 0 : 1);
    }
  }
  // Waits until the process ends. @said receives its standard error.
  int end(std::string* said) const {
    int status = 0;
    TORCH_CHECK(waitpid(id, &status, 0) == id);
    std::rewind(error);
    std::array<char, 512> line{};
    while (std::fgets(line.data(), line.size(), error)) {
      *said += line.data();
      std::printf("# %s", line.data());
    }
    return status;
  }
  std::FILE* error = std::tmpfile();
  Pipe begin;
  Pipe ready;
  pid_t id;
};

Tensor bytes(int64_t size) {
  return torch::empty({size}, torch::dtype(torch::kByte).device(flexmem));
}

// Allocates memory that another process must return first. One request waits about a second for the memory, which is
// too short on a machine that stalls. So the function makes up to 20 requests.
Tensor bytesOfOthers(int64_t size) {
  constexpr int kTries = 20;
  for (int tries = 1;; tries++) {
    try {
      return bytes(size);
    } catch (const c10::OutOfMemoryError&) {
      if (tries == kTries) {
        throw;
      }
    }
  }
}

int64_t reserved() {
  return figure("reserved_bytes.all.current");
}

int64_t bytesInUseOfDevice() {
  const auto [free, total] = memGetInfo();
  return total - free;
}

} // namespace

int main(int argc, char** argv) {
  TORCH_CHECK(argc == 2, "usage: driver FILE");
  const Process sharer([](const Process&) {
    const Tensor first = bytesOfOthers(kMost);
    const Tensor second = bytesOfOthers(kMost);
    return first.numel() == second.numel();
  });
  const Process leaver([](const Process& self) {
    const Tensor kept = bytes(kMost);
    // A worker of a DataLoader inherits the open device in this way.
    if (!fork()) {
      self.ready.give();
      self.begin.take();
      _exit(0);
    }
    return true;
  });
  const Process victim([](const Process& self) {
    Tensor x = torch::ones({kMiB}, flexmem);
    self.ready.give();
    self.begin.take();
    x.add_(x);
    return true;
  });

  const Process idle([](const Process& self) {
    const auto sum = [] { return torch::ones({kMiB}, flexmem).sum().item<float>(); };
    bool right = sum() == kMiB;
    self.ready.give();
    self.begin.take();
    // The cache still has memory that was lost in the reset.
    right &= reserved() > 0;
    right &= sum() == kMiB;
    return right;
  });

  std::string said;
  leaver.begin.give();
  expect(leaver.end(&said) == 0, "a process with a worker ends");
  leaver.ready.take();
  expect(bytesInUseOfDevice() >= kMost, "its memory stays while the worker lives");
  leaver.begin.give();
  {
    const Tensor first = bytesOfOthers(kMost);
    const Tensor second = bytesOfOthers(kMost);
    expect(bytesInUseOfDevice() >= 2 * kMost, "it goes back when the worker ends");
  }

  bytes(kMost);
  expect(reserved() >= kMost, "a cache keeps what its process has freed");
  sharer.begin.give();
  expect(sharer.end(&said) == 0, "another process gets all of the device");
  expect(reserved() < kMost, "the cache has given it back");

  for (const Process* process : {&victim, &idle}) {
    process->begin.give();
    process->ready.take();
  }
  {
    std::ofstream file(argv[1]);
    file << 1 << std::flush;
    expect(file.good(), "the device is reset");
  }
  victim.begin.give();
  said.clear();
  expect(victim.end(&said) != 0, "a process whose tensors are lost ends");
  const auto device = ask<std::string>("flexmem::device_name", kCurrent);
  expect(device.find("/dev/") == 0 &&
             said.find("flexmem: " + device + " was reset") != std::string::npos,
         "it says why, and which device");
  idle.begin.give();
  said.clear();
  expect(idle.end(&said) == 0, "a process that has no tensors goes on");
  return tapEnd();
}
