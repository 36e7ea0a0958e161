"""One card -> many: plans, what each card holds and does under them, schedules of pipelines."""
