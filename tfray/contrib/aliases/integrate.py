"""``tf.contrib.integrate``: ordinary differential equations, by steps of given lengths or as long as errors allow."""

from tfray.library.functions.differential_equations import odeint, odeint_fixed

__all__ = ["odeint", "odeint_fixed"]
