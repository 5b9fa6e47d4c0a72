"""Pages that explain an experiment, or compare several, from the files of the other stages."""
