"""What a run wrote about itself while it ran: streams, logs, metrics, phases and lifecycles."""
