"""A wide and deep classifier of people like those of a census, with ``tf.estimator``.

It runs in one process:

    python examples/estimator_wide_and_deep.py

and as a cluster, with a process for each task:

    tfray launch --chief --workers 2 --ps 1 --evaluator examples/estimator_wide_and_deep.py -- --model_dir=runs/people
"""

import argparse
import tempfile

import numpy as np

import tfray as tf

WORK = ["private", "state", "self-employed", "none"]
SCHOOL = ["basic", "school", "college", "university"]


def people(count, seed):
    """Made-up people: features by name, and whether each earns much."""
    rng = np.random.default_rng(seed)
    features = {
        "age": rng.integers(17, 80, count).astype(np.float32),
        "hours": rng.normal(40, 10, count).clip(0, 90).astype(np.float32),
        "work": rng.choice(WORK, count, p=[0.6, 0.2, 0.15, 0.05]),
        "school": rng.choice(SCHOOL, count),
    }
    experience = 2.0 - ((features["age"] - 50) / 18) ** 2
    taught = np.array(
        [{"basic": -1.5, "school": 0.0, "college": 1.0, "university": 2.0}[s] for s in features["school"]]
    )
    both = 1.5 * ((features["school"] == "university") & (features["work"] == "self-employed"))
    score = experience + taught + both + (features["hours"] - 40) / 8 - 1.5
    return features, (score + rng.logistic(size=count) > 0).astype(np.int64)


def columns():
    """The columns of the linear model, and those of the network."""
    column = tf.feature_column
    age = column.numeric_column("age", normalizer_fn=lambda age: (age - 48) / 18)
    hours = column.numeric_column("hours", normalizer_fn=lambda hours: (hours - 40) / 10)
    work = column.categorical_column_with_vocabulary_list("work", WORK)
    school = column.categorical_column_with_vocabulary_list("school", SCHOOL)
    wide = [work, school, column.crossed_column(["work", "school"], 100)]
    deep = [age, hours, column.indicator_column(school), column.embedding_column(work, 3)]
    return wide, deep


def input_fn(count, seed, repeat):
    """A function that gives batches of people."""

    def make():
        people_of_seed = tf.data.Dataset.from_tensor_slices(people(count, seed))
        return (people_of_seed.shuffle(1000, seed=seed).repeat() if repeat else people_of_seed).batch(100)

    return make


def serving_input_fn():
    """What an exported model is fed: serialized examples."""
    wide, deep = columns()
    spec = tf.feature_column.make_parse_example_spec(wide + deep)
    return tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)()


def main():
    """Train, evaluate, and export."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model_dir", default=None)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--people", type=int, default=8000)
    options = parser.parse_args()
    model_dir = options.model_dir or tempfile.mkdtemp()

    wide, deep = columns()
    config = tf.estimator.RunConfig(
        model_dir,
        tf_random_seed=1,
        save_checkpoints_steps=min(500, max(1, options.steps // 3)),
        experimental_max_worker_delay_secs=1,
    )
    classifier = tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide,
        linear_optimizer=tf.train.FtrlOptimizer(0.05),
        dnn_feature_columns=deep,
        dnn_optimizer=tf.train.AdagradOptimizer(0.05),
        dnn_hidden_units=[32, 16],
        config=config,
        loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE,
    )
    exporter = tf.estimator.FinalExporter("people", serving_input_fn)
    train = tf.estimator.TrainSpec(input_fn(options.people, 0, repeat=True), max_steps=options.steps)
    test = tf.estimator.EvalSpec(
        input_fn(4000, 1, repeat=False), steps=None, exporters=exporter, start_delay_secs=1, throttle_secs=1
    )
    is_alone = tf.estimator.train_and_evaluate(classifier, train, test) is not None
    if is_alone or config.task_type == "evaluator":
        results = classifier.evaluate(test.input_fn, name="end")
        print(f"step {results['global_step']}, accuracy {results['accuracy']:.4f}, auc {results['auc']:.4f}")


if __name__ == "__main__":
    main()
