"""Files that plugins of TensorBoard want beside the events of a graph: ``tensorflow.python.summary.plugin_asset``."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, TypeVar

from tfray.formats import files
from tfray.framework.graph import Graph, get_default_graph

__all__ = ["PluginAsset", "get_all_plugin_assets", "get_plugin_asset"]

FOLDER = "plugins"


class PluginAsset(ABC):
    """What a plugin knows of a graph. A derived class has the name of its plugin as `plugin_name`."""

    plugin_name: ClassVar[str | None] = None

    @abstractmethod
    def assets(self) -> Mapping[str, str | bytes]:
        """Contents of files by their names."""


_Asset = TypeVar("_Asset", bound=PluginAsset)


def get_plugin_asset(plugin_asset_cls: type[_Asset], graph: Graph | None = None) -> _Asset:
    """The asset of a plugin in a graph; the first call makes it.

    Args:
        plugin_asset_cls: Class of the asset.
        graph: The graph; the default graph when None.

    Raises:
        ValueError: The class has no `plugin_name`, or another class has the same one.
    """
    name = plugin_asset_cls.plugin_name
    if not name:
        raise ValueError(f"Class {plugin_asset_cls.__name__} has no plugin_name")
    asset = _assets_of(graph or get_default_graph()).setdefault(name, plugin_asset_cls())
    if not isinstance(asset, plugin_asset_cls):
        raise ValueError(f"Plugin name {name!r} belongs to {type(asset).__name__}, not to {plugin_asset_cls.__name__}")
    return asset


def get_all_plugin_assets(graph: Graph | None = None) -> list[PluginAsset]:
    """The assets of all plugins in a graph.

    Args:
        graph: The graph; the default graph when None.
    """
    return list(_assets_of(graph or get_default_graph()).values())


def write_plugin_assets(graph: Graph, logdir: str) -> None:
    """Write the files of the plugins of a graph, each plugin's into a folder below ``plugins``."""
    for asset in get_all_plugin_assets(graph):
        folder = os.path.join(logdir, FOLDER, str(asset.plugin_name))
        files.make_folders(folder)
        for name, contents in asset.assets().items():
            files.write_bytes(os.path.join(folder, name), contents.encode() if isinstance(contents, str) else contents)


def _assets_of(graph: Graph) -> dict[str, PluginAsset]:
    made: dict[str, PluginAsset] = graph.extra("plugin_assets", dict)
    return made
