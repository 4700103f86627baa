"""Forecasts: what a running experiment may lose by its end (docs/forecasts.md)."""

from lighttail.forecasting.forecast import Forecast, forecast_from

__all__ = ["Forecast", "forecast_from"]
