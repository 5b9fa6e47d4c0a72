"""From the files that the stages left to one page that explains them."""
