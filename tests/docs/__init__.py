"""Tests of the pages: what they show is run, what they state is compared."""
