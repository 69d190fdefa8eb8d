# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A small model trains in flexmem's memory; the last lines show what it used."""

import torch
import torch_flexmem  # noqa: F401, it registers the device

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).to("flexmem")
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.randn(32, 64).to("flexmem")
y = torch.randint(10, (32,)).to("flexmem")

for step in range(5):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")

try:
    torch.empty(1 << 40, device="flexmem")
except torch.OutOfMemoryError as error:
    print(error)
print(f"at most {torch.flexmem.max_memory_allocated()} bytes in tensors")
