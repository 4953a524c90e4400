"""`tf.make_template`: functions that share their variables between calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tfray.errors import OpError
from tfray.framework.call_site import user_site
from tfray.framework.graph import get_default_graph
from tfray.framework.graph_keys import GraphKeys
from tfray.library.variables.variable_scope import VariableScope, variable_scope


class Template:
    """A function whose variables, got by `tf.get_variable`, are made in the first call and shared by all later ones.

    See `make_template`.
    """

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Callable[..., Any] | None = None,
        create_graph_function: bool = False,
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        if create_graph_function:
            raise ValueError("create_graph_function_ makes sense with eager execution only; leave it out")
        self._name = name
        self._site = user_site()
        self._func = func
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._variables_created = False
        self._variable_scope: VariableScope | None = None
        if create_scope_now:
            with variable_scope(
                unique_name, None if unique_name else name, custom_getter=custom_getter, auxiliary_name_scope=False
            ) as scope:
                self._variable_scope = scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function within the template's variable scope.

        Raises:
            ValueError: A call after the first makes trainable variables.
        """
        if self._variable_scope is not None:
            with variable_scope(self._variable_scope, reuse=self._variables_created):
                return self._call(args, kwargs)
        default = None if self._unique_name else self._name
        with variable_scope(self._unique_name, default, custom_getter=self._custom_getter) as scope:
            self._variable_scope = scope
            return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        trainable = get_default_graph().get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        before = len(trainable)
        try:
            result = self._func(*args, **kwargs)
        except Exception as error:
            where = f"\n  the template {self._name!r} was originally defined at: {self._site}"
            if isinstance(error, OpError):
                error.message += where
            elif error.args and isinstance(error.args[0], str):
                error.args = (error.args[0] + where, *error.args[1:])
            raise
        if self._variables_created and len(trainable) != before:
            raise ValueError(
                f"the template {self._name!r} made trainable variables in a call after the first, by tf.Variable "
                f"where tf.get_variable is meant: {trainable[before:]}"
            )
        self._variables_created = True
        return result

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope of the variables; None before the first call, unless it was made at once."""
        return self._variable_scope

    var_scope = variable_scope

    @property
    def variable_scope_name(self) -> str | None:
        """Name of the scope, with a slash at its end."""
        if self._variable_scope is None:
            return None
        name = self._variable_scope.name
        return name if not name or name.endswith("/") else f"{name}/"

    def _within(self, collection: str) -> list[Any]:
        if not self._variables_created:
            return []
        return get_default_graph().get_collection(collection, self.variable_scope_name)

    @property
    def global_variables(self) -> list[Any]:
        """The variables that checkpoints save."""
        return self._within(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        """The variables that they do not save."""
        return self._within(GraphKeys.LOCAL_VARIABLES)

    @property
    def variables(self) -> list[Any]:
        """Global and local variables."""
        return self.global_variables + self.local_variables

    weights = variables

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables that optimizers change."""
        return self._within(GraphKeys.TRAINABLE_VARIABLES)

    trainable_weights = trainable_variables

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The others."""
        return [variable for variable in self.variables if variable not in self.trainable_variables]

    non_trainable_weights = non_trainable_variables


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Make a function share its variables between calls.

    Args:
        name_: Name of the variable scope, made unique.
        func_: The function. It gets its variables by `tf.get_variable`.
        create_scope_now_: Make the scope here, not in the first call: it counts for names in that order.
        unique_name_: Name of the scope instead, taken as it is.
        custom_getter_: Function through which variables are got (see `tf.variable_scope`).
        **kwargs: Arguments of the function that are always the same.

    Returns:
        A `Template`, to be called with the other arguments.

    Raises:
        ValueError: `name_` is None. When it is called: a call after the first makes trainable variables.

    Examples:
        >>> def scaled(x):
        ...     return x * tf.get_variable("factor", initializer=2.0)
        >>> double = tf.make_template("double", scaled)
        >>> both = double(1.0), double(3.0)
        >>> len(tf.trainable_variables())
        1
    """
    return Template(
        name_,
        functools.partial(func_, **kwargs) if kwargs else func_,
        create_scope_now_,
        unique_name_,
        custom_getter_,
    )
