"""The FID Inception network against the same in PyTorch, which is written down on its own below.

There batch normalisation is a layer, padding is in pixels, and pictures come enlarged.
"""

import numpy as np
import pytest

from fenchel.evaluate import features, load_inception
from fenchel.evaluate.pictures import prepared

torch = pytest.importorskip("torch")
functional = torch.nn.functional


def compare(path, pictures, tolerance):
    with np.load(path) as arrays:
        expected = TorchInception(arrays)(prepared(pictures))
    found = features(load_inception(path), pictures, batch=len(pictures))
    np.testing.assert_allclose(found, expected, atol=tolerance * np.max(expected))


def test_agrees_at_random_weights(tiny_inception):
    pictures = np.random.default_rng(0).integers(0, 256, (2, 20, 30, 3), np.uint8)
    compare(tiny_inception, pictures, 1e-5)


def test_agrees_at_the_real_weights(data_folder, cifar_pictures):
    compare(data_folder / "inception" / "fid_2015_fp16.npz", cifar_pictures[:4], 1e-5)


class TorchInception:
    def __init__(self, arrays):
        self.arrays = {name: torch.tensor(array).float() for name, array in arrays.items()}

    def __call__(self, prepared_pictures):
        x = torch.tensor(np.moveaxis(np.asarray(prepared_pictures), -1, 1))
        x = self.conv(x, "conv", stride=2, padding=0)
        x = self.conv(x, "conv_1", padding=0)
        x = self.conv(x, "conv_2")
        x = functional.max_pool2d(x, 3, 2)
        x = self.conv(x, "conv_3")
        x = self.conv(x, "conv_4", padding=0)
        x = functional.max_pool2d(x, 3, 2)
        for i in range(3):
            x = self.on_35(x, f"mixed_{i}" if i else "mixed")
        x = self.to_17(x, "mixed_3")
        for i in range(4, 8):
            x = self.on_17(x, f"mixed_{i}")
        x = self.to_8(x, "mixed_8")
        x = self.on_8(x, "mixed_9", mean3)
        x = self.on_8(x, "mixed_10", lambda x: functional.max_pool2d(x, 3, 1, padding=1))
        return x.mean((2, 3)).numpy()

    def conv(self, x, name, stride=1, padding=None):
        weight, beta, mean, var = (
            self.arrays[f"{name}.{field}"] for field in ("weight", "beta", "mean", "var")
        )
        if padding is None:
            padding = (weight.shape[2] // 2, weight.shape[3] // 2)
        x = functional.conv2d(x, weight, stride=stride, padding=padding)
        return functional.relu(functional.batch_norm(x, mean, var, None, beta, eps=1e-3))

    def convs(self, x, *names):
        for name in names:
            x = self.conv(x, name)
        return x

    def on_35(self, x, at):
        one = self.conv(x, f"{at}.conv")
        five = self.convs(x, f"{at}.tower.conv", f"{at}.tower.conv_1")
        tower = f"{at}.tower_1.conv"
        three = self.convs(x, tower, f"{tower}_1", f"{tower}_2")
        pooled = self.conv(mean3(x), f"{at}.tower_2.conv")
        return torch.cat([one, five, three, pooled], 1)

    def to_17(self, x, at):
        three = self.conv(x, f"{at}.conv", stride=2, padding=0)
        twice = self.convs(x, f"{at}.tower.conv", f"{at}.tower.conv_1")
        twice = self.conv(twice, f"{at}.tower.conv_2", stride=2, padding=0)
        return torch.cat([three, twice, functional.max_pool2d(x, 3, 2)], 1)

    def on_17(self, x, at):
        one = self.conv(x, f"{at}.conv")
        tower = f"{at}.tower.conv"
        seven = self.convs(x, tower, f"{tower}_1", f"{tower}_2")
        tower = f"{at}.tower_1.conv"
        twice = self.convs(x, tower, *(f"{tower}_{i}" for i in range(1, 5)))
        pooled = self.conv(mean3(x), f"{at}.tower_2.conv")
        return torch.cat([one, seven, twice, pooled], 1)

    def to_8(self, x, at):
        three = self.conv(x, f"{at}.tower.conv")
        three = self.conv(three, f"{at}.tower.conv_1", stride=2, padding=0)
        tower = f"{at}.tower_1.conv"
        seven = self.convs(x, tower, f"{tower}_1", f"{tower}_2")
        seven = self.conv(seven, f"{tower}_3", stride=2, padding=0)
        return torch.cat([three, seven, functional.max_pool2d(x, 3, 2)], 1)

    def on_8(self, x, at, pool):
        one = self.conv(x, f"{at}.conv")
        three = self.conv(x, f"{at}.tower_conv")
        twice = self.convs(x, f"{at}.tower_1_conv", f"{at}.tower_1_conv_1")
        pooled = self.conv(pool(x), f"{at}.tower_2_conv")
        split = [
            self.conv(maps, f"{at}.{tower}_mixed_{name}")
            for maps, tower in ((three, "tower"), (twice, "tower_1"))
            for name in ("conv", "conv_1")
        ]
        return torch.cat([one, *split, pooled], 1)


def mean3(x):
    return functional.avg_pool2d(x, 3, 1, padding=1, count_include_pad=False)
