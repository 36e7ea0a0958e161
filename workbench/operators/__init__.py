"""What an operator is: kinds, shapes, FLOPs and bytes. No hardware, no time."""
