# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A model over two devices."""

import torch
import torch_flexmem  # noqa: F401, it registers the devices

first, second = torch.device("flexmem:0"), torch.device("flexmem:1")
encoder = torch.nn.Linear(64, 128).to(first)
decoder = torch.nn.Linear(128, 10).to(second)
x = torch.randn(32, 64, device=first)
loss = decoder(torch.relu(encoder(x)).to(second)).square().mean()
loss.backward()
print(f"loss {loss.item():.4f} on {loss.device}, gradients on {encoder.weight.grad.device} and {decoder.weight.grad.device}")
for device in first, second:
    print(f"{device}: {torch.flexmem.memory_allocated(device)} bytes in tensors")
