"""Receipts on disk: one file each, beside the runs of their line."""

from pathlib import Path

from pydantic import ValidationError

from tetraspark.errors import Problem, UsageError
from tetraspark.fleet.run_files import replace
from tetraspark.receipts.receipt import ServeReceipt
from tetraspark.site.keypath import dotted

KEPT_RECEIPTS = 200
FOLDER = "receipts"


class ReceiptStore:
    """The receipts of the line whose folder is `root`; ids sort by time, as those of runs do."""

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER

    def path(self, id: str) -> Path:
        """Return the file of a receipt."""
        return self.folder / f"{id}.json"

    def ids(self) -> list[str]:
        """Return all ids, oldest first."""
        return sorted(path.stem for path in self.folder.glob("*.json"))

    def keep(self, receipt: ServeReceipt) -> Path:
        """Write a receipt, and forget the oldest beyond KEPT_RECEIPTS: never the newest ones.

        Raises OSError where it cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.path(receipt.id)
        replace(path, receipt.sealed().model_dump_json(indent=1) + "\n")
        for old in self.ids()[:-KEPT_RECEIPTS]:
            self.path(old).unlink()
        return path

    def read(self, id: str) -> ServeReceipt:
        """Return a receipt. Raises UsageError for one that is not as it was written."""
        path = self.path(id)
        fix = "tetraspark receipts list shows the others"
        try:
            found = ServeReceipt.model_validate_json(path.read_bytes())
        except OSError as error:
            seen = error.strerror or str(error)
            raise UsageError(Problem(str(path), seen, "a receipt", fix)) from error
        except ValidationError as error:
            first = error.errors()[0]
            where = f"{path}: {dotted(first['loc'])}" if first["loc"] else str(path)
            raise UsageError(Problem(where, first["msg"], "a receipt", fix)) from error
        if found.seal() != found.sha256:
            seen = "changed since it was written: its seal is of other fields"
            raise UsageError(Problem(str(path), seen, "a receipt as it was written", fix))
        return found

    def find(self, name: str) -> str:
        """Return the id that `name` is or begins. Raises UsageError for none, or several."""
        ids = self.ids()
        found = [name] if name in ids else [one for one in ids if one.startswith(name)]
        if len(found) == 1 and name:
            return found[0]
        seen = f"{name!r} begins {len(found)} ids" if found else f"{name!r} is no receipt"
        raise UsageError(Problem(str(self.folder), seen, "one receipt", "tetraspark receipts list"))

    def good_before(self, run: str | None) -> str | None:
        """Return the last good receipt before what the run `run` served; None where there is none.

        A run that never became ready has no receipt, so that is the newest. One that was itself a
        rollback goes on from the receipt that it served again: the way back never leads forward.
        """
        ids = self.ids()
        before = run
        while before in ids and (source := self.read(before).rollback_of) is not None:
            before = source
        earlier = [one for one in ids if before is None or one < before]
        return earlier[-1] if earlier else None
