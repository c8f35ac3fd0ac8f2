"""The kernels for decoding against plain torch on the device, captured and launched again and again."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from decode_rows import CONTEXT, MAX_CONTEXT, PAGE_SIZE, difference, fill, filled_cache, rows_of
from kestrel_core.moondream.config import MOONDREAM2, MOONDREAM3
from kestrel_core.moondream.fast_text import make_rotary_tables
from kestrel_core.moondream.ops import plain
from kestrel_core.moondream.ops.protocol import Heads, Norm, Pairs, TauWeights
from kestrel_core.runtime.attention.sdpa import PagedSdpaAttention
from kestrel_core.runtime.kv_cache import KVCache
from stages import Report, captured


def check_attention(device: torch.device, report: Report) -> None:
    from kestrel_core.runtime.attention.few_rows import FewRowsDecode, cut

    # Numbers of heads, their size, and numbers of rows. Every cut of the work is compiled, which takes time.
    ours_and_others = (
        (torch.bfloat16, 32, 32, 64, (1, 4, 7, 16)),
        (torch.float32, 32, 32, 64, (1, 16)),
        (torch.bfloat16, 8, 2, 128, (3,)),
        (torch.float32, 6, 3, 72, (5,)),
    )
    for dtype, heads, kv_heads, head_dim, sizes in ours_and_others:
        config = replace(
            MOONDREAM2.text, n_layers=2, dim=heads * head_dim, n_heads=heads, n_kv_heads=kv_heads
        )
        cache = filled_cache(config, 16 * 205 + 1, device, dtype)
        exact = KVCache(config, 1, 1, device, torch.float32)
        exact.k, exact.v, exact.num_pages, exact.page_size = (
            cache.k.float(), cache.v.float(), cache.num_pages, PAGE_SIZE,
        )  # fmt: skip
        worst = 0.0
        for num_rows in sizes:
            rows = rows_of([MAX_CONTEXT] * num_rows, cache)
            theirs = PagedSdpaAttention(exact, MAX_CONTEXT).for_decode(rows, captured=True)
            pieces = cut(num_rows, config)
            for early in (False, True):
                ours = FewRowsDecode(cache, config, MAX_CONTEXT, rows, pieces, early)
                q = torch.randn((num_rows, heads, head_dim), device=device).to(dtype)
                out = torch.empty_like(q)

                def both(ours: FewRowsDecode = ours, q: Tensor = q, out: Tensor = out) -> None:
                    attend = ours.begin()
                    torch.add(q, 0.0)  # a launch between plan and attention, as in a step
                    for layer in (0, 1, 0):
                        torch.add(attend.read(layer, q), 0.0, out=out)

                both()
                replay = captured(both, 1)
                for turn in range(6):
                    lengths = np.random.default_rng(turn).integers(1, MAX_CONTEXT + 1, num_rows)
                    lengths[0] = (1, 33, CONTEXT, MAX_CONTEXT, 64, 129)[turn]
                    fill(rows, rows_of(lengths.tolist(), cache))
                    expected = theirs.begin().read(0, q.float())
                    for _ in range(20):
                        replay()
                    worst = max(worst, float((out.float() - expected).abs().max()))
        limit = 2e-2 if dtype == torch.bfloat16 else 1e-4
        report.say(f"attention {dtype} {heads}/{kv_heads} heads of {head_dim}", worst, limit)


def check_products(device: torch.device, report: Report) -> None:
    for dtype, early in ((torch.bfloat16, False), (torch.bfloat16, True), (torch.float32, True)):
        from kestrel_core.moondream.ops.decode_kernels import DecodeKernels

        ours, limit = DecodeKernels(early), 2e-2 if dtype == torch.bfloat16 else 1e-4

        def made(*shape: int, scale: float = 1.0, dtype: torch.dtype = dtype) -> Tensor:
            return (torch.randn(shape, device=device) * scale).to(dtype)

        x, y, w, o, b = (
            made(1, 2048),
            made(1, 8192),
            made(300, 2048, scale=0.02),
            made(300, 8192, scale=0.01),
            made(300),
        )
        torch.cuda.synchronize()  # early kernels read weights before those in front of them have ended
        worst = difference(
            ours.linear_sum(x, w, y, o, b), plain.linear_sum(*(t.float() for t in (x, w, y, o, b)))
        )
        worst = max(worst, difference(ours.linear(x, w, b), plain.linear(x.float(), w.float(), b.float())))
        report.say(f"products {dtype}{', early' * early}", worst, limit)
        fc1, fc2, h = made(6, 200, 2048, scale=0.02), made(6, 2048, 100, scale=0.1), made(1, 2048)
        ids, weights = ours.route(made(1, 6), 3)
        torch.cuda.synchronize()
        mine = ours.experts(h, ids, weights, fc1, fc2).values
        right = plain.experts(h.float(), ids, weights.float(), fc1.float(), fc2.float())
        assert right.rows is not None
        report.say(f"experts {dtype}{', early' * early}", difference(mine, right.values[right.rows]), limit)
        heads, config = Heads(32, 32, 64), MOONDREAM3.text
        tables, positions = make_rotary_tables(config, device), torch.tensor([5, 900, 0], device=device)
        packed, tau = made(3, 6144 + 100), TauWeights(made(64, 6144, scale=0.02), made(32))
        torch.cuda.synchronize()
        turned = ours.rotate(packed, positions, tables, heads, tau, None, 100)
        right_tau = TauWeights(tau.matrix.float(), tau.alpha.float())
        expected = plain.rotate(packed.float(), positions, tables, heads, right_tau, None, 100)
        worst = max(difference(one, other) for one, other in zip(turned, expected, strict=True))
        report.say(f"tau and rotation {dtype}{', early' * early}", worst, limit)
        norm, pairs = Norm(made(2048), made(2048), 1e-5), Pairs(made(24, 2048), made(3, 8), None)
        x, y = made(3, 2048), made(3, 2048)
        torch.cuda.synchronize()
        summed = ours.add_norm(x, y, pairs, norm)
        right_pairs = Pairs(pairs.values.float(), pairs.weights.float(), None)
        right_norm = Norm(norm.weight.float(), norm.bias.float(), 1e-5)
        right_sum = plain.add_norm(x.float(), y.float(), right_pairs, right_norm)
        worst = max(difference(one, other) for one, other in zip(summed, right_sum, strict=True))
        report.say(f"sum of pairs and norm {dtype}{', early' * early}", worst, limit)
