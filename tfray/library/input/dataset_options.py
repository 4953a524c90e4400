"""Options of datasets. They say how TensorFlow is to run a pipeline; none changes the elements, here or there."""

from __future__ import annotations

from typing import Any, ClassVar


class _OptionsBase:
    """A set of named values. Names are TensorFlow's; any other is an AttributeError."""

    _types: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        object.__setattr__(self, "_given", {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._types:
            raise AttributeError(f"{type(self).__name__} has no option {name!r}; there are {', '.join(self._types)}")
        kind = self._types[name]
        if name not in self._given and issubclass(kind, _OptionsBase):
            self._given[name] = kind()
        return self._given.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._types:
            raise AttributeError(
                f"Cannot set the property {name} on {type(self).__name__}; there are {', '.join(self._types)}"
            )
        if value is not None and not isinstance(value, self._types[name]):
            wanted = self._types[name]
            raise TypeError(f'Property "{name}" must be of type {wanted}, got: {value!r} (type: {type(value)})')
        self._given[name] = value

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._types)

    def __hash__(self) -> int:
        return hash(type(self))

    def merge(self, options: Any) -> Any:
        """Its values and those of `options`. Raises `ValueError` where both set an option, to different values."""
        merged = type(self)()
        for name, kind in self._types.items():
            mine, given = self._given.get(name), options._given.get(name)
            if mine is not None and given is not None and issubclass(kind, _OptionsBase):
                merged._given[name] = mine.merge(given)
            elif mine is not None and given is not None and mine != given:
                raise ValueError(f"Cannot merge incompatible values ({mine} and {given}) of option: {name}")
            elif mine is not None or given is not None:
                merged._given[name] = mine if given is None else given
        return merged


class MapVectorizationOptions(_OptionsBase):
    """Whether functions are computed for many elements at once; here they are wherever their operations allow it."""

    _types: ClassVar[dict[str, Any]] = {"enabled": bool, "use_choose_fastest": bool}


class OptimizationOptions(_OptionsBase):
    """Which rewritings of pipelines TensorFlow makes; accepted for TensorFlow 1's sake."""

    _types: ClassVar[dict[str, Any]] = {
        "apply_default_optimizations": bool,
        "autotune": bool,
        "autotune_algorithm": int,
        "autotune_buffers": bool,
        "autotune_cpu_budget": int,
        "filter_fusion": bool,
        "filter_with_random_uniform_fusion": bool,
        "hoist_random_uniform": bool,
        "map_and_batch_fusion": bool,
        "map_and_filter_fusion": bool,
        "map_fusion": bool,
        "map_parallelization": bool,
        "map_vectorization": MapVectorizationOptions,
        "noop_elimination": bool,
        "parallel_batch": bool,
        "shuffle_and_repeat_fusion": bool,
    }


class ThreadingOptions(_OptionsBase):
    """How many threads TensorFlow takes; accepted for TensorFlow 1's sake: see `Dataset.map`."""

    _types: ClassVar[dict[str, Any]] = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class DistributeOptions(_OptionsBase):
    """How the input of replicas is shared; accepted for TensorFlow 1's sake: see `Dataset.shard`."""

    _types: ClassVar[dict[str, Any]] = {"auto_shard": bool, "auto_shard_policy": object, "num_devices": int}


class Options(_OptionsBase):
    """Options of a dataset, accepted for TensorFlow 1's sake: none changes the elements.

    So ``experimental_slack`` needs no `Dataset.prefetch` at the end, as it does in TensorFlow.
    """

    _types: ClassVar[dict[str, Any]] = {
        "experimental_deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": object,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": bool,
        "experimental_stats": object,
        "experimental_stateful_whitelist": object,
        "experimental_threading": ThreadingOptions,
    }
