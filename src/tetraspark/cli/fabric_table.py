"""Tables of names and addresses: in a narrow window they go on in the next line, never cut."""

from rich.table import Table


def unbroken(*columns: str) -> Table:
    """Return a table without lines whose cells fold where they do not fit."""
    table = Table(box=None, pad_edge=False)
    for one in columns:
        table.add_column(one, overflow="fold")
    return table
