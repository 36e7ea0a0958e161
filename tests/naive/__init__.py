"""An independent, naive simulator: the truth that tests compare the replay with."""
