"""The model in plain torch, with the names and the arithmetic of Hugging Face's Llama."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from scripts.tiny_model.corpus import LENGTHS
from scripts.tiny_model.tokenizer import VOCABULARY


@dataclass(frozen=True)
class Architecture:
    """Sizes of the model; TP=4 needs key-value heads and widths that four divides."""

    vocabulary: int = VOCABULARY
    hidden: int = 256
    intermediate: int = 1024
    layers: int = 4
    heads: int = 8
    kv_heads: int = 4
    positions: int = LENGTHS[-1]
    rope_theta: float = 10000.0
    norm_epsilon: float = 1e-6

    def __post_init__(self) -> None:
        if self.hidden % self.heads or self.heads % self.kv_heads:
            raise ValueError(f"heads do not divide evenly: {self}")

    @property
    def head(self) -> int:
        """Width of one head."""
        return self.hidden // self.heads


@dataclass(frozen=True)
class Cache:
    """Keys and values of one layer, (rows, kv heads, width, head) each, filled from the left.

    `positions`, int64 (rows, new), are the places of the tokens that come next.
    """

    keys: Tensor
    values: Tensor
    positions: Tensor

    def put(self, key: Tensor, value: Tensor) -> None:
        """Store the keys and values (rows, kv heads, new, head) of the next tokens."""
        rows = torch.arange(len(key), device=key.device)[:, None]
        self.keys[rows, :, self.positions] = key.transpose(1, 2)
        self.values[rows, :, self.positions] = value.transpose(1, 2)

    def seen(self) -> Tensor:
        """Return which places the next tokens look at: bool (rows, 1, new, width)."""
        places = torch.arange(self.keys.shape[2], device=self.keys.device)
        seen: Tensor = (places <= self.positions[:, :, None]).unsqueeze(1)
        return seen


class Attention(nn.Module):
    """Causal attention of grouped heads with rotary positions."""

    def __init__(self, sizes: Architecture) -> None:
        super().__init__()
        self.sizes = sizes
        kv_width = sizes.kv_heads * sizes.head
        self.q_proj = nn.Linear(sizes.hidden, sizes.hidden, bias=False)
        self.k_proj = nn.Linear(sizes.hidden, kv_width, bias=False)
        self.v_proj = nn.Linear(sizes.hidden, kv_width, bias=False)
        self.o_proj = nn.Linear(sizes.hidden, sizes.hidden, bias=False)

    def forward(
        self, hidden: Tensor, rotary: tuple[Tensor, Tensor], cache: Cache | None = None
    ) -> Tensor:
        """Return (batch, length, hidden) of the same; a cache is extended.

        More than one token with a cache are a beginning; a single one comes after what it holds.
        """
        batch, length, _ = hidden.shape
        query = rotated(self._heads(self.q_proj(hidden)), rotary)
        key = rotated(self._heads(self.k_proj(hidden)), rotary)
        value, seen = self._heads(self.v_proj(hidden)), None
        if cache is not None:
            cache.put(key, value)
            if length == 1:
                key, value, seen = cache.keys, cache.values, cache.seen()
        group = self.sizes.heads // self.sizes.kv_heads
        mixed = functional.scaled_dot_product_attention(
            query,
            key.repeat_interleave(group, dim=1),
            value.repeat_interleave(group, dim=1),
            attn_mask=seen,
            is_causal=seen is None,
        )
        projected: Tensor = self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))
        return projected

    def _heads(self, projected: Tensor) -> Tensor:
        """Return (batch, heads, length, head) of (batch, length, heads * head)."""
        batch, length, _ = projected.shape
        return projected.view(batch, length, -1, self.sizes.head).transpose(1, 2)


class FeedForward(nn.Module):
    """The gated layer: down(silu(gate(x)) * up(x))."""

    def __init__(self, sizes: Architecture) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden, sizes.intermediate, bias=False)
        self.up_proj = nn.Linear(sizes.hidden, sizes.intermediate, bias=False)
        self.down_proj = nn.Linear(sizes.intermediate, sizes.hidden, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return (batch, length, hidden) of the same."""
        gated = functional.silu(self.gate_proj(hidden)) * self.up_proj(hidden)
        down: Tensor = self.down_proj(gated)
        return down


class Layer(nn.Module):
    """Attention and the gated layer, each after a norm and added to what came in."""

    def __init__(self, sizes: Architecture) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(sizes.hidden, sizes.norm_epsilon)
        self.self_attn = Attention(sizes)
        self.post_attention_layernorm = nn.RMSNorm(sizes.hidden, sizes.norm_epsilon)
        self.mlp = FeedForward(sizes)

    def forward(
        self, hidden: Tensor, rotary: tuple[Tensor, Tensor], cache: Cache | None = None
    ) -> Tensor:
        """Return (batch, length, hidden) of the same."""
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), rotary, cache)
        added: Tensor = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return added


class Decoder(nn.Module):
    """Embedding, layers and the last norm."""

    def __init__(self, sizes: Architecture) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.hidden, sizes.norm_epsilon)


class Llama(nn.Module):
    """The language model; its state dict is what a checkpoint of Hugging Face holds."""

    def __init__(self, sizes: Architecture, seed: int = 0) -> None:
        super().__init__()
        self.sizes = sizes
        self.model = Decoder(sizes)
        self.lm_head = nn.Linear(sizes.hidden, sizes.vocabulary, bias=False)
        cosine, sine = rotary_tables(sizes)
        self.register_buffer("cosine", cosine, persistent=False)
        self.register_buffer("sine", sine, persistent=False)
        self._fill(torch.Generator().manual_seed(seed))

    def _fill(self, generator: torch.Generator) -> None:
        """Start at N(0, 0.02), what is added to the residual at that over sqrt(2 layers)."""
        for name, parameter in self.named_parameters():
            if "norm" not in name:
                added = name.endswith(("o_proj.weight", "down_proj.weight"))
                scale = 0.02 * ((2 * self.sizes.layers) ** -0.5 if added else 1.0)
                nn.init.normal_(parameter, std=scale, generator=generator)

    def states(self, tokens: Tensor, caches: Sequence[Cache] | None = None) -> Tensor:
        """Return the last states (batch, length, hidden) of tokens (batch, length), int64.

        With the caches of all layers, tokens stand where those say, otherwise at the beginning.
        """
        rotary = (self._rotary("cosine", tokens, caches), self._rotary("sine", tokens, caches))
        hidden = self.model.embed_tokens(tokens)
        for index, layer in enumerate(self.model.layers):
            hidden = layer(hidden, rotary, caches[index] if caches else None)
        states: Tensor = self.model.norm(hidden)
        return states

    def _rotary(self, name: str, tokens: Tensor, caches: Sequence[Cache] | None) -> Tensor:
        table = self.get_buffer(name).to(self._dtype(tokens.device))
        return table[caches[0].positions][:, None] if caches else table[: tokens.shape[1]]

    def _dtype(self, device: torch.device) -> torch.dtype:
        """Return the dtype that products are computed in."""
        if torch.is_autocast_enabled(device.type):
            return torch.get_autocast_dtype(device.type)
        return self.lm_head.weight.dtype

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits (batch, length, vocabulary) of tokens (batch, length), int64."""
        logits: Tensor = self.lm_head(self.states(tokens))
        return logits


def rotary_tables(sizes: Architecture) -> tuple[Tensor, Tensor]:
    """Return cosines and sines (positions, head), fp32; both halves of a head turn alike."""
    exponents = torch.arange(0, sizes.head, 2, dtype=torch.float32) / sizes.head
    angles = torch.outer(
        torch.arange(sizes.positions, dtype=torch.float32), sizes.rope_theta**-exponents
    )
    both = torch.cat((angles, angles), dim=-1)
    return both.cos(), both.sin()


def rotated(heads: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Turn (batch, heads, length, head) by its positions, as Hugging Face's Llama does."""
    cosine, sine = rotary
    first, second = heads.chunk(2, dim=-1)
    return heads * cosine + torch.cat((-second, first), dim=-1) * sine
