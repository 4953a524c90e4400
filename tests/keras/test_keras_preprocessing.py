"""tf.keras.preprocessing: values are those of TensorFlow 2.21's Keras."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tfray as tf
from tfray.errors import InvalidArgumentError

sequence, text = tf.keras.preprocessing.sequence, tf.keras.preprocessing.text
TEXTS = ["The cat, the dog!", "a dog"]


@pytest.mark.parametrize(
    ("sequences", "options", "expected"),
    [
        ([[1], [1, 2, 3], []], {}, [[0, 0, 1], [1, 2, 3], [0, 0, 0]]),
        ([[1], [1, 2, 3]], {"maxlen": 2}, [[0, 1], [2, 3]]),
        ([[1], [1, 2, 3]], {"maxlen": 2, "padding": "post", "truncating": "post", "value": 9}, [[1, 9], [1, 2]]),
        ([[[1, 2]], [[3, 4], [5, 6]]], {"value": -1}, [[[-1, -1], [1, 2]], [[3, 4], [5, 6]]]),
        ([["a"], []], {"dtype": object, "value": "pad"}, [["a"], ["pad"]]),
        ([[0.5]], {"dtype": "float32", "maxlen": 2}, [[0, 0.5]]),
    ],
)
def test_lists_become_rows(sequences, options, expected):
    assert sequence.pad_sequences(sequences, **options).tolist() == expected


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: sequence.pad_sequences([1, 2]), "list of lists"),
        (lambda: sequence.pad_sequences([[1]], padding="middle"), "padding is 'middle'"),
        (lambda: sequence.pad_sequences([[1]], truncating="middle"), "truncating is 'middle'"),
        (lambda: sequence.pad_sequences([[[1, 2]], [[1]]]), "elements have shapes"),
        (lambda: text.Tokenizer().texts_to_matrix(["a"]), "Specify a dimension"),
        (lambda: text.Tokenizer(num_words=3).texts_to_matrix(["a"], "tfidf"), "before using tfidf mode"),
        (lambda: text.Tokenizer(num_words=3).texts_to_matrix(["a"], "odd"), "Unknown vectorization mode: odd"),
    ],
)
def test_what_cannot_be_made(make, match):
    with pytest.raises(InvalidArgumentError, match=match):
        make()


@pytest.mark.parametrize(
    ("options", "numbers", "words"),
    [
        ({}, [[1, 1, 3], [2, 4]], ["the the cat", "dog a"]),
        ({"num_words": 3}, [[1, 1], [2]], ["the the", "dog"]),
        ({"num_words": 4, "oov_token": "<unk>"}, [[2, 1, 2, 1], [3, 1]], ["the <unk> the <unk>", "dog <unk>"]),
    ],
)
def test_texts_become_numbers(options, numbers, words):
    tokenizer = text.Tokenizer(**options)
    tokenizer.fit_on_texts(TEXTS)
    found = tokenizer.texts_to_sequences(["the bird the cat", "dog a"])
    assert found == numbers and tokenizer.sequences_to_texts(found) == words
    assert tokenizer.document_count == 2 and dict(tokenizer.word_docs) == {"the": 1, "cat": 1, "dog": 2, "a": 1}
    again = text.tokenizer_from_json(tokenizer.to_json())
    assert again.word_index == tokenizer.word_index and again.texts_to_sequences(TEXTS) == tokenizer.texts_to_sequences(
        TEXTS
    )


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("binary", [[0, 1, 1, 0, 0]]),
        ("count", [[0, 2, 1, 0, 0]]),
        ("freq", [[0, 0.667, 0.333, 0, 0]]),
        ("tfidf", [[0, 1.174, 0.511, 0, 0]]),
    ],
)
def test_texts_become_a_matrix(mode, expected):
    tokenizer = text.Tokenizer()
    tokenizer.fit_on_texts(TEXTS)
    np.testing.assert_allclose(tokenizer.texts_to_matrix(["the dog the"], mode), expected, atol=1e-3)


def test_characters_and_lists_of_words():
    characters = text.Tokenizer(char_level=True, num_words=6)
    characters.fit_on_texts(TEXTS)
    assert len(characters.texts_to_sequences(["the"])[0]) == 3
    lists = text.Tokenizer(lower=False, filters="")
    lists.fit_on_texts([["A", "b"], ["b"]])
    assert lists.word_index == {"b": 1, "A": 2} and lists.texts_to_sequences([["b"]]) == [[1]]
    lists.fit_on_sequences([[1, 2], [2]])
    assert lists.document_count == 4 and lists.index_docs[2] == 3
    with pytest.raises(TypeError, match="Unrecognized keyword arguments"):
        text.Tokenizer(words=3)
    assert text.Tokenizer(nb_words=3).num_words == 3


def test_words_and_their_hashes():
    assert text.text_to_word_sequence("Hello, World! x-y") == ["hello", "world", "x", "y"]
    assert text.text_to_word_sequence("a::B", split="::", filters="", lower=False) == ["a", "B"]
    assert text.hashing_trick("a b a", 10, "md5") == text.hashing_trick("a b a", 10, "md5") != [0, 0, 0]
    assert all(1 <= each < 10 for each in text.one_hot("a b c", 10))


def test_pairs_of_words():
    random.seed(1)
    pairs, labels = sequence.skipgrams([1, 2, 3, 0, 4], 5, window_size=1, seed=3)
    assert pairs == [[1, 2], [1, 1], [2, 4], [2, 3], [2, 1], [2, 4], [3, 3], [3, 2]]
    assert labels == [1, 0, 0, 1, 1, 0, 0, 1]
    options = {"negative_samples": 0, "shuffle": False, "categorical": True}
    assert sequence.skipgrams([1, 2], 5, **options) == ([[1, 2], [2, 1]], [[0, 1], [0, 1]])
    np.testing.assert_allclose(
        sequence.make_sampling_table(5), [0.00315, 0.00315, 0.00548, 0.00742, 0.00913], atol=1e-5
    )
    assert sequence.skipgrams([1, 2], 5, sampling_table=[-1, -1, -1]) == ([], [])


# -- images ------------------------------------------------------------------------------------------------

image = tf.keras.preprocessing.image
IMAGES = np.random.default_rng(2).uniform(0, 255, (6, 5, 5, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"tx": 1}, np.concatenate([IMAGES[0][1:], IMAGES[0][-1:]])),
        ({"ty": -2}, np.concatenate([IMAGES[0][:, :1]] * 2 + [IMAGES[0][:, :-2]], 1)),
        ({"flip_horizontal": True}, IMAGES[0][:, ::-1]),
        ({"flip_vertical": True}, IMAGES[0][::-1]),
        ({"channel_shift_intensity": 20.0}, np.minimum(IMAGES[0] + 20, IMAGES[0].max())),
        ({"brightness": 0.5}, IMAGES[0].astype(np.uint8) // 2),
    ],
)
def test_changes_of_an_image(change, expected):
    found = image.ImageDataGenerator().apply_transform(IMAGES[0], change)
    np.testing.assert_allclose(found, expected, atol=1.01 if "brightness" in change else 1e-2)


AXES = {"row_axis": 0, "col_axis": 1, "channel_axis": 2}
STEPS = (5 * np.arange(48.0, dtype=np.float32)).reshape(4, 4, 3)


@pytest.mark.parametrize(
    ("change", "elements", "total"),
    [
        (lambda: image.random_rotation(STEPS, 40, **AXES), [11.01, 34.86, 75.86, 106.49, 156.69, 232.8], 5762.6),
        (lambda: image.random_shift(STEPS, 0.3, 0.2, **AXES), [12.37, 47.37, 77.37, 114.88, 167.37, 235], 6085.3),
        (lambda: image.random_shear(STEPS, 30, **AXES), [8.03, 36.61, 73.03, 108.39, 156.61, 233.39], 5755.9),
        (lambda: image.random_zoom(STEPS, (0.6, 1.3), **AXES), [2.17, 36.45, 66.3, 111.3, 154.72, 234.57], 5647.1),
        (lambda: image.random_channel_shift(STEPS, 60, 2), [6.1, 41.1, 71.1, 116.1, 161.1, 235], 5925.4),
        (lambda: image.random_brightness(STEPS, (0.3, 0.9)), [0, 23, 44, 75, 105, 160], 3826),
        (lambda: image.apply_brightness_shift(STEPS, 0.5), [0, 18, 35, 59, 84, 127], 3035),
        (
            lambda: image.apply_affine_transform(STEPS, 20, 1, 0.5, 10, 0.9, 1.1, fill_mode="constant", cval=7.0),
            [154.17, 121.75, 7, 7, 7, 7],
            2614,
        ),
    ],
)
def test_random_changes_of_an_image(change, elements, total):
    """The values are TensorFlow 1.15's for this seed of NumPy's."""
    np.random.seed(3)
    found = np.asarray(change())
    np.testing.assert_allclose(found.ravel()[[0, 7, 13, 22, 31, 47]], elements, atol=0.011)
    np.testing.assert_allclose(found.sum(), total, rtol=1e-4)


def test_batches_of_images_are_written_to_a_folder(tmp_path):
    batches = image.ImageDataGenerator().flow(
        IMAGES, batch_size=4, shuffle=False, save_to_dir=str(tmp_path), save_prefix="seen", save_format="png"
    )
    batch = next(batches)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert [name.rsplit("_", 1)[0] for name in written] == ["seen_0", "seen_1", "seen_2", "seen_3"]
    shown = image.img_to_array(image.load_img(str(tmp_path / written[2])))
    stretched = (batch[2] - batch[2].min()) / (batch[2].max() - batch[2].min()) * 255
    np.testing.assert_allclose(shown, stretched, atol=1)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_features_are_scaled_as_they_were_found(data_format):
    x = IMAGES if data_format == "channels_last" else IMAGES.transpose(0, 3, 1, 2)
    over = (0, 1, 2) if data_format == "channels_last" else (0, 2, 3)
    generator = image.ImageDataGenerator(featurewise_std_normalization=True, rescale=0.5, data_format=data_format)
    with pytest.warns(UserWarning, match="hasn't been fit"):
        generator.standardize(x[0])
    generator.fit(x)
    (batch,) = generator.flow(x, batch_size=6, shuffle=False)[0][None]
    half = x / 2
    wanted = (half - half.mean(over, keepdims=True)) / half.std(over, keepdims=True)
    np.testing.assert_allclose(batch, wanted, atol=1e-4)
    whitened = image.ImageDataGenerator(zca_whitening=True)
    whitened.fit(IMAGES)
    flat = np.stack([whitened.standardize(each) for each in IMAGES]).reshape(6, -1)
    np.testing.assert_allclose(np.sort(np.linalg.svd(flat)[1])[1:], np.sqrt(6) * np.ones(5), rtol=1e-2)


def test_batches_of_arrays():
    y, weights = np.array([0, 1, 0, 1, 0, 1]), np.arange(6.0)
    generator = image.ImageDataGenerator(horizontal_flip=True, rotation_range=20, validation_split=0.5)
    one, other = (generator.flow(IMAGES, y, batch_size=4, seed=5) for _ in range(2))
    for _ in range(3):
        for found, again in zip(next(one), next(other), strict=True):
            np.testing.assert_array_equal(found, again)
    assert len(one) == 2 and [len(next(iter(one))[0]), len(next(one)[0])] == [2, 4]
    plain = image.ImageDataGenerator(validation_split=0.5)
    for subset, part in (("validation", slice(3)), ("training", slice(3, 6))):
        x, labels, counts = next(plain.flow(IMAGES, y, 8, False, weights, subset=subset))
        np.testing.assert_array_equal(x, IMAGES[part])
        assert [labels.tolist(), counts.tolist()] == [y[part].tolist(), weights[part].tolist()]
    (both, more), labels = plain.flow((IMAGES, [weights]), y, shuffle=False)[0]
    assert both.shape == IMAGES.shape and more.tolist() == weights.tolist() and labels.tolist() == y.tolist()
    with pytest.raises(ValueError, match="different number of classes"):
        plain.flow(IMAGES, np.sort(y), subset="training")
    with pytest.raises(ValueError, match="same length"):
        plain.flow(IMAGES, y[:3])
    model = tf.keras.Sequential([tf.keras.layers.Flatten(input_shape=(5, 5, 3)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    assert len(model.fit_generator(generator.flow(IMAGES, y, batch_size=2), epochs=2, verbose=0).epoch) == 2


def test_batches_of_files(tmp_path, capsys):
    pytest.importorskip("PIL")
    for number in range(5):
        folder = tmp_path / "ab"[number % 2]
        folder.mkdir(exist_ok=True)
        image.save_img(str(folder / f"{number}.png"), IMAGES[number], scale=False)
    (tmp_path / "a" / "notes.txt").write_text("no image")
    generator = image.ImageDataGenerator(rescale=0.5)
    flow = generator.flow_from_directory(str(tmp_path), (5, 5), shuffle=False)
    assert "Found 5 images belonging to 2 classes." in capsys.readouterr().out
    assert flow.class_indices == {"a": 0, "b": 1} and flow.classes.tolist() == [0, 0, 0, 1, 1]
    assert flow.filenames == ["a/0.png", "a/2.png", "a/4.png", "b/1.png", "b/3.png"]
    x, y = next(flow)
    np.testing.assert_array_equal(x, np.floor(IMAGES[[0, 2, 4, 1, 3]]) / 2)
    assert y.tolist() == [[1, 0]] * 3 + [[0, 1]] * 2
    grey = generator.flow_from_directory(str(tmp_path), (2, 3), "grayscale", None, "binary", 2, False)
    assert grey[0][0].shape == (2, 2, 3, 1) and grey[1][1].tolist() == [0, 1]
    assert next(generator.flow_from_directory(str(tmp_path), class_mode=None, classes=["b"])).shape == (2, 256, 256, 3)
    with pytest.raises(ValueError, match="Invalid class_mode"):
        generator.flow_from_directory(str(tmp_path), class_mode="all")
    with pytest.raises(tf.errors.NotFoundError):
        generator.flow_from_directory(str(tmp_path / "none"))


# -- tables and series -----------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path):
    """A table of four images, the third of which is none, and the folder of the images."""
    pytest.importorskip("PIL")
    pandas = pytest.importorskip("pandas")
    for number in (0, 1, 3):
        pixels = np.full([3, 2, 3], 50.0 * number + 10)
        tf.keras.preprocessing.image.save_img(str(tmp_path / f"{number}.png"), pixels, scale=False)
    columns = {
        "filename": [f"{number}.png" for number in range(4)],
        "class": ["b", "a", "a", "b"],
        "several": [["x"], ["x", "y"], ["y"], ["z"]],
        "size": [1.5, 2.5, 3.5, 4.5],
        "weight": [1.0, 2.0, 3.0, 4.0],
    }
    return pandas.DataFrame(columns), str(tmp_path)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [[0, 1], [1, 0], [0, 1]]),
        ({"class_mode": "sparse"}, [1, 0, 1]),
        ({"class_mode": "binary", "classes": ["b", "a"]}, [0, 1, 0]),
        ({"y_col": "several"}, [[1, 0, 0], [1, 1, 0], [0, 0, 1]]),
        ({"y_col": "several", "classes": ["x", "y"]}, [[1, 0], [1, 1]]),
        ({"class_mode": "raw", "y_col": "size"}, [1.5, 2.5, 4.5]),
        ({"class_mode": "raw", "y_col": ["size", "weight"]}, [[1.5, 1], [2.5, 2], [4.5, 4]]),
    ],
)
@pytest.mark.filterwarnings("ignore:Found 1 invalid")
def test_images_of_tables(table, settings, expected):
    frame, folder = table
    images = tf.keras.preprocessing.image.ImageDataGenerator(rescale=0.5)
    given = {"target_size": (3, 2), "shuffle": False, "weight_col": "weight", **settings}
    x, y, weights = images.flow_from_dataframe(frame, folder, **given)[0]
    assert y.tolist() == expected
    assert x.shape == (len(expected), 3, 2, 3)
    assert x[:, 0, 0, 0].tolist() == [5.0, 30.0, 80.0][: len(expected)]
    assert weights.tolist() == [1.0, 2.0, 4.0][: len(expected)]


@pytest.mark.filterwarnings("ignore:Found 1 invalid")
def test_parts_of_tables_and_what_they_refuse(table, capsys):
    frame, folder = table
    images = tf.keras.preprocessing.image.ImageDataGenerator(validation_split=0.34)
    parts = [images.flow_from_dataframe(frame, folder, subset=subset) for subset in ("training", "validation")]
    assert [part.filenames for part in parts] == [["1.png", "3.png"], ["0.png"]]
    assert parts[0].class_indices == {"a": 0, "b": 1}
    assert "Found 1 validated image filenames belonging to 2 classes." in capsys.readouterr().out
    two = images.flow_from_dataframe(frame, folder, class_mode="multi_output", y_col=["size", "weight"], shuffle=False)
    assert [part.tolist() for part in two[0][1]] == [[1.5, 2.5, 4.5], [1, 2, 4]]
    assert len(images.flow_from_dataframe(frame, folder, class_mode=None)[0]) == 3
    for kind, settings, words in (
        (ValueError, {"class_mode": "other"}, "Invalid class_mode"),
        (TypeError, {"class_mode": "multi_output"}, "y_col must be a list"),
        (TypeError, {"x_col": "size"}, "must be strings"),
        (TypeError, {"y_col": "size"}, "column values must be strings"),
        (ValueError, {"class_mode": "binary", "classes": ["a"]}, "there must be 2 classes"),
    ):
        with pytest.raises(kind, match=words):
            images.flow_from_dataframe(frame, folder, **settings)


def test_stretches_of_a_series():
    data, targets = np.arange(10).reshape(10, 1), np.arange(10) * 10
    made = sequence.TimeseriesGenerator(data, targets, 4, sampling_rate=2, batch_size=4)
    assert len(made) == 2
    assert made[0][0][..., 0].tolist() == [[0, 2], [1, 3], [2, 4], [3, 5]]
    assert made[0][1].tolist() == [40, 50, 60, 70] and made[1][1].tolist() == [80, 90]
    made = sequence.TimeseriesGenerator(data, targets, 3, stride=3, start_index=1, end_index=8, reverse=True)
    assert made[0][0][..., 0].tolist() == [[3, 2, 1], [6, 5, 4]]
    assert made[0][1].tolist() == [40, 70]
    made = sequence.TimeseriesGenerator(data, targets, 4, shuffle=True, batch_size=50)
    assert set(made[0][1].tolist()) <= set(range(40, 100, 10)) and len(made[0][1]) == 50
    with pytest.raises(ValueError, match="have to be of same length"):
        sequence.TimeseriesGenerator(data, targets[1:], 4)
    with pytest.raises(ValueError, match="is disallowed"):
        sequence.TimeseriesGenerator(data, targets, 10)
