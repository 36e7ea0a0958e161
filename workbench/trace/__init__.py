"""Files in: every producer's recording becomes a Trace."""
