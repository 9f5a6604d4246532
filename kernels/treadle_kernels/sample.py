"""Draw one token a row from its logits, each row with its own temperature and filters."""

from __future__ import annotations

import torch

# Beyond this many candidates a filtered row is rare; such rows are sorted whole.
_CANDIDATES = 256


def draw(
    logits: torch.Tensor,
    uniform: torch.Tensor,
    temperature: torch.Tensor,
    top_k: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
) -> torch.Tensor:
    """`uniform` in [0, 1) decides; a row's token depends on nothing but its own entries."""
    # logits: [N, V], all others: [N] -> [N]
    scaled = logits.float() / temperature[:, None]
    filtered = (top_k > 0) | (top_p < 1) | (min_p > 0)
    tokens = torch.empty(len(logits), dtype=torch.long, device=logits.device)
    plain = ~filtered
    if plain.any():
        tokens[plain] = _invert(scaled[plain].double().softmax(-1), uniform[plain])
    if filtered.any():
        tokens[filtered] = _draw_filtered(
            scaled[filtered], uniform[filtered], top_k[filtered], top_p[filtered], min_p[filtered]
        )
    return tokens


def penalise_repetition(logits: torch.Tensor, seen: torch.Tensor, penalty: float) -> None:
    """In place, on one row: tokens that were seen become less likely when `penalty` is above 1."""
    # logits: [V], seen: [any]
    scores = logits[seen]
    logits[seen] = torch.where(scores < 0, scores * penalty, scores / penalty)


def penalise_counts(
    logits: torch.Tensor, seen: torch.Tensor, counts: torch.Tensor, presence: float, frequency: float
) -> None:
    """In place, on one row: each token that was seen loses `presence` once and `frequency` for each time."""
    # logits: [V], seen and counts: [any]
    logits[seen] -= (presence + frequency * counts).to(logits.dtype)


def forbid(logits: torch.Tensor, allowed: torch.Tensor) -> None:
    """In place: tokens whose bit is not set become impossible, and so do those that have no bit."""
    # logits: [N, V], allowed: [N, W] int32, the lowest bit first
    octets = allowed.contiguous().view(torch.uint8)
    shifts = torch.arange(8, dtype=torch.uint8, device=allowed.device)
    table = (torch.arange(256, dtype=torch.uint8, device=allowed.device)[:, None] >> shifts) & 1 == 0
    forbidden = table[octets.long()].flatten(1)
    known = min(forbidden.shape[1], logits.shape[1])
    logits[:, :known].masked_fill_(forbidden[:, :known], -torch.inf)
    logits[:, known:] = -torch.inf


def _draw_filtered(
    scaled: torch.Tensor, uniform: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor, min_p: torch.Tensor
) -> torch.Tensor:
    vocabulary = scaled.shape[1]
    limit = torch.where(top_k > 0, top_k.clamp(max=vocabulary), vocabulary)
    width = min(vocabulary, _CANDIDATES)
    values, ids = scaled.topk(width)
    probabilities, kept = _keep(values, _log_total(scaled, values, limit), limit, top_p, min_p)
    tokens = ids.gather(1, _invert(probabilities * kept, uniform)[:, None])[:, 0]
    cut_short = kept[:, -1] if width < vocabulary else torch.zeros_like(kept[:, -1])
    if cut_short.any():
        values, ids = scaled[cut_short].sort(descending=True)
        limit = limit[cut_short]
        log_total = _log_total(scaled[cut_short], values, limit)
        probabilities, kept = _keep(values, log_total, limit, top_p[cut_short], min_p[cut_short])
        chosen = _invert(probabilities * kept, uniform[cut_short])
        tokens[cut_short] = ids.gather(1, chosen[:, None])[:, 0]
    return tokens


def _keep(
    values: torch.Tensor,
    log_total: torch.Tensor,
    limit: torch.Tensor,
    top_p: torch.Tensor,
    min_p: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities of sorted candidates, and which stay: a prefix, since each filter keeps the likeliest."""
    # values: [N, C] descending, log_total: [N, 1], all others: [N]
    ranks = torch.arange(values.shape[1], device=values.device)
    probabilities = (values - log_total).double().exp()
    before = probabilities.cumsum(-1) - probabilities
    kept = (ranks < limit[:, None]) & (before < top_p[:, None])
    kept &= probabilities >= min_p[:, None] * probabilities[:, :1]
    kept[:, 0] = True
    return probabilities, kept


def _log_total(scaled: torch.Tensor, values: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
    """The log of what top-k leaves, so that top-p counts in shares of that."""
    ranks = torch.arange(values.shape[1], device=values.device)
    of_top = values.masked_fill(ranks >= limit[:, None], -torch.inf).logsumexp(-1, keepdim=True)
    return torch.where((limit <= values.shape[1])[:, None], of_top, scaled.logsumexp(-1, keepdim=True))


def _invert(weights: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """The first index whose cumulative weight exceeds that share of the total."""
    cumulative = weights.cumsum(-1)
    target = (uniform.double() * cumulative[:, -1])[:, None]
    last = (weights > 0).long().cumsum(-1).argmax(-1)
    return (cumulative <= target).sum(-1).minimum(last)
