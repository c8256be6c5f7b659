"""What is kept between starts, outside the run."""
