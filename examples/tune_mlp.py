"""A search for the width and learning rate of a perceptron: trials of Ray Tune, each of two workers and a shard.

Run it::

    python examples/tune_mlp.py --trials 4 --steps 60

A trial takes as much room as its actors ask for, and ASHA stops those that learn least. It needs
Ray Tune: ``pip install 'tfray[tune,examples]'``.
"""

import argparse
import tempfile

import mlp
import ray
from ray import tune

import tfray as tf

SCALING = tf.train.ScalingConfig(workers=2, cpus_per_worker=0.5, cpus_per_parameter_server=0.25)


def build(config):
    """The trainer of one trial."""
    trainer, _ = mlp.build(hidden=config["hidden"], learning_rate=config["rate"], steps=config["steps"])
    return trainer


def search(trials: int, steps: int, storage_path: str) -> tune.ResultGrid:
    """Train so many trials, each for so many steps at most."""
    tuner = tune.Tuner(
        tf.tune.trainable(build, SCALING, report_every_steps=5),
        param_space={
            "hidden": tune.choice([32, 64, 128]),
            "rate": tune.loguniform(1e-5, 1e-2),
            "steps": steps,
        },
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=trials,
            scheduler=tune.schedulers.ASHAScheduler(time_attr="step", grace_period=max(1, steps // 6), max_t=steps),
            search_alg=tune.search.BasicVariantGenerator(random_state=0),
        ),
        run_config=tune.RunConfig(name="tune_mlp", storage_path=storage_path, verbose=0),
    )
    return tuner.fit()


def main() -> None:
    """Search, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=8, help="how many trials")
    parser.add_argument("--steps", type=int, default=120, help="steps of a trial that is not stopped")
    parser.add_argument("--storage", default=None, help="folder of the results; a temporary one by default")
    parser.add_argument("--address", default=None, help="Ray's address, as for `ray.init`; by default one is started")
    arguments = parser.parse_args()
    if not ray.is_initialized():
        ray.init(arguments.address)
    found = search(arguments.trials, arguments.steps, arguments.storage or tempfile.mkdtemp())
    for result in found:
        told = result.metrics
        print(f"hidden {result.config['hidden']:4d}  rate {result.config['rate']:.5f}  loss {told['loss']:.4f}", end="")
        print(f"  after {told['step']} steps")
    best = found.get_best_result()
    print(f"best: loss {best.metrics['loss']:.4f}, accuracy {best.metrics['accuracy']:.4f}, saved in {best.path}")


if __name__ == "__main__":
    main()
