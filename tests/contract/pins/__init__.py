"""What every store of pins must keep."""
