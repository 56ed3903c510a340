"""The `vrag` command: run notebooks, check, forecast, report, metrics, draw, fetch."""
