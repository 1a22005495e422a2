from collections.abc import Iterator

import pytest

from tetraspark.watch.board import Board
from tetraspark.watch.http import Server, serve_page


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def server(board: Board) -> Iterator[Server]:
    made = serve_page(board, "127.0.0.1", 0)
    yield made
    made.close()


@pytest.fixture(scope="module")
def unseen() -> Iterator[Server]:
    """A server whose line nobody looks at."""
    made = serve_page(Board(), "127.0.0.1", 0)
    yield made
    made.close()
