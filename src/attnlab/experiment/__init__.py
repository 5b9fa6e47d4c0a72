"""An experiment: composed, checked, run in its folder; how commands start, and plans of sweeps."""
