"""What kernels are told: refused, copied or addressed in place, spread over blocks."""

import pytest
import torch

from tetraspark.collectives import native
from tetraspark.collectives.algorithm import Algorithm
from tetraspark.collectives.cuda_launch import Form, access_width, form_of
from tetraspark.collectives.cuda_requests import Requests, addressable, can_take
from tetraspark.collectives.cuda_two_shot import gather_of
from tetraspark.collectives.flags import Op
from tetraspark.collectives.layout import Layout

CPU = torch.device("cpu")
BF16 = torch.bfloat16
ONE, TWO = Algorithm


@pytest.fixture
def requests() -> Requests:
    return Requests(Layout(3, 2, 8192, 4096, 49152), 1, CPU)


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.zeros(7, dtype=BF16), "14 bytes"),
        (torch.zeros(0, dtype=BF16), "0 bytes"),
        (torch.zeros(4104, dtype=BF16), "8208 bytes"),
        (torch.zeros(16, dtype=torch.int32), "int32"),
    ],
)
def test_what_does_not_fit_is_refused(requests: Requests, tensor: torch.Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        requests.reduce(tensor, None, ONE)


def test_another_device_is_refused(requests: Requests) -> None:
    with pytest.raises(TypeError, match="wanted one on cpu"):
        requests.reduce(torch.zeros(8, dtype=BF16, device="meta"), None, ONE)


def test_an_output_of_another_shape_is_refused(requests: Requests) -> None:
    with pytest.raises(ValueError, match=r"wanted torch.bfloat16 \[8\]"):
        requests.reduce(torch.zeros(8, dtype=BF16), torch.zeros(16, dtype=BF16), ONE)


@pytest.mark.parametrize(
    ("dim", "sizes", "words"),
    [
        (1, None, "first .0. or last"),
        (-1, (4, 5, 6), "the one of rank 1 4"),
        (-1, (4, 4), "wanted 3"),
        (0, (2, 2, 3), "last dimension only"),
        (-1, (4, 4, 9999), "does not fit"),
    ],
)
def test_a_gather_that_cannot_be_is_refused(
    requests: Requests, dim: int, sizes: tuple[int, ...] | None, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        requests.gather(torch.zeros(2, 3, 4, dtype=BF16), dim, sizes)


def test_in_place_uses_one_address(requests: Requests) -> None:
    tensor = torch.zeros(64, dtype=BF16)
    request, _, result = requests.reduce(tensor, tensor, ONE)
    assert request.input == request.output == tensor.data_ptr()
    assert result is tensor
    assert list(request.bytes[:3]) == [128] * 3


def test_two_shot_reduces_into_its_own_part_and_gathers_around_it(requests: Requests) -> None:
    tensor = torch.zeros(40, dtype=BF16)
    request, _, _ = requests.reduce(tensor, tensor, TWO)
    assert list(request.row_bytes[:3]) == [32, 32, 16]
    assert request.op == Op.TWO_SHOT_REDUCE
    assert request.output == tensor.data_ptr() + 32
    gathered = gather_of(request, 1)
    assert (gathered.op, gathered.input) == (Op.TWO_SHOT_GATHER, request.output)
    assert gathered.output == tensor.data_ptr()
    assert list(gathered.bytes[:3]) == [32, 32, 16]
    assert list(request.bytes[:3]) == [80] * 3


def test_each_algorithm_has_its_limit(requests: Requests) -> None:
    assert requests.fits(49152, BF16, TWO)
    assert not requests.fits(49152, BF16, ONE)
    assert not requests.fits(49168, BF16, TWO)
    with pytest.raises(ValueError, match="at most 8192 for one-shot"):
        requests.reduce(torch.zeros(24576, dtype=BF16), None, ONE)


@pytest.mark.parametrize(
    ("shape", "dim", "share"), [((9, 64), 0, (3, 64)), ((5, 48), -1, (16, 5)), ((1, 8), 0, (0, 8))]
)
def test_a_share_has_the_scattered_dimension_first(
    requests: Requests, shape: tuple[int, ...], dim: int, share: tuple[int, ...]
) -> None:
    request, _, result = requests.scatter(torch.zeros(shape, dtype=BF16), dim)
    assert tuple(result.shape) == share
    assert request.output == (result.data_ptr() or None)


def test_a_scatter_that_cannot_be_is_refused(requests: Requests) -> None:
    with pytest.raises(ValueError, match="max_two_shot_bytes"):
        requests.scatter(torch.zeros(1, 8192, dtype=torch.float32), 0)
    with pytest.raises(ValueError, match=r"first .0. or last"):
        requests.scatter(torch.zeros(2, 2, 2, dtype=BF16), 1)


def test_a_partial_overlap_gets_a_new_output(requests: Requests) -> None:
    room = torch.zeros(96, dtype=BF16)
    source, out = room[:64], room[8:72]
    _, _, result = requests.reduce(source, out, ONE)
    assert result is not out
    assert can_take(room[64:], source[:32])


def test_an_unaligned_or_strided_input_is_copied() -> None:
    room = torch.arange(72, dtype=torch.float32)
    for odd in (room[1:65], room[:64].reshape(8, 8).t()):
        copied = addressable(odd)
        assert torch.equal(copied, odd)
        assert copied.data_ptr() % 16 == 0
        assert copied.is_contiguous()
    assert addressable(room) is room


@pytest.mark.parametrize(
    ("shape", "dtype", "dim", "sizes", "width"),
    [
        ((4, 8), BF16, -1, None, 16),
        ((4, 4), BF16, -1, None, 8),
        ((4, 2), BF16, -1, None, 4),
        ((4, 3), BF16, -1, None, 2),
        ((4, 3), torch.uint8, -1, None, 1),
        ((4, 8), BF16, -1, (8, 8, 1), 2),
        ((3, 8), BF16, 0, None, 16),
    ],
)
def test_a_gather_uses_the_widest_access_all_places_allow(
    requests: Requests,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    dim: int,
    sizes: tuple[int, ...] | None,
    width: int,
) -> None:
    request, _, result = requests.gather(torch.zeros(shape, dtype=dtype), dim, sizes)
    assert access_width(request, 3) == width
    assert result.shape[dim] == (sum(sizes) if sizes else 3 * shape[dim])


def test_an_odd_address_narrows_the_access() -> None:
    request = native.Request(out_stride=64, input=4096, output=4096 + 4)
    request.row_bytes[:2] = [32, 32]
    request.out_offset[:2] = [0, 32]
    assert access_width(request, 2) == 4


@pytest.mark.parametrize(
    ("nbytes", "stripes", "split"),
    [(61440, 1, False), (65536, 1, True), (983040, 4, False), (1 << 20, 4, True)],
)
def test_large_operations_are_split_by_role(nbytes: int, stripes: int, split: bool) -> None:
    assert bool(form_of(nbytes, stripes).stagers) is split


def test_grids() -> None:
    assert Form().grid(4) == (1, 4)
    assert Form(2, 8).grid(4) == (11, 1)
