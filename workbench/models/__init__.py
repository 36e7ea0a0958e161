"""A workload without a trace: descriptions of models -> blocks of operators with the axes that may divide them."""
