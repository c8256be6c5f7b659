"""The app in its terminal. The only place that uses Textual's private API."""
