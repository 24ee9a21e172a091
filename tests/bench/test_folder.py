"""A benchmark's folder is gone on with by whoever has the same settings."""

import pytest

from fenchel.bench.folder import BenchFolder
from fenchel.config import Config
from fenchel.errors import InputError


def test_a_folder_of_an_earlier_version_is_gone_on_with(tmp_path):
    """What there was no setting for had the default, or what was done before there was one."""
    folder, config = BenchFolder(tmp_path), Config()
    earlier = config.to_dict()
    del earlier["training"]["scouts"], earlier["start"]["fresh"]
    folder.write("settings", earlier)
    folder.claim_for(config.with_values(training__scouts=0.0))
    with pytest.raises(InputError, match=r"begun with training.scouts = 0.0, not 0.25"):
        folder.claim_for(config)
    with pytest.raises(InputError, match=r"begun with start.fresh = 'noise', not 'occluded'"):
        folder.claim_for(config.with_values(training__scouts=0.0, start__fresh="occluded"))


def test_a_new_folder_is_claimed_and_other_settings_are_refused(tmp_path):
    folder = BenchFolder(tmp_path / "new")
    folder.claim({"rows": (1, 2)})
    folder.claim({"rows": [1, 2]})
    with pytest.raises(InputError, match=r"begun with rows = \[1, 2\], not \[1, 3\]"):
        folder.claim({"rows": [1, 3]})
