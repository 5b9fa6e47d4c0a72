"""What each script of pipelines/ runs."""
