"""Delays frames of this process now and then, before they leave and before they are read.

Tests begin this in actors too, so that frames of different links arrive in every order.
"""

from __future__ import annotations

import random
import time

from tfray.actors.links.peer_link import Link

DELAYS_S = (0.0, 0.0, 0.0, 1e-5, 1e-4, 1e-3)


def _delayed(method):
    def later(self, *arguments):
        delay_s = random.choice(DELAYS_S)
        if delay_s:
            time.sleep(delay_s)
        return method(self, *arguments)

    return later


_UNDELAYED = Link.send_frame, Link.has_data


def begin():
    """Delay frames from now on."""
    Link.send_frame, Link.has_data = map(_delayed, _UNDELAYED)


def restore():
    """Delay nothing any more in this process."""
    Link.send_frame, Link.has_data = _UNDELAYED
