"""What hardware is: data with units, no time."""
