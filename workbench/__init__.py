"""NPU Workbench: from a real trace to the predicted step on a card that does not exist."""
