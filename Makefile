.PHONY: check test bench shots

check: ## style, types and tests
	ruff check .
	ruff format --check .
	mypy
	pytest

test:
	pytest

bench: ## BIG and MANY are written to bench/ once: 1.3 GB
	python tests/benchmarks/bench.py

shots: ## the pictures of the README, from the demo run
	python screenshots/make.py
