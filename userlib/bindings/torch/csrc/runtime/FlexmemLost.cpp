// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemLost.h"

#include "FlexmemDevices.h"
#include "FlexmemProvider.h"

#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <dlfcn.h>
#include <unistd.h>

namespace flexmem_torch {
namespace {

struct sigaction before;

// The texts that the handler prints, by the device's index. They are never freed, because a signal may come while the
// process is ending.
std::array<std::atomic<const std::string*>, kMaxDevices> messages{};

// Debian's PyTorch loads UCX, which replaces sigaction() and keeps the fatal signals for itself. So this file calls the
// C library's own sigaction().
using Sigaction = int (*)(int, const struct sigaction*, struct sigaction*);
Sigaction setHandler = sigaction;

void findSigaction() {
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  void* found = libc ? dlsym(libc, "sigaction") : nullptr;
  if (found) {
    setHandler = reinterpret_cast<Sigaction>(found);
  }
}

// Calls only functions that are async-signal-safe.
void onBusError(int signal, siginfo_t* info, void* context) {
  const int device = info->si_code == BUS_ADRERR ? deviceOf(info->si_addr) : -1;
  const std::string* const message = device < 0 ? nullptr : messages[static_cast<size_t>(device)].load();
  if (message) {
    // The process ends anyway, whether stderr can be written to or not.
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, message->data(), message->size());
  }
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    // The thread repeats the access, which now ends the process.
    setHandler(signal, &before, nullptr);
  }
}

} // namespace

void explainLostMemory(c10::DeviceIndex index, const std::string& name) {
  static bool installed = false;
  messages.at(static_cast<size_t>(index)) = new std::string(
      "flexmem: " + name + " was reset or removed, and the bytes of its tensors "
      "are lost. The process cannot go on: start it again, from a checkpoint.\n");
  if (installed) {
    return;
  }
  struct sigaction action{};
  findSigaction();
  action.sa_sigaction = onBusError;
  // Uses the thread's alternate stack, if there is one, as faulthandler does.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  TORCH_CHECK(!setHandler(SIGBUS, &action, &before),
              "flexmem: no handler of SIGBUS: error ", errno);
  installed = true;
}

} // namespace flexmem_torch
