"""The FID Inception network: its size, its files, and numbers that are known."""

import jax
import numpy as np
import pytest

from fenchel.errors import InputError
from fenchel.evaluate import (
    feature_batches,
    feature_moments,
    features,
    frechet_distance,
    load_inception,
)
from fenchel.evaluate.inception import BLOCKS, STEM, Fork, Named

# The first features of CIFAR-10's first two test pictures, by PyTorch.
KNOWN = [[0.193186, 0.187637, 0.664077, 0.296056], [0.0152674, 0.0682455, 0.268467, 0.418706]]


def convolutions(parts):
    for part in parts:
        if isinstance(part, Named):
            yield part
        elif isinstance(part, Fork):
            for chain in part.chains:
                yield from convolutions(chain)


def test_has_94_convolutions():
    assert len(list(convolutions([*STEM, *BLOCKS.values()]))) == 94


def test_a_picture_has_the_same_features_in_any_batch(tiny_inception):
    network = load_inception(tiny_inception)
    pictures = np.random.default_rng(0).integers(0, 256, (3, 9, 7), np.uint8)
    found = features(network, pictures, batch=2)
    reversed_batches = list(feature_batches(network, pictures[::-1], batch=2))
    assert [len(batch) for batch in reversed_batches] == [2, 1]
    np.testing.assert_allclose(np.concatenate(reversed_batches)[::-1], found, rtol=1e-4)
    assert found.dtype == np.float32
    assert found.std(axis=0).max() > 0.0


def test_known_features(data_folder, cifar_pictures):
    network = load_inception(data_folder / "inception" / "fid_2015_fp16.npz")
    found = features(network, cifar_pictures[:2])
    assert found.shape == (2, 2048)
    np.testing.assert_allclose(found[:, :4], KNOWN, rtol=1e-3)


def test_the_published_fid(data_folder):
    """CIFAR-10's test against its training pictures, as everybody's networks have it."""
    path = data_folder / "cifar10.npz"
    if jax.default_backend() != "gpu" or not path.exists():
        pytest.skip("needs a GPU, and cifar10.npz in FENCHEL_DATA: 60,000 pictures")
    network = load_inception(data_folder / "inception" / "fid_2015_fp16.npz")
    with np.load(path) as file:
        of_train, of_test = (
            feature_moments(feature_batches(network, file[name])) for name in ("x_train", "x_test")
        )
    assert frechet_distance(of_test, of_train).value == pytest.approx(3.15, abs=0.01)


@pytest.fixture
def arrays(tiny_inception):
    with np.load(tiny_inception) as file:
        return dict(file)


def test_refuses_a_file_without_some_layer(arrays, tmp_path):
    del arrays["mixed_9.tower_conv.beta"]
    np.savez(tmp_path / "part.npz", **arrays)
    with pytest.raises(InputError, match=r"no array mixed_9\.tower_conv\.beta"):
        load_inception(tmp_path / "part.npz")


def test_refuses_a_kernel_of_another_size(arrays, tmp_path):
    arrays["conv_1.weight"] = arrays["conv_1.weight"][..., :2]
    np.savez(tmp_path / "part.npz", **arrays)
    with pytest.raises(InputError, match=r"conv_1\.weight has shape"):
        load_inception(tmp_path / "part.npz")


def test_refuses_layers_that_do_not_fit_together(arrays, tmp_path):
    weight = arrays["mixed_4.conv.weight"]
    arrays["mixed_4.conv.weight"] = np.concatenate([weight, weight], axis=1)
    np.savez(tmp_path / "part.npz", **arrays)
    with pytest.raises(InputError, match="do not fit together"):
        load_inception(tmp_path / "part.npz")


def test_refuses_what_is_no_file_of_arrays(tmp_path):
    with pytest.raises(InputError, match="no file"):
        load_inception(tmp_path / "nowhere.npz")
    with pytest.raises(InputError, match="no file"):
        load_inception(tmp_path)
    objects, one_array, text = tmp_path / "o.npz", tmp_path / "a.npy", tmp_path / "t.npz"
    np.savez(objects, conv=np.array([{}], dtype=object))
    np.save(one_array, np.zeros(3))
    text.write_text("weights")
    for path in (objects, one_array, text):
        with pytest.raises(InputError, match="cannot be read"):
            load_inception(path)


def test_refuses_a_damaged_file(tiny_inception, tmp_path):
    whole = tiny_inception.read_bytes()
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        load_inception(damaged)
    damaged.write_bytes(whole[:200] + bytes(100) + whole[300:])
    with pytest.raises(InputError, match="cannot be read"):
        load_inception(damaged)
