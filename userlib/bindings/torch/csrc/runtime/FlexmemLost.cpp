// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#include "FlexmemLost.h"

#include "FlexmemProvider.h"

#include <c10/util/Exception.h>

#include <cerrno>
#include <csignal>
#include <dlfcn.h>
#include <unistd.h>

namespace flexmem_torch {
namespace {

struct sigaction before;

// The text that the handler prints. It is never freed, because a signal may come while the process is ending.
const std::string* message;

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
  if (info->si_code == BUS_ADRERR && isMapped(info->si_addr)) {
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

void explainLostMemory(const std::string& device) {
  message = new std::string(
      "flexmem: " + device + " was reset or removed, and the bytes of its tensors "
      "are lost. The process cannot go on: start it again, from a checkpoint.\n");
  struct sigaction action{};
  findSigaction();
  action.sa_sigaction = onBusError;
  // Uses the thread's alternate stack, if there is one, as faulthandler does.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  TORCH_CHECK(!setHandler(SIGBUS, &action, &before),
              "flexmem: no handler of SIGBUS: error ", errno);
}

} // namespace flexmem_torch
