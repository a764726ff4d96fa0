"""What a history is held to: one checker a property, and the audit, which judges every verdict again.

The audit (`heartwheel.proof.audit`) shares no rule with the engine and judges P1, P4 and P5 from the topics alone. The
checkers hold what the simulator alone can see: the job's batches, its clock and its state.
"""
