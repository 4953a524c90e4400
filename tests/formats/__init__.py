"""Tests of files and messages: what is written, what is read, what is damaged."""
