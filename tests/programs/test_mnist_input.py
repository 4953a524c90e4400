"""`input_data` of TensorFlow's tutorials, on small files in the form of MNIST's."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import tfray as tf
from tfray.contrib.learn import datasets, run_n
from tfray.errors import DataLossError, NotFoundError
from tfray.programs import mnist_model
from tfray.programs.mnist_input import FILES, VARIABLE, DataSet, extract_images, extract_labels, read_data_sets

IMAGES = np.random.default_rng(0).integers(0, 256, [30, 4, 5], np.uint8)
LABELS = np.arange(30, dtype=np.uint8) % 10


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()


@pytest.fixture
def folder(tmp_path):
    for name, array in zip(FILES, (IMAGES, LABELS, IMAGES[:7], LABELS[:7]), strict=True):
        (tmp_path / name).write_bytes(gzip.compress(idx(array)))
    return tmp_path


def test_the_files_become_three_sets(folder):
    sets = read_data_sets(str(folder), validation_size=5)
    assert [each.num_examples for each in sets] == [25, 5, 7]
    np.testing.assert_allclose(sets.train.images, IMAGES[5:].reshape(25, 20) / 255, rtol=1e-6)
    assert sets.train.images.dtype == np.float32 and sets.train.labels.dtype == np.uint8
    np.testing.assert_array_equal(sets.validation.labels, LABELS[:5])
    np.testing.assert_array_equal(sets.test.labels, LABELS[:7])


def test_options(folder):
    sets = read_data_sets(str(folder), one_hot=True, dtype=tf.uint8, reshape=False, validation_size=0)
    np.testing.assert_array_equal(sets.train.images, IMAGES[..., None])
    np.testing.assert_array_equal(sets.train.labels, np.eye(10)[LABELS])
    assert sets.validation.num_examples == 0


def test_files_that_are_not_compressed(folder):
    for name in FILES:
        (folder / name.removesuffix(".gz")).write_bytes(gzip.decompress((folder / name).read_bytes()))
        (folder / name).unlink()
    assert read_data_sets(str(folder), validation_size=0).train.num_examples == 30


def test_the_environment_names_the_folder(folder, monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(folder))
    assert read_data_sets(str(tmp_path / "MNIST_data"), validation_size=0).train.num_examples == 30


def test_without_files_the_error_says_where_they_belong(folder, tmp_path):
    (folder / FILES[2]).unlink()
    with pytest.raises(NotFoundError) as caught:
        read_data_sets(str(folder))
    message = str(caught.value)
    assert f"{FILES[2]} is missing" in message and FILES[0] in message and str(folder) in message
    assert VARIABLE in message and "downloads nothing" in message


@pytest.mark.parametrize(
    ("contents", "match"),
    [
        (b"no data", "cut off"),
        (gzip.compress(idx(IMAGES)[:20]), "bytes of data"),
        (gzip.compress(idx(LABELS)), "no IDX file of rank 3"),
        (gzip.compress(idx(IMAGES))[:60], "cut off"),
    ],
    ids=["nothing compressed", "too few bytes", "labels", "half a file"],  # gzip writes the time into what it makes
)
def test_files_that_are_something_else(folder, contents, match):
    (folder / FILES[0]).write_bytes(contents)
    with pytest.raises(DataLossError, match=match):
        read_data_sets(str(folder))


def test_too_many_for_validation(folder):
    with pytest.raises(ValueError, match="validation_size is 5000, and there are 30"):
        read_data_sets(str(folder))


def test_batches_go_on_into_the_next_epoch(folder):
    train = read_data_sets(str(folder), validation_size=0, reshape=False, dtype=tf.uint8, seed=1).train
    first = [train.next_batch(10) for _ in range(3)]
    assert train.epochs_completed == 0
    assert sorted(np.concatenate([labels for _, labels in first])) == sorted(LABELS)
    for images, labels in first:
        for image, label in zip(images, labels, strict=True):
            assert label in LABELS[(IMAGES[..., None] == image).all((1, 2, 3))]
    train.next_batch(25)
    images, _ = train.next_batch(10)
    assert train.epochs_completed == 2 and len(images) == 10


def test_batches_in_order():
    train = DataSet(IMAGES[..., None], LABELS)
    np.testing.assert_array_equal(train.next_batch(20, shuffle=False)[1], LABELS[:20])
    np.testing.assert_array_equal(train.next_batch(20, shuffle=False)[1], np.r_[LABELS[20:], LABELS[:10]])


def test_a_seed_says_the_order(folder):
    """The order is that of NumPy's global generator, seeded with the seed, as in TensorFlow."""
    train = read_data_sets(str(folder), validation_size=0, seed=3).train
    np.random.seed(3)
    order = np.arange(30)
    np.random.shuffle(order)
    np.random.seed(3)
    np.testing.assert_array_equal(train.next_batch(30)[1], LABELS[order])


def test_made_up_data():
    sets = read_data_sets("nowhere", fake_data=True, one_hot=True)
    images, labels = sets.train.next_batch(2)
    assert sets.train.num_examples == 10000 and images == [[1] * 784] * 2 and labels == [[1] + [0] * 9] * 2


def test_dtypes_that_do_not_do():
    with pytest.raises(TypeError, match="uint8 or float32, not int64"):
        DataSet(IMAGES[..., None], LABELS, dtype=tf.int64)


def test_files_can_be_extracted(folder):
    with (folder / FILES[0]).open("rb") as file:
        np.testing.assert_array_equal(extract_images(file), IMAGES[..., None])
    with (folder / FILES[1]).open("rb") as file:
        np.testing.assert_array_equal(extract_labels(file, one_hot=True), np.eye(10)[LABELS])


def test_the_tutorials_model_learns():
    images = tf.placeholder(tf.float32, [None, 784])
    labels = tf.placeholder(tf.int32, [None])
    tf.set_random_seed(0)
    logits = mnist_model.inference(images, 16, 8)
    loss = mnist_model.loss(logits, labels)
    step, correct = mnist_model.training(loss, 0.5), mnist_model.evaluation(logits, labels)
    assert [each.op.name for each in tf.trainable_variables()][:3] == [
        "hidden1/weights", "hidden1/biases", "hidden2/weights",
    ]  # fmt: skip
    feeds = {images: np.random.default_rng(0).normal(size=[10, 784]) / 10, labels: np.arange(10)}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(200):
            session.run(step, feeds)
        assert session.run(correct, feeds) == 10
        assert session.run("global_step:0") == 200


def test_files_of_comma_separated_values(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_text("2,2,a,b\n5.1,3.5,0\n4.9,3.0,1\n")
    data, target = datasets.base.load_csv_with_header(path, np.int32, np.float32)
    np.testing.assert_array_equal(data, np.float32([[5.1, 3.5], [4.9, 3.0]]))
    np.testing.assert_array_equal(target, [0, 1])
    path.write_text("0,1,2\n1,3,4\n")
    assert datasets.load_csv_without_header(path, np.int32, np.int32, 0).target.tolist() == [0, 1]
    with pytest.raises(NotFoundError, match="downloads nothing"):
        datasets.maybe_download("x.csv", str(tmp_path), "https://example.org/x.csv")
    with pytest.raises(ValueError, match="load_dataset has iris, mnist"):
        datasets.load_dataset("dbpedia")


def test_tensors_run_several_times():
    counter = tf.Variable(0)
    values = run_n({"next": counter.assign_add(2)}, n=3)
    assert [each["next"] for each in values] == [2, 4, 6]
    with pytest.raises(ValueError, match="output_dict is invalid"):
        run_n({})
