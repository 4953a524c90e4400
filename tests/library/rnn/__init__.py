"""Tests of recurrent networks and decoders."""
