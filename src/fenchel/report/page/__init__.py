"""A run as one HTML page that needs nothing but itself."""

from fenchel.report.page.document import html_report

__all__ = ["html_report"]
