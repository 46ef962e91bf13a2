"""Runs the experiments of tierdex: papers, comparisons of builds, and comparisons with other engines."""
