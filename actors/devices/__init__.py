"""Devices in processes of their own: what an actor holds, and how it runs its part of a step."""
