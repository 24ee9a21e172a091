"""What is shown and said of models of pictures."""
