"""Every way in which data arrives, and what is said when it cannot be used."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fenchel.data import TOYS, as_samples, check_samples, load_samples, read_table
from fenchel.errors import InputError

X = np.random.default_rng(0).normal(size=(20, 3))


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(message: str):
    """The whole message is compared, so that each stays the sentence it was meant to be."""
    return pytest.raises(InputError, match=f"^{re.escape(message)}$")


def write(path: str, text: str) -> str:
    Path(path).write_text(text, encoding="utf-8")
    return path


def write_parquet(path: str, **columns) -> str:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table(columns), path)
    return path


# --- what is read ---------------------------------------------------------------------------------


def test_every_format_gives_the_same_table(folder):
    np.save("a.npy", X)
    np.savez("a.npz", x=X)
    np.savetxt("a.csv", X, delimiter=",", fmt="%.17g")
    write_parquet("a.parquet", **{f"c{j}": X[:, j] for j in range(3)})
    for name in ("a.npy", "a.npz", "a.csv", "a.parquet"):
        np.testing.assert_array_equal(read_table(name), X)
        np.testing.assert_array_equal(read_table(folder / name), X)


def test_extension_may_be_in_capitals(folder):
    with Path("A.NPY").open("wb") as file:
        np.save(file, X)
    np.testing.assert_array_equal(read_table("A.NPY"), X)


@pytest.mark.parametrize("name", ["x", "x_train", "data"])
def test_npz_prefers_the_known_names(folder, name):
    np.savez("a.npz", **{"labels": np.arange(20), name: X})
    np.testing.assert_array_equal(read_table("a.npz"), X)


def test_npz_takes_its_only_array_whatever_its_name(folder):
    np.savez_compressed("a.npz", anything=X)
    np.testing.assert_array_equal(read_table("a.npz"), X)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("header", ["", '"a, or b"{d}c\n'])
def test_csv_delimiter_and_header_are_found(folder, delimiter, header):
    text = header.format(d=delimiter) + f"1{delimiter}2\n\n3{delimiter} 4e0\n"
    samples = load_samples(write("a.csv", text))
    np.testing.assert_array_equal(samples.x, [[1, 2], [3, 4]])
    assert samples.columns == (("a, or b", "c") if header else ("x1", "x2"))


def test_csv_with_byte_order_mark_windows_lines_and_one_column(folder):
    Path("a.csv").write_bytes(b"\xef\xbb\xbfheight\r\n1\r\n2\r\n")
    samples = load_samples("a.csv")
    np.testing.assert_array_equal(samples.x, [[1], [2]])
    assert samples.columns == ("height",)


def test_csv_column_without_a_name_gets_one(folder):
    assert load_samples(write("a.csv", ",b\n1,2\n3,4\n")).columns == ("unnamed 1", "b")


def test_parquet_takes_integers_booleans_and_floats(folder):
    samples = load_samples(write_parquet("a.parquet", a=[1, 2], b=[True, False], c=[0.5, 0.25]))
    np.testing.assert_array_equal(samples.x, [[1, 1, 0.5], [2, 0, 0.25]])
    assert samples.columns == ("a", "b", "c")


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.float32, np.float64])
def test_numbers_of_any_type_become_float64(dtype):
    samples = as_samples(np.array([[0, 1], [1, 0]], dtype=dtype))
    assert samples.dtype == np.float64
    np.testing.assert_array_equal(samples, [[0, 1], [1, 0]])


def test_one_dimension_becomes_one_column():
    assert as_samples([1, 2, 4]).shape == (3, 1)


def test_samples_are_a_copy():
    original = X.copy()
    as_samples(original)[0, 0] = 99
    np.testing.assert_array_equal(original, X)


# --- files that are refused -----------------------------------------------------------------------


def test_missing_file(folder):
    for use in (read_table, load_samples):
        with refused("gone.csv does not exist; check the path."):
            use("gone.csv")


def test_folder_instead_of_file(folder):
    Path("a.csv").mkdir()
    with refused("a.csv is not a file; give the path of one."):
        read_table("a.csv")


@pytest.mark.parametrize(
    ("name", "kind"), [("a.xlsx", "ends in '.xlsx'"), ("a", "has no extension")]
)
def test_unknown_extension(folder, name, kind):
    with refused(f"{name} {kind}; the known ones are .npy, .npz, .csv, .parquet."):
        read_table(write(name, "1,2\n3,4\n"))


@pytest.mark.parametrize("kind", [".npy", ".npz", ".parquet"])
@pytest.mark.parametrize("content", ["", "1,2\n3,4\n"])
def test_text_under_a_binary_name(folder, kind, content):
    with refused(f"a{kind} is damaged or not a {kind} file; save it again as {kind}."):
        read_table(write(f"a{kind}", content))


@pytest.mark.parametrize("kind", [".npy", ".npz", ".parquet"])
def test_truncated_file(folder, kind):
    np.save("a.npy", X)
    np.savez("a.npz", x=X)
    write_parquet("a.parquet", a=X[:, 0])
    path = Path(f"a{kind}")
    path.write_bytes(path.read_bytes()[:-100])
    with refused(f"a{kind} is damaged or not a {kind} file; save it again as {kind}."):
        read_table(path)


def test_npz_under_the_name_of_npy(folder):
    np.savez("a.npz", x=X)
    Path("a.npz").rename("a.npy")
    with refused("a.npy is damaged or not a .npy file; save it again as .npy."):
        read_table("a.npy")


@pytest.mark.parametrize("content", [b"\x93NUMPY\x01\x00", b"1,2\x00\n", b"caf\xe9,2\n"])
def test_csv_that_is_no_text(folder, content):
    Path("a.csv").write_bytes(content)
    with refused("a.csv is not a csv file in UTF-8 text; save it again as one."):
        read_table("a.csv")


def test_csv_with_an_endless_entry(folder):
    with pytest.raises(InputError, match=r"^a\.csv is not a csv file \(field larger than"):
        read_table(write("a.csv", '"' + "1" * 200_000 + '"\n'))


@pytest.mark.parametrize("kind", [".npy", ".npz"])
def test_pickled_objects_are_never_loaded(folder, kind):
    objects = np.array([[1, None], [2, "a"]], dtype=object)
    np.save("a.npy", objects, allow_pickle=True)
    np.savez("a.npz", x=objects)
    with refused(
        f"a{kind} holds Python objects, which are not loaded because they can run code; "
        "save it again as an array of numbers."
    ):
        read_table(f"a{kind}")


def test_npz_with_several_unknown_names(folder):
    np.savez("a.npz", left=X, right=X)
    with refused("a.npz holds the arrays left, right; name the one to fit 'x'."):
        read_table("a.npz")


def test_npz_without_arrays(folder):
    np.savez("a.npz")
    with refused("a.npz holds no arrays; name the one to fit 'x'."):
        read_table("a.npz")


def test_npz_array_of_images(folder):
    np.savez("a.npz", x=np.zeros((2, 3, 4)))
    with refused(
        "a.npz, array 'x', has 3 dimensions, (2, 3, 4); "
        "flatten each example first, as in x.reshape(len(x), -1), or, if they "
        "are pictures, choose settings for those, as --preset mnist."
    ):
        read_table("a.npz")


def test_csv_names_every_column_of_text(folder):
    text = "kind,size,colour\nred,1,a\nwhite,2,b\n"
    with refused(
        "a.csv: not every entry of columns 'kind', 'colour' is a number; drop or encode them."
    ):
        read_table(write("a.csv", text))


def test_csv_names_a_column_with_one_word_in_it(folder):
    with refused("a.csv: not every entry of column 'x2' is a number; drop or encode it."):
        read_table(write("a.csv", "1,2\n3,four\n5,6\n"))


def test_parquet_names_every_column_of_text(folder):
    path = write_parquet("a.parquet", kind=["r", "w"], size=[1, 2], colour=["a", "b"])
    with refused(
        "a.parquet: not every entry of columns 'kind', 'colour' is a number; drop or encode them."
    ):
        read_table(path)


def test_csv_names_the_ragged_line(folder):
    with refused(
        "a.csv: line 4 has another number of entries (1) than the first line (2); mend that line."
    ):
        read_table(write("a.csv", "a,b\n1,2\n\n3\n4,5\n"))


@pytest.mark.parametrize("missing", ["", " ", "NA", "nan", "?", "null"])
def test_csv_with_a_missing_entry(folder, missing):
    with refused(
        "a.csv: row 2 of column 'b' is missing (empty or NaN); drop the row or fill in numbers."
    ):
        read_table(write("a.csv", f"a,b\n1,2\n3,{missing}\n4,5\n"))


def test_csv_without_header_may_begin_with_a_missing_entry(folder):
    with refused(
        "a.csv: row 1 of column 'x2' is missing (empty or NaN); drop the row or fill in numbers."
    ):
        read_table(write("a.csv", "1,\n3,4\n"))


def test_parquet_with_missing_entries(folder):
    path = write_parquet("a.parquet", a=[1, 2, 3], b=[True, None, None])
    with refused(
        "a.parquet: row 2 of column 'b' is missing (empty or NaN); "
        "drop the 2 such rows or fill in numbers."
    ):
        read_table(path)


@pytest.mark.parametrize("text", ["", "\n\n", "a,b\n"])
def test_csv_without_rows(folder, text):
    with pytest.raises(InputError, match=r"^a\.csv is empty; at least two rows"):
        read_table(write("a.csv", text))


def test_parquet_without_pyarrow(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused(
        "Reading a.parquet needs pyarrow; install it with pip install 'fenchel[parquet]'."
    ):
        read_table(write("a.parquet", "PAR1"))


# --- arrays that are refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            np.zeros((5, 2, 2)),
            "The data has 3 dimensions, (5, 2, 2); "
            "flatten each example first, as in x.reshape(len(x), -1), or, if they are pictures, "
            "choose settings for those, as --preset mnist.",
        ),
        (3.0, "The data is a single number; give one row for each example."),
        (
            np.array([1j, 2j]),
            "The data is complex; give its real and imaginary parts as columns of their own.",
        ),
        (["a", "b"], "The data holds text; convert every entry to a number."),
        ([[1, None], [2, 3]], "The data holds objects; convert every entry to a number."),
        ([[1, 2], [3]], "The data is not a rectangular array; make its rows equally long."),
        ([], "The data is empty; at least two rows and one column are needed."),
        (np.empty((0, 3)), "The data is empty; at least two rows and one column are needed."),
        (np.empty((3, 0)), "The data is empty; at least two rows and one column are needed."),
        ([[1, 2]], "The data has a single row; at least two are needed."),
        (
            [[1, 2], [np.nan, 3]],
            "The data: row 2 of column 'x1' is missing (empty or NaN); "
            "drop the row or fill in numbers.",
        ),
        (
            [[1, 2], [3, 4], [5, -np.inf]],
            "The data: row 3 of column 'x2' is infinite (-inf); drop the row or fill in numbers.",
        ),
        (
            np.ma.masked_equal([[1, 2], [3, 4]], 4),
            "The data: row 2 of column 'x2' is missing (empty or NaN); "
            "drop the row or fill in numbers.",
        ),
        (
            [[1, 2], [1, 3]],
            "The data: column 'x1' is constant, so no density exists; drop it.",
        ),
        (
            [[1, 2, 3], [1, 5, 3]],
            "The data: columns 'x1', 'x3' are constant, so no density exists; drop them.",
        ),
    ],
)
def test_bad_array(x, message):
    with refused(message):
        as_samples(x)


def test_check_samples_uses_the_names_it_is_given():
    with refused("Held-out rows: column 'b' is constant, so no density exists; drop it."):
        check_samples(np.array([[1.0, 2.0], [3.0, 2.0]]), "Held-out rows", columns=("a", "b"))


# --- one door for all -----------------------------------------------------------------------------


def test_load_a_toy():
    samples = load_samples("moons", size=100, seed=4)
    np.testing.assert_array_equal(samples.x, TOYS["moons"].sample(100, 4))
    assert (samples.name, samples.toy, samples.columns) == ("moons", TOYS["moons"], ("x1", "x2"))


def test_a_toy_has_fifty_thousand_points_by_default():
    assert load_samples("Uniform").x.shape == (50_000, 2)


def test_load_an_array_and_a_file(folder):
    np.save("wine.npy", X)
    for source, name in ((X, "array"), ("wine.npy", "wine"), (Path("wine.npy"), "wine")):
        samples = load_samples(source)
        np.testing.assert_array_equal(samples.x, X)
        assert (samples.name, samples.toy, samples.columns) == (name, None, ("x1", "x2", "x3"))


def test_a_data_frame_keeps_its_column_names():
    class Frame:
        columns = ("a", 2)

        def __array__(self, dtype=None, copy=None):
            return np.array([[1, 2], [3, 4]])

    assert load_samples(Frame()).columns == ("a", "2")


def test_neither_toy_nor_file(folder):
    with refused("'Moons' is neither a toy data set nor an existing file; did you mean 'moons'?"):
        load_samples("Moons")
    with pytest.raises(InputError, match=r"^'quux' is neither .*; the toys are 2spirals, .*\.$"):
        load_samples("quux")


def test_a_column_is_found_by_its_name_whatever_it_is_called():
    """Also where the names are the usual ones, in another order."""
    turned = load_samples(np.array([[1.0, 2.0], [3.0, 5.0]]))
    named = replace(turned, columns=("x2", "x1"))
    np.testing.assert_array_equal(named.in_order(("x1", "x2")), [[2.0, 1.0], [5.0, 3.0]])
    np.testing.assert_array_equal(turned.in_order(("height", "weight")), turned.x)
    np.testing.assert_array_equal(named.in_order(("x1", "x2")), named.x[:, ::-1])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('name,size\na,"1,234"\nb,"2,345"\n', "commas within numbers, as in '1,234'"),
        ("size\n1 2\n3 4\n", "several numbers in one entry, '1 2'"),
        ("day,size\n2020 01 02,1\n2020 01 03,2\n", "not every entry of column 'day'"),
        ("a\nnone none\n1\n2\n", "not every entry of column 'a'"),
    ],
)
def test_a_csv_says_why_it_is_no_table_of_numbers(tmp_path, text, reason):
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(reason)):
        load_samples(path)


def test_a_column_without_a_name_has_one_of_its_own(tmp_path):
    """As the index that pandas writes first."""
    path = tmp_path / "data.csv"
    path.write_text(",x1,x2\n0,1,2\n1,3,5\n")
    assert load_samples(path).columns == ("unnamed 1", "x1", "x2")


def test_the_column_that_is_too_wide_is_named():
    x = np.array([[1.0, -1.7e308], [2.0, 1.7e308]])
    with pytest.raises(InputError, match=re.escape("column 'x2' runs from -1.7e+308 to 1.7e+308")):
        load_samples(x)
