import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny_config, tiny_model
from torch import Tensor, nn

from kestrel_core.loop.step import GREEDY, Coord, Kind, Readout, Running, Sample, Sampling, Span
from kestrel_core.moondream.model import Moondream
from kestrel_core.runtime.readouts import batched
from kestrel_core.runtime.readouts.plain import nucleus, read, uniform

VOCABULARY = 64
COORD_ID, EOS_ID = 5, 0
TOKEN = Readout(Kind.TOKEN)


@pytest.fixture(scope="module")
def model() -> Moondream:
    """Its hidden states are their own logits, so that a test can write them down."""
    made = tiny_model(tiny_config(3, dim=VOCABULARY))
    made.text.post_ln = made.text.lm_head = nn.Identity()  # type: ignore[assignment]
    return made


def span(readout: Readout = TOKEN, sampling: Sampling = GREEDY, draw: int = 0) -> Span:
    return Span(Running(1, [1], sampling), 0, 1, (0,), None, readout, draw)


def logits(seed: int = 0, rows: int = 1, scale: float = 2.0) -> Tensor:
    return scale * torch.randn(rows, VOCABULARY, generator=torch.Generator().manual_seed(seed))


def row(**values: float) -> Tensor:
    """Logits of one row, -10 but for `t<token>=value`."""
    out = torch.full((1, VOCABULARY), -10.0)
    for name, value in values.items():
        out[0, int(name[1:])] = value
    return out


def one(model: Moondream, hidden: Tensor, span: Span) -> Sample:
    [sample] = read(model, hidden, [span])
    return sample


def draws(
    model: Moondream, hidden: Tensor, sampling: Sampling, count: int, readout: Readout = TOKEN
) -> Counter[int]:
    spans = [span(readout, sampling, draw) for draw in range(count)]
    samples = read(model, hidden.expand(count, -1), spans)
    return Counter(sample.token for sample in samples if sample.token is not None)


def test_temperature_zero_takes_the_likeliest_and_the_lowest_of_equals(model: Moondream) -> None:
    hidden = logits(rows=9)
    tokens = [sample.token for sample in read(model, hidden, [span()] * 9)]
    assert tokens == hidden.argmax(-1).tolist()
    assert one(model, row(t7=1.0, t9=1.0), span()).token == 7


@pytest.mark.parametrize("temperature", [5e-324, 1e-45, 1e-40, 1e-38, 5e-38, 1e-31])
def test_a_temperature_that_no_float32_can_divide_by_is_greedy(model: Moondream, temperature: float) -> None:
    rng = torch.Generator()
    seed = rng.seed()  # another one in every run
    hidden = 20.0 * torch.randn(50, VOCABULARY, generator=rng)
    expected = hidden.argmax(-1).tolist()
    cold = [span(sampling=Sampling(temperature, seed=draw), draw=draw) for draw in range(50)]
    assert [sample.token for sample in read(model, hidden, cold)] == expected, seed
    arrays = {name: np.zeros(shape, kind) for name, (kind, shape) in batched.fields(50).items()}
    form = batched.write(cold, 50, arrays)
    asked = batched.Asked(*(torch.from_numpy(arrays[name]) for name in batched.Asked._fields))
    results, _ = batched.read(model, hidden, asked, form)
    assert results[:, 0].int().tolist() == expected, seed


@pytest.mark.parametrize("sampling", [Sampling(5.0, top_p=0.0), Sampling(5.0, top_k=1)])
def test_the_likeliest_is_always_among_the_kept(model: Moondream, sampling: Sampling) -> None:
    hidden = logits()
    assert draws(model, hidden, sampling, 50) == {int(hidden.argmax()): 50}


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(1.0, seed=1),
        Sampling(0.5, seed=2),
        Sampling(2.0, top_p=0.8, seed=3),
        Sampling(1.5, top_k=6, seed=4),
        Sampling(1.5, top_p=0.7, top_k=9, seed=5),
    ],
    ids=["plain", "cold", "top_p", "top_k", "both"],
)
def test_tokens_are_drawn_as_often_as_they_are_likely(model: Moondream, sampling: Sampling) -> None:
    count, hidden = 4000, logits(seed=7)
    kept, order = nucleus(hidden[0], sampling)
    expected = {int(t): count * p for t, p in zip(order, kept.tolist(), strict=True) if p > 0}
    seen = draws(model, hidden, sampling, count)
    assert seen.keys() <= expected.keys(), "what is cut off is never drawn"
    often = {t: n for t, n in expected.items() if n >= 5}
    rest = sum(expected.values()) - sum(often.values()), sum(n for t, n in seen.items() if t not in often)
    pairs = [(n, seen[t]) for t, n in often.items()] + ([rest] if rest[0] >= 5 else [])
    chi_square, freedom = sum((n - found) ** 2 / n for n, found in pairs), len(pairs) - 1
    assert freedom > 1
    assert chi_square < freedom + 5 * math.sqrt(2 * freedom)


@given(
    # Closer ones may have the same probability once it is rounded, and then either is kept.
    st.lists(st.integers(-512, 512).map(lambda n: n / 64), min_size=2, max_size=12, unique=True),
    st.floats(0.1, 3.0),
    st.floats(0.0, 1.0),
    st.integers(0, 5),
)
def test_the_nucleus_keeps_tokens_while_the_mass_before_them_allows(
    values: list[float], temperature: float, top_p: float, top_k: int
) -> None:
    kept, order = nucleus(torch.tensor(values), Sampling(temperature, top_p, top_k))
    weights = [math.exp((v - max(values)) / temperature) for v in values]
    mass, expected = 0.0, []
    for index in sorted(range(len(values)), key=lambda i: -values[i]):
        if abs(mass - top_p) < 1e-5:
            return  # on the edge, rounding decides
        if mass <= top_p and (not top_k or len(expected) < top_k):
            expected.append(index)
        mass += weights[index] / sum(weights)
    share = sum(weights[i] for i in expected)
    ours = {int(t): p for t, p in zip(order, kept.tolist(), strict=True) if p > 0}
    wanted = {i: weights[i] / share for i in expected if weights[i] / share > 1e-30}
    assert ours.keys() >= wanted.keys() and len(ours) <= len(expected)
    for token, probability in wanted.items():
        assert ours[token] == pytest.approx(probability, rel=1e-3, abs=1e-6)


def test_a_seed_and_a_draw_give_the_same_token_in_any_company(model: Moondream) -> None:
    hidden, sampling = logits(rows=12), Sampling(2.0, seed=99)
    mine = span(sampling=sampling, draw=3)
    alone = one(model, hidden[4:5], mine)
    others = [span(sampling=Sampling(1.0, seed=i), draw=i) for i in range(12)]
    others[5] = span(Readout(Kind.COORD))
    others[6] = span(Readout(Kind.SIZE))
    for place in (0, 4, 11):
        company = hidden.clone()
        company[place] = hidden[4]
        spans = [*others[:place], mine, *others[place + 1 :]]
        assert read(model, company, spans)[place] == alone


def test_draws_and_seeds_change_the_token(model: Moondream) -> None:
    hidden = logits(scale=0.1)
    assert len(draws(model, hidden, Sampling(1.0, seed=1), 40)) > 10
    tokens = [one(model, hidden, span(sampling=Sampling(1.0, seed=seed))).token for seed in range(40)]
    assert len(set(tokens)) > 10


def test_uniform_numbers_are_spread_evenly_and_stay_below_one() -> None:
    numbers = [uniform(seed, draw) for seed in (-(2**63), 0, 2**63 - 1) for draw in range(1000)]
    assert all(0 <= number < 1 for number in numbers)
    tenths = Counter(int(10 * number) for number in numbers)
    assert all(220 < tenths[tenth] < 380 for tenth in range(10))
    assert uniform(3, 4) == uniform(3, 4) != uniform(4, 3)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(3.0, seed=1)], ids=["greedy", "sampled"])
def test_suppressed_tokens_are_never_chosen(model: Moondream, sampling: Sampling) -> None:
    hidden = row(t3=9.0, t6=8.0, t10=3.0, t11=2.0)
    seen = draws(model, hidden, sampling, 300, Readout(Kind.TOKEN, suppressed=(3, 6)))
    assert 3 not in seen and 6 not in seen and 10 in seen
    assert draws(model, hidden, GREEDY, 1) == {3: 1}, "each row has its own"


def test_choices_leave_two_tokens_and_a_tie_goes_on(model: Moondream) -> None:
    two_way = Readout(Kind.OBJECT, choices=(COORD_ID, EOS_ID))
    for coord, end, chosen in ((2.0, 1.0, COORD_ID), (1.0, 2.0, EOS_ID), (1.0, 1.0, COORD_ID)):
        assert one(model, row(t30=9.0, t5=coord, t0=end), span(two_way)).token == chosen


def test_another_object_is_decided_greedily_and_its_place_is_read_at_once(model: Moondream) -> None:
    hidden = logits(seed=5)
    for draw in range(20):
        sample = one(model, hidden, span(Readout(Kind.OBJECT), Sampling(9.0), draw))
        assert sample.token == int(hidden.argmax())
    place = float(model.region.coord_of_bin(model.region.coord_logits(hidden).argmax(-1)))
    assert sample.coord == place and sample.feed == Coord(place)


def test_a_grounded_token_reads_a_place_where_it_is_the_coordinate_token(model: Moondream) -> None:
    grounded = Readout(Kind.GROUNDED)
    place, word = read(model, torch.cat((row(t5=3.0), row(t8=3.0))), [span(grounded)] * 2)
    assert place.token == COORD_ID and place.coord is not None and place.feed == Coord(place.coord)
    assert (word.token, word.coord, word.feed) == (8, None, 8)
    assert one(model, row(t5=3.0), span()).coord is None, "outside of reasoning it is a word like any other"


def test_places_and_sizes_are_the_likeliest_bins(model: Moondream) -> None:
    hidden, region = logits(seed=8, rows=4), model.region
    spans = [span(Readout(kind), Sampling(9.0, seed=1)) for kind in (Kind.COORD, Kind.SIZE) * 2]
    samples = read(model, hidden, spans)
    places = region.coord_of_bin(region.coord_logits(hidden).argmax(-1)).tolist()
    sizes = region.size_of_bin(region.size_logits(hidden).argmax(-1)).tolist()
    assert [s.coord for s in samples] == [places[0], None, places[2], None]
    assert [s.size for s in samples] == [None, tuple(sizes[1]), None, tuple(sizes[3])]
    assert all(s.token is None for s in samples)


def test_log_probabilities_are_the_models_own_before_temperature_and_suppression(model: Moondream) -> None:
    hidden = logits(seed=3, rows=3)
    expected = hidden.log_softmax(-1)
    best = int(hidden[0].argmax())
    readout = Readout(Kind.TOKEN, suppressed=(best,))
    asked, plain, all_of_them = read(
        model,
        hidden,
        [
            span(readout, Sampling(2.0, top_p=0.5, seed=4, logprobs=3)),
            span(),
            span(sampling=Sampling(logprobs=500)),
        ],
    )
    assert asked.token is not None and asked.token != best
    assert asked.logprob == pytest.approx(float(expected[0, asked.token]), abs=1e-5)
    values, ids = expected[0].topk(3)
    assert [token for token, _ in asked.top] == ids.tolist()
    assert [value for _, value in asked.top] == pytest.approx(values.tolist(), abs=1e-5)
    assert (plain.logprob, plain.top) == (None, ())
    assert len(all_of_them.top) == VOCABULARY


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [Kind.TOKEN, Kind.OBJECT, Kind.COORD, Kind.SIZE])
def test_a_row_that_is_not_finite_is_told_and_harms_no_other(
    model: Moondream, bad: float, kind: Kind
) -> None:
    hidden = logits(seed=6, rows=3)
    spans = [span(sampling=Sampling(1.5, seed=1, logprobs=2)), span(Readout(kind), Sampling(1.0)), span()]
    before = read(model, hidden, spans)
    hidden[1, 12] = bad
    after = read(model, hidden, spans)
    assert all(sample.finite for sample in before)
    assert [sample.finite for sample in after] == [True, False, True]
    assert (after[0], after[2]) == (before[0], before[2])
