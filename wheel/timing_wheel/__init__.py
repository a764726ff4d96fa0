"""The hierarchical timing wheel, as a pure library: integers and arrays, no clock, no thread, no I/O."""
