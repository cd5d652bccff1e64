"""Every engine against the oracle, and every code against every loss."""
