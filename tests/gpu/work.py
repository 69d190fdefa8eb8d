# SPDX-License-Identifier: GPL-2.0
"""Kinds of work on a GPU. Each is a generator that yields the loss, or another sum of all results, after each step."""

import random

import torch
from torch import nn
from torch.nn import functional

GPU = "cuda"
HALF = torch.bfloat16
WORDS = 32000


class Layer(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.after = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.project(self.before(x)).chunk(3, -1)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.join(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(functional.gelu(self.widen(self.after(x))))


class Transformer(nn.Module):
    """A language model."""

    def __init__(self, width, heads, layers):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.places = nn.Embedding(2048, width)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, WORDS, bias=False)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        return self.head(self.last(self.layers(self.words(x) + self.places(places))))


class Experts(nn.Module):
    """A layer in which each row is the work of one of several experts."""

    def __init__(self, width, experts):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.choose = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(experts))

    def forward(self, x):
        rows = self.norm(x)
        weight, chosen = self.choose(rows).softmax(-1).max(-1)
        out = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            mine = (chosen == number).nonzero().flatten()
            if len(mine):
                out = out.index_add(0, mine, (expert(rows[mine]) * weight[mine, None]).to(out.dtype))
        return x + out


def learn(optimizer, loss):
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def next_word(model, words):
    with torch.autocast(GPU, HALF):
        return functional.cross_entropy(model(words).flatten(0, 1).float(), words.flatten())


def gpt(draw, steps=40):
    """Trains a language model on texts of different lengths."""
    model = Transformer(1024, 16, 16).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for _ in range(steps):
        loss = next_word(model, torch.randint(WORDS, (16, draw.randrange(200, 1400)), device=GPU))
        learn(optimizer, loss)
        yield loss


def generate(draw, rounds=9, layers=12):
    """Generates texts, then trains on texts, in turn, as reinforcement learning does."""
    model = Transformer(1024, 16, layers).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5)
    for _ in range(rounds):
        batch = draw.randrange(24, 65, 4)
        length = draw.randrange(100, 500)
        cache = [torch.randn(2, batch, 16, length, 64, device=GPU, dtype=HALF) for _ in range(layers)]
        for _ in range(draw.randrange(60, 200)):
            cache = [torch.cat([old, torch.randn(2, batch, 16, 1, 64, device=GPU, dtype=HALF)], 3) for old in cache]
        del cache
        for _ in range(4):
            shape = draw.randrange(8, 25), draw.randrange(300, 1000)
            loss = next_word(model, torch.randint(WORDS, shape, device=GPU))
            learn(optimizer, loss)
        yield loss


def resnet(draw, steps=40):
    """Trains a network for images of different sizes."""
    import torchvision  # pylint: disable=import-outside-toplevel
    model = torchvision.models.resnet50().to(GPU, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for _ in range(steps):
        count, size = draw.randrange(32, 129, 8), draw.randrange(128, 385, 8)
        images = torch.randn(count, 3, size, size, device=GPU).to(memory_format=torch.channels_last)
        labels = torch.randint(1000, (count,), device=GPU)
        with torch.autocast(GPU, HALF):
            loss = functional.cross_entropy(model(images), labels)
        learn(optimizer, loss)
        yield loss


def experts(draw, steps=24):
    """Trains a mixture of experts, whose shares of the rows change."""
    model = nn.Sequential(*(Experts(1024, 16) for _ in range(8))).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for _ in range(steps):
        rows = torch.randn(draw.randrange(6000, 20000), 1024, device=GPU)
        with torch.autocast(GPU, HALF):
            loss = model(rows).float().pow(2).mean()
        learn(optimizer, loss)
        yield loss


def serving(draw, steps, width, streams, mean):
    """Generates texts for requests that come and go; each request has a stream, and a cache of keys and values that grows
    by concatenation."""
    layers, heads, size = 12, 8, 128
    weights = [torch.randn(heads * size, 3 * heads * size, device=GPU, dtype=HALF) * 0.02 for _ in range(layers)]
    used = [torch.cuda.current_stream()] if streams == 1 else [torch.cuda.Stream() for _ in range(streams)]
    torch.cuda.synchronize()
    sums = []
    for stream in used:
        with torch.cuda.stream(stream):
            sums.append(torch.zeros((), device=GPU))
    live = []
    come = 0
    for _ in range(steps):
        while len(live) < width:
            length = int(min(16000, max(16, draw.lognormvariate(7.2, 1.1))))
            left = int(min(600, max(4, draw.lognormvariate(mean, 0.9))))
            with torch.cuda.stream(used[come % streams]):
                live.append([come % streams, left, [torch.randn(2, heads, length, size, device=GPU, dtype=HALF)
                                                    for _ in range(layers)]])
            come += 1
        for request in live:
            number, _, cache = request
            with torch.cuda.stream(used[number]):
                x = torch.randn(1, heads * size, device=GPU, dtype=HALF)
                for layer, weight in enumerate(weights):
                    query, key, value = (x @ weight).view(3, heads, 1, size)
                    cache[layer] = torch.cat([cache[layer], torch.stack([key, value])], 2)
                    x = functional.scaled_dot_product_attention(
                        query[None], cache[layer][:1], cache[layer][1:]).reshape(1, heads * size)
                sums[number] = sums[number] + x.float().sum()
            request[1] -= 1
        live = [request for request in live if request[1]]
        yield sums[0]


def serve(draw, steps=200):
    """Serves requests on one stream."""
    return serving(draw, steps, 16, 1, 4.6)


def serve4(draw, steps=140):
    """Serves requests on four streams."""
    return serving(draw, steps, 32, 4, 3.6)


KINDS = {function.__name__: function for function in (gpt, generate, resnet, experts, serve, serve4)}


def draws():
    """The random numbers that decide sizes. They are the same in each run."""
    torch.manual_seed(1)
    return random.Random(7)
