"""`tf.contrib.tfprof.ProfileContext`: some of the steps that sessions run are recorded and profiled."""

from __future__ import annotations

import pytest

import tfray as tf

ProfileContext = tf.contrib.tfprof.ProfileContext
OPTIONS = tf.profiler.ProfileOptionBuilder.time_and_memory(min_micros=0, min_bytes=0)


@pytest.fixture
def product():
    x = tf.random_uniform([8, 8], seed=1)
    return tf.matmul(x, x, name="product")


def run_counts(profile):
    """How often each type of operation was recorded."""
    return {node.name: node.run_count for node in profile.children}


def test_steps_that_are_named(product, tmp_path):
    folder = tmp_path / "new"
    with ProfileContext(str(folder), trace_steps=range(1, 4), dump_steps=[2], debug=True) as context:
        context.add_auto_profiling("op", OPTIONS, [2, 3])
        context.add_auto_profiling("scope", OPTIONS, [3])
        with tf.Session() as session:
            for _ in range(5):
                assert session.run(product).shape == (8, 8)
    found = context.get_profiles("op")
    assert [run_counts(found[step])["MatMul"] for step in (2, 3)] == [2, 3]
    assert list(context.get_profiles("scope")) == [3]
    assert sorted(path.name for path in folder.iterdir()) == ["profile_2", *(f"run_meta_{i}" for i in (1, 2, 3))]
    assert "product" in (folder / "profile_2").read_text() and "product" in (folder / "run_meta_1").read_text()
    with pytest.raises(ValueError, match="No autoprofiler for command: graph"):
        context.get_profiles("graph")


def test_the_next_step(product, tmp_path):
    with ProfileContext(str(tmp_path), trace_steps=[], dump_steps=[]) as context, tf.Session() as session:
        session.run(product)
        context.trace_next_step()
        session.run(product, options=tf.RunOptions(timeout_in_ms=60_000))
        session.run(product)
        assert run_counts(context.profiler.profile_operations(OPTIONS))["MatMul"] == 1
        context.dump_next_step()
        session.run(product)
    assert [path.name for path in tmp_path.iterdir()] == ["profile_3"]


def test_steps_are_chosen_after_ten(product, tmp_path):
    other = product + 1
    with ProfileContext(str(tmp_path)) as context, tf.train.MonitoredSession() as session:
        for _ in range(12):
            session.run(product)
        for _ in range(3):
            session.run(other)
    counts = run_counts(context.profiler.profile_operations(OPTIONS))
    assert counts["MatMul"] == 2 and list(tmp_path.iterdir()) == []


def test_what_was_recorded_is_given_too(product, tmp_path):
    metadata = tf.RunMetadata()
    with ProfileContext(str(tmp_path), trace_steps=[0]), tf.Session() as session:
        session.run(product, run_metadata=metadata)
    assert metadata.step_stats.dev_stats


def test_nothing_happens_where_it_is_not_enabled(product):
    run = tf.Session.run
    with ProfileContext(None, enabled=False) as context, tf.Session() as session:
        assert tf.Session.run is run
        session.run(product)
    assert context.profiler is None


def test_misuse(tmp_path):
    run = tf.Session.run
    with pytest.raises(ValueError, match="Must have a directory for profile"):
        ProfileContext("")
    with pytest.raises(ValueError, match="Only support tracing up to 100 steps"):
        ProfileContext(str(tmp_path), trace_steps=range(101))
    with ProfileContext(str(tmp_path)) as context:
        with pytest.raises(RuntimeError, match="Already in context"), ProfileContext(str(tmp_path)):
            pass
        with pytest.raises(ValueError, match="Unknown cmd: python"):
            context.add_auto_profiling("python", OPTIONS, [1])
    assert tf.Session.run is run
