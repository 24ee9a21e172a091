"""A run's folder: its configuration, metrics, checkpoints, model and figures."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fenchel.arrays import to_table
from fenchel.config import RECORD, Config, completed
from fenchel.data import Pictures, Samples
from fenchel.environment import device, packages, python
from fenchel.errors import InputError
from fenchel.files import make_folder, refuse_unwritable, replace_text, require_space
from fenchel.train import TrainState, checkpoint
from fenchel.version import __version__


@dataclass(frozen=True)
class RunFolder:
    """What lies where in a run's folder, and how it gets there."""

    path: Path

    @property
    def config_file(self) -> Path:
        return self.path / "config.json"

    @property
    def metrics_file(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def figures(self) -> Path:
        return self.path / "figures"

    def begin(self, config: Config, samples: Samples | Pictures, state: TrainState) -> None:
        """Make a new run's folder, or refuse to write over anything."""
        self._refuse_to_overwrite()
        self._require_space(state)
        make_folder(self.path)
        self._write_record(config, samples)
        self.metrics_file.touch()
        checkpoint.save(self.checkpoints, state)

    def _refuse_to_overwrite(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise InputError(f"{self.path} is a file: give the name of a new folder.")
        refuse_unwritable(self.config_file)
        if self._is_a_run():
            raise InputError(
                f"{self.path} holds another run: choose another folder, or continue that run with "
                "--resume."
            )
        if any(self.path.iterdir()):
            raise InputError(f"{self.path} is not empty: choose another folder, or a new one.")

    def _is_a_run(self) -> bool:
        try:
            self.read_record()
        except InputError:
            return False
        return True

    def resume(self, config: Config, samples: Samples | Pictures, like: TrainState) -> TrainState:
        """The newest checkpoint's state, with the metrics cut back to it."""
        record = self.read_record()
        require_same(Config.from_dict(record["config"]).to_dict(), config.to_dict(), self.path)
        if not self.was_fitted_to(samples):
            raise InputError(
                f"{self.path} was fitted to other data: give the same data, or begin a new run."
            )
        iteration = checkpoint.latest(self.checkpoints)
        if iteration is None:
            raise InputError(f"{self.path} has no checkpoint to resume from: begin a new run.")
        refuse_unwritable(self.config_file)
        self._require_space(like)
        state = checkpoint.restore(self.checkpoints, iteration, like)
        if iteration < config.training.steps:
            self._note_sitting(record)
        kept = [row for row in self.read_metrics() if row["iteration"] <= iteration]
        replace_text(self.metrics_file, "".join(json.dumps(row) + "\n" for row in kept))
        return state

    def was_fitted_to(self, samples: Samples | Pictures) -> bool:
        """Whether these are the data of the run."""
        return same_data(self.read_record(), samples)

    def read_record(self) -> dict[str, Any]:
        """What `begin` wrote: configuration, data and versions."""
        if not self.config_file.is_file():
            raise InputError(
                f"{self.path} is not a run of this library (it has no config.json): "
                "give the folder that `fenchel fit --out` made."
            )
        try:
            record = json.loads(self.config_file.read_text(encoding="utf-8"))
            parts = (record["config"], record["data"], record.get("packages", {}))
            if record["format"] != RECORD or not all(isinstance(part, dict) for part in parts):
                raise KeyError("format")
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{self.config_file} is damaged, or not of this library: give another folder, or "
                "begin a new run."
            ) from None
        return {**record, "config": completed(record["config"])}

    def read_metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl; one that a kill cut short is left out."""
        rows: list[dict[str, Any]] = []
        if not self.metrics_file.is_file():
            return rows
        for line in self.metrics_file.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                break
        return rows

    def write_metrics(self, row: dict[str, Any]) -> None:
        with self.metrics_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def write_checkpoint(self, state: TrainState) -> None:
        checkpoint.save(self.checkpoints, state)

    def _require_space(self, state: TrainState) -> None:
        size = sum(array.nbytes for array in to_table(state).values())
        require_space(self.path, (checkpoint.KEPT + 2) * size)

    def _write_record(self, config: Config, samples: Samples | Pictures) -> None:
        record = {
            "format": RECORD,
            **_circumstances(),
            "data": samples.fingerprint(),
            "config": config.to_dict(),
        }
        self._replace_record(record)

    def _note_sitting(self, record: dict[str, Any]) -> None:
        """Versions and device with which a run goes on, where they are not those of before."""
        now, sittings = _circumstances(), record.get("sittings", [])
        if any((sittings or [record])[-1].get(name) != value for name, value in now.items()):
            self._replace_record({**record, "sittings": [*sittings, now]})

    def _replace_record(self, record: dict[str, Any]) -> None:
        replace_text(self.config_file, json.dumps(record, indent=2) + "\n")


def _circumstances() -> dict[str, Any]:
    """What a run depends on besides settings and data."""
    return {
        "version": __version__,
        "python": python(),
        "packages": packages(),
        "device": device(),
    }


def same_data(record: dict[str, Any], samples: Samples | Pictures) -> bool:
    """Whether a run's record is of these data, whatever they are called."""
    return record["data"].get("sha256") == samples.fingerprint()["sha256"]


def require_same(old: dict[str, Any], new: dict[str, Any], path: Path, where: str = "") -> None:
    """Refuse to go on in a folder with other settings than it was begun with."""
    for name, value in new.items():
        if isinstance(value, dict):
            require_same(old.get(name, {}), value, path, f"{where}{name}.")
        elif old.get(name) != value:
            raise InputError(
                f"{path} was begun with {where}{name} = {old.get(name)!r}, not {value!r}: resume "
                "with the same settings, or begin a new run in another folder."
            )
