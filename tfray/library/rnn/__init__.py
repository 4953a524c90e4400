"""Recurrent networks: cells, attention, decoders."""
