"""Compares tierdex with other engines: same tokens, same queries, same run, engines alternating."""
