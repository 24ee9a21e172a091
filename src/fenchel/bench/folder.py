"""A benchmark's folder: the settings it was begun with, and all that is known so far."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fenchel.config import Config, completed
from fenchel.errors import InputError
from fenchel.files import make_folder, replace_text
from fenchel.runs import require_same

SETTINGS = "settings"


@dataclass(frozen=True)
class BenchFolder:
    """Named JSON files, each whole or not there."""

    path: Path

    def claim(self, settings: dict[str, Any]) -> None:
        """Begin with these settings, or go on with the same."""
        self._claim(self.read(SETTINGS), json.loads(json.dumps(settings)))

    def claim_for(self, config: Config) -> None:
        """Likewise with a method's, of which an earlier version may have had fewer."""
        before = self.read(SETTINGS)
        self._claim(before and Config.from_dict(completed(before)).to_dict(), config.to_dict())

    def _claim(self, before: dict[str, Any] | None, settings: dict[str, Any]) -> None:
        if before is None:
            self.write(SETTINGS, settings)
        else:
            require_same(before, settings, self.path)

    def read(self, name: str) -> Any:
        """What was written under that name; None if nothing."""
        file = self.path / f"{name}.json"
        if not file.is_file():
            return None
        try:
            return json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{file} is damaged ({error}): remove it, and run again.") from None

    def write(self, name: str, value: Any) -> None:
        text = json.dumps(value, indent=1, allow_nan=False)
        self.write_text(f"{name}.json", text + "\n")

    def write_text(self, name: str, text: str) -> None:
        make_folder(self.path)
        replace_text(self.path / name, text)

    def within(self, name: str) -> "BenchFolder":
        """The part of a method."""
        return BenchFolder(self.path / name)
