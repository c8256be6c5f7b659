.PHONY: check test bench columns shots

check: ## style, types and tests
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	pytest

test:
	pytest

bench: ## BIG and MANY are written to bench/ once: 1.3 GB
	python tests/benchmarks/bench.py

columns: ## the list of columns, from the registries
	python -m dumptui.core.tables.column_reference > COLUMNS.md

shots: ## the pictures of the README, from the demo run
	python screenshots/make.py
