# SPDX-License-Identifier: GPL-2.0
"""Models train on the device as on the CPU: losses and weights must be equal bit for bit."""

import torch
from torch import nn

from common import DEVICE, FlexmemTest, bits


class Block(nn.Module):
    """A block of a ResNet."""

    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return torch.relu(x + self.layers(x))


class Recurrent(nn.Module):
    """An LSTM or GRU, with a linear layer on the last output."""

    def __init__(self, kind):
        super().__init__()
        self.cells = kind(8, 16, num_layers=2, batch_first=True, bidirectional=True)
        self.last = nn.Linear(32, 4)

    def forward(self, x):
        return self.last(self.cells(x)[0][:, -1])


def mlp():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def resnet():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Block(8), nn.MaxPool2d(2), Block(8),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


def transformer():
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, activation="gelu")
    return nn.Sequential(nn.Embedding(50, 32), layer, nn.Flatten(), nn.Linear(32 * 8, 10))


def train(device, make, data, classes, optimizer, steps=4):
    torch.manual_seed(1)
    model = make()
    # Makes the optimizer before the model moves to the device. It must then update the moved parameters.
    optimizer = optimizer(model.parameters())
    x = data()
    y = torch.randint(classes, (x.shape[0],)).to(device)
    x = x.to(device)
    model.to(device)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: value.cpu() for name, value in model.state_dict().items()}


class Models(FlexmemTest):
    def compare(self, make, data, classes=10, optimizer=lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)):
        cpu_losses, cpu_weights = train("cpu", make, data, classes, optimizer)
        losses, weights = train(DEVICE, make, data, classes, optimizer)
        # Compares texts, because then -0.0 differs from 0.0.
        self.assertEqual([loss.hex() for loss in losses], [loss.hex() for loss in cpu_losses])
        self.assertLess(losses[-1], losses[0])
        for name, weight in cpu_weights.items():
            self.assertTrue(torch.equal(bits(weights[name]), bits(weight)), name)

    def test_mlp_sgd(self):
        self.compare(mlp, lambda: torch.randn(32, 64))

    def test_mlp_adam(self):
        self.compare(mlp, lambda: torch.randn(32, 64), optimizer=lambda p: torch.optim.Adam(p, 0.01))

    def test_mlp_fused_adam(self):
        self.compare(mlp, lambda: torch.randn(32, 64), optimizer=lambda p: torch.optim.Adam(p, 0.01, fused=True))

    def test_mlp_adamw_foreach(self):
        self.compare(mlp, lambda: torch.randn(32, 64), optimizer=lambda p: torch.optim.AdamW(p, 0.01, foreach=True))

    def test_resnet(self):
        self.compare(resnet, lambda: torch.randn(8, 3, 16, 16))

    def test_transformer(self):
        self.compare(transformer, lambda: torch.randint(50, (8, 8)), optimizer=lambda p: torch.optim.AdamW(p, 0.01))

    def test_lstm(self):
        self.compare(lambda: Recurrent(nn.LSTM), lambda: torch.randn(6, 5, 8), classes=4)

    def test_gru(self):
        self.compare(lambda: Recurrent(nn.GRU), lambda: torch.randn(6, 5, 8), classes=4)

    def test_rnn(self):
        self.compare(lambda: Recurrent(nn.RNN), lambda: torch.randn(6, 5, 8), classes=4)

    def test_compiled(self):
        def run(device, compiled):
            torch.manual_seed(8)
            model = mlp().to(device)
            x = torch.randn(4, 64).to(device)
            (torch.compile(model, backend="aot_eager") if compiled else model)(x).square().sum().backward()
            return [weight.grad for weight in model.parameters()]

        for ours, cpu in zip(run(DEVICE, True), run("cpu", False)):
            self.assert_same(ours, cpu)

    def test_transformer_in_eval_mode(self):
        torch.manual_seed(2)
        model = transformer().eval()
        x = torch.randint(50, (4, 8))
        with torch.no_grad():
            expected = model(x)
            self.assert_same(model.to(DEVICE)(x.to(DEVICE)), expected)

    def test_autocast(self):
        torch.manual_seed(3)
        model = mlp().to(DEVICE)
        x = torch.randn(8, 64, device=DEVICE)
        with torch.autocast("flexmem", dtype=torch.bfloat16):
            y = model(x)
        self.assertEqual(y.dtype, torch.bfloat16)
        self.assertEqual(model(x).dtype, torch.float32)
        difference = (y.float() - model(x)).abs().max().item()
        self.assertGreater(difference, 0.0)
        self.assertLess(difference, 0.05)

    def test_grad_scaler(self):
        torch.manual_seed(4)
        model = mlp().to(DEVICE)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scaler = torch.amp.GradScaler("flexmem", init_scale=1024.0)
        before = model[0].weight.detach().clone()
        loss = model(torch.randn(8, 64, device=DEVICE)).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        self.assertFalse(torch.equal(before, model[0].weight))
        # If the gradient overflows, the scaler skips the step.
        before = model[0].weight.detach().clone()
        model[0].weight.grad.fill_(float("inf"))
        scaler.step(optimizer)
        scaler.update()
        self.assertTrue(torch.equal(before, model[0].weight))
        self.assertEqual(scaler.get_scale(), 512.0)

    def test_checkpoint(self):
        from torch.utils.checkpoint import checkpoint

        for reentrant in (False, True):
            torch.manual_seed(5)
            model = mlp().to(DEVICE)
            x = torch.randn(4, 64, device=DEVICE, requires_grad=True)
            model(x).sum().backward()
            expected, x.grad = x.grad, None
            checkpoint(model, x, use_reentrant=reentrant).sum().backward()
            self.assertTrue(torch.equal(x.grad, expected))
