"""What shows that the engine is right: the audit, the simulator, made-up members and a testing kit."""
