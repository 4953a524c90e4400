"""Tests of the project as a whole: packages, examples, pages, benchmarks, and its own test runs."""
