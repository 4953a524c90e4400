"""``tf.sysconfig``, and ``tf.load_op_library`` and its kin: for building operations in C++, which tfray does not have.

Each function says what to do instead.
"""

from __future__ import annotations

from typing import NoReturn

from tfray.errors import UnimplementedError
from tfray.library.platform.version import CXX11_ABI_FLAG, MONOLITHIC_BUILD

__all__ = ["CXX11_ABI_FLAG", "MONOLITHIC_BUILD", "get_compile_flags", "get_include", "get_lib", "get_link_flags"]


def _refuse(what: str) -> NoReturn:
    raise UnimplementedError(
        f"tfray has no {what}: it is written in Python, and so are operations of your own (tf.py_func, or an OpDef)"
    )


def get_include() -> str:
    """Refuse: there are no C++ headers. Raises `UnimplementedError`."""
    _refuse("C++ headers")


def get_lib() -> str:
    """Refuse: there is no C++ library. Raises `UnimplementedError`."""
    _refuse("C++ library")


def get_compile_flags() -> list[str]:
    """Refuse: there are no C++ headers. Raises `UnimplementedError`."""
    _refuse("C++ headers to compile with")


def get_link_flags() -> list[str]:
    """Refuse: there is no C++ library. Raises `UnimplementedError`."""
    _refuse("C++ library to link with")
